//! One call from both sides, after the fact.
//!
//! Everything comes from the journal and the audit trail, where secrets never were. A call that was refused has no task, but
//! its records say who wanted what, and why not. Callers see their own; whoever may read the audit trail sees everybody's.

mod words;

use std::borrow::Cow;

use rialto_model::{
    agent::Agent,
    call::{Caller, Door, args_of},
    card::Binding,
    clock::Timestamp,
    deployed::Backing,
    event::{Event, Recorded},
    failure::{Failure, Kind},
    ids::{AgentId, SkillId, TaskId},
    json::Json,
    rights::Right,
    store::{AuditFilter, Audited},
    task::{Task, TaskHead, TaskState},
    verb::{Phase, Verb, VerbEvent},
};
use serde::{Deserialize, Serialize};

use super::tasks::is_own;
use crate::{Console, console::store_failure};

/// So many records of one task are shown.
const RECORDS: usize = 1_000;

/// One call, from both sides.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspected {
    /// Our id of the task.
    pub task_id: TaskId,
    /// Where it stands; none when it was refused before there was a task.
    pub state: Option<TaskState>,
    /// What was asked of us.
    pub came_in: CameIn,
    /// What policy said, if that is on record.
    pub decision: Option<Decision>,
    /// What we asked of the agent.
    pub went_out: WentOut,
    /// What happened, in order.
    pub timeline: Vec<Entry>,
}

/// What was asked of us.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CameIn {
    /// By whom.
    pub caller: Option<String>,
    /// In which org.
    pub org: Option<String>,
    /// In which project.
    pub project: Option<String>,
    /// By which door.
    pub door: Option<Door>,
    /// The canonical name of what was called.
    pub called: Option<String>,
    /// With which arguments.
    pub arguments: Option<Json>,
    /// In which conversation.
    pub context_id: Option<String>,
    /// What the caller calls its message.
    pub message_id: Option<String>,
}

/// What policy said.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Decision {
    /// Whether it may be done.
    pub allowed: bool,
    /// The policies that decided.
    pub policies: Vec<String>,
    /// Why not.
    pub reason: Option<String>,
}

/// What we asked of the agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WentOut {
    /// Its slug, while it is registered.
    pub agent: Option<String>,
    /// Where it lives.
    pub url: Option<String>,
    /// How it is spoken to, by its row as it is now.
    pub protocol: Option<String>,
    /// Which skill.
    pub skill_id: Option<SkillId>,
    /// The id that both sides' logs share.
    pub session_id: Option<String>,
    /// What the agent calls the task.
    pub remote_task_id: Option<String>,
    /// What the agent calls the conversation.
    pub remote_context_id: Option<String>,
    /// What it was sent, in order, as far as that is on record: as arguments, with secrets masked.
    #[serde(default)]
    pub sent: Vec<Sent>,
}

/// Something that went out to the agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sent {
    /// When it was written down.
    pub at: Timestamp,
    /// What was said. One data part is itself, a text `{"text": …}`, and anything else `{"parts": […]}`.
    pub content: Json,
}

/// Something that happened.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// When.
    pub at: Timestamp,
    /// How long after the first that happened.
    pub after_ms: i64,
    /// Who did it: `caller`, `rialto` or `agent`.
    pub who: Cow<'static, str>,
    /// What, in a few words.
    pub what: String,
    /// As it is on record.
    pub record: Json,
}

/// An event of the journal as it is on record.
#[derive(Serialize)]
struct Happened<'a> {
    seq: u64,
    event: &'a Event,
}

/// An event of the audit trail as it is on record.
#[derive(Serialize)]
struct Announced<'a> {
    record: u64,
    event: &'a VerbEvent,
}

