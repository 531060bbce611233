//! gRPC, of 1.0 (`lf.a2a.v1`) and of 0.3 (`a2a.v1`), on the same port as everything else.
//!
//! A request has passed admission like any other: its token is in the call's metadata. Admission rejects with an HTTP status, which gRPC
//! clients map to a gRPC status.

use std::{convert::Infallible, mem, sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version, header, request::Parts};
use http_body::Frame;
use http_body_util::StreamBody;
use rialto_a2a_codec::{
    answer,
    grpc::{
        self, GrpcStatus,
        frame::{FrameError, Frames},
    },
    invalid::InvalidDocument,
    request::A2aOperation,
    rpc::DecodedRequest,
    wire::Wire,
};
use rialto_model::{
    agent::Agent,
    call::{Caller, EntryProtocol},
};
use tokio::time::{Instant, timeout_at};

use super::{
    error::ServiceError,
    request_context::{self, A2aRequestContext},
    rest::written,
    service::{Service, ServiceReply},
    stream::TaskStream,
};
use crate::extension;

/// gRPC service path of each generation, with all methods below.
pub const SERVICES: [&str; 2] = ["/lf.a2a.v1.A2AService", "/a2a.v1.A2AService"];

/// Metadata key with the slug of the one agent to call.
const AGENT_METADATA: &str = "rialto-agent";

const MEDIA_TYPE: HeaderValue = HeaderValue::from_static(grpc::MEDIA_TYPE);
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

pub(crate) async fn serve(State(service): State<Arc<Service>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if let Some(refusal) = not_grpc(&parts) {
        return refusal;
    }
    let Some(caller) = parts.extensions.get::<Caller>().cloned() else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let Some((wire, operation)) = grpc::place(parts.uri.path()) else {
        let message = format!("there is no method {}", parts.uri.path());
        return refuse(&GrpcStatus::new(GrpcStatus::UNIMPLEMENTED, message));
    };
    let read = match message(body).await {
        Ok(message) => grpc::decode_request(parts.uri.path(), &message),
        Err(status) => return refuse(&status),
    };
    let checked = read.map_err(|refused| refused.error).and_then(|incoming| {
        request_context::check_version(&parts)?;
        Ok(incoming)
    });
    let DecodedRequest { request, .. } = match checked {
        Ok(incoming) => incoming,
        Err(error) => return refuse(&GrpcStatus::of(wire, &error)),
    };
    let agent = match named_agent(&service, &parts.headers, &caller).await {
        Ok(agent) => agent,
        Err(trouble) => return refuse(&trouble.grpc(wire)),
    };
    let visit = A2aRequestContext {
        base: service.site.url_for(&parts.uri, &parts.headers, &caller.scope),
        trace: rialto_http_server::trace::from_headers(&parts.headers),
        extensions: extension::named(&parts.headers),
        caller,
        door: EntryProtocol::A2aGrpc,
        wire,
        agent,
    };
    let deadline = deadline(&parts.headers);
    let answer = match deadline {
        None => service.answer(&visit, request).await,
        Some(deadline) => match timeout_at(deadline, service.answer(&visit, request)).await {
            Ok(answer) => answer,
            Err(_) => return refuse(&late()),
        },
    };
    match answer {
        Ok(ServiceReply::Stream(events)) => streamed(wire, operation, events, deadline),
        Ok(reply) => match grpc::encode_answer(wire, operation, &written(wire, &reply)) {
            Ok(message) => {
                let frames = stream::iter([Frame::data(Bytes::from(message)), last(&GrpcStatus::OK)]);
                let mut response = respond(frames);
                reply.put_beside(wire, response.headers_mut());
                response
            }
            Err(garbled) => refuse(&unfit(&garbled)),
        },
        Err(trouble) => refuse(&trouble.grpc(wire)),
    }
}

/// Agent named in the metadata, if any. 0.3 has no tenants, and there are no paths here.
async fn named_agent(
    service: &Service,
    headers: &HeaderMap,
    caller: &Caller,
) -> Result<Option<Arc<Agent>>, ServiceError> {
    let Some(slug) = headers.get(AGENT_METADATA).and_then(|slug| slug.to_str().ok()) else { return Ok(None) };
    service.agent(Some(caller), slug).await.map(Some)
}

/// Response to a request that is not gRPC.
fn not_grpc(parts: &Parts) -> Option<Response> {
    if parts.version != Version::HTTP_2 {
        return Some((StatusCode::HTTP_VERSION_NOT_SUPPORTED, "gRPC needs HTTP/2").into_response());
    }
    let media_type = parts.headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let is_grpc = media_type.starts_with(grpc::MEDIA_TYPE.as_bytes());
    (!is_grpc).then(|| (StatusCode::UNSUPPORTED_MEDIA_TYPE, "this is a gRPC service").into_response())
}

