//! `rialto policy test` and `explain`: would it be allowed, and why?

use std::sync::Arc;

use rialto_model::{
    agent::Agent,
    call::{Caller, CallerKind, Target},
};
use rialto_policy::{Action, Question, Rule};
use serde_json::json;

use crate::{
    cli::{CallerKindName, PolicyTest},
    output::{self, Trouble},
    program::Program,
};

pub(super) fn test(program: &Program, test: &PolicyTest) -> Result<(), Trouble> {
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

pub(super) fn explain(program: &Program, test: &PolicyTest) -> Result<(), Trouble> {
    let asked = Asked::of(program, test)?;
    let policy = program.engine.policy();
    let (decision, findings) = (policy.decide(&asked.question()), policy.explain(&asked.question()));
    let word = if decision.allowed { "allow" } else { "deny" };
    if test.listing.json {
        let policies = findings.iter().map(|finding| {
            json!({
                "name": finding.rule.name,
                "effect": finding.rule.effect.as_str(),
                "outcome": finding.outcome.name(),
                "reason": finding.outcome.to_string(),
                "summary": finding.rule.summary,
                "file": finding.rule.file,
            })
        });
        output::json(&json!({
            "decision": word,
            "caller": asked.caller.id,
            "action": asked.action.as_str(),
            "target": asked.target_name(),
            "policies": policies.collect::<Vec<_>>(),
        }));
    } else {
        output::line(format!(
            "{word}: {} {} {}",
            asked.caller.id,
            asked.action.as_str(),
            asked.target_name()
        ));
        let rows = findings.into_iter().map(|finding| {
            let Rule { name, effect, summary, .. } = finding.rule;
            vec![name, effect.as_str().to_owned(), finding.outcome.to_string(), summary]
        });
        output::table(&["policy", "effect", "here", "summary"], rows.collect());
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
        let (caller, caller_agent) = caller(program, &test.caller, test.caller_kind)?;
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

/// A caller by its name; an agent is any that is registered.
pub(super) fn caller(
    program: &Program,
    name: &str,
    kind: CallerKindName,
) -> Result<(Caller, Option<Arc<Agent>>), Trouble> {
    let caller = Caller { kind: kind.kind(), ..Caller::user(name) };
    match caller.kind {
        CallerKind::User | CallerKind::Session => Ok((caller, None)),
        CallerKind::Agent => {
            let row = program.engine.registry().find(&caller.scope, name)?;
            Ok((Caller { id: row.id.as_str().into(), ..caller }, Some(row)))
        }
    }
}

pub(super) fn target(program: &Program, caller: &Caller, name: &str) -> Result<Target, Trouble> {
    let registry = program.engine.registry();
    if let Some(entry) = registry.directory(&caller.scope).find(name) {
        return Ok(entry.target());
    }
    Ok(Target { agent: registry.find(&caller.scope, name)?, skill: None })
}
