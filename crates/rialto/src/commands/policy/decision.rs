//! `rialto policy test` and `explain`: would it be allowed, and why?

use rialto_api_types::policies::{PolicyFinding, PolicyQuestion, PolicyRuling};
use rialto_policy::Action;
use serde_json::{Value, json};

use crate::{
    api_client::ApiClient,
    cli::PolicyTestOptions,
    output::{self, CommandError},
};

pub(super) async fn test(api: &ApiClient, test: &PolicyTestOptions) -> Result<(), CommandError> {
    let response = request_ruling(api, test).await?;
    let PolicyRuling { decision, caller_id, target, .. } = &response;
    if test.listing.json {
        output::print_json(&json!({
            "decision": decision,
            "caller": caller_id,
            "action": test.action,
            "target": target,
            "policies": response.decided_by,
            "errors": response.errors,
        }));
    } else {
        let by = if response.decided_by.is_empty() {
            "no policy permits it".to_owned()
        } else {
            response.decided_by.join(", ")
        };
        output::print_line(format!("{}: {caller_id} {} {target} ({by})", decision.as_str(), test.action));
        for error in &response.errors {
            output::print_note(error);
        }
    }
    ruling_result(response)
}

pub(super) async fn explain(api: &ApiClient, test: &PolicyTestOptions) -> Result<(), CommandError> {
    let mut response = request_ruling(api, test).await?;
    let findings = std::mem::take(&mut response.policies);
    let PolicyRuling { decision, caller_id, target, .. } = &response;
    if test.listing.json {
        output::print_json(&json!({
            "decision": decision,
            "caller": caller_id,
            "action": test.action,
            "target": target,
            "policies": findings.iter().map(finding_json).collect::<Vec<_>>(),
        }));
    } else {
        output::print_line(format!("{}: {caller_id} {} {target}", decision.as_str(), test.action));
        let rows = findings
            .into_iter()
            .map(|it| vec![it.name, it.effect.as_str().to_owned(), it.reason, it.summary]);
        output::print_table(&["policy", "effect", "outcome", "summary"], rows.collect());
    }
    ruling_result(response)
}

async fn request_ruling(api: &ApiClient, test: &PolicyTestOptions) -> Result<PolicyRuling, CommandError> {
    if test.target.is_some() && Action::parse(&test.action).is_some_and(Action::is_admin) {
        return Err(CommandError::usage(format!("{} applies to the org: omit the target", test.action)));
    }
    let question = api.post(&["policies", "test"]).with_json(&PolicyQuestion {
        caller: test.caller.clone(),
        kind: Some(test.caller_kind.kind()),
        action: test.action.clone(),
        target: test.target.clone().unwrap_or_default(),
    });
    Ok(question.read().await?)
}

/// A denial is the command's own error, so that a script can ask.
fn ruling_result(ruling: PolicyRuling) -> Result<(), CommandError> {
    match ruling.why_not {
        Some(why) => Err(CommandError { status: 3, ..CommandError::failed(why) }),
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
