//! Losses of protobuf, written a second time: members that are not in the schema, digits beyond a double's,
//! how a timestamp is spelt, and the difference between nothing and zero or empty where the schema makes none.

use rialto_model::{
    json::{Extra, Json},
    message::{Artifact, Content, Message, Part},
};
use serde_json::Value;

use crate::{
    request::{A2aRequest, PushConfig, SendRequest},
    task::{A2aState, A2aStatus, A2aTask, StreamEvent, TaskList},
    wire::Wire,
};

fn value(value: Value) -> Value {
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap();
            if number.fract() == 0.0 && number.abs() < 2_f64.powi(53) {
                Value::from(number as i64)
            } else {
                Value::from(number)
            }
        }
        Value::Array(items) => Value::Array(items.into_iter().map(self::value).collect()),
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(name, inner)| (name, self::value(inner))).collect())
        }
        other => other,
    }
}

fn json(json: &Json) -> Json {
    Json::encode(&value(json.value()))
}

fn maybe(it: &mut Option<Json>) {
    *it = it.as_ref().map(json);
}

fn part(mut part: Part) -> Part {
    match &mut part.content {
        Content::Data(data) => *data = json(data),
        Content::Unknown(raw) => *raw = Json::empty_object(),
        Content::Text(_) | Content::Raw(_) | Content::Url(_) => {}
    }
    maybe(&mut part.metadata);
    part.extra = Extra::new();
    part
}

pub(super) fn message(mut message: Message) -> Message {
    message.parts = message.parts.into_iter().map(part).collect();
    maybe(&mut message.metadata);
    message.extra = Extra::new();
    message
}

fn artifact(mut artifact: Artifact) -> Artifact {
    artifact.parts = artifact.parts.into_iter().map(part).collect();
    maybe(&mut artifact.metadata);
    artifact.extra = Extra::new();
    artifact
}

fn status(mut status: A2aStatus) -> A2aStatus {
    status.message = status.message.map(message);
    status.timestamp = status.timestamp.map(|time| format!("{time}Z"));
    status.extra = Extra::new();
    status
}

pub(super) fn task(mut task: A2aTask) -> A2aTask {
    task.status = status(task.status);
    task.artifacts = task.artifacts.into_iter().map(artifact).collect();
    task.history = task.history.into_iter().map(message).collect();
    maybe(&mut task.metadata);
    task.extra = Extra::new();
    task
}

pub(super) fn task_list(mut list: TaskList) -> TaskList {
    list.tasks = list.tasks.into_iter().map(task).collect();
    list.extra = Extra::new();
    list
}

pub(super) fn stream_event(event: StreamEvent) -> StreamEvent {
    match event {
        StreamEvent::Task(it) => StreamEvent::Task(task(it)),
        StreamEvent::Message(it) => StreamEvent::Message(message(it)),
        StreamEvent::Status(mut it) => {
            it.status = status(it.status);
            maybe(&mut it.metadata);
            it.extra = Extra::new();
            StreamEvent::Status(it)
        }
        StreamEvent::Artifact(mut it) => {
            it.artifact = artifact(it.artifact);
            maybe(&mut it.metadata);
            it.extra = Extra::new();
            StreamEvent::Artifact(it)
        }
    }
}

pub(super) fn push(mut push: PushConfig) -> PushConfig {
    push.extra = Extra::new();
    if let Some(how) = &mut push.authentication {
        how.extra = Extra::new();
    }
    push
}

fn send(mut send: SendRequest) -> SendRequest {
    send.message = message(send.message);
    send.configuration.push = send.configuration.push.map(push);
    send.configuration.extra = Extra::new();
    maybe(&mut send.metadata);
    send.extra = Extra::new();
    send
}

pub(super) fn request(wire: Wire, request: A2aRequest) -> A2aRequest {
    match request {
        A2aRequest::Send(it) => A2aRequest::Send(send(it)),
        A2aRequest::Stream(it) => A2aRequest::Stream(send(it)),
        A2aRequest::Cancel(mut it) => {
            maybe(&mut it.metadata);
            it.extra = Extra::new();
            A2aRequest::Cancel(it)
        }
        A2aRequest::List(mut it) => {
            it.status = it.status.filter(|state| *state != A2aState::Unspecified);
            it.status_timestamp_after = None;
            A2aRequest::List(it)
        }
        A2aRequest::PushCreate(it) => A2aRequest::PushCreate(push(it)),
        A2aRequest::PushList(mut it) => {
            it.page_size = it.page_size.filter(|size| *size > 0);
            it.tenant = it.tenant.filter(|_| wire == Wire::V10);
            A2aRequest::PushList(it)
        }
        other => other,
    }
}
