//! `rialto tasks …`: what became of calls.

use rialto_api_types::tasks::{TaskDetail, UndeliveredPush, UndeliveredPushes};
use rialto_model::{json::Json, task::TaskHead};

use crate::{
    api_client::{ApiClient, parse_response},
    cli::TasksCommand,
    commands::call::print_detail,
    output::{self, CommandError, ProgressSpinner},
};

pub(crate) async fn run(api: &ApiClient, command: TasksCommand) -> Result<(), CommandError> {
    match command {
        TasksCommand::List { open, agent, limit, before, listing } => {
            let question = api.get(&["tasks"]).with_query("own", true).with_query("open", open);
            let question = question.with_optional_query("agent", agent).with_optional_query("cursor", before);
            print_tasks(&question.fetch_rows("tasks", Some(limit)).await?, listing.json)
        }
        TasksCommand::Undelivered { limit, listing } => {
            let question = api.get(&["tasks", "undelivered"]).with_query("limit", limit);
            print_undelivered(&question.read::<UndeliveredPushes<Json>>().await?.undelivered, listing.json)
        }
        TasksCommand::Show { task, listing } => {
            let spinner = ProgressSpinner::new("asking the agent");
            let response: Json =
                api.get(&["tasks", &task]).with_query("ask", true).with_long_timeout().read().await?;
            drop(spinner);
            print_task(&response, listing.json)
        }
        TasksCommand::Cancel { task, listing } => {
            let spinner = ProgressSpinner::new("cancelling the task at the agent");
            let response: Json = api.post(&["tasks", &task, "cancel"]).with_long_timeout().read().await?;
            drop(spinner);
            print_task(&response, listing.json)
        }
    }
}

fn print_tasks(heads: &[Json], as_json: bool) -> Result<(), CommandError> {
    if as_json {
        output::print_json(heads);
    } else if heads.is_empty() {
        output::print_line("No tasks.");
    } else {
        let heads = heads.iter().map(parse_response::<TaskHead>).collect::<Result<Vec<_>, _>>()?;
        let rows = heads.iter().map(|head| {
            vec![
                head.id.to_string(),
                head.state.to_string(),
                head.skill.as_ref().map(ToString::to_string).unwrap_or_default(),
                head.agent_url.clone(),
                head.updated_at.strftime("%F %T").to_string(),
            ]
        });
        output::print_table(&["task", "state", "skill", "agent", "updated (utc)"], rows.collect());
    }
    Ok(())
}

/// Prints undelivered push notifications.
fn print_undelivered(response: &[Json], as_json: bool) -> Result<(), CommandError> {
    if as_json {
        output::print_json(response);
    } else if response.is_empty() {
        output::print_line("There are no undelivered push notifications.");
    } else {
        let rows = response.iter().map(parse_response::<UndeliveredPush>).collect::<Result<Vec<_>, _>>()?;
        let rows = rows.into_iter().map(|row| vec![row.task.to_string(), row.id, row.url, row.last_error]);
        output::print_table(&["task", "config", "url", "why"], rows.collect());
    }
    Ok(())
}

fn print_task(response: &Json, as_json: bool) -> Result<(), CommandError> {
    if as_json {
        output::print_json(response);
        return Ok(());
    }
    let task: TaskDetail = parse_response(response)?;
    output::print_line(format!("{} is {}", task.task_id, task.state));
    if let Some(failure) = &task.failure {
        output::print_line(output::sanitize(&failure.message));
    }
    print_detail(&task);
    Ok(())
}
