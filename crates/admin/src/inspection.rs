//! Inspection of a call: request, decision, upstream call and timeline.
//!
//! The data comes from the journal and the audit log, which contain no secrets. A denied call has no task, but audit records. Callers
//! inspect their own calls; with permission to read the audit log, they inspect those of the whole org.

mod summaries;

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
use crate::{
    Administration,
    administration::{require_right_or_admin, store_failure},
};

/// Maximum number of audit records of one task.
const MAX_RECORDS: usize = 1_000;

/// Raw event of the journal.
#[derive(Serialize)]
struct JournalEventRecord<'a> {
    seq: u64,
    event: &'a Event,
}

/// Raw event of the audit log.
#[derive(Serialize)]
struct AuditEventRecord<'a> {
    record: u64,
    event: &'a AuditEvent,
}

/// Inspects the call of a task, by its id or the agent's id for it.
pub async fn inspect(admin: &Administration, caller: &Caller, id: &str) -> Result<CallInspection, Failure> {
    require_right_or_admin(caller, TokenScope::Call)?;
    admin.engine().policies().sync().await?;
    let sees_all = admin.sees_all_callers(caller);
    let head = admin.store().task(&caller.scope, id).await.map_err(store_failure)?;
    let head = head.filter(|head| sees_all || is_own(caller, head));
    let ours = head.as_ref().map_or_else(|| TaskId::from(id), |head| head.id.clone());
    let mut records = Vec::new();
    if head.is_some() || sees_all {
        let filter = AuditFilter { task: Some(ours.clone()), limit: MAX_RECORDS, ..AuditFilter::default() };
        records = admin.store().audit_records(&caller.scope, &filter).await.map_err(store_failure)?;
        records.reverse();
    }
    if head.is_none() && records.is_empty() {
        let message =
            format!("there is no task and no record of \"{id}\"; see `rialto tasks list` and `rialto audit`");
        return Err(Failure::new(FailureKind::NotFound, message));
    }
    let events = match &head {
        Some(head) => admin.store().events(&head.id, 0).await.map_err(store_failure)?,
        None => Vec::new(),
    };
    let head = head.map(|head| apply_events(head, &events));
    Ok(build_inspection(admin, ours, head.as_ref(), &events, &records))
}

/// Task with its events applied, which contain the agent's ids.
fn apply_events(head: TaskHead, events: &[RecordedEvent]) -> TaskHead {
    let mut task = Task::new(head.as_opened());
    for recorded in events {
        task.apply(&recorded.event, recorded.at);
    }
    task.head
}

fn build_inspection(
    admin: &Administration,
    task_id: TaskId,
    head: Option<&TaskHead>,
    events: &[RecordedEvent],
    records: &[StoredAuditEvent],
) -> CallInspection {
    let first = records.iter().find(|record| record.event.phase == AuditPhase::PreVerb);
    let verb = records.first().map(|record| &*record.event.verb);
    let agent_id = head.map(|head| head.agent.clone());
    let agent_id = agent_id.or_else(|| verb.map(|verb| AgentId::from(&*verb.agent_card_id)));
    let agent = agent_id.and_then(|id| admin.engine().registry().get(&id));
    let decision = first.map(|record| {
        let context = &record.event.context;
        let (policies, reason) = (context.policies.to_vec(), context.reason.clone());
        RecordedDecision { allowed: !context.denied, policies, reason }
    });
    let first_accepted = events.iter().position(|recorded| matches!(recorded.event, Event::Accepted { .. }));
    let to_entry =
        |(at, recorded)| journal_entry(recorded, first_accepted.is_some_and(|accepted| accepted < at));
    let journal = events.iter().enumerate().map(to_entry);
    let mut timeline: Vec<TimelineEntry> = journal.chain(records.iter().map(audit_entry)).collect();
    timeline.sort_by_key(|entry| entry.at);
    let started_at = timeline.first().map(|entry| entry.at);
    for entry in &mut timeline {
        let since =
            started_at.map(|started_at| entry.at.duration_since(started_at).as_millis()).unwrap_or_default();
        entry.after_ms = i64::try_from(since).unwrap_or(i64::MAX);
    }
    CallInspection {
        task_id,
        state: head.map(|head| head.state),
        came_in: caller_request(head, first.map(|record| &*record.event.verb)),
        decision,
        went_out: UpstreamRequest {
            sent: sent_messages(head, events),
            ..upstream_request(head, verb, agent.as_deref())
        },
        timeline,
    }
}

