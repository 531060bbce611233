//! JSON-RPC binding: the dialects of all generations at one address.

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
use rialto_a2a_codec::{
    answer,
    error::{ErrorCode, RpcError},
    request::A2aRequest as Asked,
    rpc::{self, DecodedRequest, Id, RejectedRequest},
    task::StreamEvent,
    wire::Wire,
};
use rialto_http_server::event_stream;
use rialto_model::{
    agent::Agent,
    call::{Caller, EntryProtocol},
    json::{Json, MAX_DEPTH, is_too_deep},
};
use serde_json::value::RawValue;

use super::{
    render,
    request_context::{self, A2aRequestContext},
    service::{Service, ServiceReply},
    stream::TaskStream,
    v01_plain,
};
use crate::extension;

/// Maximum number of requests in a batch.
const MAX_BATCH_REQUESTS: usize = 100;

/// Encoding of the response to one request.
#[derive(Clone, Copy)]
pub(crate) struct RpcStyle {
    wire: Wire,
    is_plain: bool,
}

/// Response to one request, or a stream.
enum RpcReply {
    /// None: a notification.
    None,
    One(String),
    /// Response with headers.
    Noted(String, Box<HeaderMap>),
    /// Error as an event, for a client that parses only event streams.
    NoStream(String),
    /// Temporary error: no stream now, with the seconds after which to retry.
    Later(String, u64),
    Stream(Id, TaskStream, Wire),
}

pub(crate) async fn serve(State(service): State<Arc<Service>>, request: Request) -> Response {
    // Boxed, because the future is large and moved several times before it runs.
    Box::pin(answered(&service, request, None)).await
}

