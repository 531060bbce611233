//! `rialto policy add` and `allow`: the usual policies, and how a change of any is shown.

use rialto_api_types::{
    agents::AgentRow,
    policies::{NewPolicy, PolicyPlace, PolicyTextVersion, SavedPolicy, StoredPolicyText},
};
use rialto_model::failure::{Failure, FailureKind};
use serde_json::json;

use crate::{
    cli::{AddPolicy, AllowCalls, Listing, RoleName},
    desk::Desk,
    output::{self, Trouble},
    policies::Shelf,
};

/// Allows calls of an agent or of one skill.
pub(super) async fn allow(desk: &Desk, allow: &AllowCalls) -> Result<(), Trouble> {
    let agent: Result<AgentRow, Failure> = desk.get(&["agents", &allow.target]).read().await;
    let (kind, target) = match agent {
        Ok(AgentRow { slug, .. }) => ("allow-agent", slug),
        Err(failure) if failure.kind == FailureKind::NotFound && allow.target.contains('.') => {
            ("allow-skill", allow.target.clone())
        }
        Err(failure) => return Err(failure.into()),
    };
    let policy = NewPolicy {
        kind: kind.to_owned(),
        target: target.clone(),
        caller: allow.caller.clone().unwrap_or_default(),
        caller_kind: Some(allow.caller_kind.kind()),
        ..NewPolicy::default()
    };
    let kept: SavedPolicy = desk.post(&["policies", "templates"]).saying(&policy).read().await?;
    let caller = allow.caller.as_deref().unwrap_or("everybody");
    output::line(format!("{} may call {target}: {}", output::printable(caller), kept.file));
    Ok(())
}

/// Writes one of the usual policies.
pub(super) async fn add(desk: &Desk, add: &AddPolicy) -> Result<(), Trouble> {
    let (Some(kind), Some(target)) = (add.kind, &add.target) else {
        return Err(Trouble::usage("say which policy, and what it is about"));
    };
    let policy = NewPolicy {
        kind: kind.word().to_owned(),
        target: target.clone(),
        caller: add.caller.clone().unwrap_or_default(),
        caller_kind: Some(add.caller_kind.kind()),
        by: add.by.clone(),
        role: add.role.map_or("", |RoleName::Owner| "owner").to_owned(),
        name: add.name.clone().unwrap_or_default(),
        shelf: add.shelf.shelf().map(place),
        all_orgs: add.shelf.all_orgs,
    };
    let question = desk.post(&["policies", "templates"]).saying(&policy);
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

const fn place(shelf: Shelf) -> PolicyPlace {
    match shelf {
        Shelf::Files => PolicyPlace::Files,
        Shelf::Store => PolicyPlace::Store,
    }
}

pub(super) fn show_saved(kept: &SavedPolicy, listing: Listing) {
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
pub(super) fn show_history(name: &str, versions: &[PolicyTextVersion], listing: Listing) {
    if listing.json {
        output::json(versions);
        return;
    }
    if versions.is_empty() {
        output::line(format!("\"{name}\" has no older versions: it was not changed with this command line"));
    }
    for old in versions {
        let (heading, text) = match old {
            PolicyTextVersion::File(old) => {
                (format!("{} (replaced {}):", old.version, old.replaced_at), &old.text)
            }
            PolicyTextVersion::Stored(StoredPolicyText {
                version, changed_at, by: Some(by), text, ..
            }) => (format!("{version} ({changed_at}, by {}):", output::printable(by)), text),
            PolicyTextVersion::Stored(old) => {
                (format!("{} (replaced {}):", old.version, old.changed_at), &old.text)
            }
        };
        output::line(heading);
        let lines = text.as_deref().unwrap_or("// removed").lines();
        lines.for_each(|line| output::line(format!("    {}", output::printable(line))));
    }
}
