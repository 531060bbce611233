//! What happened to a task, in a few words for a person.

use rialto_model::{
    audit_event::{AuditPhase, InvocationOutcome},
    event::{Event, QuestionKind},
    message::{Artifact, Content, Message, Part},
    store::StoredAuditEvent,
};

use crate::text::count;

/// A record of the audit trail in a few words.
pub(super) fn announced(record: &StoredAuditEvent) -> String {
    let event = &record.event;
    match event.phase {
        AuditPhase::PreVerb if event.context.denied => {
            format!("refused: {}", event.context.reason.as_deref().unwrap_or("no reason is on record"))
        }
        AuditPhase::PreVerb if event.context.policies.is_empty() => "permitted".to_owned(),
        AuditPhase::PreVerb => format!("permitted by {}", event.context.policies.join(", ")),
        AuditPhase::PostVerb => {
            let outcome = event.outcome.map_or("over", InvocationOutcome::as_str);
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

/// An event in a few words.
pub(super) fn told(event: &Event) -> String {
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
        Event::Asked { ask: QuestionKind::Input, message, .. } => saying("asks", message.as_ref()),
        Event::Asked { ask: QuestionKind::Auth, message, .. } => saying("wants a login", message.as_ref()),
        Event::Answered { message, .. } => saying("says", Some(message)),
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
    format!("{verb} {name}: {}, {bytes} bytes", count(artifact.parts.len(), "part", "parts"))
}

fn said(message: &Message) -> String {
    let text = message.text();
    if !text.is_empty() {
        return text;
    }
    let bytes: usize = message.parts.iter().map(size).sum();
    format!("{}, {bytes} bytes", count(message.parts.len(), "part", "parts"))
}

fn size(part: &Part) -> usize {
    match &part.content {
        Content::Text(text) | Content::Raw(text) | Content::Url(text) => text.len(),
        Content::Data(json) | Content::Unknown(json) => json.get().len(),
    }
}
