//! Conversion of tasks and events to A2A.

use rialto_a2a_codec::task::{
    A2aState, A2aStatus, A2aTask as Told, ArtifactUpdate, StatusUpdate, StreamEvent,
};
use rialto_model::{
    call::EntryProtocol,
    clock::Timestamp,
    event::{Event, EventAside, RecordedEvent},
    failure::Failure,
    json::Extra,
    message::{Message, Part, Role},
    task::{Task, TaskHead, TaskState},
};

/// Requested history length: none is unspecified, zero is no history.
pub(crate) type HistoryLength = Option<u32>;

/// Task id for a caller: a 0.1 client has chosen it itself.
pub(crate) fn name(head: &TaskHead) -> String {
    match (&head.message, head.door) {
        (Some(own), EntryProtocol::A2aFirst) => own.to_string(),
        _ => head.id.as_str().to_owned(),
    }
}

/// Conversation id for a caller.
pub(crate) fn context(head: &TaskHead) -> Option<String> {
    head.context
        .as_ref()
        .map(|context| context.as_str().to_owned())
        .or_else(|| head.remote.context_id.clone())
}

/// Complete task.
pub(crate) fn task(task: Task, history: HistoryLength) -> Told {
    let Task { head, message, history: said, artifacts, metadata, failure, .. } = task;
    let words = message.or_else(|| failure.as_ref().map(told));
    let status = status(&head, head.state, words, head.updated_at);
    // A 0.1 client without a length wants no history, also where it shares a method with 0.3.
    let history = if head.door == EntryProtocol::A2aFirst { history.or(Some(0)) } else { history };
    let mut told = Told::new(name(&head), status);
    told.context_id = context(&head);
    told.artifacts = artifacts;
    told.history = last(said, history).map(|said| known(ours(said, &head))).collect();
    told.metadata = metadata;
    told
}

/// Message of an agent that answered without a task. A 0.1 client knows only tasks.
pub(crate) fn reply(task: &Task) -> Option<Message> {
    let is_told =
        task.is_reply && !matches!(task.head.door, EntryProtocol::A2aFirst | EntryProtocol::A2aPlain);
    let mut message = task.message.clone().filter(|_| is_told)?;
    message.task_id = None;
    message.context_id = context(&task.head);
    Some(message)
}

/// Converts an event, if it is visible to clients. `state` is the task's state after it.
pub(crate) fn event(head: &TaskHead, recorded: &RecordedEvent, state: TaskState) -> Option<StreamEvent> {
    let at = recorded.at;
    let status = |message: Option<&Message>, aside: &EventAside| {
        Some(StreamEvent::Status(update(head, status(head, state, message.cloned(), at), aside)))
    };
    match &recorded.event {
        Event::Accepted { .. } => None,
        // The first message: the subscriber has sent it.
        Event::Answered { .. } if state == TaskState::Submitted => None,
        Event::Answered { .. } => status(None, &EventAside::default()),
        Event::Progress { message, aside, .. }
        | Event::Asked { message, aside, .. }
        | Event::Finished { message, aside }
        | Event::Rejected { message, aside }
        | Event::Canceled { message, aside } => status(message.as_ref(), aside),
        Event::Replied { message } => status(Some(message), &EventAside::default()),
        Event::Failed { failure, message, aside } => {
            let words = message.clone().unwrap_or_else(|| told(failure));
            status(Some(&words), aside)
        }
        Event::Artifact { artifact, append, last, aside } => Some(StreamEvent::Artifact(ArtifactUpdate {
            task_id: name(head),
            context_id: context(head),
            artifact: artifact.clone(),
            append: *append,
            last_chunk: *last,
            metadata: aside.metadata.clone(),
            extra: aside.extra.clone(),
        })),
    }
}

/// Status update of a task, for clients that do not get complete tasks.
pub(crate) fn standing_of(task: Told) -> StreamEvent {
    StreamEvent::Status(StatusUpdate {
        task_id: task.id,
        context_id: task.context_id,
        is_final: task.status.state.ends_stream(),
        status: task.status,
        metadata: task.metadata,
        extra: Extra::new(),
    })
}

/// State after an event that was recorded, and so is valid.
pub(crate) fn state_after(state: TaskState, event: &Event) -> TaskState {
    state.after(event).unwrap_or(state)
}

fn status(head: &TaskHead, state: TaskState, message: Option<Message>, at: Timestamp) -> A2aStatus {
    A2aStatus {
        state: A2aState::from(state),
        message: message.map(|message| ours(message, head)),
        timestamp: Some(written(at)),
        extra: Extra::new(),
    }
}

fn update(head: &TaskHead, status: A2aStatus, aside: &EventAside) -> StatusUpdate {
    StatusUpdate {
        task_id: name(head),
        context_id: context(head),
        is_final: status.state.ends_stream(),
        status,
        metadata: aside.metadata.clone(),
        extra: aside.extra.clone(),
    }
}

/// Message with the ids that its caller knows, whatever the upstream agent uses.
fn ours(mut message: Message, head: &TaskHead) -> Message {
    message.task_id = Some(name(head));
    message.context_id = context(head);
    message
}

/// Message as stored, without members that A2A has no place for: the caller's own ones were passed on to the agent.
fn known(mut message: Message) -> Message {
    if message.role == Role::User {
        message.extra = Extra::new();
        for part in &mut message.parts {
            part.extra = Extra::new();
        }
    }
    message
}

/// Failure as a message.
fn told(failure: &Failure) -> Message {
    Message::new(rialto_model::ids::fresh(), Role::Agent, vec![Part::text(failure.message.clone())])
}

fn last(history: Vec<Message>, length: HistoryLength) -> impl Iterator<Item = Message> {
    let wanted = length.map_or(history.len(), |length| usize::try_from(length).unwrap_or(usize::MAX));
    let left_out = history.len().saturating_sub(wanted);
    history.into_iter().skip(left_out)
}

/// Timestamp in 1.0's format: UTC, milliseconds.
fn written(at: Timestamp) -> String {
    format!("{at:.3}")
}
