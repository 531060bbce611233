//! `rialto policy add` and `allow`: the usual policies, and how a change of any is shown.

use rialto_api_types::agents::AgentRow;
use rialto_model::failure::{Failure, Kind};
use serde::Deserialize;
use serde_json::{Value, json};

use super::ToldRule;
use crate::{
    cli::{AddPolicy, AllowCalls, Listing, RoleName},
    desk::Desk,
    output::{self, Trouble},
    policies::Shelf,
};

/// A text that was kept, as it is told.
#[derive(Deserialize)]
pub(super) struct Kept {
    /// Where it is.
    pub(super) file: String,
    /// The policies in it.
    pub(super) policies: Vec<ToldRule>,
}

/// Allows calls of an agent or of one skill.
pub(super) async fn allow(desk: &Desk, allow: &AllowCalls) -> Result<(), Trouble> {
    let agent: Result<AgentRow, Failure> = desk.get(&["agents", &allow.target]).read().await;
    let (kind, target) = match agent {
        Ok(AgentRow { slug, .. }) => ("allow-agent", slug),
        Err(failure) if failure.kind == Kind::NotFound && allow.target.contains('.') => {
            ("allow-skill", allow.target.clone())
        }
        Err(failure) => return Err(failure.into()),
    };
    let wish = json!({
        "kind": kind,
        "target": target,
        "caller": allow.caller.as_deref().unwrap_or_default(),
        "callerKind": allow.caller_kind.kind(),
    });
    let kept: Kept = desk.post(&["policies", "templates"]).saying(&wish).read().await?;
    let caller = allow.caller.as_deref().unwrap_or("everybody");
    output::line(format!("{} may call {target}: {}", output::printable(caller), kept.file));
    Ok(())
}

/// Writes one of the usual policies.
pub(super) async fn add(desk: &Desk, add: &AddPolicy) -> Result<(), Trouble> {
    let (Some(kind), Some(target)) = (add.kind, &add.target) else {
        return Err(Trouble::usage("say which policy, and what it is about"));
    };
    let shelf = add.shelf.shelf().map(word);
    let question = desk.post(&["policies", "templates"]).saying(&json!({
        "kind": kind.word(),
        "target": target,
        "caller": add.caller.as_deref().unwrap_or_default(),
        "callerKind": add.caller_kind.kind(),
        "by": add.by,
        "role": add.role.map_or("", |RoleName::Owner| "owner"),
        "name": add.name.as_deref().unwrap_or_default(),
        "shelf": shelf,
        "allOrgs": add.shelf.all_orgs,
    }));
    show_saved(&question.read().await?, add.listing);
    Ok(())
}

/// What a shelf is called by whoever is asked.
pub(super) const fn word(shelf: Shelf) -> &'static str {
    match shelf {
        Shelf::Files => "files",
        Shelf::Store => "store",
    }
}

pub(super) fn show_saved(kept: &Kept, listing: Listing) {
    if listing.json {
        let rules = kept
            .policies
            .iter()
            .map(|rule| json!({ "name": rule.name, "effect": rule.effect, "summary": rule.summary }));
        output::json(&json!({ "file": kept.file, "policies": rules.collect::<Vec<_>>() }));
        return;
    }
    for rule in &kept.policies {
        output::line(format!("{}: {}", rule.name, output::printable(&rule.summary)));
    }
    output::line(format!("saved in {}", kept.file));
}

pub(super) fn show_removed(place: &str, name: &str) {
    output::line(format!("removed {place}"));
    output::note(format!("`rialto policy history {name}` shows its text"));
}

/// The texts that a policy had.
pub(super) fn show_history(name: &str, versions: &[Value], listing: Listing) {
    if listing.json {
        output::json(versions);
    } else if versions.is_empty() {
        output::line(format!("\"{name}\" has no older versions: it was not changed with this command line"));
    }
    if listing.json {
        return;
    }
    for old in versions {
        let (number, text) = (&old["version"], |name: &str| old[name].as_str().unwrap_or_default());
        output::line(match old["by"].as_str() {
            Some(by) => format!("{number} ({}, by {}):", text("changedAt"), output::printable(by)),
            None => format!("{number} (replaced {}):", [text("replacedAt"), text("changedAt")].concat()),
        });
        let lines = old["text"].as_str().unwrap_or("// removed").lines();
        lines.for_each(|line| output::line(format!("    {}", output::printable(line))));
    }
}
