//! A task of ours in A2A's words.

use rialto_a2a_wire::task::{ArtifactUpdate, State, Status, StatusUpdate, StreamEvent, Task as Told};
use rialto_model::{
    call::Door,
    clock::Timestamp,
    event::{Aside, Event, Recorded},
    failure::Failure,
    json::Extra,
    message::{Message, Part, Role},
    task::{Task, TaskHead, TaskState},
};

/// How much of the history somebody wants: none says nothing, zero wants none.
pub(crate) type Length = Option<u32>;

/// What a caller calls a task: a client of 0.1 has named it itself.
pub(crate) fn name(head: &TaskHead) -> String {
    match (&head.message, head.door) {
        (Some(own), Door::A2aFirst) => own.to_string(),
        _ => head.id.as_str().to_owned(),
    }
}

/// What a caller calls the conversation.
pub(crate) fn context(head: &TaskHead) -> Option<String> {
    head.context
        .as_ref()
        .map(|context| context.as_str().to_owned())
        .or_else(|| head.remote.context_id.clone())
}

/// The whole task.
pub(crate) fn task(task: Task, history: Length) -> Told {
    let Task { head, message, history: said, artifacts, metadata, failure, .. } = task;
    let words = message.or_else(|| failure.as_ref().map(told));
    let status = status(&head, head.state, words, head.updated_at);
    // A client of 0.1 that says nothing wants none, also where it shares a method with 0.3.
    let history = if head.door == Door::A2aFirst { history.or(Some(0)) } else { history };
    let mut told = Told::new(name(&head), status);
    told.context_id = context(&head);
    told.artifacts = artifacts;
    told.history = last(said, history).map(|said| known(ours(said, &head))).collect();
    told.metadata = metadata;
    told
}

/// The agent's answer, where it answered with a message and made no task. A client of 0.1 knows tasks only.
pub(crate) fn reply(task: &Task) -> Option<Message> {
    let is_told = task.is_reply && !matches!(task.head.door, Door::A2aFirst | Door::A2aPlain);
    let mut message = task.message.clone().filter(|_| is_told)?;
    message.task_id = None;
    message.context_id = context(&task.head);
    Some(message)
}

/// One line of a task's life, if it has something to tell. `state` is where the task stands afterwards.
pub(crate) fn event(head: &TaskHead, recorded: &Recorded, state: TaskState) -> Option<StreamEvent> {
    let at = recorded.at;
    let status = |message: Option<&Message>, aside: &Aside| {
        Some(StreamEvent::Status(update(head, status(head, state, message.cloned(), at), aside)))
    };
    match &recorded.event {
        Event::Accepted { .. } => None,
        // The message that it began with: whoever listens has sent it.
        Event::Answered { .. } if state == TaskState::Submitted => None,
        Event::Answered { .. } => status(None, &Aside::default()),
        Event::Progress { message, aside, .. }
        | Event::Asked { message, aside, .. }
        | Event::Finished { message, aside }
        | Event::Rejected { message, aside }
        | Event::Canceled { message, aside } => status(message.as_ref(), aside),
        Event::Replied { message } => status(Some(message), &Aside::default()),
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

/// How a task stands, for those who are not told whole tasks.
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

/// The state after an event that was written down, and so could happen.
pub(crate) fn state_after(state: TaskState, event: &Event) -> TaskState {
    state.after(event).unwrap_or(state)
}

fn status(head: &TaskHead, state: TaskState, message: Option<Message>, at: Timestamp) -> Status {
    Status {
        state: State::from(state),
        message: message.map(|message| ours(message, head)),
        timestamp: Some(written(at)),
        extra: Extra::new(),
    }
}

fn update(head: &TaskHead, status: Status, aside: &Aside) -> StatusUpdate {
    StatusUpdate {
        task_id: name(head),
        context_id: context(head),
        is_final: status.state.ends_stream(),
        status,
        metadata: aside.metadata.clone(),
        extra: aside.extra.clone(),
    }
}

/// A message with the names that its caller knows, whatever the far side calls them.
fn ours(mut message: Message, head: &TaskHead) -> Message {
    message.task_id = Some(name(head));
    message.context_id = context(head);
    message
}

/// A message as it is remembered: what its caller said in words of its own went on to whom it was for, and is nothing that A2A
/// has a place for.
fn known(mut message: Message) -> Message {
    if message.role == Role::User {
        message.extra = Extra::new();
        for part in &mut message.parts {
            part.extra = Extra::new();
        }
    }
    message
}

/// A failure in words.
fn told(failure: &Failure) -> Message {
    Message::new(rialto_model::ids::fresh(), Role::Agent, vec![Part::text(failure.message.clone())])
}

fn last(history: Vec<Message>, length: Length) -> impl Iterator<Item = Message> {
    let wanted = length.map_or(history.len(), |length| usize::try_from(length).unwrap_or(usize::MAX));
    let left_out = history.len().saturating_sub(wanted);
    history.into_iter().skip(left_out)
}

/// A moment as 1.0 writes it: UTC, milliseconds.
fn written(at: Timestamp) -> String {
    format!("{at:.3}")
}
