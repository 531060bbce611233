//! REST binding: verb and path of each operation, and the encoding of errors.
//!
//! Paths are relative to the interface's URL, ids percent-encoded. 1.0 puts the tenant first, 0.3 puts `/v1` first. Requests without a
//! body cannot carry metadata and unknown members, which are dropped there.

use rialto_model::{json::Json, name::in_path};
use serde::{Serialize, Serializer};
use url::form_urlencoded;

use crate::{
    codec::{push::PushCreation, task::state_name},
    error::{ErrorCode, RpcError, reason_in},
    members::{ObjectMembers, parse, text},
    object::{ObjectWriter, OnWire, text_of},
    request::{A2aRequest, ListTasks, PushConfig, PushListing, PushRef, TaskRef},
    rpc::Unsupported,
    wire::Wire,
};

mod route;

pub use route::{decode_request, wire_of};

/// Encoded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestCall {
    /// The HTTP method.
    pub method: &'static str,
    /// Path behind the interface's URL, with the query.
    pub path: String,
    /// JSON body.
    pub body: Option<String>,
}

/// Releases of 1.0. They differ in the media type of JSON in REST, and in the HTTP status of a few errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// 1.0.0: `application/json`, and more distinct statuses.
    First,
    /// 1.0.1: `application/a2a+json`.
    Second,
}

/// Encodes a request. Only 1.0 and 0.3 have REST.
pub fn encode(wire: Wire, request: &A2aRequest) -> Result<RestCall, Unsupported> {
    if !wire.is_proto() {
        return Err(Unsupported { operation: request.operation(), wire });
    }
    let prefix = match (wire, request.tenant()) {
        (Wire::V10, Some(tenant)) => format!("/{}", in_path(tenant)),
        (Wire::V10, None) => String::new(),
        _ => "/v1".to_owned(),
    };
    let (method, path, body) = match request {
        A2aRequest::Send(send) => ("POST", "/message:send".to_owned(), Some(OnWire(wire, send).text())),
        A2aRequest::Stream(send) => ("POST", "/message:stream".to_owned(), Some(OnWire(wire, send).text())),
        A2aRequest::Get(get) => {
            let length = get.history_length.filter(|length| wire == Wire::V10 || *length > 0);
            let query = length.map(|length| format!("?historyLength={length}")).unwrap_or_default();
            ("GET", format!("{}{query}", task(&get.id)), None)
        }
        A2aRequest::List(list) => ("GET", format!("/tasks{}", list_query(wire, list)), None),
        A2aRequest::Cancel(cancel) => {
            ("POST", format!("{}:cancel", task(&cancel.id)), Some(cancel_body(wire, cancel)))
        }
        A2aRequest::Subscribe(subscribe) => ("GET", format!("{}:subscribe", task(&subscribe.id)), None),
        A2aRequest::PushCreate(config) => {
            ("POST", pushes(config.task_id.as_deref().unwrap_or_default()), Some(push_body(wire, config)))
        }
        A2aRequest::PushGet(push) => ("GET", one_push(push), None),
        A2aRequest::PushList(listing) => ("GET", pushes(&listing.task_id) + &page_query(listing), None),
        A2aRequest::PushDelete(push) => ("DELETE", one_push(push), None),
        A2aRequest::ExtendedCard(_) if wire == Wire::V10 => ("GET", "/extendedAgentCard".to_owned(), None),
        A2aRequest::ExtendedCard(_) => ("GET", "/card".to_owned(), None),
    };
    Ok(RestCall { method, path: prefix + &path, body })
}

/// Encodes an error: HTTP status and body. The release matters in 1.0 only.
pub fn encode_error(wire: Wire, release: Release, error: &RpcError) -> (u16, String) {
    let code = ErrorCode::from_number(error.code).unwrap_or(ErrorCode::Internal);
    if wire == Wire::V10 {
        let status = release.status(code);
        (status, text_of(&RestError(status, code.grpc(), error)))
    } else {
        let code = code.on(wire);
        (code.http_v03(), text_of(&OldRestError { message: &error.message, class: Some(code.class()) }))
    }
}

