//! `rialto policy test` and `explain`: would it be allowed, and why?

use rialto_api_types::policies::{PolicyFinding, PolicyQuestion, PolicyRuling};
use rialto_policy::Action;
use serde_json::{Value, json};

use crate::{
    cli::PolicyTest,
    desk::Desk,
    output::{self, Trouble},
};

pub(super) async fn test(desk: &Desk, test: &PolicyTest) -> Result<(), Trouble> {
    let told = ask(desk, test).await?;
    let PolicyRuling { decision, caller_id, target, .. } = &told;
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
        output::line(format!("{}: {caller_id} {} {target} ({by})", decision.as_str(), test.action));
        for error in &told.errors {
            output::note(error);
        }
    }
    verdict(told)
}

pub(super) async fn explain(desk: &Desk, test: &PolicyTest) -> Result<(), Trouble> {
    let mut told = ask(desk, test).await?;
    let findings = std::mem::take(&mut told.policies);
    let PolicyRuling { decision, caller_id, target, .. } = &told;
    if test.listing.json {
        output::json(&json!({
            "decision": decision,
            "caller": caller_id,
            "action": test.action,
            "target": target,
            "policies": findings.iter().map(finding_json).collect::<Vec<_>>(),
        }));
    } else {
        output::line(format!("{}: {caller_id} {} {target}", decision.as_str(), test.action));
        let rows = findings
            .into_iter()
            .map(|it| vec![it.name, it.effect.as_str().to_owned(), it.reason, it.summary]);
        output::table(&["policy", "effect", "here", "summary"], rows.collect());
    }
    verdict(told)
}

async fn ask(desk: &Desk, test: &PolicyTest) -> Result<PolicyRuling, Trouble> {
    if test.target.is_some() && Action::parse(&test.action).is_some_and(Action::is_admin) {
        return Err(Trouble::usage(format!("{} is about the org: name no target", test.action)));
    }
    let question = desk.post(&["policies", "test"]).saying(&PolicyQuestion {
        caller: test.caller.clone(),
        kind: Some(test.caller_kind.kind()),
        action: test.action.clone(),
        target: test.target.clone().unwrap_or_default(),
    });
    Ok(question.read().await?)
}

/// A denial is the command's own error, so that a script can ask.
fn verdict(ruling: PolicyRuling) -> Result<(), Trouble> {
    match ruling.why_not {
        Some(why) => Err(Trouble { status: 3, ..Trouble::other(why) }),
        None => Ok(()),
    }
}

fn finding_json(finding: &PolicyFinding) -> Value {
    json!({
        "name": finding.name,
        "effect": finding.effect,
        "outcome": finding.outcome,
        "reason": finding.reason,
        "summary": finding.summary,
        "file": finding.file,
    })
}
