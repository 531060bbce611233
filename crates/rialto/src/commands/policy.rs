//! `rialto policy …`: what is allowed, and why.

use std::{path::PathBuf, sync::Arc};

use rialto_model::{
    agent::Agent,
    call::{Caller, CallerKind, Target},
    ids::Scope,
};
use rialto_policy::{Action, PolicyError, Question, SCHEMA};
use serde_json::json;

use crate::{
    cli::{Listing, Policy, PolicyTest},
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
    let asked = Asked::of(program, test)?;
    let (caller, action, target) = (&asked.caller, asked.action, asked.target_name());
    let decision = program.engine.policy().decide(&asked.question());
    if test.listing.json {
        output::json(&json!({
            "decision": if decision.allowed { "allow" } else { "deny" },
            "caller": caller.id,
            "action": action.as_str(),
            "target": target,
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
        output::line(format!("{word}: {} {} {target} ({by})", caller.id, action.as_str()));
        for error in &decision.errors {
            output::note(error);
        }
    }
    asked.verdict(program)
}

/// A question from the command line.
struct Asked {
    caller: Caller,
    caller_agent: Option<Arc<Agent>>,
    action: Action,
    target: Option<Target>,
}

impl Asked {
    fn of(program: &Program, test: &PolicyTest) -> Result<Self, Trouble> {
        let action = Action::parse(&test.action).ok_or_else(|| {
            let names = Action::ALL.map(Action::as_str).join(", ");
            Trouble::usage(format!("\"{}\" is not an action; use one of {names}", test.action))
        })?;
        let scope = Scope::default();
        let mut caller = Caller { kind: test.caller_kind.kind(), ..Caller::user(test.caller.as_str()) };
        let caller_agent = match caller.kind {
            CallerKind::User | CallerKind::Session => None,
            CallerKind::Agent => Some(program.engine.registry().find(&scope, &test.caller)?),
        };
        if let Some(row) = &caller_agent {
            caller.id = row.id.as_str().into();
        }
        let target = match &test.target {
            Some(_) if action.is_admin() => {
                return Err(Trouble::usage(format!("{} is about the org: name no target", test.action)));
            }
            Some(name) => Some(target(program, &caller, name)?),
            None if action.is_admin() => None,
            None => {
                return Err(Trouble::usage(format!("{} needs the name of a skill or an agent", test.action)));
            }
        };
        Ok(Self { caller, caller_agent, action, target })
    }

    fn question(&self) -> Question<'_> {
        let question = match &self.target {
            Some(target) => Question::about(&self.caller, self.action, target),
            None => Question::admin(&self.caller, self.action),
        };
        question.by(self.caller_agent.as_deref())
    }

    fn target_name(&self) -> String {
        self.target.as_ref().map_or_else(|| format!("org {}", self.caller.scope.org), Target::verb)
    }

    /// A denial is the command's own trouble, so that a script can ask.
    fn verdict(&self, program: &Program) -> Result<(), Trouble> {
        let denied =
            |denied: rialto_policy::Denied| Trouble { status: 3, ..Trouble::other(denied.to_string()) };
        program.engine.policy().allow(&self.question()).map_err(denied)
    }
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