fn caller_request(head: Option<&TaskHead>, verb: Option<&SkillInvocation>) -> CallerRequest {
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

fn upstream_request(
    head: Option<&TaskHead>,
    verb: Option<&SkillInvocation>,
    agent: Option<&Agent>,
) -> UpstreamRequest {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let url = head.map(|head| head.agent_url.as_str()).or_else(|| verb.map(|verb| verb.agent_url.as_str()));
    UpstreamRequest {
        agent: agent.map(|agent| agent.slug.clone()),
        url: owned(url),
        protocol: agent.map(protocol_name),
        skill_id: head.and_then(|head| head.skill.clone()),
        session_id: owned(head.map(|head| &*head.session).or_else(|| verb.map(|verb| &*verb.session_id))),
        remote_task_id: owned(head.and_then(|head| head.remote.task_id.as_deref())),
        remote_context_id: owned(head.and_then(|head| head.remote.context_id.as_deref())),
        sent: Vec::new(),
    }
}

/// Messages that were sent upstream: the call and later answers. A call that waits for approval or was denied it was not sent, and
/// neither was the decision.
fn sent_messages(head: Option<&TaskHead>, events: &[RecordedEvent]) -> Vec<UpstreamMessage> {
    let Some(head) = head else { return Vec::new() };
    let is_from_agent = |recorded: &RecordedEvent| {
        !matches!(
            recorded.event,
            Event::Asked { .. } | Event::Answered { .. } | Event::Failed { .. } | Event::Canceled { .. }
        )
    };
    let first_accepted = events.iter().position(is_from_agent);
    let (ours, later) = events.split_at(first_accepted.unwrap_or(events.len()));
    if first_accepted.is_none() && was_held_for_approval(ours) {
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

/// Whether the call needed an approval that it did not get.
fn was_held_for_approval(events: &[RecordedEvent]) -> bool {
    let has = |is: fn(&Event) -> bool| events.iter().any(|recorded| is(&recorded.event));
    let is_asked = has(|event| matches!(event, Event::Asked { .. }));
    let is_answered = has(|event| matches!(event, Event::Answered { .. }));
    let is_denied =
        has(|event| matches!(event, Event::Failed { failure, .. } if failure.kind == FailureKind::Denied));
    is_asked && (!is_answered || is_denied)
}

/// Protocol of an agent, by its present registration.
fn protocol_name(agent: &Agent) -> String {
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

fn audit_entry(record: &StoredAuditEvent) -> TimelineEntry {
    let event = &record.event;
    let record_json = Json::encode(&AuditEventRecord { record: record.record, event });
    timeline_entry(event.emitted_at, TimelineActor::Rialto, summaries::summarize_record(record), record_json)
}

fn journal_entry(recorded: &RecordedEvent, is_accepted: bool) -> TimelineEntry {
    let who = match &recorded.event {
        Event::Answered { .. } => TimelineActor::Caller,
        // Before the agent has accepted the call, only Rialto asks, for approval.
        Event::Asked { .. } if !is_accepted => TimelineActor::Rialto,
        _ => TimelineActor::Agent,
    };
    let record_json = Json::encode(&JournalEventRecord { seq: recorded.seq, event: &recorded.event });
    timeline_entry(recorded.at, who, summaries::summarize_event(&recorded.event), record_json)
}

const fn timeline_entry(at: Timestamp, who: TimelineActor, what: String, record: Json) -> TimelineEntry {
    TimelineEntry { at, after_ms: 0, who, what, record }
}
