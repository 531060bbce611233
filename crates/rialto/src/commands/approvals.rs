//! `rialto approvals …`: what waits until somebody has approved it.

use std::time::Duration;

use rialto_api_types::approvals::DecisionReason;
use rialto_model::{approval::Approval, failure::Failure, json::Json};
use tokio::time::Instant;

use crate::{
    cli::{Approvals, Decision},
    commands::call,
    desk::{Desk, read},
    output::{self, Trouble},
    program::Program,
};

/// How long a server that runs may take to see a decision before it is carried out here.
const NOTICES: Duration = Duration::from_secs(3);

/// How often it is looked whether it did.
const LOOK: Duration = Duration::from_millis(50);

/// So many are listed.
const LISTED: usize = 100;

pub(crate) async fn run(desk: &Desk, command: Approvals) -> Result<(), Trouble> {
    match command {
        Approvals::List { all, listing } => list(desk, all, listing.json).await,
        Approvals::Show { approval, listing } => {
            let told: Json = desk.get(&["approvals", &approval]).read().await?;
            show(&told, listing.json)
        }
        Approvals::Approve(decision) => decide(desk, decision, true).await,
        Approvals::Deny(decision) => decide(desk, decision, false).await,
    }
}

async fn list(desk: &Desk, all: bool, as_json: bool) -> Result<(), Trouble> {
    let question = desk.get(&["approvals"]).with("state", if all { "all" } else { "waiting" });
    let told: Vec<Json> = question.rows("approvals", Some(LISTED)).await?;
    if as_json {
        output::json(&told);
        return Ok(());
    }
    let approvals = told.iter().map(read::<Approval>).collect::<Result<Vec<_>, _>>()?;
    if approvals.is_empty() {
        output::line("Nothing waits for approval.");
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
        output::table(&header, rows.collect());
    }
    Ok(())
}

fn show(told: &Json, as_json: bool) -> Result<(), Trouble> {
    if as_json {
        output::json(told);
        return Ok(());
    }
    let approval: Approval = read(told)?;
    let line = |name: &str, value: &str| output::line(format!("{name:<10} {}", output::printable(value)));
    line("approval", approval.id.as_str());
    line("state", approval.state());
    line("tool", &approval.tool);
    line("caller", approval.caller.as_str());
    line("task", approval.task.as_str());
    line("by", &if approval.by.is_empty() { "the caller".to_owned() } else { approval.by.join(" and ") });
    line("because of", &approval.policies.join(", "));
    line("asked", &approval.asked_at.to_string());
    line("expires", &approval.expires_at.to_string());
    if let Some(decided) = &approval.decided {
        line("decided", &format!("by {} at {}", decided.by, decided.at));
        line("reason", decided.reason.as_deref().unwrap_or("none was given"));
    }
    line("arguments", approval.args.get());
    Ok(())
}

/// Decides, and sees to it that it has its effect: a server that works on the task carries it out, and if there is none it is
/// done here.
async fn decide(desk: &Desk, decision: Decision, approved: bool) -> Result<(), Trouble> {
    let verb = if approved { "approve" } else { "deny" };
    let question = desk.post(&["approvals", &decision.approval, verb]);
    let told: Json = question.saying(&DecisionReason { reason: decision.reason }).read().await?;
    let (approval, as_json) = (read::<Approval>(&told)?, decision.listing.json);
    if as_json {
        output::json(&told);
    } else {
        let (tool, task, state) = (&approval.tool, &approval.task, approval.state());
        output::line(format!("{tool} is {state}; its task is {task}"));
    }
    let Some(program) = desk.program() else { return Ok(()) };
    if is_seen(program, &approval).await? {
        return Ok(());
    }
    match program.engine.approvals().resume_here(&approval).await? {
        None => Ok(()),
        Some(running) => match running.finish().await {
            Ok(task) if !as_json => {
                call::print(&task);
                Ok(())
            }
            // A denial ends the task as it should.
            Ok(_) => Ok(()),
            Err(_) if !approved => Ok(()),
            Err(failure) => Err(failure.into()),
        },
    }
}

/// Whether somebody else carries it out.
async fn is_seen(program: &Program, approval: &Approval) -> Result<bool, Failure> {
    let until = Instant::now() + NOTICES;
    while Instant::now() < until {
        if program.engine.approvals().is_settled(approval).await? {
            return Ok(true);
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(false)
}
