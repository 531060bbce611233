//! `rialto policy test` and `explain`: would it be allowed, and why?

use rialto_policy::Action;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    cli::PolicyTest,
    desk::Desk,
    output::{self, Trouble},
};

/// An answer as it is told.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    decision: String,
    caller_id: String,
    target: String,
    why_not: Option<String>,
    decided_by: Vec<String>,
    policies: Vec<Finding>,
    errors: Vec<String>,
}

/// What one policy says to it.
#[derive(Deserialize)]
struct Finding {
    name: String,
    effect: String,
    outcome: String,
    reason: String,
    summary: String,
    file: String,
}

pub(super) async fn test(desk: &Desk, test: &PolicyTest) -> Result<(), Trouble> {
    let told = ask(desk, test).await?;
    let Told { decision, caller_id, target, .. } = &told;
    if test.listing.json {
        output::json(&json!({
            "decision": decision,
            "caller": caller_id,
            "action": test.action,
            "target": target,
            "policies": told.decided_by,
            "errors": told.errors,
        }));
    } else {
        let by = if told.decided_by.is_empty() {
            "no policy permits it".to_owned()
        } else {
            told.decided_by.join(", ")
        };
        output::line(format!("{decision}: {caller_id} {} {target} ({by})", test.action));
        for error in &told.errors {
            output::note(error);
        }
    }
    told.verdict()
}

pub(super) async fn explain(desk: &Desk, test: &PolicyTest) -> Result<(), Trouble> {
    let mut told = ask(desk, test).await?;
    let findings = std::mem::take(&mut told.policies);
    let Told { decision, caller_id, target, .. } = &told;
    if test.listing.json {
        output::json(&json!({
            "decision": decision,
            "caller": caller_id,
            "action": test.action,
            "target": target,
            "policies": findings.iter().map(Finding::json).collect::<Vec<_>>(),
        }));
    } else {
        output::line(format!("{decision}: {caller_id} {} {target}", test.action));
        let rows = findings.into_iter().map(|it| vec![it.name, it.effect, it.reason, it.summary]);
        output::table(&["policy", "effect", "here", "summary"], rows.collect());
    }
    told.verdict()
}

async fn ask(desk: &Desk, test: &PolicyTest) -> Result<Told, Trouble> {
    if test.target.is_some() && Action::parse(&test.action).is_some_and(Action::is_admin) {
        return Err(Trouble::usage(format!("{} is about the org: name no target", test.action)));
    }
    let question = desk.post(&["policies", "test"]).saying(&json!({
        "caller": test.caller,
        "kind": test.caller_kind.kind(),
        "action": test.action,
        "target": test.target.as_deref().unwrap_or_default(),
    }));
    Ok(question.read().await?)
}

// === impl Told ===

impl Told {
    /// A denial is the command's own trouble, so that a script can ask.
    fn verdict(self) -> Result<(), Trouble> {
        match self.why_not {
            Some(why) => Err(Trouble { status: 3, ..Trouble::other(why) }),
            None => Ok(()),
        }
    }
}

// === impl Finding ===

impl Finding {
    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "effect": self.effect,
            "outcome": self.outcome,
            "reason": self.reason,
            "summary": self.summary,
            "file": self.file,
        })
    }
}
