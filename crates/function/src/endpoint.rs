//! An address as a function: arguments in the body, result in the body.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Uri, header};
use rialto_edge::{
    address::Reach,
    fetch::{FetchError, Request},
    settings,
};
use rialto_model::{
    backing::{BackingEndpoint, FunctionBacking},
    call::{Call, HOPS_HEADER},
    failure::{Failure, FailureKind},
    json::Json,
    message::Part,
};
use serde_json::json;

use crate::{
    peer::Ports,
    result::{LARGEST, excerpt, part_of},
};

/// So much of what came with a bad status is told to the caller.
const EXCERPT: usize = 500;

/// The same for every attempt at one call, so that a function can tell whether it did it before.
const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const HOPS: HeaderName = HeaderName::from_static(HOPS_HEADER);
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
const BAGGAGE: HeaderName = HeaderName::from_static("baggage");

/// Posts the arguments and reads what comes back.
pub(crate) async fn call(
    ports: &Ports,
    endpoint: &BackingEndpoint,
    function: &FunctionBacking,
    call: &Call,
) -> Result<Part, Failure> {
    let unreachable = |message| Failure::new(FailureKind::PeerUnreachable, message);
    let uri: Uri = endpoint
        .url
        .parse()
        .map_err(|error| unreachable(format!("the address of {} is not one: {error}", function.name)))?;
    let headers = settings::headers(&endpoint.headers, &ports.secrets).await;
    let mut request = Request::new(Method::POST, uri);
    request.headers =
        headers.map_err(|why| unreachable(format!("{} was not called: {why}", function.name)))?;
    request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let trace = call.trace.as_deref();
    let own = [
        (KEY, Some(call.task.to_string())),
        (HOPS, Some((u16::from(call.caller.hops) + 1).to_string())),
        (TRACEPARENT, trace.map(ToString::to_string)),
        (TRACESTATE, trace.and_then(|trace| trace.state().map(str::to_owned))),
        (BAGGAGE, trace.and_then(|trace| trace.baggage().map(str::to_owned))),
    ];
    for (name, value) in own {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
            request.headers.insert(name, value);
        }
    }
    request.headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("application/json, */*;q=0.5"));
    request.body = Bytes::copy_from_slice(call.args().get().as_bytes());
    request.reach = if call.target.agent.allow_private { Reach::Private } else { Reach::Public };
    request.patience = Duration::from_millis(function.timeout_ms);
    request.limit = Some(LARGEST);
    let answer = ports.fetch.fetch(request).await.map_err(|error| trouble(function, &error))?;
    let (status, media_type) = (answer.status, answer.media_type().to_owned());
    let body = answer.body.read().await.map_err(|error| trouble(function, &error))?;
    if status.is_success() {
        return Ok(part_of(&body, Some(&media_type).filter(|kind| !kind.is_empty()).map(String::as_str)));
    }
    let said = excerpt(&body, EXCERPT);
    let words = if said.is_empty() { String::new() } else { format!(": {said}") };
    let message = format!("{} answered with HTTP status {}{words}", function.name, status.as_u16());
    let data = json!({ "httpStatus": status.as_u16(), "body": said });
    Err(Failure::new(FailureKind::PeerFailed, message).with_data(Json::encode(&data)))
}

fn trouble(function: &FunctionBacking, error: &FetchError) -> Failure {
    let kind = match error {
        FetchError::Forbidden(_) | FetchError::NotSent(_) | FetchError::Broken(_) => {
            FailureKind::PeerUnreachable
        }
        FetchError::Local(_) => FailureKind::Internal,
        FetchError::Timeout(_) => FailureKind::PeerTimeout,
        FetchError::TooLarge(_) => FailureKind::PeerGarbled,
    };
    Failure::new(kind, format!("{} could not be called: {error}", function.name))
}