/// The call with that task, by our id or the agent's.
pub async fn inspect(console: &Console, caller: &Caller, id: &str) -> Result<Inspected, Failure> {
    Console::need(caller, Right::Call)?;
    console.engine().sync().await?;
    let sees_all = console.sees_all(caller);
    let head = console.store().task(&caller.scope, id).await.map_err(store_failure)?;
    let head = head.filter(|head| sees_all || is_own(caller, head));
    let ours = head.as_ref().map_or_else(|| TaskId::from(id), |head| head.id.clone());
    let mut records = Vec::new();
    if head.is_some() || sees_all {
        let filter = AuditFilter { task: Some(ours.clone()), limit: RECORDS, ..AuditFilter::default() };
        records = console.store().audit_trail(&caller.scope, &filter).await.map_err(store_failure)?;
        records.reverse();
    }
    if head.is_none() && records.is_empty() {
        let message = format!(
            "there is no task and no record of \"{id}\"; `rialto tasks list` and `rialto audit` tell what there is"
        );
        return Err(Failure::new(Kind::NotFound, message));
    }
    let events = match &head {
        Some(head) => console.store().events(&head.id, 0).await.map_err(store_failure)?,
        None => Vec::new(),
    };
    let head = head.map(|head| as_told(head, &events));
    Ok(put_together(console, ours, head.as_ref(), &events, &records))
}

/// What the agent calls a task stands in its events.
fn as_told(head: TaskHead, events: &[Recorded]) -> TaskHead {
    let mut task = Task::new(head.as_opened());
    for recorded in events {
        task.apply(&recorded.event, recorded.at);
    }
    task.head
}

fn put_together(
    console: &Console,
    task_id: TaskId,
    head: Option<&TaskHead>,
    events: &[Recorded],
    records: &[Audited],
) -> Inspected {
    let first = records.iter().find(|record| record.event.phase == Phase::PreVerb);
    let verb = records.first().map(|record| &*record.event.verb);
    let agent_id = head.map(|head| head.agent.clone());
    let agent_id = agent_id.or_else(|| verb.map(|verb| AgentId::from(&*verb.agent_card_id)));
    let agent = agent_id.and_then(|id| console.engine().registry().get(&id));
    let decision = first.map(|record| {
        let context = &record.event.context;
        let (policies, reason) = (context.policies.to_vec(), context.reason.clone());
        Decision { allowed: !context.denied, policies, reason }
    });
    let taken = events.iter().position(|recorded| matches!(recorded.event, Event::Accepted { .. }));
    let told = |(at, recorded)| happened(recorded, taken.is_some_and(|taken| taken < at));
    let events_told = events.iter().enumerate().map(told);
    let mut timeline: Vec<Entry> = events_told.chain(records.iter().map(announced)).collect();
    timeline.sort_by_key(|entry| entry.at);
    let begun = timeline.first().map(|entry| entry.at);
    for entry in &mut timeline {
        let since = begun.map(|begun| entry.at.duration_since(begun).as_millis()).unwrap_or_default();
        entry.after_ms = i64::try_from(since).unwrap_or(i64::MAX);
    }
    Inspected {
        task_id,
        state: head.map(|head| head.state),
        came_in: came_in(head, first.map(|record| &*record.event.verb)),
        decision,
        went_out: WentOut { sent: sent(head, events), ..went_out(head, verb, agent.as_deref()) },
        timeline,
    }
}

fn came_in(head: Option<&TaskHead>, verb: Option<&Verb>) -> CameIn {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    CameIn {
        caller: owned(head.map(|head| head.caller.as_str()).or_else(|| verb.map(|verb| &*verb.caller))),
        org: owned(head.map(|head| head.scope.org.as_str()).or_else(|| verb.map(|verb| &*verb.org_id))),
        project: owned(head.map(|head| head.scope.project.as_str())),
        door: head.map(|head| head.door),
        called: verb.map(|verb| verb.verb.clone()),
        arguments: head.map(|head| head.args.clone()).or_else(|| verb.map(|verb| verb.args.clone())),
        context_id: head.and_then(|head| head.context.as_ref().map(ToString::to_string)),
        message_id: owned(head.and_then(|head| head.message.as_deref())),
    }
}

