//! `rialto inspect TASK`: one call from both sides, after the fact.
//!
//! Everything comes from the journal and the audit trail, where secrets never were. A call that was refused has no task, but
//! its records say who wanted what, and why not.

use rialto_model::{
    agent::Agent,
    card::Binding,
    clock::Timestamp,
    deployed::Backing,
    event::{Ask, Event, Recorded},
    ids::{AgentId, Scope, TaskId},
    message::{Artifact, Content, Message, Part},
    store::{AuditFilter, Audited},
    task::TaskHead,
    verb::{Outcome, Phase, Verb},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    output::{self, Trouble},
    program::Program,
};

/// So many records of one task are shown.
const RECORDS: usize = 1_000;

/// So much of a text stands in one line.
const LINE: usize = 160;

/// One call, from both sides.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inspected {
    task_id: String,
    /// None when it was refused before there was a task.
    state: Option<String>,
    came_in: Value,
    decision: Option<Value>,
    went_out: Value,
    timeline: Vec<Entry>,
}

/// Something that happened.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    at: Timestamp,
    after_ms: i64,
    /// Who did it: the caller, Rialto, or the agent.
    who: &'static str,
    what: String,
    /// As it is on record.
    record: Value,
}

pub(crate) async fn run(program: &Program, id: &str, as_json: bool) -> Result<(), Trouble> {
    let scope = Scope::default();
    let lost = |error: rialto_model::store::StoreError| Trouble::other(error.to_string());
    let head = program.store.task(&scope, id).await.map_err(lost)?;
    let ours = head.as_ref().map_or_else(|| TaskId::from(id), |head| head.id.clone());
    let filter = AuditFilter { task: Some(ours.clone()), limit: RECORDS, ..AuditFilter::default() };
    let mut records = program.store.audit_trail(&scope, &filter).await.map_err(lost)?;
    records.reverse();
    if head.is_none() && records.is_empty() {
        let message = format!(
            "nothing is known of \"{id}\"; `rialto tasks list` and `rialto audit` tell what there is"
        );
        return Err(Trouble::not_found(message));
    }
    let events = match &head {
        Some(head) => program.store.events(&head.id, 0).await.map_err(lost)?,
        None => Vec::new(),
    };
    let inspected = inspect(program, &ours, head.as_ref(), &events, &records);
    if as_json {
        output::json(&inspected);
    } else {
        print(&inspected);
    }
    Ok(())
}

fn inspect(
    program: &Program,
    id: &TaskId,
    head: Option<&TaskHead>,
    events: &[Recorded],
    records: &[Audited],
) -> Inspected {
    let first = records.iter().find(|record| record.event.phase == Phase::PreVerb);
    let verb = records.first().map(|record| &*record.event.verb);
    let agent_id = head.map(|head| head.agent.clone());
    let agent_id = agent_id.or_else(|| verb.map(|verb| AgentId::from(&*verb.agent_card_id)));
    let agent = agent_id.and_then(|id| program.engine.registry().get(&id));
    let decision = first.map(|record| {
        let context = &record.event.context;
        json!({ "allowed": !context.denied, "policies": context.policies, "reason": context.reason })
    });
    let mut timeline: Vec<Entry> = events.iter().map(happened).chain(records.iter().map(announced)).collect();
    timeline.sort_by_key(|entry| entry.at);
    let begun = timeline.first().map(|entry| entry.at);
    for entry in &mut timeline {
        let since = begun.map(|begun| entry.at.duration_since(begun).as_millis()).unwrap_or_default();
        entry.after_ms = i64::try_from(since).unwrap_or(i64::MAX);
    }
    Inspected {
        task_id: id.to_string(),
        state: head.map(|head| head.state.to_string()),
        came_in: came_in(head, first.map(|record| &*record.event.verb)),
        decision,
        went_out: went_out(head, verb, agent.as_deref()),
        timeline,
    }
}

fn came_in(head: Option<&TaskHead>, verb: Option<&Verb>) -> Value {
    json!({
        "caller": head.map(|head| head.caller.as_str()).or_else(|| verb.map(|verb| &*verb.caller)),
        "org": head.map(|head| head.scope.org.as_str()).or_else(|| verb.map(|verb| &*verb.org_id)),
        "project": head.map(|head| head.scope.project.as_str()),
        "door": head.map(|head| head.door),
        "called": verb.map(|verb| &verb.verb),
        "arguments": head.map(|head| head.args.value()).or_else(|| verb.map(|verb| verb.args.value())),
        "contextId": head.and_then(|head| head.context.as_ref()),
        "messageId": head.and_then(|head| head.message.as_deref()),
    })
}

