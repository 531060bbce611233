//! Built-in tools: load and list agents, send messages, get and cancel tasks.
//!
//! Their names cannot be a skill's: a skill's name has a dot, begins with `a2a_`, or ends in a hash.

mod latest_tasks;

use std::sync::{Arc, LazyLock};

use rialto_engine::{AdminRecord, CallRequest, Engine, registry::Registration};
use rialto_model::{
    agent::{Agent, AgentTrust, Health, RowStorage},
    call::CallTarget,
    credential::{Credential, Secret, SecretSource},
    failure::{Failure, FailureKind},
    json::Json,
    message::Part,
    name,
};
use rmcp::model::{Tool, ToolAnnotations};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    client_profile::ClientProfile,
    config::Config,
    dispatch_tools, render,
    server::{AgentRegistrar, AgentToLoad},
    tool_result::ToolResult,
    tool_search, workflow_tools,
};

/// Names of the built-in tools.
pub(crate) const NAMES: [&str; 13] = [
    "load_agent",
    "list_agents",
    "send_message",
    "get_task",
    "cancel_task",
    "search_tools",
    "describe_tool",
    tool_search::CALL,
    "dispatch",
    "mesh_resolve",
    "invoke_a2a",
    workflow_tools::ORCHESTRATE,
    workflow_tools::EXECUTE,
];

/// Maximum number of agents in one list.
const MAX_LISTED_AGENTS: usize = 100;

/// Built-in tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuiltinTool {
    LoadAgent,
    ListAgents,
    SendMessage,
    GetTask,
    CancelTask,
    SearchTools,
    DescribeTool,
    Dispatch,
    MeshResolve,
    InvokeA2a,
    OrchestrateWorkflow,
    ExecuteDag,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoadAgentArgs {
    url: String,
    agent_card_path: Option<String>,
    token: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListAgentsArgs {
    query: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SendMessageArgs {
    agent: Option<String>,
    message: Json,
    task_id: Option<String>,
    context_id: Option<String>,
}

/// Arguments of `get_task`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GetTaskArgs {
    pub(crate) task_id: Option<String>,
    /// A large part of the result, in place of the state.
    pub(crate) part: Option<String>,
    pub(crate) offset: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskIdArgs {
    task_id: String,
}

// === impl BuiltinTool ===

impl BuiltinTool {
    /// Parses the name of a tool.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "load_agent" => Some(Self::LoadAgent),
            "list_agents" => Some(Self::ListAgents),
            "send_message" => Some(Self::SendMessage),
            "get_task" => Some(Self::GetTask),
            "cancel_task" => Some(Self::CancelTask),
            "search_tools" => Some(Self::SearchTools),
            "describe_tool" => Some(Self::DescribeTool),
            "dispatch" => Some(Self::Dispatch),
            "mesh_resolve" => Some(Self::MeshResolve),
            "invoke_a2a" => Some(Self::InvokeA2a),
            workflow_tools::ORCHESTRATE => Some(Self::OrchestrateWorkflow),
            workflow_tools::EXECUTE => Some(Self::ExecuteDag),
            _ => None,
        }
    }
}

/// Built-in tools that a caller may use, before `own_tools` filters the list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfferedBuiltins {
    /// True when the caller may load agents.
    pub(crate) load_agent: bool,
    /// True when the dispatch tools are listed.
    pub(crate) routing: bool,
    /// True when there are workflows to run.
    pub(crate) workflows: bool,
}

/// Built-in tools to list, in order.
pub(crate) fn listed(config: &Config, offered: OfferedBuiltins) -> Vec<&'static Tool> {
    let routing = if offered.routing { dispatch_tools::tools() } else { &[] };
    let workflows = if offered.workflows { workflow_tools::tools() } else { &[] };
    let is_offered = |tool: &&Tool| offered.load_agent || tool.name != NAMES[0];
    let is_kept = |tool: &&Tool| config.own_tools.as_ref().is_none_or(|kept| kept.keeps(&tool.name));
    tools().iter().chain(routing).chain(workflows).filter(is_offered).filter(is_kept).collect()
}

/// All built-in tools, for the list.
pub(crate) fn tools() -> &'static [Tool] {
    static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
        vec![load_agent_tool(), list_agents_tool(), send_message_tool(), get_task_tool(), cancel_task_tool()]
    });
    &TOOLS
}