fn went_out(head: Option<&TaskHead>, verb: Option<&Verb>, agent: Option<&Agent>) -> WentOut {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let url = head.map(|head| head.agent_url.as_str()).or_else(|| verb.map(|verb| verb.agent_url.as_str()));
    WentOut {
        agent: agent.map(|agent| agent.slug.clone()),
        url: owned(url),
        protocol: agent.map(protocol),
        skill_id: head.and_then(|head| head.skill.clone()),
        session_id: owned(head.map(|head| &*head.session).or_else(|| verb.map(|verb| &*verb.session_id))),
        remote_task_id: owned(head.and_then(|head| head.remote.task_id.as_deref())),
        remote_context_id: owned(head.and_then(|head| head.remote.context_id.as_deref())),
        sent: Vec::new(),
    }
}

/// The call itself, and what its caller said later. What waits for approval here, or was denied it, was never sent, and neither was
/// the decision.
fn sent(head: Option<&TaskHead>, events: &[Recorded]) -> Vec<Sent> {
    let Some(head) = head else { return Vec::new() };
    let is_heard = |recorded: &Recorded| {
        !matches!(
            recorded.event,
            Event::Asked { .. } | Event::Answered { .. } | Event::Failed { .. } | Event::Canceled { .. }
        )
    };
    let taken = events.iter().position(is_heard);
    let (ours, later) = events.split_at(taken.unwrap_or(events.len()));
    if taken.is_none() && was_held(ours) {
        return Vec::new();
    }
    let answers = later.iter().filter_map(|recorded| match &recorded.event {
        Event::Answered { message, .. } => {
            Some(Sent { at: recorded.at, content: args_of(&message.parts, None) })
        }
        _ => None,
    });
    std::iter::once(Sent { at: head.created_at, content: head.args.clone() }).chain(answers).collect()
}

/// Whether somebody was to say that it may be done, and has not.
fn was_held(events: &[Recorded]) -> bool {
    let has = |is: fn(&Event) -> bool| events.iter().any(|recorded| is(&recorded.event));
    let is_asked = has(|event| matches!(event, Event::Asked { .. }));
    let is_answered = has(|event| matches!(event, Event::Answered { .. }));
    let is_denied =
        has(|event| matches!(event, Event::Failed { failure, .. } if failure.kind == Kind::Denied));
    is_asked && (!is_answered || is_denied)
}

/// How an agent is spoken to, by its row as it is now.
fn protocol(agent: &Agent) -> String {
    match &agent.backing {
        Backing::Mcp(_) => "MCP".to_owned(),
        Backing::Function(_) => "function".to_owned(),
        Backing::Flow(_) => "workflow".to_owned(),
        Backing::Acp(_) => "ACP".to_owned(),
        Backing::A2a => match agent.card.interfaces.first() {
            Some(interface) => {
                let dialect = agent.speaks.unwrap_or(interface.dialect);
                let binding = match &interface.binding {
                    Binding::JsonRpc => "JSON-RPC",
                    Binding::HttpJson => "HTTP+JSON",
                    Binding::Grpc => "gRPC",
                    Binding::Other(name) => name,
                };
                format!("A2A {} over {binding}", dialect.as_str())
            }
            None => "A2A".to_owned(),
        },
    }
}

fn announced(record: &Audited) -> Entry {
    let event = &record.event;
    let told = Json::of(&Announced { record: record.record, event });
    entry(event.emitted_at, "rialto", words::announced(record), told)
}

fn happened(recorded: &Recorded, is_taken: bool) -> Entry {
    let who = match &recorded.event {
        Event::Answered { .. } => "caller",
        // Before the agent has taken it, only we ask: whether it may be done.
        Event::Asked { .. } if !is_taken => "rialto",
        _ => "agent",
    };
    let told = Json::of(&Happened { seq: recorded.seq, event: &recorded.event });
    entry(recorded.at, who, words::told(&recorded.event), told)
}

const fn entry(at: Timestamp, who: &'static str, what: String, record: Json) -> Entry {
    Entry { at, after_ms: 0, who: Cow::Borrowed(who), what, record }
}
