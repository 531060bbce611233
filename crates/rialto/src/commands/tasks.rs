//! `rialto tasks …`: what became of calls.

use rialto_model::{
    ids::{Scope, TaskId},
    store::TaskFilter,
};

use crate::{
    cli::Tasks,
    commands::call::{TaskJson, print},
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