/// Encodes an error that A2A does not define, with its HTTP status and gRPC status name.
pub fn encode_other(wire: Wire, status: (u16, &'static str), error: &RpcError) -> String {
    if wire == Wire::V10 {
        text_of(&RestError(status.0, status.1, error))
    } else {
        text_of(&OldRestError { message: &error.message, class: None })
    }
}

/// Decodes an error from the body of a response with an error status.
///
/// 1.0 has the reason in the error's details; JavaScript's 0.3 sends the JSON-RPC code; Python's 0.3 only a message and the status. A
/// 404 that is not JSON comes from a server that does not know the path, and so not the dialect.
pub fn decode_error(status: u16, body: &[u8]) -> RpcError {
    let Some(mut members) = parse(body).ok().and_then(|raw| ObjectMembers::read(raw).ok()) else {
        let code = if matches!(status, 404 | 405) { ErrorCode::MethodNotFound } else { by_status(status) };
        return RpcError::new(code, format!("HTTP status {status}"));
    };
    let mut inner = match members.take("error").map(ObjectMembers::read) {
        Some(Ok(inner)) => inner,
        Some(Err(_)) | None => members,
    };
    let message = ["message", "detail"].into_iter().find_map(|name| text(inner.take(name)?).ok());
    let number = inner.take("code").and_then(|raw| raw.get().parse().ok()).filter(|code: &i64| *code < 0);
    let details = inner.take("details").or_else(|| inner.take("data"));
    let reason = details.and_then(reason_in).and_then(|reason| ErrorCode::from_reason(&reason));
    RpcError {
        code: reason.map(ErrorCode::number).or(number).unwrap_or_else(|| by_status(status).number()),
        message: message.unwrap_or_else(|| format!("HTTP status {status}")),
        data: details.map(Json::from),
        reason: None,
    }
}

/// Error of 1.0: HTTP status, gRPC status name and error.
struct RestError<'a>(u16, &'static str, &'a RpcError);

/// Error of 0.3. Its clients identify errors by a class name, where A2A has one.
struct OldRestError<'a> {
    message: &'a str,
    class: Option<&'static str>,
}

// === impl Release ===

impl Release {
    const fn status(self, code: ErrorCode) -> u16 {
        match self {
            Self::First => code.http_first(),
            Self::Second => code.http(),
        }
    }
}

impl Serialize for RestError<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct RestErrorBody<'a>(u16, &'static str, &'a RpcError);
        impl Serialize for RestErrorBody<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut object = ObjectWriter::open(serializer)?;
                object.put("code", &self.0)?;
                object.put("status", self.1)?;
                object.put("message", &self.2.message)?;
                object.put_some("details", self.2.details().as_ref())?;
                object.end()
            }
        }
        serializer.collect_map([("error", RestErrorBody(self.0, self.1, self.2))])
    }
}

impl Serialize for OldRestError<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = ObjectWriter::open(serializer)?;
        object.put("message", self.message)?;
        object.put_some("type", self.class.as_ref())?;
        object.end()
    }
}

const fn by_status(status: u16) -> ErrorCode {
    match status {
        400 => ErrorCode::InvalidRequest,
        404 => ErrorCode::TaskNotFound,
        405 => ErrorCode::MethodNotFound,
        409 => ErrorCode::TaskNotCancelable,
        415 => ErrorCode::ContentTypeNotSupported,
        422 => ErrorCode::InvalidParams,
        501 => ErrorCode::UnsupportedOperation,
        _ => ErrorCode::Internal,
    }
}

fn task(id: &str) -> String {
    format!("/tasks/{}", in_path(id))
}

fn pushes(task_id: &str) -> String {
    format!("{}/pushNotificationConfigs", task(task_id))
}

fn one_push(push: &PushRef) -> String {
    format!("{}/{}", pushes(&push.task_id), in_path(push.id.as_deref().unwrap_or_default()))
}

fn push_body(wire: Wire, config: &PushConfig) -> String {
    if wire == Wire::V10 { OnWire(wire, config).text() } else { text_of(&PushCreation(config)) }
}

fn cancel_body(wire: Wire, cancel: &TaskRef) -> String {
    struct CancelBody<'a>(&'a TaskRef);
    impl Serialize for CancelBody<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut object = ObjectWriter::open(serializer)?;
            object.put_some("metadata", self.0.metadata.as_ref())?;
            object.close(&self.0.extra, &[])
        }
    }
    if wire == Wire::V10 { text_of(&CancelBody(cancel)) } else { "{}".to_owned() }
}

fn page_query(listing: &PushListing) -> String {
    query(&[
        ("pageSize", listing.page_size.map(|size| size.to_string())),
        ("pageToken", listing.page_token.clone()),
    ])
}

fn list_query(wire: Wire, list: &ListTasks) -> String {
    query(&[
        ("contextId", list.context_id.clone()),
        ("status", list.status.map(|state| state_name(wire, state).to_owned())),
        ("pageSize", list.page_size.map(|size| size.to_string())),
        ("pageToken", list.page_token.clone()),
        ("historyLength", list.history_length.map(|length| length.to_string())),
        ("statusTimestampAfter", list.status_timestamp_after.clone()),
        ("includeArtifacts", list.include_artifacts.map(|include| include.to_string())),
    ])
}

fn query(pairs: &[(&str, Option<String>)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in pairs {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    let query = query.finish();
    if query.is_empty() { query } else { format!("?{query}") }
}
