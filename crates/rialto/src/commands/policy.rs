//! `rialto policy …`: what is allowed, and why.

use std::path::PathBuf;

use rialto_model::{
    call::{Caller, CallerKind, Target},
    ids::Scope,
};
use rialto_policy::{Action, PolicyError, Question, SCHEMA};
use serde_json::json;

use crate::{
    cli::{CallerKindName, Listing, Policy, PolicyTest},
    commands::agents,
    output::{self, Trouble},
    policies::{self, Policies},
    program::Program,
};

pub(crate) async fn run(program: &Program, command: Policy) -> Result<(), Trouble> {
    match command {
        Policy::Check { files } => check(&program.policies, &files),
        Policy::Test(test) => self::test(program, &test),
        Policy::List(listing) => list(program, listing),
        Policy::Allow { agent } => {
            let agent = program.engine.registry().find(&Scope::default(), &agent)?;
            let file = agents::allow(program, &agent).await?;
            output::line(format!("everybody may call {}: {file}", agent.slug));
            Ok(())
        }
        Policy::Schema => {
            output::line(SCHEMA.trim_end());
            Ok(())
        }
    }
}

/// Checks files without opening anything else, so that broken policies can be mended.
pub(crate) fn check(in_force: &Policies, files: &[PathBuf]) -> Result<(), Trouble> {
    let checked = if files.is_empty() {
        in_force.load()
    } else {
        let sources: Result<Vec<_>, PolicyError> = files.iter().map(|file| policies::source(file)).collect();
        sources.and_then(|sources| rialto_policy::Policy::parse(&sources))
    };
    let policy = checked.map_err(|error| Trouble::usage(error.to_string()))?;
    output::line(format!("{} policies, all valid: {}", policy.ids().len(), policy.ids().join(", ")));
    Ok(())
}

fn test(program: &Program, test: &PolicyTest) -> Result<(), Trouble> {
    let action = Action::parse(&test.action).ok_or_else(|| {
        Trouble::usage(format!(
            "\"{}\" is not an action; use a2a_invoke, a2a_discover or a2a_cancel",
            test.action
        ))
    })?;
    let kind = match test.caller_kind {
        CallerKindName::User => CallerKind::User,
        CallerKindName::Session => CallerKind::Session,
        CallerKindName::Agent => CallerKind::Agent,
    };
    let caller = Caller { kind, ..Caller::user(test.caller.as_str()) };
    let target = target(program, &caller, &test.target)?;
    let decision = program.engine.policy().decide(&Question::about(&caller, action, &target));
    if test.listing.json {
        output::json(&json!({
            "decision": if decision.allowed { "allow" } else { "deny" },
            "caller": caller.id,
            "action": action.as_str(),
            "target": target.verb(),
            "policies": decision.policies,
            "errors": decision.errors,
        }));
    } else {
        let word = if decision.allowed { "allow" } else { "deny" };
        let by = if decision.policies.is_empty() {
            "no policy permits it".to_owned()
        } else {
            decision.policies.join(", ")
        };
        output::line(format!("{word}: {} {} {} ({by})", caller.id, action.as_str(), target.verb()));
        for error in &decision.errors {
            output::note(error);
        }
    }
    let message = format!("denied; `rialto policy allow {}` would allow it", target.agent.slug);
    if decision.allowed { Ok(()) } else { Err(Trouble { status: 3, ..Trouble::other(message) }) }
}

fn target(program: &Program, caller: &Caller, name: &str) -> Result<Target, Trouble> {
    let registry = program.engine.registry();
    if let Some(entry) = registry.directory(&caller.scope).find(name) {
        return Ok(entry.target());
    }
    Ok(Target { agent: registry.find(&caller.scope, name)?, skill: None })
}

fn list(program: &Program, listing: Listing) -> Result<(), Trouble> {
    let sources = program.policies.sources().map_err(|error| Trouble::other(error.to_string()))?;
    let ids = program.engine.policy().ids();
    if listing.json {
        let files: Vec<_> =
            sources.iter().map(|source| json!({ "name": source.name, "text": source.text })).collect();
        output::json(&json!({ "policies": ids, "files": files }));
    } else {
        ids.iter().for_each(output::line);
        if let Policies::Folder(folder) = &program.policies {
            output::note(format!("kept in {}", folder.display()));
        }
    }
    Ok(())
}
