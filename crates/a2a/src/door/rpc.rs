//! JSON-RPC, in the dialects of all generations at one address.

use std::{mem, sync::Arc};

use axum::{
    body::Body,
    extract::{Path, Request, State},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive},
    },
};
use futures::{StreamExt, stream};
use http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts};
use rialto_a2a_wire::{
    answer,
    error::{Code, RpcError},
    request::Request as Asked,
    rpc::{self, Id, Incoming, Refused},
    task::StreamEvent,
    wire::Wire,
};
use rialto_edge::event_stream;
use rialto_model::{
    agent::Agent,
    call::{Caller, Door},
    json::{DEEPEST, Json, is_too_deep},
};
use serde_json::value::RawValue;

use super::{
    incoming::{self, Visit},
    plain, render,
    service::{Reply, Service},
    stream::TaskStream,
};
use crate::extension;

/// So many requests may come in one batch.
const MOST_IN_BATCH: usize = 100;

/// How the answer to one request is told.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    wire: Wire,
    is_plain: bool,
}

/// One answer, or a stream of them.
enum Answer {
    /// Nobody wants one.
    None,
    One(String),
    /// The same, with headers.
    Noted(String, Box<HeaderMap>),
    /// Why there is no stream, for somebody who reads nothing else.
    NoStream(String),
    /// Why there is no stream now, and in how many seconds there may be one.
    Later(String, u64),
    Stream(Id, TaskStream, Wire),
}

pub(crate) async fn serve(State(service): State<Arc<Service>>, request: Request) -> Response {
    // On the heap, because it is large and handed over several times before it runs.
    Box::pin(answered(&service, request, None)).await
}

/// The same for one agent.
pub(crate) async fn serve_agent(
    State(service): State<Arc<Service>>,
    Path(slug): Path<String>,
    request: Request,
) -> Response {
    match service.agent(request.extensions().get::<Caller>(), &slug).await {
        Ok(agent) => Box::pin(answered(&service, request, Some(agent))).await,
        Err(trouble) => match rialto_edge::body::whole(request.into_body()).await {
            Ok(body) => json(refuse(&rpc::id_of(&body), Wire::V10, &trouble.error)),
            Err(refusal) => refusal,
        },
    }
}

async fn answered(service: &Service, request: Request, agent: Option<Arc<Agent>>) -> Response {
    let (parts, body) = request.into_parts();
    let Some(caller) = parts.extensions.get::<Caller>().cloned() else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let body = match rialto_edge::body::whole(body).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    if let Err(error) = incoming::check_kind(&parts.headers) {
        return json(refuse(&Id::null(), Wire::V10, &error));
    }
    if is_too_deep(&body) {
        let message = format!("the body is nested deeper than {DEEPEST} levels; send it flatter");
        return json(refuse(&Id::null(), Wire::V10, &RpcError::new(Code::InvalidRequest, message)));
    }
    let visit = Visit {
        base: String::new(),
        trace: rialto_edge::trace::of(&parts.headers),
        extensions: extension::named(&parts.headers),
        caller,
        door: Door::A2aJsonRpc,
        wire: Wire::V10,
        agent,
    };
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        return Box::pin(batch(service, &parts, &visit, &body)).await;
    }
    match answer_one(service, &parts, visit, &body, false).await {
        Answer::None => StatusCode::ACCEPTED.into_response(),
        Answer::One(text) => json(text),
        Answer::Noted(text, beside) => {
            let mut response = json(text);
            response.headers_mut().extend(*beside);
            response
        }
        Answer::NoStream(text) => event_stream::respond(stream::iter([Event::default().data(text)]), None),
        Answer::Later(text, seconds) => {
            let mut response = json(text);
            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            response
        }
        Answer::Stream(id, events, wire) => told(wire, move |event| frame(&id, wire, event), events),
    }
}