fn went_out(head: Option<&TaskHead>, verb: Option<&Verb>, agent: Option<&Agent>) -> Value {
    let url = head.map(|head| head.agent_url.as_str()).or_else(|| verb.map(|verb| verb.agent_url.as_str()));
    json!({
        "agent": agent.map(|agent| &agent.slug),
        "url": url,
        "protocol": agent.map(protocol),
        "skillId": head.and_then(|head| head.skill.as_ref()),
        "sessionId": head.map(|head| &*head.session).or_else(|| verb.map(|verb| &*verb.session_id)),
        "remoteTaskId": head.and_then(|head| head.remote.task_id.as_deref()),
        "remoteContextId": head.and_then(|head| head.remote.context_id.as_deref()),
    })
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
    let what = match event.phase {
        Phase::PreVerb if event.context.denied => {
            format!("refused: {}", event.context.reason.as_deref().unwrap_or("no reason is on record"))
        }
        Phase::PreVerb if event.context.policies.is_empty() => "permitted".to_owned(),
        Phase::PreVerb => format!("permitted by {}", event.context.policies.join(", ")),
        Phase::PostVerb => {
            let outcome = event.outcome.map_or("over", Outcome::as_str);
            let cost = event.estimated_cents.map(|cents| format!(", {cents} cents")).unwrap_or_default();
            format!("{outcome} after {} ms{cost}", event.duration_ms.unwrap_or_default())
        }
        Phase::VerbError => match &event.error {
            Some(error) => format!("{}: {}", error.code, error.message),
            None => "failed".to_owned(),
        },
        Phase::Breaker => event.verb.verb.clone(),
        Phase::Guardrail => format!("guardrail: {}", event.verb.args.get()),
    };
    let told = json!({ "record": record.record, "event": event });
    Entry { at: event.emitted_at, after_ms: 0, who: "rialto", what, record: told }
}

fn happened(recorded: &Recorded) -> Entry {
    let who = if matches!(recorded.event, Event::Answered { .. }) { "caller" } else { "agent" };
    let record = json!({ "seq": recorded.seq, "event": recorded.event });
    Entry { at: recorded.at, after_ms: 0, who, what: told(&recorded.event), record }
}

/// An event in a few words.
fn told(event: &Event) -> String {
    let saying = |lead: &str, message: Option<&Message>| match message.map(said) {
        Some(said) if !said.is_empty() => format!("{lead}: {said}"),
        _ => lead.to_owned(),
    };
    match event {
        Event::Accepted { remote, .. } => match (&remote.task_id, &remote.context_id) {
            (Some(task), Some(context)) => format!("took it as {task} in {context}"),
            (Some(task), None) => format!("took it as {task}"),
            _ => "took it".to_owned(),
        },
        Event::Progress { working: true, message, .. } => saying("is at work", message.as_ref()),
        Event::Progress { message, .. } => saying("has it in line", message.as_ref()),
        Event::Artifact { artifact, append, .. } => made(artifact, *append),
        Event::Asked { ask: Ask::Input, message, .. } => saying("asks", message.as_ref()),
        Event::Asked { ask: Ask::Auth, message, .. } => saying("wants a login", message.as_ref()),
        Event::Answered { message } => saying("says", Some(message)),
        Event::Finished { message, .. } => saying("is done", message.as_ref()),
        Event::Replied { message } => saying("replies", Some(message)),
        Event::Failed { failure, .. } => format!("failed: {}", failure.message),
        Event::Rejected { message, .. } => saying("will not do it", message.as_ref()),
        Event::Canceled { message, .. } => saying("called it off", message.as_ref()),
    }
}

fn made(artifact: &Artifact, append: bool) -> String {
    let name = artifact.name.as_deref().unwrap_or(&artifact.id);
    let bytes: usize = artifact.parts.iter().map(size).sum();
    let verb = if append { "adds to" } else { "makes" };
    format!("{verb} {name}: {} parts, {bytes} bytes", artifact.parts.len())
}

fn said(message: &Message) -> String {
    let text = message.text();
    if !text.is_empty() {
        return text;
    }
    let bytes: usize = message.parts.iter().map(size).sum();
    format!("{} parts, {bytes} bytes", message.parts.len())
}

fn size(part: &Part) -> usize {
    match &part.content {
        Content::Text(text) | Content::Raw(text) | Content::Url(text) => text.len(),
        Content::Data(json) | Content::Unknown(json) => json.get().len(),
    }
}

fn print(inspected: &Inspected) {
    let text = |value: &Value, name: &str| match value.get(name) {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    };
    let show = |line: String| output::line(output::printable(&line));
    let (came, out) = (&inspected.came_in, &inspected.went_out);
    let state = inspected.state.as_deref().unwrap_or("refused before there was a task");
    show(format!("{}  {}  {state}", inspected.task_id, text(came, "called")));
    let scope = [text(came, "org"), text(came, "project")].join("/");
    show(format!(
        "in    {} by {}, {}",
        text(came, "caller"),
        text(came, "door"),
        scope.trim_end_matches('/')
    ));
    show(format!("      {}", cut(&text(came, "arguments"))));
    if let Some(decision) = &inspected.decision {
        let by: Vec<&str> =
            decision["policies"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let by = if by.is_empty() { String::new() } else { format!(" by {}", by.join(", ")) };
        let verdict = if decision["allowed"] == true { "permitted" } else { "refused" };
        show(format!("may   {verdict}{by} {}", text(decision, "reason")).trim_end().to_owned());
    }
    show(format!("out   {} at {} ({})", text(out, "agent"), text(out, "url"), text(out, "protocol")));
    let names = [("session", "sessionId"), ("task", "remoteTaskId"), ("context", "remoteContextId")];
    let names = names.map(|(label, name)| (label, text(out, name)));
    let names: Vec<String> =
        names.iter().filter(|(_, id)| !id.is_empty()).map(|(label, id)| format!("{label} {id}")).collect();
    show(format!("      {}", names.join(", ")));
    output::line("");
    let rows = inspected.timeline.iter().map(|entry| {
        vec![
            entry.at.strftime("%T%.3f").to_string(),
            format!("+{} ms", entry.after_ms),
            entry.who.to_owned(),
            cut(&entry.what),
        ]
    });
    output::table(&["time (utc)", "after", "who", "what"], rows.collect());
}

/// One line of it.
fn cut(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LINE) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or(&line)),
        None => line,
    }
}
