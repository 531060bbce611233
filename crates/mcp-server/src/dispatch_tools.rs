//! Dispatch tools: `dispatch`, `mesh_resolve` and `invoke_a2a`.
//!
//! `[routing] tools` lists them; they can be called in any case. Their calls pass the same call pipeline as any other.

use std::{sync::LazyLock, time::Duration};

use rialto_engine::{CallRequest, DispatchRequest, Engine, registry::Registration};
use rialto_model::{
    agent::{Agent, AgentTrust, RowStorage},
    call::CallTarget,
    failure::{Failure, FailureKind},
    json::Json,
    message::Part,
    routing::{CandidateVerdict, Dispatch, DispatchCandidate, WorkDescription},
};
use rmcp::model::{Tool, ToolAnnotations};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    builtin_tools::{own_tool, part_of, read, unknown_agent},
    client_profile::ClientProfile,
    config::InvokeConfig,
    server::LoadAgents,
    tool_result::ToolResult,
};

/// Default number of candidates in a result.
const DEFAULT_CANDIDATES: usize = 20;

/// Target of `invoke_a2a`.
pub(crate) enum InvokeTarget {
    /// State of a task.
    Refresh(String),
    /// Message to this agent.
    Message(Box<CallRequest>),
    /// Work for any agent with a capability.
    Work(Box<DispatchRequest>),
}

