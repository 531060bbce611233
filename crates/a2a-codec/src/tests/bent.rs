//! Expected result of each lossy conversion, written a second time. Where a wire can say
//! everything, this changes nothing.

use rialto_model::{
    json::{Extra, Json},
    message::{Artifact, Content, Message, Part, Role},
};

use crate::{
    request::{A2aRequest, Configuration, PushConfig, SendRequest},
    task::{A2aState, A2aStatus, A2aTask, StreamEvent},
    wire::Wire,
};

pub(super) fn part(wire: Wire, mut part: Part) -> Part {
    if wire == Wire::V10 {
        return part;
    }
    if let Content::Text(_) | Content::Data(_) = part.content {
        part.filename = None;
        part.media_type = None;
    }
    if matches!(&part.content, Content::Data(data) if !data.is_object()) {
        part.metadata = part.metadata.filter(|metadata| metadata.get() != "{}");
    }
    part
}

fn parts(wire: Wire, parts: Vec<Part>) -> Vec<Part> {
    parts.into_iter().map(|it| part(wire, it)).collect()
}

pub(super) fn message(wire: Wire, mut message: Message) -> Message {
    message.parts = parts(wire, message.parts);
    if !wire.is_proto() && message.role == Role::Unspecified {
        message.role = Role::User;
    }
    if wire == Wire::V03Proto || wire == Wire::V01 {
        message.reference_task_ids.clear();
    }
    if wire == Wire::V01 {
        message.id.clear();
        message.context_id = None;
        message.task_id = None;
        message.extensions.clear();
    }
    message
}

fn artifact(wire: Wire, mut artifact: Artifact, place: usize) -> Artifact {
    artifact.parts = parts(wire, artifact.parts);
    if wire == Wire::V01 {
        artifact.id = format!("artifact-{place}");
        artifact.extensions.clear();
    }
    artifact
}

fn status(wire: Wire, mut status: A2aStatus) -> A2aStatus {
    status.message = status.message.map(|it| message(wire, it));
    status.state = match (wire, status.state) {
        (Wire::V01, A2aState::Rejected) => A2aState::Failed,
        (Wire::V01, A2aState::AuthRequired) => A2aState::InputRequired,
        (_, state) => state,
    };
    status
}

pub(super) fn task(wire: Wire, mut task: A2aTask) -> A2aTask {
    task.status = status(wire, task.status);
    let artifacts = task.artifacts.into_iter().enumerate();
    task.artifacts = artifacts.map(|(place, it)| artifact(wire, it, place)).collect();
    task.history = task.history.into_iter().map(|it| message(wire, it)).collect();
    task
}

/// None for what 0.1 cannot tell apart: a bare task in a stream with nothing made and nothing said is a status there.
pub(super) fn stream_event(wire: Wire, event: StreamEvent) -> Option<StreamEvent> {
    Some(match event {
        StreamEvent::Task(it) if wire == Wire::V01 && it.artifacts.is_empty() && it.history.is_empty() => {
            return None;
        }
        StreamEvent::Task(it) => StreamEvent::Task(task(wire, it)),
        StreamEvent::Message(it) => StreamEvent::Message(message(wire, it)),
        StreamEvent::Status(mut update) => {
            update.status = status(wire, update.status);
            match wire {
                Wire::V10 => update.is_final = update.status.state.ends_stream(),
                Wire::V01 => update.context_id = None,
                Wire::V03 | Wire::V03Proto => {}
            }
            StreamEvent::Status(update)
        }
        StreamEvent::Artifact(mut update) => {
            update.artifact = artifact(wire, update.artifact, 0);
            if wire == Wire::V01 {
                update.context_id = None;
            }
            StreamEvent::Artifact(update)
        }
    })
}

pub(super) fn push(wire: Wire, mut push: PushConfig) -> PushConfig {
    if let (Wire::V10, Some(how)) = (wire, &mut push.authentication) {
        how.schemes.truncate(1);
    }
    if wire != Wire::V10 {
        push.tenant = None;
    }
    if wire == Wire::V01 {
        push.id = None;
    }
    push
}