/// `load_agent`: loads an agent until this process ends.
pub(crate) async fn load_agent(
    engine: &Engine,
    client: &ClientProfile,
    args: &Json,
) -> Result<ToolResult, Failure> {
    let wanted: LoadAgentArgs = read(args)?;
    let registration = Registration {
        scope: client.caller.scope.clone(),
        // The person at the client named the agent, so it is trusted.
        trust: Some(AgentTrust::Trusted),
        keep: RowStorage::Session,
        credential: wanted.token.map(|token| Credential::new(SecretSource::Held(Secret::from(token)))),
        allow_private: true,
        card_path: wanted.agent_card_path,
        ..Registration::new(wanted.url)
    };
    let url = registration.url.clone();
    let registered = engine.registry().register(registration).await.map_err(Failure::from);
    let agent = registered.as_ref().ok().map(|registered| Arc::clone(&registered.agent));
    let record = AdminRecord {
        after: agent.as_deref().map_or(Value::Null, described),
        agent,
        failure: registered.as_ref().err().cloned(),
        ..AdminRecord::new("agent.register", &client.caller, url)
    };
    engine.audit().record(record).await?;
    let agent = registered?.agent;
    let text = format!("loaded {}\n\nEach skill is now a tool of its own.", line(&agent));
    Ok(ToolResult::text(text).with_structured(Json::encode(&json!({ "agent": described(&agent) }))))
}

/// `load_agent` of a server: registers an agent in the caller's project.
pub(crate) async fn register_agent(
    registrar: &AgentRegistrar,
    client: &ClientProfile,
    args: &Json,
) -> Result<ToolResult, Failure> {
    let LoadAgentArgs { url, agent_card_path: card_path, token } = read(args)?;
    let agent = AgentToLoad { url, card_path, token: token.map(Secret::from) };
    let agent = registrar.register(client.caller.clone(), agent).await?;
    let slug = &agent.slug;
    let next = match agent.trust {
        AgentTrust::External => format!(
            "It is external: its skills can be called once a policy permits it (`rialto policy allow {slug}`)."
        ),
        AgentTrust::Trusted | AgentTrust::System => "Each skill is now a tool of its own.".to_owned(),
    };
    let text = format!("loaded {}\n\n{next}", line(&agent));
    Ok(ToolResult::text(text).with_structured(Json::encode(&json!({ "agent": described(&agent) }))))
}

/// `list_agents`: the visible agents.
pub(crate) async fn list_agents(
    engine: &Engine,
    client: &ClientProfile,
    args: &Json,
) -> Result<ToolResult, Failure> {
    let wanted: ListAgentsArgs = read(args)?;
    engine.policies().sync().await?;
    let query = wanted.query.unwrap_or_default().to_lowercase();
    let mut agents = engine.registry().agents(&client.caller.scope);
    agents.retain(|agent| {
        let target = CallTarget { agent: agent.clone(), skill: None };
        matches(agent, &query) && engine.policies().may_discover(&client.caller, &target)
    });
    let more = agents.len().saturating_sub(MAX_LISTED_AGENTS);
    agents.truncate(MAX_LISTED_AGENTS);
    let mut text = match agents.len() {
        0 => "no agent is known here".to_owned(),
        _ => agents.iter().map(|agent| line(agent)).collect::<Vec<_>>().join("\n"),
    };
    if more > 0 {
        text.push_str(&format!("\n… and {more} more; name some of their words in `query`"));
    }
    let agents: Vec<Value> = agents.iter().map(|agent| described(agent)).collect();
    Ok(ToolResult::text(text).with_structured(Json::encode(&json!({ "agents": agents, "more": more }))))
}

/// `send_message`: builds the request.
pub(crate) async fn message(
    engine: &Engine,
    client: &ClientProfile,
    args: &Json,
) -> Result<CallRequest, Failure> {
    let wanted: SendMessageArgs = read(args)?;
    let synced = engine.policies().sync().await?;
    let target = addressee(engine, client, &wanted).await?;
    let part = part_of(wanted.message)?;
    let mut request = CallRequest::message(client.caller.clone(), client.door, target, vec![part]);
    (request.task, request.context) = (wanted.task_id, wanted.context_id);
    request.synced = Some(synced);
    Ok(request)
}