/// Several requests at once, answered in their order. Streams have no place there.
async fn batch(service: &Service, parts: &Parts, visit: &Visit, body: &[u8]) -> Response {
    let refused = |code, message: &str| json(refuse(&Id::null(), Wire::V03, &RpcError::new(code, message)));
    let Ok(requests) = serde_json::from_slice::<Vec<&RawValue>>(body) else {
        return refused(Code::Parse, "the body is not JSON");
    };
    if requests.is_empty() || requests.len() > MOST_IN_BATCH {
        return refused(Code::InvalidRequest, &format!("a batch has 1 to {MOST_IN_BATCH} requests"));
    }
    let mut answers = Vec::with_capacity(requests.len());
    for request in requests {
        answers.push(match answer_one(service, parts, visit.clone(), request.get().as_bytes(), true).await {
            Answer::None => continue,
            Answer::One(text) | Answer::Noted(text, _) | Answer::NoStream(text) | Answer::Later(text, _) => {
                text
            }
            Answer::Stream(id, _, wire) => refuse(&id, wire, &no_stream_in_batch()),
        });
    }
    if answers.is_empty() {
        return StatusCode::ACCEPTED.into_response();
    }
    json(format!("[{}]", answers.join(",")))
}

/// Answers one request. What has no id is done without a word; what cannot be read as a request is refused all the same, because
/// it is not known to be one that wants no answer.
async fn answer_one(
    service: &Service,
    parts: &Parts,
    visit: Visit,
    body: &[u8],
    is_in_batch: bool,
) -> Answer {
    match rpc::decode_request(body) {
        Ok(incoming) if incoming.id.is_absent() => {
            let _ = answer_read(service, parts, visit, incoming, is_in_batch).await;
            Answer::None
        }
        Ok(incoming) => answer_read(service, parts, visit, incoming, is_in_batch).await,
        Err(Refused { id, wire, error }) => Answer::One(refuse(&id, wire, &error)),
    }
}

async fn answer_read(
    service: &Service,
    parts: &Parts,
    mut visit: Visit,
    incoming: Incoming,
    is_in_batch: bool,
) -> Answer {
    let Incoming { id, wire, request } = incoming;
    if let Err(error) = incoming::check_version(parts) {
        return Answer::One(refuse(&id, Wire::V10, &error));
    }
    let is_for_stream = matches!(request, Asked::Stream(_) | Asked::Subscribe(_));
    if is_for_stream && is_in_batch {
        // Before anything begins that nobody would hear of.
        return Answer::One(refuse(&id, wire, &no_stream_in_batch()));
    }
    (visit.door, visit.wire) = (door_of(wire, &request), wire);
    if matches!(request, Asked::ExtendedCard(_)) {
        // Only cards say where we are.
        visit.base = service.site.address(&parts.uri, &parts.headers, &visit.caller.scope);
    }
    match service.answer(&visit, request).await {
        Ok(Reply::Stream(events)) => Answer::Stream(id, events, wire),
        Ok(reply) => {
            let (text, mut beside) = (written(&id, wire, &reply), HeaderMap::new());
            reply.put_beside(wire, &mut beside);
            if beside.is_empty() { Answer::One(text) } else { Answer::Noted(text, Box::new(beside)) }
        }
        Err(trouble) if is_for_stream && trouble.is_busy() => {
            Answer::Later(refuse(&id, wire, &trouble.error), trouble.retry_after().unwrap_or(1))
        }
        Err(trouble) if is_for_stream && wire != Wire::V10 && incoming::reads_events_only(&parts.headers) => {
            Answer::NoStream(refuse(&id, wire, &trouble.error))
        }
        Err(trouble) => Answer::One(refuse(&id, wire, &trouble.error)),
    }
}

fn no_stream_in_batch() -> RpcError {
    RpcError::new(Code::UnsupportedOperation, "a stream cannot be answered in a batch; send it alone")
}

