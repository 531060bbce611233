//! Workflow tools: `orchestrate_workflow` and `execute_dag`.
//!
//! `[flows] tools` lists them; they can be called in any case. A run is an ordinary call of the row that holds a project's workflows,
//! and each of its steps is made as the same caller.

use std::sync::{Arc, LazyLock};

use rialto_engine::{CallRequest, Engine};
use rialto_model::{
    backing::skill,
    call::CallTarget,
    failure::{Failure, FailureKind},
    flow::FlowKind,
    json::{Extra, Json},
};
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::json;

use crate::{
    builtin_tools::{own_tool, part_of},
    client_profile::ClientProfile,
};

/// `orchestrate_workflow`.
pub(crate) const ORCHESTRATE: &str = "orchestrate_workflow";

/// `execute_dag`.
pub(crate) const EXECUTE: &str = "execute_dag";

/// Both tools, for the list.
pub(crate) fn tools() -> &'static [Tool] {
    static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| vec![orchestrate_tool(), execute_tool()]);
    &TOOLS
}

/// Builds the call that one of the tools makes.
pub(crate) async fn request(
    engine: &Engine,
    client: &ClientProfile,
    tool: &str,
    args: &Json,
) -> Result<CallRequest, Failure> {
    let mut given: Extra = args.read().map_err(|_| invalid("the arguments are not an object"))?;
    engine.policies().sync().await?;
    let (task, message) = (given.take("task_id"), given.take("message"));
    if let Some(task) = task.filter(|task| !task.is_null()) {
        let task: String = task.read().map_err(|_| invalid("`task_id` must be a text"))?;
        let message =
            message.ok_or_else(|| invalid("say what the run is to be told: `message` is missing"))?;
        let worker = engine.tasks().target(&client.caller, &task).await?;
        let target = CallTarget { agent: worker.agent, skill: None };
        let mut request =
            CallRequest::message(client.caller.clone(), client.door, target, vec![part_of(message)?]);
        request.task = Some(task);
        return Ok(request);
    }
    let agent =
        engine.registry().deployments().ensure_flows(&client.caller.scope).await.map_err(Failure::from)?;
    let name = if tool == ORCHESTRATE { given.get("workflow").and_then(name_in) } else { None };
    let Some(name) = name else {
        let target = CallTarget { agent, skill: Some(Arc::new(skill(tool, tool, ""))) };
        return Ok(CallRequest::skill(client.caller.clone(), client.door, target, Json::encode(&given)));
    };
    // A published workflow has a skill that policies may name; an unpublished one is called by the name that its skill would have.
    let ids = [FlowKind::Workflow, FlowKind::Pipeline].map(|kind| kind.skill_id(&name));
    let known = ids.iter().find_map(|id| agent.card.skill(id).cloned());
    let [id, _] = &ids;
    let skill = known.unwrap_or_else(|| Arc::new(skill(id, &name, "")));
    let input = given.take("input").unwrap_or_else(Json::empty_object);
    let target = CallTarget { agent, skill: Some(skill) };
    Ok(CallRequest::skill(client.caller.clone(), client.door, target, input))
}

/// Name of a workflow, as opposed to a definition written as one string.
fn name_in(workflow: &Json) -> Option<String> {
    let text = workflow.read::<String>().ok()?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (!text.is_empty() && text.chars().all(is_name)).then_some(text)
}

fn invalid(message: &str) -> Failure {
    Failure::new(FailureKind::Invalid, message)
}

fn orchestrate_tool() -> Tool {
    own_tool(
        ORCHESTRATE,
        "Run a workflow",
        "Runs a workflow or a pipeline: one that is kept here, by its name, or a definition that you give. Its steps run as soon \
         as what they need is done. If it asks something, go on with task_id and message.",
        json!({
            "type": "object",
            "properties": {
                "workflow": {
                    "anyOf": [{ "type": "string" }, { "type": "object" }],
                    "description": "The name of a workflow or pipeline, or a definition: an object, or YAML in a text.",
                },
                "input": { "description": "What the run is given; `{{ $input.field }}` refers to it." },
                "task_id": { "type": "string", "description": "A run that asks something, to go on with." },
                "message": {
                    "anyOf": [{ "type": "string" }, { "type": "object" }],
                    "description": "What that run is told.",
                },
            },
            "additionalProperties": false,
        }),
        annotations(),
    )
}

fn execute_tool() -> Tool {
    own_tool(
        EXECUTE,
        "Run a graph of steps",
        "Runs steps that depend on each other, those that do not at the same time: tools, agents by name or by capability, \
         conditions, lists. `{{ nodes.<id>.output.<field> }}` is what another step has made. If a step asks something, go on \
         with task_id and message.",
        json!({
            "type": "object",
            "properties": {
                "nodes": {
                    "anyOf": [{ "type": "array", "items": { "type": "object" } }, { "type": "object" }],
                    "description": "The steps: {id, type, depends_on, …}, as `rialto workflow schema` says.",
                },
                "input": { "description": "What the run is given; `{{ $input.field }}` refers to it." },
                "output": { "description": "What is answered; else what the last steps have made." },
                "limits": { "type": "object", "description": "How much the run may take: {parallel, timeout}." },
                "task_id": { "type": "string", "description": "A run that asks something, to go on with." },
                "message": {
                    "anyOf": [{ "type": "string" }, { "type": "object" }],
                    "description": "What that run is told.",
                },
            },
            "additionalProperties": false,
        }),
        annotations(),
    )
}

fn annotations() -> ToolAnnotations {
    ToolAnnotations::new().read_only(false).destructive(true).idempotent(false).open_world(true)
}
