//! `rialto tasks …`: what became of calls.

use rialto_console::admin::tasks::TaskJson;
use rialto_model::{
    ids::{Scope, TaskId},
    push::Push,
    store::TaskFilter,
};
use serde_json::json;

use crate::{
    cli::Tasks,
    commands::call::print,
    output::{self, Spinner, Trouble},
    program::Program,
};

pub(crate) async fn run(program: &Program, command: Tasks) -> Result<(), Trouble> {
    let caller = Program::local_caller();
    match command {
        Tasks::List { open, agent, limit, before, listing } => {
            let agent =
                agent.map(|key| program.engine.registry().find(&Scope::default(), &key)).transpose()?;
            let agent = agent.map(|agent| agent.id.clone());
            let before = before.map(TaskId::from);
            let filter = TaskFilter { open, agent, limit, before, ..TaskFilter::default() };
            let heads = program.engine.tasks(&caller, filter).await?;
            if listing.json {
                output::json(&heads);
            } else if heads.is_empty() {
                output::line("No tasks.");
            } else {
                let rows = heads.iter().map(|head| {
                    vec![
                        head.id.to_string(),
                        head.state.to_string(),
                        head.skill.as_ref().map(ToString::to_string).unwrap_or_default(),
                        head.agent_url.clone(),
                        head.updated_at.strftime("%F %T").to_string(),
                    ]
                });
                output::table(&["task", "state", "skill", "agent", "updated (utc)"], rows.collect());
            }
        }
        Tasks::Undelivered { limit, listing } => {
            let given_up = program.engine.dead_pushes(&Scope::default(), limit).await?;
            undelivered(&given_up, listing.json);
        }
        Tasks::Show { task, listing } => {
            let spinner = Spinner::new("asking the agent");
            let task = program.engine.task(&caller, &task).await?;
            drop(spinner);
            show(&task, listing.json);
        }
        Tasks::Cancel { task, listing } => {
            let spinner = Spinner::new("telling the agent");
            let task = program.engine.cancel(&caller, &task).await?;
            drop(spinner);
            show(&task, listing.json);
        }
    }
    Ok(())
}

/// Whom nobody could tell of a task. What they are shown at their doors is nobody's business here.
fn undelivered(pushes: &[Push], as_json: bool) {
    let why = |push: &Push| push.standing.last_error.clone().unwrap_or_default();
    if as_json {
        let told = pushes.iter().map(|push| {
            json!({
                "task": push.task, "id": push.id, "url": push.url, "caller": push.caller.as_str(),
                "toldUpTo": push.standing.told, "failures": push.standing.failures, "lastError": why(push),
                "createdAt": push.created_at.to_string(),
            })
        });
        output::json(&told.collect::<Vec<_>>());
    } else if pushes.is_empty() {
        output::line("No push notifications were given up.");
    } else {
        let rows = pushes
            .iter()
            .map(|push| vec![push.task.to_string(), push.id.clone(), push.url.clone(), why(push)]);
        output::table(&["task", "config", "url", "why"], rows.collect());
    }
}

fn show(task: &rialto_model::task::Task, as_json: bool) {
    if as_json {
        output::json(&TaskJson::of(task));
        return;
    }
    output::line(format!("{} is {}", task.head.id, task.head.state));
    if let Some(failure) = &task.failure {
        output::line(output::printable(&failure.message));
    }
    print(task);
}
