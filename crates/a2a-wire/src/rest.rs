//! REST: which operation is which verb on which path, and how its errors look.
//!
//! Paths are relative to the interface's URL, ids percent-encoded. 1.0 puts the tenant first, 0.3 puts `/v1` first. What
//! has no body has no room for metadata and unknown members, which are dropped there.

use rialto_model::{json::Json, name::in_path};
use serde::{Serialize, Serializer};
use url::form_urlencoded;

use crate::{
    codec::{push::Creation, task::state_name},
    error::{Code, RpcError, reason_in},
    members::{Members, parse, text},
    object::{Object, On, text_of},
    request::{ListTasks, PushConfig, PushListing, PushRef, Request, TaskRef},
    rpc::Unsupported,
    wire::Wire,
};

mod route;

pub use route::{decode_request, wire_of};

/// A request, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestCall {
    /// The HTTP method.
    pub method: &'static str,
    /// The path behind the interface's URL, query included.
    pub path: String,
    /// The JSON to send.
    pub body: Option<String>,
}

/// The releases of 1.0. They differ in what REST calls its JSON, and in the HTTP status of a few errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// 1.0.0: `application/json`, and statuses that tell more errors apart.
    First,
    /// 1.0.1: `application/a2a+json`.
    Second,
}

/// The call that makes the request. Only 1.0 and 0.3 have REST.
pub fn encode(wire: Wire, request: &Request) -> Result<RestCall, Unsupported> {
    if !wire.is_proto() {
        return Err(Unsupported { operation: request.operation(), wire });
    }
    let prefix = match (wire, request.tenant()) {
        (Wire::V10, Some(tenant)) => format!("/{}", in_path(tenant)),
        (Wire::V10, None) => String::new(),
        _ => "/v1".to_owned(),
    };
    let (method, path, body) = match request {
        Request::Send(send) => ("POST", "/message:send".to_owned(), Some(On(wire, send).text())),
        Request::Stream(send) => ("POST", "/message:stream".to_owned(), Some(On(wire, send).text())),
        Request::Get(get) => {
            let length = get.history_length.filter(|length| wire == Wire::V10 || *length > 0);
            let query = length.map(|length| format!("?historyLength={length}")).unwrap_or_default();
            ("GET", format!("{}{query}", task(&get.id)), None)
        }
        Request::List(list) => ("GET", format!("/tasks{}", list_query(wire, list)), None),
        Request::Cancel(cancel) => {
            ("POST", format!("{}:cancel", task(&cancel.id)), Some(cancel_body(wire, cancel)))
        }
        Request::Subscribe(subscribe) => ("GET", format!("{}:subscribe", task(&subscribe.id)), None),
        Request::PushCreate(config) => {
            ("POST", pushes(config.task_id.as_deref().unwrap_or_default()), Some(push_body(wire, config)))
        }
        Request::PushGet(push) => ("GET", one_push(push), None),
        Request::PushList(listing) => ("GET", pushes(&listing.task_id) + &page_query(listing), None),
        Request::PushDelete(push) => ("DELETE", one_push(push), None),
        Request::ExtendedCard(_) if wire == Wire::V10 => ("GET", "/extendedAgentCard".to_owned(), None),
        Request::ExtendedCard(_) => ("GET", "/card".to_owned(), None),
    };
    Ok(RestCall { method, path: prefix + &path, body })
}

/// The HTTP status and body of an error. The release counts in 1.0 only.
pub fn encode_error(wire: Wire, release: Release, error: &RpcError) -> (u16, String) {
    let code = Code::from_number(error.code).unwrap_or(Code::Internal);
    if wire == Wire::V10 {
        let status = release.status(code);
        (status, text_of(&Failure(status, code.grpc(), error)))
    } else {
        let code = code.on(wire);
        (code.http_v03(), text_of(&Plain { message: &error.message, class: Some(code.class()) }))
    }
}

/// The body of an error that A2A has no name for, with the HTTP status and gRPC's name for it.
pub fn encode_other(wire: Wire, status: (u16, &'static str), error: &RpcError) -> String {
    if wire == Wire::V10 {
        text_of(&Failure(status.0, status.1, error))
    } else {
        text_of(&Plain { message: &error.message, class: None })
    }
}

/// Reads an error from the body of an answer whose HTTP status says that it is one.
///
/// 1.0 names the reason in the error's details; JavaScript's 0.3 gives the JSON-RPC code; Python's 0.3 gives a message and
/// the status only. A 404 that is not JSON comes from a server that does not know the path, and so not the dialect.
pub fn decode_error(status: u16, body: &[u8]) -> RpcError {
    let Some(mut members) = parse(body).ok().and_then(|raw| Members::read(raw).ok()) else {
        let code = if matches!(status, 404 | 405) { Code::MethodNotFound } else { by_status(status) };
        return RpcError::new(code, format!("HTTP status {status}"));
    };
    let mut inner = match members.take("error").map(Members::read) {
        Some(Ok(inner)) => inner,
        Some(Err(_)) | None => members,
    };
    let message = ["message", "detail"].into_iter().find_map(|name| text(inner.take(name)?).ok());
    let number = inner.take("code").and_then(|raw| raw.get().parse().ok()).filter(|code: &i64| *code < 0);
    let details = inner.take("details").or_else(|| inner.take("data"));
    let reason = details.and_then(reason_in).and_then(|reason| Code::from_reason(&reason));
    RpcError {
        code: reason.map(Code::number).or(number).unwrap_or_else(|| by_status(status).number()),
        message: message.unwrap_or_else(|| format!("HTTP status {status}")),
        data: details.map(Json::from),
        reason: None,
    }
}

/// An error of 1.0: the HTTP status, gRPC's name for it, and what happened.
struct Failure<'a>(u16, &'static str, &'a RpcError);

/// An error of 0.3. Its clients know errors by the name of a class, where A2A has one.
struct Plain<'a> {
    message: &'a str,
    class: Option<&'static str>,
}

// === impl Release ===

impl Release {
    const fn status(self, code: Code) -> u16 {
        match self {
            Self::First => code.http_first(),
            Self::Second => code.http(),
        }
    }
}

impl Serialize for Failure<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Inner<'a>(u16, &'static str, &'a RpcError);
        impl Serialize for Inner<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut object = Object::open(serializer)?;
                object.put("code", &self.0)?;
                object.put("status", self.1)?;
                object.put("message", &self.2.message)?;
                object.put_some("details", self.2.details().as_ref())?;
                object.end()
            }
        }
        serializer.collect_map([("error", Inner(self.0, self.1, self.2))])
    }
}

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::open(serializer)?;
        object.put("message", self.message)?;
        object.put_some("type", self.class.as_ref())?;
        object.end()
    }
}

const fn by_status(status: u16) -> Code {
    match status {
        400 => Code::InvalidRequest,
        404 => Code::TaskNotFound,
        405 => Code::MethodNotFound,
        409 => Code::TaskNotCancelable,
        415 => Code::ContentTypeNotSupported,
        422 => Code::InvalidParams,
        501 => Code::UnsupportedOperation,
        _ => Code::Internal,
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
    if wire == Wire::V10 { On(wire, config).text() } else { text_of(&Creation(config)) }
}

fn cancel_body(wire: Wire, cancel: &TaskRef) -> String {
    struct Body<'a>(&'a TaskRef);
    impl Serialize for Body<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut object = Object::open(serializer)?;
            object.put_some("metadata", self.0.metadata.as_ref())?;
            object.close(&self.0.extra, &[])
        }
    }
    if wire == Wire::V10 { text_of(&Body(cancel)) } else { "{}".to_owned() }
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