/// Serves the JSON-RPC endpoint of one agent.
pub(crate) async fn serve_agent(
    State(service): State<Arc<Service>>,
    Path(slug): Path<String>,
    request: Request,
) -> Response {
    match service.agent(request.extensions().get::<Caller>(), &slug).await {
        Ok(agent) => Box::pin(answered(&service, request, Some(agent))).await,
        Err(trouble) => match rialto_http_server::body::read_to_end(request.into_body()).await {
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
    let body = match rialto_http_server::body::read_to_end(body).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    if let Err(error) = request_context::check_kind(&parts.headers) {
        return json(refuse(&Id::null(), Wire::V10, &error));
    }
    if is_too_deep(&body) {
        let message = format!("the body is nested deeper than {MAX_DEPTH} levels; send it flatter");
        return json(refuse(&Id::null(), Wire::V10, &RpcError::new(ErrorCode::InvalidRequest, message)));
    }
    let visit = A2aRequestContext {
        base: String::new(),
        trace: rialto_http_server::trace::from_headers(&parts.headers),
        extensions: extension::named(&parts.headers),
        caller,
        door: EntryProtocol::A2aJsonRpc,
        wire: Wire::V10,
        agent,
    };
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        return Box::pin(batch(service, &parts, &visit, &body)).await;
    }
    match answer_one(service, &parts, visit, &body, false).await {
        RpcReply::None => StatusCode::ACCEPTED.into_response(),
        RpcReply::One(text) => json(text),
        RpcReply::Noted(text, beside) => {
            let mut response = json(text);
            response.headers_mut().extend(*beside);
            response
        }
        RpcReply::NoStream(text) => event_stream::respond(stream::iter([Event::default().data(text)]), None),
        RpcReply::Later(text, seconds) => {
            let mut response = json(text);
            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            response
        }
        RpcReply::Stream(id, events, wire) => told(wire, move |event| frame(&id, wire, event), events),
    }
}

/// Answers a batch of requests in order. Streams are not allowed in it.
async fn batch(service: &Service, parts: &Parts, visit: &A2aRequestContext, body: &[u8]) -> Response {
    let refused = |code, message: &str| json(refuse(&Id::null(), Wire::V03, &RpcError::new(code, message)));
    let Ok(requests) = serde_json::from_slice::<Vec<&RawValue>>(body) else {
        return refused(ErrorCode::Parse, "the body is not JSON");
    };
    if requests.is_empty() || requests.len() > MAX_BATCH_REQUESTS {
        return refused(
            ErrorCode::InvalidRequest,
            &format!("a batch has 1 to {MAX_BATCH_REQUESTS} requests"),
        );
    }
    let mut answers = Vec::with_capacity(requests.len());
    for request in requests {
        answers.push(match answer_one(service, parts, visit.clone(), request.get().as_bytes(), true).await {
            RpcReply::None => continue,
            RpcReply::One(text)
            | RpcReply::Noted(text, _)
            | RpcReply::NoStream(text)
            | RpcReply::Later(text, _) => text,
            RpcReply::Stream(id, _, wire) => refuse(&id, wire, &no_stream_in_batch()),
        });
    }
    if answers.is_empty() {
        return StatusCode::ACCEPTED.into_response();
    }
    json(format!("[{}]", answers.join(",")))
}

/// Answers one request. A request without an id is processed without a response; one that cannot be parsed is rejected all the same,
/// because it is not known to be a notification.
async fn answer_one(
    service: &Service,
    parts: &Parts,
    visit: A2aRequestContext,
    body: &[u8],
    is_in_batch: bool,
) -> RpcReply {
    match rpc::decode_request(body) {
        Ok(incoming) if incoming.id.is_absent() => {
            let _ = answer_read(service, parts, visit, incoming, is_in_batch).await;
            RpcReply::None
        }
        Ok(incoming) => answer_read(service, parts, visit, incoming, is_in_batch).await,
        Err(RejectedRequest { id, wire, error }) => RpcReply::One(refuse(&id, wire, &error)),
    }
}

async fn answer_read(
    service: &Service,
    parts: &Parts,
    mut visit: A2aRequestContext,
    incoming: DecodedRequest,
    is_in_batch: bool,
) -> RpcReply {
    let DecodedRequest { id, wire, request } = incoming;
    if let Err(error) = request_context::check_version(parts) {
        return RpcReply::One(refuse(&id, Wire::V10, &error));
    }
    let is_for_stream = matches!(request, Asked::Stream(_) | Asked::Subscribe(_));
    if is_for_stream && is_in_batch {
        // Before anything starts whose output could not be sent.
        return RpcReply::One(refuse(&id, wire, &no_stream_in_batch()));
    }
    (visit.door, visit.wire) = (door_of(wire, &request), wire);
    if matches!(request, Asked::ExtendedCard(_)) {
        // Only cards contain this server's URL.
        visit.base = service.site.url_for(&parts.uri, &parts.headers, &visit.caller.scope);
    }
    match service.answer(&visit, request).await {
        Ok(ServiceReply::Stream(events)) => RpcReply::Stream(id, events, wire),
        Ok(reply) => {
            let (text, mut beside) = (written(&id, wire, &reply), HeaderMap::new());
            reply.put_beside(wire, &mut beside);
            if beside.is_empty() { RpcReply::One(text) } else { RpcReply::Noted(text, Box::new(beside)) }
        }
        Err(trouble) if is_for_stream && trouble.is_busy() => {
            RpcReply::Later(refuse(&id, wire, &trouble.error), trouble.retry_after().unwrap_or(1))
        }
        Err(trouble)
            if is_for_stream && wire != Wire::V10 && request_context::reads_events_only(&parts.headers) =>
        {
            RpcReply::NoStream(refuse(&id, wire, &trouble.error))
        }
        Err(trouble) => RpcReply::One(refuse(&id, wire, &trouble.error)),
    }
}

fn no_stream_in_batch() -> RpcError {
    RpcError::new(ErrorCode::UnsupportedOperation, "a stream cannot be answered in a batch; send it alone")
}

/// Binding of a request, as stored with its task.
fn door_of(wire: Wire, request: &Asked) -> EntryProtocol {
    match (wire, request) {
        (Wire::V01, Asked::Send(send) | Asked::Stream(send))
            if send.skill.is_some() && send.task_id.is_none() =>
        {
            EntryProtocol::A2aPlain
        }
        (Wire::V01, _) => EntryProtocol::A2aFirst,
        _ => EntryProtocol::A2aJsonRpc,
    }
}

/// Encodes the response to a request as JSON-RPC.
fn written(id: &Id, wire: Wire, reply: &ServiceReply) -> String {
    match reply {
        ServiceReply::Sent { answer, .. } if wire == Wire::V10 => {
            rpc::encode_result(id, &answer::encode_send(Wire::V10, answer))
        }
        ServiceReply::Sent { answer: rialto_a2a_codec::task::SendAnswer::Task(task), door, .. }
        | ServiceReply::Task { task, door } => {
            let manner = RpcStyle::of(wire, *door);
            if manner.is_plain {
                return rpc::encode_result(id, &v01_plain::task(task));
            }
            rpc::encode_result(id, &answer::encode_task(manner.wire, task))
        }
        ServiceReply::Sent { answer, .. } => rpc::encode_result(id, &answer::encode_send(wire, answer)),
        ServiceReply::Tasks(list) => rpc::encode_result(id, &answer::encode_task_list(wire, list)),
        ServiceReply::Push(push) => rpc::encode_result(id, &answer::encode_push(wire, push)),
        ServiceReply::Pushes(list) => rpc::encode_result(id, &answer::encode_push_list(wire, list)),
        ServiceReply::Card(card) => {
            rpc::encode_result(id, &Json::parse(&**card).unwrap_or_else(|_| Json::empty_object()))
        }
        ServiceReply::Nothing | ServiceReply::Stream(_) => rpc::encode_result(id, &()),
    }
}

/// Encodes an event of a stream as JSON-RPC.
fn frame(
    id: &Id,
    wire: Wire,
    event: Result<(StreamEvent, EntryProtocol), super::error::ServiceError>,
) -> Event {
    let (event, door) = match event {
        Ok(event) => event,
        Err(trouble) => {
            return Event::default().event("error").data(refuse(id, wire, &trouble.error));
        }
    };
    let manner = RpcStyle::of(wire, door);
    let text = if manner.is_plain {
        rpc::encode_result(id, &v01_plain::event(&without_task(event)))
    } else if manner.wire == Wire::V01 {
        rpc::encode_result(id, &answer::encode_stream_event(Wire::V01, &without_task(event)))
    } else {
        rpc::encode_result(id, &answer::encode_stream_event(manner.wire, &event))
    };
    Event::default().data(text)
}

/// 0.1 has no tasks in streams, only status updates.
fn without_task(event: StreamEvent) -> StreamEvent {
    match event {
        StreamEvent::Task(task) => render::standing_of(task),
        event => event,
    }
}

/// Response with server-sent events, with heartbeats while nothing happens.
pub(crate) fn told(
    wire: Wire,
    frame: impl Fn(Result<(StreamEvent, EntryProtocol), super::error::ServiceError>) -> Event + Send + 'static,
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

// === impl RpcStyle ===

impl RpcStyle {
    /// A task of a 0.1 client is encoded in 0.1, also for methods that 0.3 shares with it.
    const fn of(wire: Wire, door: EntryProtocol) -> Self {
        match (wire, door) {
            (Wire::V03 | Wire::V01, EntryProtocol::A2aPlain) => Self { wire: Wire::V01, is_plain: true },
            (Wire::V03, EntryProtocol::A2aFirst) => Self { wire: Wire::V01, is_plain: false },
            _ => Self { wire, is_plain: false },
        }
    }
}