/// How a request came in, as far as its task must remember it.
fn door_of(wire: Wire, request: &Asked) -> Door {
    match (wire, request) {
        (Wire::V01, Asked::Send(send) | Asked::Stream(send))
            if send.skill.is_some() && send.task_id.is_none() =>
        {
            Door::A2aPlain
        }
        (Wire::V01, _) => Door::A2aFirst,
        _ => Door::A2aJsonRpc,
    }
}

/// The answer to a request as JSON-RPC.
fn written(id: &Id, wire: Wire, reply: &Reply) -> String {
    match reply {
        Reply::Sent { answer, .. } if wire == Wire::V10 => {
            rpc::encode_result(id, &answer::encode_send(Wire::V10, answer))
        }
        Reply::Sent { answer: rialto_a2a_wire::task::SendAnswer::Task(task), door, .. }
        | Reply::Task { task, door } => {
            let manner = Manner::of(wire, *door);
            if manner.is_plain {
                return rpc::encode_result(id, &plain::task(task));
            }
            rpc::encode_result(id, &answer::encode_task(manner.wire, task))
        }
        Reply::Sent { answer, .. } => rpc::encode_result(id, &answer::encode_send(wire, answer)),
        Reply::Tasks(list) => rpc::encode_result(id, &answer::encode_task_list(wire, list)),
        Reply::Push(push) => rpc::encode_result(id, &answer::encode_push(wire, push)),
        Reply::Pushes(list) => rpc::encode_result(id, &answer::encode_push_list(wire, list)),
        Reply::Card(card) => {
            rpc::encode_result(id, &Json::parse(&**card).unwrap_or_else(|_| Json::empty_object()))
        }
        Reply::Nothing | Reply::Stream(_) => rpc::encode_result(id, &()),
    }
}

/// One event of a stream as JSON-RPC.
fn frame(id: &Id, wire: Wire, event: Result<(StreamEvent, Door), super::trouble::Trouble>) -> Event {
    let (event, door) = match event {
        Ok(event) => event,
        Err(trouble) => {
            return Event::default().event("error").data(refuse(id, wire, &trouble.error));
        }
    };
    let manner = Manner::of(wire, door);
    let text = if manner.is_plain {
        rpc::encode_result(id, &plain::event(&without_task(event)))
    } else if manner.wire == Wire::V01 {
        rpc::encode_result(id, &answer::encode_stream_event(Wire::V01, &without_task(event)))
    } else {
        rpc::encode_result(id, &answer::encode_stream_event(manner.wire, &event))
    };
    Event::default().data(text)
}

/// 0.1 tells no tasks in streams, only how they stand.
fn without_task(event: StreamEvent) -> StreamEvent {
    match event {
        StreamEvent::Task(task) => render::standing_of(task),
        event => event,
    }
}

/// A stream of server-sent events, with a heartbeat where nothing happens.
pub(crate) fn told(
    wire: Wire,
    frame: impl Fn(Result<(StreamEvent, Door), super::trouble::Trouble>) -> Event + Send + 'static,
    mut events: TaskStream,
) -> Response {
    let (door, activated) = (events.door, mem::take(&mut events.activated));
    let events = events.map(move |event| frame(event.map(|event| (event, door))));
    let mut response = event_stream::respond(events, Some(KeepAlive::new().text("still working")));
    extension::tell(wire, &activated, response.headers_mut());
    response
}

fn refuse(id: &Id, wire: Wire, error: &RpcError) -> String {
    rpc::encode_error(wire, id, error)
}

fn json(text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

// === impl Manner ===

impl Manner {
    /// A task of a 0.1 client is told in 0.1, also by methods that 0.3 shares with it.
    const fn of(wire: Wire, door: Door) -> Self {
        match (wire, door) {
            (Wire::V03 | Wire::V01, Door::A2aPlain) => Self { wire: Wire::V01, is_plain: true },
            (Wire::V03, Door::A2aFirst) => Self { wire: Wire::V01, is_plain: false },
            _ => Self { wire, is_plain: false },
        }
    }
}