/// `get_task`: polls a task at its agent; without an id, lists the latest tasks.
pub(crate) async fn get_task(
    engine: &Engine,
    client: &ClientProfile,
    id: Option<&str>,
) -> Result<ToolResult, Failure> {
    let Some(id) = id else { return latest_tasks::told(engine, client).await };
    let (task, reader) = (engine.tasks().get(&client.caller, id).await?, client.reader());
    Ok(render::status(&task, &address(engine, &task), reader).standing_read_by(reader))
}

/// `cancel_task`: cancels a task, at its agent too.
pub(crate) async fn cancel_task(
    engine: &Engine,
    client: &ClientProfile,
    args: &Json,
) -> Result<ToolResult, Failure> {
    let wanted: TaskIdArgs = read(args)?;
    let task = engine.tasks().cancel(&client.caller, &wanted.task_id).await?;
    Ok(render::status(&task, &address(engine, &task), client.reader()))
}

/// Name by which a client addresses the agent of a task.
pub(crate) fn address(engine: &Engine, task: &rialto_model::task::Task) -> String {
    let agent = engine.registry().get(&task.head.agent);
    agent.map_or_else(|| task.head.agent_url.clone(), |agent| agent.slug.clone())
}

/// Target of a message: the named agent, or the agent of the task.
async fn addressee(
    engine: &Engine,
    client: &ClientProfile,
    wanted: &SendMessageArgs,
) -> Result<CallTarget, Failure> {
    let named = match &wanted.agent {
        Some(key) => {
            let agent = engine.registry().find(&client.caller.scope, key).map_err(|_| unknown_agent(key))?;
            let target = CallTarget { agent, skill: None };
            if !engine.policies().may_discover(&client.caller, &target) {
                return Err(unknown_agent(key));
            }
            Some(target)
        }
        None => None,
    };
    let Some(id) = &wanted.task_id else {
        return named
            .ok_or_else(|| Failure::new(FailureKind::Invalid, "name the agent, or the task to go on with"));
    };
    let worker = engine.tasks().target(&client.caller, id).await?;
    match named {
        Some(named) if named.agent.id != worker.agent.id => {
            let (named, worker) = (&named.agent.slug, &worker.agent.slug);
            let message =
                format!("task {id} belongs to agent {worker}, not to {named}; name that one, or none");
            Err(Failure::new(FailureKind::Invalid, message))
        }
        _ => Ok(CallTarget { agent: worker.agent, skill: None }),
    }
}

pub(crate) fn unknown_agent(key: &str) -> Failure {
    let message =
        format!("no agent is known as \"{key}\"; list_agents shows those that are, load_agent adds one");
    Failure::new(FailureKind::NotFound, message)
}

pub(crate) fn part_of(message: Json) -> Result<Part, Failure> {
    if message.is_object() {
        return Ok(Part::data(message));
    }
    message
        .read::<String>()
        .map(Part::text)
        .map_err(|_| Failure::new(FailureKind::Invalid, "`message` must be a text or an object"))
}

pub(crate) fn read<T: DeserializeOwned>(args: &Json) -> Result<T, Failure> {
    args.read().map_err(|error| {
        // The position in the text is useless for a caller that wrote arguments, not text.
        let error = error.to_string();
        let what = error.split(" at line ").next().unwrap_or(&error);
        Failure::new(FailureKind::Invalid, format!("the arguments do not fit: {what}"))
    })
}

fn matches(agent: &Agent, query: &str) -> bool {
    let card = &agent.card;
    let has = |text: &str| text.to_lowercase().contains(query);
    query.is_empty()
        || [&card.name, &card.description, &agent.slug, &agent.url].into_iter().any(|text| has(text))
        || card
            .skills
            .iter()
            .any(|skill| has(&skill.name) || has(&skill.description) || has(skill.id.as_str()))
}

fn line(agent: &Agent) -> String {
    let skills: Vec<&str> = agent.card.skills.iter().map(|skill| skill.id.as_str()).collect();
    let health = if agent.health == Health::Unreachable { ", unreachable" } else { "" };
    format!("{} ({}{health}) at {}: {}", agent.card.name, agent.slug, agent.url, skills.join(", "))
}

