//! One-line summaries of task events and audit records.

use rialto_model::{
    audit_event::{AuditPhase, InvocationOutcome},
    event::{Event, QuestionKind},
    message::{Artifact, Content, Message, Part},
    store::StoredAuditEvent,
};

/// Summary of an audit record.
pub(super) fn summarize_record(record: &StoredAuditEvent) -> String {
    let event = &record.event;
    match event.phase {
        AuditPhase::PreVerb if event.context.denied => {
            format!("denied: {}", event.context.reason.as_deref().unwrap_or("no recorded reason"))
        }
        AuditPhase::PreVerb if event.context.policies.is_empty() => "allowed".to_owned(),
        AuditPhase::PreVerb => format!("allowed by {}", event.context.policies.join(", ")),
        AuditPhase::PostVerb => {
            let outcome = event.outcome.map_or("ended", InvocationOutcome::as_str);
            let cost = event.estimated_cents.map(|cents| format!(", {cents} cents")).unwrap_or_default();
            format!("{outcome} after {} ms{cost}", event.duration_ms.unwrap_or_default())
        }
        AuditPhase::VerbError => match &event.error {
            Some(error) => format!("{}: {}", error.code, error.message),
            None => "failed".to_owned(),
        },
        AuditPhase::Breaker => event.verb.verb.clone(),
        AuditPhase::Admin => format!("{} by {}", event.verb.verb, event.verb.caller),
        AuditPhase::Guardrail => format!("guardrail: {}", event.verb.args.get()),
    }
}

/// Summary of a task event.
pub(super) fn summarize_event(event: &Event) -> String {
    let with_text = |lead: &str, message: Option<&Message>| match message.map(summarize_message) {
        Some(text) if !text.is_empty() => format!("{lead}: {text}"),
        _ => lead.to_owned(),
    };
    match event {
        Event::Accepted { remote, .. } => match (&remote.task_id, &remote.context_id) {
            (Some(task), Some(context)) => format!("accepted as {task} in {context}"),
            (Some(task), None) => format!("accepted as {task}"),
            _ => "accepted".to_owned(),
        },
        Event::Progress { working: true, message, .. } => with_text("working", message.as_ref()),
        Event::Progress { message, .. } => with_text("queued", message.as_ref()),
        Event::Artifact { artifact, append, .. } => summarize_artifact(artifact, *append),
        Event::Asked { ask: QuestionKind::Input, message, .. } => {
            with_text("requests input", message.as_ref())
        }
        Event::Asked { ask: QuestionKind::Auth, message, .. } => {
            with_text("requests authentication", message.as_ref())
        }
        Event::Answered { message, .. } => with_text("answers", Some(message)),
        Event::Finished { message, .. } => with_text("completed", message.as_ref()),
        Event::Replied { message } => with_text("replies", Some(message)),
        Event::Failed { failure, .. } => format!("failed: {}", failure.message),
        Event::Rejected { message, .. } => with_text("rejected", message.as_ref()),
        Event::Canceled { message, .. } => with_text("canceled", message.as_ref()),
    }
}

fn summarize_artifact(artifact: &Artifact, append: bool) -> String {
    let name = artifact.name.as_deref().unwrap_or(&artifact.id);
    let bytes: usize = artifact.parts.iter().map(part_bytes).sum();
    let verb = if append { "appends to artifact" } else { "artifact" };
    format!("{verb} {name}: {}, {bytes} bytes", count_parts(artifact.parts.len()))
}

fn summarize_message(message: &Message) -> String {
    let text = message.text();
    if !text.is_empty() {
        return text;
    }
    let bytes: usize = message.parts.iter().map(part_bytes).sum();
    format!("{}, {bytes} bytes", count_parts(message.parts.len()))
}

fn count_parts(number: usize) -> String {
    if number == 1 { "1 part".to_owned() } else { format!("{number} parts") }
}

fn part_bytes(part: &Part) -> usize {
    match &part.content {
        Content::Text(text) | Content::Raw(text) | Content::Url(text) => text.len(),
        Content::Data(json) | Content::Unknown(json) => json.get().len(),
    }
}
