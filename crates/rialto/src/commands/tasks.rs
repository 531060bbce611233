//! `rialto tasks …`: what became of calls.

use rialto_api_types::tasks::{TaskDetail, UndeliveredPush, UndeliveredPushes};
use rialto_model::{json::Json, task::TaskHead};

use crate::{
    cli::Tasks,
    commands::call::print_detail,
    desk::{Desk, read},
    output::{self, Spinner, Trouble},
};

pub(crate) async fn run(desk: &Desk, command: Tasks) -> Result<(), Trouble> {
    match command {
        Tasks::List { open, agent, limit, before, listing } => {
            let question = desk.get(&["tasks"]).with("own", true).with("open", open);
            let question = question.with_given("agent", agent).with_given("cursor", before);
            list(&question.rows("tasks", Some(limit)).await?, listing.json)
        }
        Tasks::Undelivered { limit, listing } => {
            let question = desk.get(&["tasks", "undelivered"]).with("limit", limit);
            undelivered(&question.read::<UndeliveredPushes<Json>>().await?.undelivered, listing.json)
        }
        Tasks::Show { task, listing } => {
            let spinner = Spinner::new("asking the agent");
            let told: Json = desk.get(&["tasks", &task]).with("ask", true).patiently().read().await?;
            drop(spinner);
            show(&told, listing.json)
        }
        Tasks::Cancel { task, listing } => {
            let spinner = Spinner::new("telling the agent");
            let told: Json = desk.post(&["tasks", &task, "cancel"]).patiently().read().await?;
            drop(spinner);
            show(&told, listing.json)
        }
    }
}

fn list(heads: &[Json], as_json: bool) -> Result<(), Trouble> {
    if as_json {
        output::json(heads);
    } else if heads.is_empty() {
        output::line("No tasks.");
    } else {
        let heads = heads.iter().map(read::<TaskHead>).collect::<Result<Vec<_>, _>>()?;
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
    Ok(())
}

/// Whom nobody could tell of a task.
fn undelivered(told: &[Json], as_json: bool) -> Result<(), Trouble> {
    if as_json {
        output::json(told);
    } else if told.is_empty() {
        output::line("No push notifications were given up.");
    } else {
        let rows = told.iter().map(read::<UndeliveredPush>).collect::<Result<Vec<_>, _>>()?;
        let rows = rows.into_iter().map(|row| vec![row.task.to_string(), row.id, row.url, row.last_error]);
        output::table(&["task", "config", "url", "why"], rows.collect());
    }
    Ok(())
}

fn show(told: &Json, as_json: bool) -> Result<(), Trouble> {
    if as_json {
        output::json(told);
        return Ok(());
    }
    let task: TaskDetail = read(told)?;
    output::line(format!("{} is {}", task.task_id, task.state));
    if let Some(failure) = &task.failure {
        output::line(output::printable(&failure.message));
    }
    print_detail(&task);
    Ok(())
}
