//! Latest tasks of a caller, for clients that have no task id.
//!
//! A client that cancelled a call or was restarted has never received the id of the task that continues.

use rialto_engine::Engine;
use rialto_model::{failure::Failure, json::Json, store::TaskFilter, task::TaskHead};
use serde_json::{Value, json};

use crate::{client_profile::ClientProfile, tool_result::ToolResult};

/// Maximum number of tasks in the list.
const MAX_LATEST_TASKS: usize = 10;

/// `get_task` without an id.
pub(crate) async fn told(engine: &Engine, client: &ClientProfile) -> Result<ToolResult, Failure> {
    engine.policies().sync().await?;
    let filter = TaskFilter { limit: MAX_LATEST_TASKS, ..TaskFilter::default() };
    let heads = engine.tasks().list(&client.caller, filter).await?;
    if heads.is_empty() {
        let nothing = json!({ "tasks": [] });
        return Ok(ToolResult::text("you have no tasks yet").with_structured(Json::encode(&nothing)));
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
    Ok(ToolResult::text(text).with_structured(Json::encode(&json!({ "tasks": tasks }))))
}

/// Called skill: `<agent>.<skill>`, or the agent alone. An agent may have another id than in the process that called it.
fn name(engine: &Engine, head: &TaskHead) -> String {
    let registry = engine.registry();
    let agent = registry.get(&head.agent).or_else(|| registry.find(&head.scope, &head.agent_url).ok());
    match (agent, &head.skill) {
        (Some(agent), Some(skill)) => format!("{}.{skill}", agent.slug),
        (Some(agent), None) => agent.slug.clone(),
        (None, Some(skill)) => format!("{skill} of {}", head.agent_url),
        (None, None) => head.agent_url.clone(),
    }
}

fn described(head: &TaskHead, called: &str) -> Value {
    json!({
        "task_id": head.id, "called": called, "state": head.state.as_str(), "context_id": head.remote.context_id,
        "updated_at": head.updated_at.to_string(),
    })
}