/// The one message of a request.
async fn message(body: Body) -> Result<Bytes, GrpcStatus> {
    let body =
        rialto_http_server::body::read_to_end(body).await.map_err(|refusal| match refusal.status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                let message = "the message is larger than [server] max_body_bytes allows";
                GrpcStatus::new(GrpcStatus::RESOURCE_EXHAUSTED, message)
            }
            _ => GrpcStatus::new(GrpcStatus::CANCELLED, "the request broke off"),
        })?;
    // Admission limits the size of the body, and so of the message.
    let mut frames = Frames::new(body.len());
    frames.feed(&body);
    match frames.next_message() {
        Ok(Some(message)) if !frames.is_cut() => Ok(message),
        Ok(_) | Err(FrameError::TooLarge(_)) => {
            Err(GrpcStatus::new(GrpcStatus::INTERNAL, "the request is not one whole message"))
        }
        Err(FrameError::Compressed) => {
            Err(GrpcStatus::new(GrpcStatus::UNIMPLEMENTED, "compressed messages are not read here"))
        }
    }
}

/// Deadline of the caller, if it sends one: a number of at most eight digits and a unit.
fn deadline(headers: &HeaderMap) -> Option<Instant> {
    let said = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = said.split_at_checked(said.len().checked_sub(1)?)?;
    let number: u64 = digits.parse().ok().filter(|_| digits.len() <= 8)?;
    let wait = match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    };
    Instant::now().checked_add(wait)
}

fn late() -> GrpcStatus {
    let message =
        "there is no answer in the time that grpc-timeout gives; the task goes on, ask for it later";
    GrpcStatus::new(GrpcStatus::DEADLINE_EXCEEDED, message)
}

/// Streams events as messages, and the status at the end.
fn streamed(
    wire: Wire,
    operation: A2aOperation,
    mut events: TaskStream,
    deadline: Option<Instant>,
) -> Response {
    let activated = mem::take(&mut events.activated);
    let mut response = respond(stream::unfold(Some(events), move |events| async move {
        let mut events = events?;
        let next = match deadline {
            None => Ok(events.next().await),
            Some(deadline) => timeout_at(deadline, events.next()).await,
        };
        let told = match next {
            Err(_) => Err(late()),
            Ok(None) => Err(GrpcStatus::OK),
            Ok(Some(Err(trouble))) => Err(trouble.grpc(wire)),
            Ok(Some(Ok(event))) => {
                let text = answer::encode_stream_event(wire, &event).text();
                grpc::encode_answer(wire, operation, &text).map_err(|garbled| unfit(&garbled))
            }
        };
        Some(match told {
            Ok(message) => (Frame::data(Bytes::from(message)), Some(events)),
            Err(status) => (last(&status), None),
        })
    }));
    extension::tell(wire, &activated, response.headers_mut());
    response
}

/// Error for JSON that protobuf cannot represent.
fn unfit(garbled: &InvalidDocument) -> GrpcStatus {
    let message = format!("the answer does not fit into gRPC, ask for it over JSON-RPC: {garbled}");
    GrpcStatus::new(GrpcStatus::INTERNAL, message)
}

fn last(status: &GrpcStatus) -> Frame<Bytes> {
    let mut trailers = HeaderMap::with_capacity(3);
    status.put(&mut trailers);
    Frame::trailers(trailers)
}

fn respond(frames: impl stream::Stream<Item = Frame<Bytes>> + Send + 'static) -> Response {
    let mut response = Response::new(Body::new(StreamBody::new(frames.map(Ok::<_, Infallible>))));
    response.headers_mut().insert(header::CONTENT_TYPE, MEDIA_TYPE);
    response
}

/// Response with only a status, in its headers.
fn refuse(status: &GrpcStatus) -> Response {
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, MEDIA_TYPE);
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    status.put(headers);
    response
}

// === impl ServiceError ===

impl ServiceError {
    /// Converts the error to a gRPC status.
    fn grpc(&self, wire: Wire) -> GrpcStatus {
        let number = match self.grpc_name() {
            None => return GrpcStatus::of(wire, &self.error),
            Some("DEADLINE_EXCEEDED") => GrpcStatus::DEADLINE_EXCEEDED,
            Some("NOT_FOUND") => 5,
            Some("PERMISSION_DENIED") => GrpcStatus::PERMISSION_DENIED,
            Some("RESOURCE_EXHAUSTED") => GrpcStatus::RESOURCE_EXHAUSTED,
            Some("ABORTED") => 10,
            Some("UNAVAILABLE") => GrpcStatus::UNAVAILABLE,
            Some("UNAUTHENTICATED") => GrpcStatus::UNAUTHENTICATED,
            Some(_) => 2,
        };
        GrpcStatus::like(number, wire, &self.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_timeout_is_a_number_and_a_unit() {
        let wait = |said: &str| {
            let headers = HeaderMap::from_iter([(
                HeaderName::from_static("grpc-timeout"),
                HeaderValue::from_str(said).unwrap(),
            )]);
            deadline(&headers).map(|deadline| deadline - Instant::now())
        };
        assert_eq!(wait("1H"), Some(Duration::from_secs(3600)));
        assert_eq!(wait("2M"), Some(Duration::from_secs(120)));
        assert_eq!(wait("99999999S"), Some(Duration::from_secs(99_999_999)));
        assert_eq!(wait("250m"), Some(Duration::from_millis(250)));
        assert_eq!(wait("7u"), Some(Duration::from_micros(7)));
        for odd in ["", "S", "1", "100000000S", "-1S", "1x", "1 S"] {
            assert_eq!(wait(odd), None, "{odd}");
        }
    }
}
