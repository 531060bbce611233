//! HTTP functions: arguments in the request body, result in the response body.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Uri, header};
use rialto_http_client::{
    address::Reach,
    fetch::{FetchError, FetchRequest},
};
use rialto_model::{
    backing::{BackingEndpoint, FunctionBacking},
    call::{Call, HOPS_HEADER},
    failure::{Failure, FailureKind},
    json::Json,
    message::Part,
    secret_templates,
};
use serde_json::json;

use crate::{
    backend::FunctionDeps,
    result::{MAX_RESULT_BYTES, excerpt, part_from_bytes},
};

/// Maximum bytes of an error response that the failure contains.
const MAX_EXCERPT_BYTES: usize = 500;

/// Idempotency key, equal for every attempt at one call.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const HOPS_NAME: HeaderName = HeaderName::from_static(HOPS_HEADER);
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
const BAGGAGE: HeaderName = HeaderName::from_static("baggage");

/// Sends the arguments and reads the result.
pub(crate) async fn call(
    deps: &FunctionDeps,
    endpoint: &BackingEndpoint,
    function: &FunctionBacking,
    call: &Call,
) -> Result<Part, Failure> {
    let unreachable = |message| Failure::new(FailureKind::PeerUnreachable, message);
    let uri: Uri = endpoint
        .url
        .parse()
        .map_err(|error| unreachable(format!("the address of {} is not one: {error}", function.name)))?;
    let headers = secret_templates::resolve_headers(&endpoint.headers, &deps.secrets).await;
    let mut request = FetchRequest::new(Method::POST, uri);
    request.headers =
        headers.map_err(|why| unreachable(format!("{} was not called: {why}", function.name)))?;
    request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let trace = call.trace.as_deref();
    let own = [
        (IDEMPOTENCY_KEY, Some(call.task.to_string())),
        (HOPS_NAME, Some((u16::from(call.caller.hops) + 1).to_string())),
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
    request.limit = Some(MAX_RESULT_BYTES);
    let answer = deps.fetch.fetch(request).await.map_err(|error| failure_from_fetch(function, &error))?;
    let (status, media_type) = (answer.status, answer.media_type().to_owned());
    let body = answer.body.read().await.map_err(|error| failure_from_fetch(function, &error))?;
    if status.is_success() {
        return Ok(part_from_bytes(
            &body,
            Some(&media_type).filter(|kind| !kind.is_empty()).map(String::as_str),
        ));
    }
    let excerpt_text = excerpt(&body, MAX_EXCERPT_BYTES);
    let detail = if excerpt_text.is_empty() { String::new() } else { format!(": {excerpt_text}") };
    let message = format!("{} answered with HTTP status {}{detail}", function.name, status.as_u16());
    let data = json!({ "httpStatus": status.as_u16(), "body": excerpt_text });
    Err(Failure::new(FailureKind::PeerFailed, message).with_data(Json::encode(&data)))
}

fn failure_from_fetch(function: &FunctionBacking, error: &FetchError) -> Failure {
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
