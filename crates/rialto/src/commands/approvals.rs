//! `rialto approvals …`: calls that wait for approval.

use std::time::Duration;

use rialto_api_types::approvals::DecisionReason;
use rialto_model::{approval::Approval, failure::Failure, json::Json};
use tokio::time::Instant;

use crate::{
    api_client::{ApiClient, parse_response},
    app::App,
    cli::{ApprovalsCommand, DecideOptions},
    commands::call,
    output::{self, CommandError},
};

/// Maximum time for a running server to apply a decision before this process does.
const DECISION_TIMEOUT: Duration = Duration::from_secs(3);

/// Interval at which its effect is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum number of listed approvals.
const MAX_LISTED: usize = 100;

pub(crate) async fn run(api: &ApiClient, command: ApprovalsCommand) -> Result<(), CommandError> {
    match command {
        ApprovalsCommand::List { all, listing } => list(api, all, listing.json).await,
        ApprovalsCommand::Show { approval, listing } => {
            let response: Json = api.get(&["approvals", &approval]).read().await?;
            show(&response, listing.json)
        }
        ApprovalsCommand::Approve(decision) => decide(api, decision, true).await,
        ApprovalsCommand::Deny(decision) => decide(api, decision, false).await,
    }
}

async fn list(api: &ApiClient, all: bool, as_json: bool) -> Result<(), CommandError> {
    let question = api.get(&["approvals"]).with_query("state", if all { "all" } else { "waiting" });
    let response: Vec<Json> = question.fetch_rows("approvals", Some(MAX_LISTED)).await?;
    if as_json {
        output::print_json(&response);
        return Ok(());
    }
    let approvals = response.iter().map(parse_response::<Approval>).collect::<Result<Vec<_>, _>>()?;
    if approvals.is_empty() {
        output::print_line("No pending approvals.");
    } else {
        let rows = approvals.iter().map(|approval| {
            vec![
                approval.id.to_string(),
                approval.state().to_owned(),
                approval.tool.clone(),
                approval.caller.to_string(),
                approval.by.join(" and "),
                approval.expires_at.strftime("%F %T").to_string(),
                approval.args.get().chars().take(80).collect(),
            ]
        });
        let header = ["approval", "state", "tool", "caller", "by", "expires (utc)", "arguments"];
        output::print_table(&header, rows.collect());
    }
    Ok(())
}

fn show(response: &Json, as_json: bool) -> Result<(), CommandError> {
    if as_json {
        output::print_json(response);
        return Ok(());
    }
    let approval: Approval = parse_response(response)?;
    let line =
        |name: &str, value: &str| output::print_line(format!("{name:<10} {}", output::sanitize(value)));
    line("approval", approval.id.as_str());
    line("state", approval.state());
    line("tool", &approval.tool);
    line("caller", approval.caller.as_str());
    line("task", approval.task.as_str());
    line("by", &if approval.by.is_empty() { "the caller".to_owned() } else { approval.by.join(" and ") });
    line("policies", &approval.policies.join(", "));
    line("requested", &approval.asked_at.to_string());
    line("expires", &approval.expires_at.to_string());
    if let Some(decided) = &approval.decided {
        line("decided", &format!("by {} at {}", decided.by, decided.at));
        line("reason", decided.reason.as_deref().unwrap_or("none"));
    }
    line("arguments", approval.args.get());
    Ok(())
}

/// Decides, and sees to it that it has its effect: a server that works on the task carries it out, and if there is none it is
/// done here.
async fn decide(api: &ApiClient, decision: DecideOptions, approved: bool) -> Result<(), CommandError> {
    let verb = if approved { "approve" } else { "deny" };
    let question = api.post(&["approvals", &decision.approval, verb]);
    let response: Json = question.with_json(&DecisionReason { reason: decision.reason }).read().await?;
    let (approval, as_json) = (parse_response::<Approval>(&response)?, decision.listing.json);
    if as_json {
        output::print_json(&response);
    } else {
        let (tool, task, state) = (&approval.tool, &approval.task, approval.state());
        output::print_line(format!("{tool} is {state}; its task is {task}"));
    }
    let Some(program) = api.local_app() else { return Ok(()) };
    if is_decision_applied(program, &approval).await? {
        return Ok(());
    }
    match program.engine.approvals().resume_here(&approval).await? {
        None => Ok(()),
        Some(running) => match running.finish().await {
            Ok(task) if !as_json => {
                call::print_result(&task);
                Ok(())
            }
            // A denial ends the task as it should.
            Ok(_) => Ok(()),
            Err(_) if !approved => Ok(()),
            Err(failure) => Err(failure.into()),
        },
    }
}

/// True if another process applied the decision.
async fn is_decision_applied(program: &App, approval: &Approval) -> Result<bool, Failure> {
    let until = Instant::now() + DECISION_TIMEOUT;
    while Instant::now() < until {
        if program.engine.approvals().is_settled(approval).await? {
            return Ok(true);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(false)
}
