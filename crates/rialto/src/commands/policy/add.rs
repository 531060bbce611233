//! `rialto policy add` and `allow`: the usual policies, and how a change of any is shown.

use rialto_api_types::{
    agents::AgentRow,
    policies::{NewPolicy, PolicyPlace, PolicyTextVersion, SavedPolicy, StoredPolicyText},
};
use rialto_model::failure::{Failure, FailureKind};
use serde_json::json;

use crate::{
    api_client::ApiClient,
    cli::{AddPolicyOptions, AllowCallsOptions, OutputOptions, RoleName},
    output::{self, CommandError},
    policies::PolicyLocation,
};

/// Allows calls of an agent or of one skill.
pub(super) async fn allow(api: &ApiClient, allow: &AllowCallsOptions) -> Result<(), CommandError> {
    let agent: Result<AgentRow, Failure> = api.get(&["agents", &allow.target]).read().await;
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
    let kept: SavedPolicy = api.post(&["policies", "templates"]).with_json(&policy).read().await?;
    let caller = allow.caller.as_deref().unwrap_or("any caller");
    output::print_line(format!("{} is allowed to call {target}: {}", output::sanitize(caller), kept.file));
    Ok(())
}

/// Writes one of the usual policies.
pub(super) async fn add(api: &ApiClient, add: &AddPolicyOptions) -> Result<(), CommandError> {
    let (Some(kind), Some(target)) = (add.kind, &add.target) else {
        return Err(CommandError::usage("name a policy template and its resource"));
    };
    let policy = NewPolicy {
        kind: kind.word().to_owned(),
        target: target.clone(),
        caller: add.caller.clone().unwrap_or_default(),
        caller_kind: Some(add.caller_kind.kind()),
        by: add.by.clone(),
        role: add.role.map_or("", |RoleName::Owner| "owner").to_owned(),
        name: add.name.clone().unwrap_or_default(),
        shelf: add.shelf.shelf().map(policy_place),
        all_orgs: add.shelf.all_orgs,
    };
    let question = api.post(&["policies", "templates"]).with_json(&policy);
    print_saved(&question.read().await?, add.listing);
    Ok(())
}

/// Name of a location for users.
pub(super) const fn location_word(shelf: PolicyLocation) -> &'static str {
    match shelf {
        PolicyLocation::Files => "files",
        PolicyLocation::Store => "store",
    }
}

const fn policy_place(shelf: PolicyLocation) -> PolicyPlace {
    match shelf {
        PolicyLocation::Files => PolicyPlace::Files,
        PolicyLocation::Store => PolicyPlace::Store,
    }
}

pub(super) fn print_saved(kept: &SavedPolicy, listing: OutputOptions) {
    if listing.json {
        let rules = kept
            .policies
            .iter()
            .map(|rule| json!({ "name": rule.name, "effect": rule.effect, "summary": rule.summary }));
        output::print_json(&json!({ "file": kept.file, "policies": rules.collect::<Vec<_>>() }));
        return;
    }
    for rule in &kept.policies {
        output::print_line(format!("{}: {}", rule.name, output::sanitize(&rule.summary)));
    }
    output::print_line(format!("saved in {}", kept.file));
}

pub(super) fn print_removed(place: &str, name: &str) {
    output::print_line(format!("removed {place}"));
    output::print_note(format!("`rialto policy history {name}` shows its text"));
}

/// The texts that a policy had.
pub(super) fn print_history(name: &str, versions: &[PolicyTextVersion], listing: OutputOptions) {
    if listing.json {
        output::print_json(versions);
        return;
    }
    if versions.is_empty() {
        output::print_line(format!(
            "\"{name}\" has no previous versions: it was not changed with this command line"
        ));
    }
    for old in versions {
        let (heading, text) = match old {
            PolicyTextVersion::File(old) => {
                (format!("{} (replaced {}):", old.version, old.replaced_at), &old.text)
            }
            PolicyTextVersion::Stored(StoredPolicyText {
                version, changed_at, by: Some(by), text, ..
            }) => (format!("{version} ({changed_at}, by {}):", output::sanitize(by)), text),
            PolicyTextVersion::Stored(old) => {
                (format!("{} (replaced {}):", old.version, old.changed_at), &old.text)
            }
        };
        output::print_line(heading);
        let lines = text.as_deref().unwrap_or("// removed").lines();
        lines.for_each(|line| output::print_line(format!("    {}", output::sanitize(line))));
    }
}
