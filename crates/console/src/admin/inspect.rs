//! One call from both sides, after the fact.
//!
//! Everything comes from the journal and the audit trail, where secrets never were. A call that was refused has no task, but
//! its records say who wanted what, and why not. Callers see their own; whoever may read the audit trail sees everybody's.

mod words;

use rialto_api_types::tasks::{
    CallInspection, CallerRequest, RecordedDecision, TimelineActor, TimelineEntry, UpstreamMessage,
    UpstreamRequest,
};
use rialto_model::{
    agent::Agent,
    audit_event::{AuditEvent, AuditPhase, SkillInvocation},
    backing::Backing,
    call::{Caller, args_of},
    card::Binding,
    clock::Timestamp,
    event::{Event, RecordedEvent},
    failure::{Failure, FailureKind},
    ids::{AgentId, TaskId},
    json::Json,
    store::{AuditFilter, StoredAuditEvent},
    task::{Task, TaskHead},
    token_scopes::TokenScope,
};
use serde::Serialize;

use super::tasks::is_own;
use crate::{Console, console::store_failure};

/// So many records of one task are shown.
const RECORDS: usize = 1_000;

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
    event: &'a AuditEvent,
}

/// The call with that task, by our id or the agent's.
pub async fn inspect(console: &Console, caller: &Caller, id: &str) -> Result<CallInspection, Failure> {
    Console::need(caller, TokenScope::Call)?;
    console.engine().sync().await?;
    let sees_all = console.sees_all(caller);
    let head = console.store().task(&caller.scope, id).await.map_err(store_failure)?;
    let head = head.filter(|head| sees_all || is_own(caller, head));
    let ours = head.as_ref().map_or_else(|| TaskId::from(id), |head| head.id.clone());
    let mut records = Vec::new();
    if head.is_some() || sees_all {
        let filter = AuditFilter { task: Some(ours.clone()), limit: RECORDS, ..AuditFilter::default() };
        records = console.store().audit_records(&caller.scope, &filter).await.map_err(store_failure)?;
        records.reverse();
    }
    if head.is_none() && records.is_empty() {
        let message = format!(
            "there is no task and no record of \"{id}\"; `rialto tasks list` and `rialto audit` tell what there is"
        );
        return Err(Failure::new(FailureKind::NotFound, message));
    }
    let events = match &head {
        Some(head) => console.store().events(&head.id, 0).await.map_err(store_failure)?,
        None => Vec::new(),
    };
    let head = head.map(|head| as_told(head, &events));
    Ok(put_together(console, ours, head.as_ref(), &events, &records))
}

/// What the agent calls a task stands in its events.
fn as_told(head: TaskHead, events: &[RecordedEvent]) -> TaskHead {
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
    events: &[RecordedEvent],
    records: &[StoredAuditEvent],
) -> CallInspection {
    let first = records.iter().find(|record| record.event.phase == AuditPhase::PreVerb);
    let verb = records.first().map(|record| &*record.event.verb);
    let agent_id = head.map(|head| head.agent.clone());
    let agent_id = agent_id.or_else(|| verb.map(|verb| AgentId::from(&*verb.agent_card_id)));
    let agent = agent_id.and_then(|id| console.engine().registry().get(&id));
    let decision = first.map(|record| {
        let context = &record.event.context;
        let (policies, reason) = (context.policies.to_vec(), context.reason.clone());
        RecordedDecision { allowed: !context.denied, policies, reason }
    });
    let taken = events.iter().position(|recorded| matches!(recorded.event, Event::Accepted { .. }));
    let told = |(at, recorded)| happened(recorded, taken.is_some_and(|taken| taken < at));
    let events_told = events.iter().enumerate().map(told);
    let mut timeline: Vec<TimelineEntry> = events_told.chain(records.iter().map(announced)).collect();
    timeline.sort_by_key(|entry| entry.at);
    let begun = timeline.first().map(|entry| entry.at);
    for entry in &mut timeline {
        let since = begun.map(|begun| entry.at.duration_since(begun).as_millis()).unwrap_or_default();
        entry.after_ms = i64::try_from(since).unwrap_or(i64::MAX);
    }
    CallInspection {
        task_id,
        state: head.map(|head| head.state),
        came_in: came_in(head, first.map(|record| &*record.event.verb)),
        decision,
        went_out: UpstreamRequest { sent: sent(head, events), ..went_out(head, verb, agent.as_deref()) },
        timeline,
    }
}

fn came_in(head: Option<&TaskHead>, verb: Option<&SkillInvocation>) -> CallerRequest {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    CallerRequest {
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

fn went_out(
    head: Option<&TaskHead>,
    verb: Option<&SkillInvocation>,
    agent: Option<&Agent>,
) -> UpstreamRequest {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let url = head.map(|head| head.agent_url.as_str()).or_else(|| verb.map(|verb| verb.agent_url.as_str()));
    UpstreamRequest {
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
fn sent(head: Option<&TaskHead>, events: &[RecordedEvent]) -> Vec<UpstreamMessage> {
    let Some(head) = head else { return Vec::new() };
    let is_heard = |recorded: &RecordedEvent| {
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
            Some(UpstreamMessage { at: recorded.at, content: args_of(&message.parts, None) })
        }
        _ => None,
    });
    std::iter::once(UpstreamMessage { at: head.created_at, content: head.args.clone() })
        .chain(answers)
        .collect()
}

/// Whether somebody was to say that it may be done, and has not.
fn was_held(events: &[RecordedEvent]) -> bool {
    let has = |is: fn(&Event) -> bool| events.iter().any(|recorded| is(&recorded.event));
    let is_asked = has(|event| matches!(event, Event::Asked { .. }));
    let is_answered = has(|event| matches!(event, Event::Answered { .. }));
    let is_denied =
        has(|event| matches!(event, Event::Failed { failure, .. } if failure.kind == FailureKind::Denied));
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

fn announced(record: &StoredAuditEvent) -> TimelineEntry {
    let event = &record.event;
    let told = Json::encode(&Announced { record: record.record, event });
    entry(event.emitted_at, TimelineActor::Rialto, words::announced(record), told)
}

fn happened(recorded: &RecordedEvent, is_taken: bool) -> TimelineEntry {
    let who = match &recorded.event {
        Event::Answered { .. } => TimelineActor::Caller,
        // Before the agent has taken it, only we ask: whether it may be done.
        Event::Asked { .. } if !is_taken => TimelineActor::Rialto,
        _ => TimelineActor::Agent,
    };
    let told = Json::encode(&Happened { seq: recorded.seq, event: &recorded.event });
    entry(recorded.at, who, words::told(&recorded.event), told)
}

const fn entry(at: Timestamp, who: TimelineActor, what: String, record: Json) -> TimelineEntry {
    TimelineEntry { at, after_ms: 0, who, what, record }
}