fn configuration(wire: Wire, mut configuration: Configuration) -> Configuration {
    configuration.push = configuration.push.map(|it| {
        let mut it = push(wire, it);
        if wire != Wire::V10 {
            it.task_id = None;
        }
        it
    });
    configuration.history_length = history(wire, configuration.history_length);
    if wire == Wire::V01 {
        configuration.return_immediately = false;
        configuration.extra = Extra::new();
    }
    configuration
}

fn history(wire: Wire, length: Option<u32>) -> Option<u32> {
    length.filter(|length| wire == Wire::V10 || *length > 0)
}

fn tenant(wire: Wire, tenant: Option<String>) -> Option<String> {
    tenant.filter(|_| wire == Wire::V10)
}

fn send(wire: Wire, mut send: SendRequest) -> SendRequest {
    let SendRequest { message: said, .. } = send.clone();
    send.message = message(wire, send.message);
    send.configuration = configuration(wire, send.configuration);
    send.tenant = tenant(wire, send.tenant);
    match wire {
        Wire::V01 => {
            send.task_id = said.task_id.or(send.task_id).or(Some(said.id));
            send.message.context_id = said.context_id;
        }
        Wire::V10 | Wire::V03Proto => send.task_id = None,
        Wire::V03 => {}
    }
    send
}

/// The request as JSON-RPC carries it.
pub(super) fn request(wire: Wire, request: A2aRequest) -> A2aRequest {
    match request {
        A2aRequest::Send(it) => A2aRequest::Send(send(wire, it)),
        A2aRequest::Stream(it) => A2aRequest::Stream(send(wire, it)),
        A2aRequest::Get(mut it) => {
            it.tenant = tenant(wire, it.tenant);
            it.history_length = history(wire, it.history_length);
            it.metadata = it.metadata.filter(|_| wire != Wire::V10);
            A2aRequest::Get(it)
        }
        A2aRequest::Cancel(mut it) => {
            it.tenant = tenant(wire, it.tenant);
            A2aRequest::Cancel(it)
        }
        A2aRequest::Subscribe(mut it) => {
            it.tenant = tenant(wire, it.tenant);
            it.metadata = it.metadata.filter(|_| wire != Wire::V10);
            A2aRequest::Subscribe(it)
        }
        A2aRequest::PushCreate(it) => A2aRequest::PushCreate(push(wire, it)),
        A2aRequest::PushGet(mut it) => {
            it.tenant = tenant(wire, it.tenant);
            it.id = it.id.filter(|_| wire != Wire::V01);
            A2aRequest::PushGet(it)
        }
        A2aRequest::PushDelete(mut it) => {
            it.tenant = tenant(wire, it.tenant);
            A2aRequest::PushDelete(it)
        }
        A2aRequest::PushList(mut it) => {
            it.tenant = tenant(wire, it.tenant);
            if !wire.is_proto() {
                it.page_size = None;
                it.page_token = None;
            }
            A2aRequest::PushList(it)
        }
        A2aRequest::ExtendedCard(mut it) => {
            it.tenant = tenant(wire, it.tenant);
            A2aRequest::ExtendedCard(it)
        }
        A2aRequest::List(it) => A2aRequest::List(it),
    }
}

/// The request as REST carries it: what has no body has no metadata and no unknown members.
pub(super) fn rest_request(wire: Wire, it: A2aRequest) -> A2aRequest {
    let mut it = request(wire, it);
    match &mut it {
        A2aRequest::Send(_) | A2aRequest::Stream(_) | A2aRequest::PushCreate(_) => {}
        A2aRequest::Cancel(it) if wire == Wire::V10 => {
            it.metadata = it.metadata.take().filter(Json::is_object);
        }
        A2aRequest::Cancel(it) | A2aRequest::Subscribe(it) => {
            it.metadata = None;
            it.extra = Extra::new();
        }
        A2aRequest::Get(it) => {
            it.metadata = None;
            it.extra = Extra::new();
        }
        A2aRequest::List(it) => {
            it.extra = Extra::new();
            it.tenant = tenant(wire, it.tenant.take());
        }
        A2aRequest::PushGet(it) | A2aRequest::PushDelete(it) => it.extra = Extra::new(),
        A2aRequest::PushList(it) => it.extra = Extra::new(),
        A2aRequest::ExtendedCard(it) => it.extra = Extra::new(),
    }
    it
}
