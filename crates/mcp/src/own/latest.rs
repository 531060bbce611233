//! A caller's latest tasks, for whoever does not know an id.
//!
//! A client that gave up on a call, or that was started again, has never heard the id of the task that goes on for it.

use rialto_engine::Engine;
use rialto_model::{failure::Failure, json::Json, store::TaskFilter, task::TaskHead};
use serde_json::{Value, json};

use crate::{answer::Answer, client::Client};

/// So many are told.
const TOLD: usize = 10;

/// `get_task` without an id.
pub(crate) async fn told(engine: &Engine, client: &Client) -> Result<Answer, Failure> {
    engine.sync().await?;
    let filter = TaskFilter { limit: TOLD, ..TaskFilter::default() };
    let heads = engine.tasks(&client.caller, filter).await?;
    if heads.is_empty() {
        let nothing = json!({ "tasks": [] });
        return Ok(Answer::text("you have no tasks yet").with_structured(Json::of(&nothing)));
    }
    let called: Vec<String> = heads.iter().map(|head| name(engine, head)).collect();
    let lines = heads.iter().zip(&called).map(|(head, called)| {
        format!("{} {called} is {}, last changed {}", head.id, head.state, head.updated_at)
    });
    let text = format!(
        "Your latest tasks, newest first. get_task with a task_id gives the result:\n{}",
        lines.collect::<Vec<_>>().join("\n")
    );
    let tasks: Vec<Value> = heads.iter().zip(&called).map(|(head, called)| described(head, called)).collect();
    Ok(Answer::text(text).with_structured(Json::of(&json!({ "tasks": tasks }))))
}

/// What was called: `<agent>.<skill>`, or the agent alone.
fn name(engine: &Engine, head: &TaskHead) -> String {
    let agent = engine.registry().get(&head.agent);
    let agent = agent.map_or_else(|| head.agent_url.clone(), |agent| agent.slug.clone());
    head.skill.as_ref().map_or_else(|| agent.clone(), |skill| format!("{agent}.{skill}"))
}

fn described(head: &TaskHead, called: &str) -> Value {
    json!({
        "task_id": head.id, "called": called, "state": head.state.as_str(), "context_id": head.remote.context_id,
        "updated_at": head.updated_at.to_string(),
    })
}
