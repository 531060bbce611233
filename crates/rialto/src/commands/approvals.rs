//! `rialto approvals …`: what waits until somebody has approved it.

use std::time::Duration;

use rialto_engine::approving::Decider;
use rialto_model::{
    approval::{Approval, ApprovalFilter},
    failure::Failure,
};
use tokio::time::Instant;

use crate::{
    approvals::shown,
    cli::{Approvals, Decision},
    commands::call,
    environment::Environment,
    output::{self, Trouble},
    program::Program,
};

/// How long a server that runs may take to see a decision before it is carried out here.
const NOTICES: Duration = Duration::from_secs(3);

/// How often it is looked whether it did.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) async fn run(
    program: &Program,
    command: Approvals,
    environment: &Environment,
) -> Result<(), Trouble> {
    let by = Decider::Operator(operator(environment));
    match command {
        Approvals::List { all, listing } => list(program, &by, all, listing.json).await,
        Approvals::Show { approval, listing } => {
            show(&program.engine.approval(&by, &approval).await?, listing.json);
            Ok(())
        }
        Approvals::Approve(decision) => carry_out(program, &by, decision, true).await,
        Approvals::Deny(decision) => carry_out(program, &by, decision, false).await,
    }
}

/// Decides, and ends whatever was started for that.
async fn carry_out(
    program: &Program,
    by: &Decider,
    decision: Decision,
    approved: bool,
) -> Result<(), Trouble> {
    let done = decide(program, by, decision, approved).await;
    program.finish_traces().await;
    program.tools.close().await;
    done
}

async fn list(program: &Program, by: &Decider, all: bool, json: bool) -> Result<(), Trouble> {
    let filter = ApprovalFilter { undecided: !all, ..ApprovalFilter::default() };
    let approvals = program.engine.approvals(by, filter).await?;
    if json {
        output::json(&approvals.iter().map(shown).collect::<Vec<_>>());
    } else if approvals.is_empty() {
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

fn show(approval: &Approval, json: bool) {
    if json {
        output::json(&shown(approval));
        return;
    }
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
}

/// Decides, and sees to it that it has its effect: a server that works on the task carries it out, and if there is none it is
/// done here.
async fn decide(program: &Program, by: &Decider, decision: Decision, approved: bool) -> Result<(), Trouble> {
    let approval = program.engine.decide_on(by, &decision.approval, approved, decision.reason).await?;
    let json = decision.listing.json;
    if json {
        output::json(&shown(&approval));
    } else {
        let (tool, task, state) = (&approval.tool, &approval.task, approval.state());
        output::line(format!("{tool} is {state}; its task is {task}"));
    }
    if is_seen(program, &approval).await? {
        return Ok(());
    }
    match program.engine.go_on_here(&approval).await? {
        None => Ok(()),
        Some(running) => match running.finish().await {
            Ok(task) if !json => {
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
        if program.engine.is_settled(approval).await? {
            return Ok(true);
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(false)
}

/// Who is at this machine.
fn operator(environment: &Environment) -> String {
    let name = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| environment.get(name));
    name.unwrap_or("local").to_owned()
}