/// Settings for loading agents by URL or card file.
pub(crate) struct AgentLoader<'a> {
    pub(crate) load_agents: &'a LoadAgents,
    pub(crate) invoking: &'a InvokeConfig,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DispatchArgs {
    #[serde(default)]
    work_type: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    required_skills: Vec<String>,
    #[serde(default)]
    input_modes: Vec<String>,
    message: Option<Json>,
    context_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResolveArgs {
    capability: Option<String>,
    #[serde(default)]
    work_type: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    required_skills: Vec<String>,
    #[serde(default)]
    input_modes: Vec<String>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InvokeArgs {
    agent_card_url: Option<String>,
    agent_name: Option<String>,
    capability: Option<String>,
    message: Option<Json>,
    task_id: Option<String>,
    context_id: Option<String>,
    timeout: Option<f64>,
}

/// `dispatch`: builds the request.
pub(crate) fn dispatch(client: &ClientProfile, args: &Json) -> Result<DispatchRequest, Failure> {
    let wanted: DispatchArgs = read(args)?;
    let part = match wanted.message {
        Some(message) => part_of(message)?,
        None if wanted.description.trim().is_empty() => {
            return Err(Failure::new(
                FailureKind::Invalid,
                "say what is to be done: a description or a message",
            ));
        }
        None => Part::text(wanted.description.clone()),
    };
    let work = WorkDescription {
        work_type: wanted.work_type,
        description: wanted.description,
        required_skills: wanted.required_skills,
        input_modes: wanted.input_modes,
    };
    let request = DispatchRequest::new(client.caller.clone(), client.door, work, vec![part]);
    Ok(DispatchRequest { context: wanted.context_id, trace: client.trace.clone(), ..request })
}

/// `mesh_resolve`: candidates with their scores, without a call.
pub(crate) async fn resolve(
    engine: &Engine,
    client: &ClientProfile,
    args: &Json,
) -> Result<ToolResult, Failure> {
    let wanted: ResolveArgs = read(args)?;
    let work = match wanted.capability {
        Some(capability) => {
            let named = engine.dispatches().work_for_capability(&client.caller, &capability).await?;
            let description = [named.description, wanted.description].join(" ").trim().to_owned();
            let required_skills = named.required_skills.into_iter().chain(wanted.required_skills).collect();
            let own = wanted.work_type.trim().is_empty();
            let work_type = if own { named.work_type } else { wanted.work_type };
            WorkDescription { work_type, description, required_skills, input_modes: wanted.input_modes }
        }
        None => WorkDescription {
            work_type: wanted.work_type,
            description: wanted.description,
            required_skills: wanted.required_skills,
            input_modes: wanted.input_modes,
        },
    };
    let mut record = engine.dispatches().explain(&client.caller, &work).await?;
    let limit = wanted.limit.unwrap_or(DEFAULT_CANDIDATES).max(1);
    record.more += record.candidates.len().saturating_sub(limit);
    record.candidates.truncate(limit);
    let structured = json!({ "work": record.work, "candidates": record.candidates, "more": record.more });
    Ok(ToolResult::text(told(&record)).with_structured(Json::encode(&structured)))
}

/// `invoke_a2a`: resolves the target, in this order: a URL or a card file, a name, a capability, the default.
pub(crate) async fn invoke(
    engine: &Engine,
    client: &ClientProfile,
    local: &AgentLoader<'_>,
    args: &Json,
) -> Result<InvokeTarget, Failure> {
    let wanted: InvokeArgs = read(args)?;
    engine.policies().sync().await?;
    let message = match (&wanted.task_id, wanted.message.clone()) {
        (_, Some(message)) => part_of(message)?,
        (Some(task), None) => return Ok(InvokeTarget::Refresh(task.clone())),
        (None, None) => {
            return Err(Failure::new(
                FailureKind::Invalid,
                "say something to the agent: `message` is missing",
            ));
        }
    };
    let timeout = Some(local.invoking.patience(wanted.timeout)?);
    let (agent, capability) = who(engine, client, local, &wanted).await?;
    if let Some(capability) = capability.filter(|_| wanted.task_id.is_none()) {
        let work = engine.dispatches().work_for_capability(&client.caller, &capability).await?;
        let request = DispatchRequest::new(client.caller.clone(), client.door, work, vec![message]);
        let context = wanted.context_id;
        let trace = client.trace.clone();
        return Ok(InvokeTarget::Work(Box::new(DispatchRequest { context, timeout, trace, ..request })));
    }
    let target = match (&wanted.task_id, agent) {
        (Some(task), agent) => {
            let worker = engine.tasks().target(&client.caller, task).await?;
            if let Some(other) = agent.filter(|agent| agent.id != worker.agent.id) {
                let (worker, other) = (&worker.agent.slug, &other.slug);
                let message =
                    format!("task {task} belongs to agent {worker}, not to {other}; name that one, or none");
                return Err(Failure::new(FailureKind::Invalid, message));
            }
            CallTarget { agent: worker.agent, skill: None }
        }
        (None, Some(agent)) => CallTarget { agent, skill: None },
        (None, None) => {
            let message = "name an agent: agent_card_url, agent_name or capability; or set [a2a] default_agent_card_url";
            return Err(Failure::new(FailureKind::Invalid, message));
        }
    };
    let mut request = CallRequest::message(client.caller.clone(), client.door, target, vec![message]);
    (request.task, request.context, request.timeout) = (wanted.task_id, wanted.context_id, timeout);
    Ok(InvokeTarget::Message(Box::new(request)))
}

/// The named agent, or the requested capability.
async fn who(
    engine: &Engine,
    client: &ClientProfile,
    local: &AgentLoader<'_>,
    wanted: &InvokeArgs,
) -> Result<(Option<std::sync::Arc<Agent>>, Option<String>), Failure> {
    let named = |text: &Option<String>| {
        text.as_ref().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    if let Some(place) = named(&wanted.agent_card_url) {
        let is_ours = matches!(local.load_agents, LoadAgents::Session);
        return at(engine, client, local, &place, is_ours).await.map(|agent| (Some(agent), None));
    }
    if let Some(name) = named(&wanted.agent_name) {
        return known(engine, client, &name).map(|agent| (Some(agent), None));
    }
    if let Some(capability) = named(&wanted.capability) {
        return Ok((None, Some(capability)));
    }
    match &local.invoking.default_agent_card_url {
        // The agent is named in the configuration, so it is trusted.
        Some(place) if wanted.task_id.is_none() => {
            at(engine, client, local, place, true).await.map(|agent| (Some(agent), None))
        }
        _ => Ok((None, None)),
    }
}

/// Registered agent that is visible to the client.
fn known(engine: &Engine, client: &ClientProfile, key: &str) -> Result<std::sync::Arc<Agent>, Failure> {
    let agent = engine.registry().find(&client.caller.scope, key).map_err(|_| unknown_agent(key))?;
    let target = CallTarget { agent, skill: None };
    if engine.policies().may_discover(&client.caller, &target) {
        Ok(target.agent)
    } else {
        Err(unknown_agent(key))
    }
}

/// Agent at a URL or of a card file: a registered one, or one that is loaded until this process ends, if the source is trusted.
async fn at(
    engine: &Engine,
    client: &ClientProfile,
    local: &AgentLoader<'_>,
    place: &str,
    is_vouched_for: bool,
) -> Result<std::sync::Arc<Agent>, Failure> {
    let is_address = place.starts_with("http://") || place.starts_with("https://");
    let registration = Registration {
        scope: client.caller.scope.clone(),
        trust: Some(AgentTrust::Trusted),
        keep: RowStorage::Session,
        allow_private: true,
        ..Registration::new(place)
    };
    if !is_address {
        let read = local.invoking.read_card.as_ref().filter(|_| is_vouched_for).ok_or_else(|| {
            let message = "a card file is read only where you sit at the machine yourself (`rialto mcp`); give the agent's URL";
            Failure::new(FailureKind::Denied, message)
        })?;
        let card = read(place.strip_prefix("file://").unwrap_or(place)).map_err(|why| {
            Failure::new(FailureKind::Invalid, format!("the card file {place} cannot be used: {why}"))
        })?;
        return Ok(engine.registry().register_card(registration, card).await.map_err(Failure::from)?.agent);
    }
    match known(engine, client, place) {
        Ok(agent) => Ok(agent),
        Err(_) if is_vouched_for => {
            Ok(engine.registry().register(registration).await.map_err(Failure::from)?.agent)
        }
        Err(unknown) => match local.load_agents {
            LoadAgents::Refused(reason) => {
                Err(Failure::new(FailureKind::Denied, format!("{unknown}; {reason}")))
            }
            LoadAgents::Registered(_) => Err(Failure::new(
                FailureKind::Denied,
                format!("{unknown}; load it first with load_agent, or `rialto agents add URL`"),
            )),
            LoadAgents::Session => Err(unknown),
        },
    }
}

/// Routing decision as text.
fn told(record: &Dispatch) -> String {
    if record.candidates.is_empty() {
        return "Nobody fits. list_agents shows who is there and what skills they have.".to_owned();
    }
    let mut text: String = record.candidates.iter().map(|one| line(one) + "\n").collect();
    if record.more > 0 {
        text.push_str(&format!("and {} more\n", record.more));
    }
    text.push_str("dispatch gives the work to whoever draws best then.");
    text
}

fn line(one: &DispatchCandidate) -> String {
    let skill = one.skill.as_ref().map(|skill| format!(".{skill}")).unwrap_or_default();
    let verdict = match &one.verdict {
        CandidateVerdict::Chosen => "would be asked".to_owned(),
        CandidateVerdict::Passed => "could be asked".to_owned(),
        CandidateVerdict::Out(why) => format!("not now: {why}"),
    };
    format!(
        "{}{skill}: {verdict} (fits {:.2}: {}; {}, {} tasks, {} observed)",
        one.agent,
        one.capability_score,
        one.reasons.join(", "),
        one.health,
        one.active_tasks,
        one.posterior.observed
    )
}

/// The three tools, for the list.
pub(crate) fn tools() -> &'static [Tool] {
    static TOOLS: LazyLock<Vec<Tool>> =
        LazyLock::new(|| vec![dispatch_tool(), resolve_tool(), invoke_tool()]);
    &TOOLS
}

fn work_properties() -> Value {
    json!({
        "work_type": { "type": "string", "description": "The type of work, like qa: agents are remembered by how well they do it." },
        "description": { "type": "string", "description": "What is to be done." },
        "required_skills": {
            "type": "array", "items": { "type": "string" },
            "description": "What the agent must have, each as the id, the name or a tag of one of its skills.",
        },
        "input_modes": {
            "type": "array", "items": { "type": "string" },
            "description": "Media types that the agent must take, like image/png.",
        },
    })
}

fn message_property(about: &str) -> Value {
    json!({ "anyOf": [{ "type": "string" }, { "type": "object" }], "description": about })
}

fn dispatch_tool() -> Tool {
    let mut properties = work_properties();
    properties["message"] = message_property(
        "What to say to the agent: a text, or an object to be sent as data. Without it, the description.",
    );
    properties["context_id"] =
        json!({ "type": "string", "description": "The conversation to go on with, in a new task." });
    own_tool(
        "dispatch",
        "Dispatch work",
        "Gives work to the agent that does it best: one that has what is required, is well, has time and has done this type of \
         work well before. Answers with the result, the task's id and state, and which agent did it.",
        json!({ "type": "object", "properties": properties, "additionalProperties": false }),
        ToolAnnotations::new().read_only(false).destructive(true).idempotent(false).open_world(true),
    )
}

fn resolve_tool() -> Tool {
    let mut properties = work_properties();
    properties["capability"] = json!({ "type": "string", "description": "One word for what an agent must be able to do: a skill or a tag." });
    properties["limit"] =
        json!({ "type": "integer", "minimum": 1, "description": "How many candidates to tell (20)." });
    own_tool(
        "mesh_resolve",
        "Find agents for work",
        "Tells which agents could do some work and why: how well each fits, how it is doing, how much it has to do and what is \
         known of its work. Nobody is called.",
        json!({ "type": "object", "properties": properties, "additionalProperties": false }),
        ToolAnnotations::new().read_only(true).idempotent(true).open_world(false),
    )
}

fn invoke_tool() -> Tool {
    own_tool(
        "invoke_a2a",
        "Invoke an A2A agent",
        "Sends work to an A2A agent and answers with its result: to the one at agent_card_url, else the one called agent_name, \
         else the best one with a capability, else the default. With task_id and a message it goes on with that task; with \
         task_id alone it tells how the task stands.",
        json!({
            "type": "object",
            "properties": {
                "agent_card_url": { "type": "string", "description": "The agent's base URL or the URL of its card; where you sit at the machine yourself, also a card file." },
                "agent_name": { "type": "string", "description": "An agent that is registered here: its name, slug, id or URL." },
                "capability": { "type": "string", "description": "What the agent must be able to do: a skill or a tag." },
                "message": message_property("What to say: a text, or an object to be sent as data."),
                "task_id": { "type": "string", "description": "The task to go on with, or to look at." },
                "context_id": { "type": "string", "description": "The conversation to go on with, in a new task." },
                "timeout": { "type": "number", "exclusiveMinimum": 0, "description": "How long to wait, in seconds." },
            },
            "additionalProperties": false,
        }),
        ToolAnnotations::new().read_only(false).destructive(true).idempotent(false).open_world(true),
    )
}

// === impl Invoking ===

impl InvokeConfig {
    /// Timeout of a call.
    fn patience(&self, wanted: Option<f64>) -> Result<Duration, Failure> {
        match wanted {
            None => Ok(Duration::from_secs(self.default_timeout_secs)),
            Some(secs) if secs > 0.0 && secs <= 86_400.0 => Ok(Duration::from_secs_f64(secs)),
            Some(_) => Err(Failure::new(
                FailureKind::Invalid,
                "timeout: expected seconds, more than 0 and at most a day",
            )),
        }
    }
}