fn described(agent: &Agent) -> Value {
    let skills = agent.card.skills.iter().map(|skill| {
        let tool = name::canonical(&agent.slug, skill.id.as_str());
        json!({ "id": skill.id, "name": skill.name, "description": skill.description, "tool": tool })
    });
    json!({
        "id": agent.id,
        "name": agent.card.name,
        "slug": agent.slug,
        "url": agent.url,
        "description": agent.card.description,
        "health": agent.health,
        "trust": agent.trust,
        "skills": skills.collect::<Vec<_>>(),
    })
}

fn load_agent_tool() -> Tool {
    own_tool(
        "load_agent",
        "Load an agent",
        "Gets to know a remote A2A agent from its base URL. Each of its skills becomes a tool of its own, and \
         send_message reaches it.",
        json!({
            "type": "object",
            "properties": {
                "url": { "type": "string", "description": "The agent's base URL, or the URL of its agent card." },
                "agent_card_path": {
                    "type": "string",
                    "description": "Where below the base URL the agent card is, when not at a well-known place.",
                },
                "token": { "type": "string", "description": "A bearer token the agent asks for. It is not stored." },
            },
            "required": ["url"],
            "additionalProperties": false,
        }),
        ToolAnnotations::new().read_only(false).destructive(false).idempotent(true).open_world(true),
    )
}

fn list_agents_tool() -> Tool {
    own_tool(
        "list_agents",
        "List agents",
        "Lists the A2A agents that are known here, with their skills and how they are doing.",
        json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "Only agents with these words in name, skills or URL." },
            },
            "additionalProperties": false,
        }),
        ToolAnnotations::new().read_only(true).idempotent(true).open_world(false),
    )
}

fn send_message_tool() -> Tool {
    own_tool(
        "send_message",
        "Send a message",
        "Sends a message to an A2A agent and waits a while for the result. Answers with the task's id and state, and \
         the result if it is there; otherwise fetch it later with get_task. With task_id it answers a question that \
         the agent asked in that task; with context_id it begins a new task in the same conversation.",
        json!({
            "type": "object",
            "properties": {
                "agent": { "type": "string", "description": "The agent: its URL, id, slug or name. With task_id it may be left out." },
                "message": {
                    "anyOf": [{ "type": "string" }, { "type": "object" }],
                    "description": "What to say: a text, or an object to be sent as data.",
                },
                "task_id": { "type": "string", "description": "The task to go on with." },
                "context_id": { "type": "string", "description": "The conversation to go on with, in a new task." },
            },
            "required": ["message"],
            "additionalProperties": false,
        }),
        ToolAnnotations::new().read_only(false).destructive(true).idempotent(false).open_world(true),
    )
}

fn get_task_tool() -> Tool {
    own_tool(
        "get_task",
        "Look at a task",
        "Tells how a task stands and gives its result if it is there. The task's id is all that is needed; without it, your \
         latest tasks are listed, those included whose call timed out. A part of a result that was too large to be shown \
         is read in pieces with part and offset.",
        json!({
            "type": "object",
            "properties": {
                "task_id": { "type": "string", "description": "The task's id, as a result, an error or send_message gave it." },
                "part": { "type": "string", "description": "A part that was left out of the result, as the result names it." },
                "offset": { "type": "integer", "minimum": 0, "description": "Where to read on in that part, as the piece before says." },
            },
            "additionalProperties": false,
        }),
        ToolAnnotations::new().read_only(true).idempotent(true).open_world(true),
    )
}

fn cancel_task_tool() -> Tool {
    own_tool(
        "cancel_task",
        "Cancel a task",
        "Calls a task off that is not done yet, at the agent too.",
        one_task_schema("The id of the task to call off."),
        ToolAnnotations::new().read_only(false).destructive(true).idempotent(true).open_world(true),
    )
}

fn one_task_schema(about: &str) -> Value {
    json!({
        "type": "object",
        "properties": { "task_id": { "type": "string", "description": about } },
        "required": ["task_id"],
        "additionalProperties": false,
    })
}

pub(crate) fn own_tool(
    name: &'static str,
    title: &str,
    description: &'static str,
    schema: Value,
    annotations: ToolAnnotations,
) -> Tool {
    let schema = match schema {
        Value::Object(schema) => schema,
        _ => serde_json::Map::new(),
    };
    Tool::new(name, description, schema).with_title(title).with_annotations(annotations)
}
