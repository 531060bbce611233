//! Decoder of REST requests from method, path, query and body.

use rialto_model::json::{Extra, Json};
use url::form_urlencoded;

use crate::{
    codec::{params, push, task::parse_state},
    error::{ErrorCode, RpcError},
    members::{is_proto_name, parse},
    request::{A2aOperation, A2aRequest, ExtendedCard, GetTask, ListTasks, PushListing, PushRef, TaskRef},
    rpc::{DecodedRequest, Id, RejectedRequest},
    wire::Wire,
};

/// Parsed path.
struct RestPath<'a> {
    wire: Wire,
    tenant: Option<String>,
    segments: Vec<&'a str>,
}

/// Query and body of a request.
struct RestPayload<'a> {
    query: &'a str,
    body: &'a [u8],
}

/// Decodes a request. `path` is relative to the interface's URL, with or without a trailing slash. REST requests have no ids; the
/// response has `null` there.
pub fn decode_request(
    method: &str,
    path: &str,
    query: &str,
    body: &[u8],
) -> Result<DecodedRequest, RejectedRequest> {
    let place = RestPath::read(path);
    let (wire, load) = (place.wire, RestPayload { query, body });
    match place.request(method, &load) {
        Ok(request) => Ok(DecodedRequest { id: Id::null(), wire, request }),
        Err(error) => Err(RejectedRequest { id: Id::null(), wire, error }),
    }
}

/// Dialect of a path.
pub fn wire_of(path: &str) -> Wire {
    RestPath::read(path).wire
}

// === impl RestPath ===

impl<'a> RestPath<'a> {
    fn read(path: &'a str) -> Self {
        let mut segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let mut place = Self { wire: Wire::V10, tenant: None, segments: Vec::new() };
        match segments.first().copied() {
            Some("v1") => {
                place.wire = Wire::V03Proto;
                segments.remove(0);
            }
            None | Some("message:send" | "message:stream" | "tasks" | "extendedAgentCard") => {}
            // A tenant precedes a path; alone it is an unknown path.
            Some(tenant) if segments.len() > 1 => {
                place.tenant = Some(unescape(tenant));
                segments.remove(0);
            }
            Some(_) => {}
        }
        place.segments = segments;
        place
    }

    fn request(&self, method: &str, load: &RestPayload<'_>) -> Result<A2aRequest, RpcError> {
        let tenant = self.tenant.clone();
        match (method, self.segments.as_slice()) {
            ("POST", ["message:send"]) => self.send(A2aOperation::Send, load),
            ("POST", ["message:stream"]) => self.send(A2aOperation::Stream, load),
            ("GET", ["tasks"]) => self.list(load).map(A2aRequest::List),
            (_, ["tasks", task]) => self.task(method, task, load),
            (_, ["tasks", task, "pushNotificationConfigs", rest @ ..]) => self.push(method, task, rest, load),
            ("GET", ["extendedAgentCard"]) if self.wire == Wire::V10 => Ok(extended_card(tenant)),
            ("GET", ["card"]) if self.wire == Wire::V03Proto => Ok(extended_card(tenant)),
            _ => Err(self.unknown(method)),
        }
    }

    fn send(&self, operation: A2aOperation, load: &RestPayload<'_>) -> Result<A2aRequest, RpcError> {
        let mut request = params::decode(self.wire, operation, load.json()?.raw())?;
        if let (A2aRequest::Send(send) | A2aRequest::Stream(send), Some(tenant)) =
            (&mut request, &self.tenant)
        {
            send.tenant = Some(tenant.clone());
        }
        Ok(request)
    }

    fn task(&self, method: &str, segment: &str, load: &RestPayload<'_>) -> Result<A2aRequest, RpcError> {
        let (id, verb) = match segment.rsplit_once(':') {
            Some((id, verb @ ("cancel" | "subscribe"))) => (id, verb),
            _ => (segment, ""),
        };
        let (id, tenant) = (unescape(id), self.tenant.clone());
        match (method, verb) {
            ("GET", "") => {
                let length = load.count("historyLength")?;
                let history_length = length.filter(|length| self.wire == Wire::V10 || *length > 0);
                Ok(A2aRequest::Get(GetTask { id, history_length, tenant, ..GetTask::default() }))
            }
            ("POST", "cancel") => {
                let body = load.json()?;
                let mut extra: Extra = body.read().unwrap_or_default();
                let _ = extra.take("name");
                let metadata = extra.take("metadata").filter(Json::is_object);
                Ok(A2aRequest::Cancel(TaskRef { id, tenant, metadata, extra }))
            }
            ("GET" | "POST", "subscribe") => {
                Ok(A2aRequest::Subscribe(TaskRef { id, tenant, ..TaskRef::default() }))
            }
            _ => Err(self.unknown(method)),
        }
    }

    fn push(
        &self,
        method: &str,
        task: &str,
        rest: &[&str],
        load: &RestPayload<'_>,
    ) -> Result<A2aRequest, RpcError> {
        let (task_id, tenant) = (unescape(task), self.tenant.clone());
        match (method, rest) {
            ("POST", []) => {
                let mut config = push::decode(self.wire, load.json()?.raw())?;
                config.task_id = Some(task_id);
                config.tenant = tenant.or(config.tenant);
                Ok(A2aRequest::PushCreate(config))
            }
            ("GET", []) => {
                let (page_size, page_token) = (load.count("pageSize")?, load.text("pageToken"));
                Ok(A2aRequest::PushList(PushListing {
                    tenant,
                    task_id,
                    page_size,
                    page_token,
                    extra: Extra::new(),
                }))
            }
            ("GET" | "DELETE", [id]) => {
                let push = PushRef { tenant, task_id, id: Some(unescape(id)), extra: Extra::new() };
                Ok(if method == "GET" { A2aRequest::PushGet(push) } else { A2aRequest::PushDelete(push) })
            }
            _ => Err(self.unknown(method)),
        }
    }

    fn list(&self, load: &RestPayload<'_>) -> Result<ListTasks, RpcError> {
        Ok(ListTasks {
            tenant: self.tenant.clone(),
            context_id: load.text("contextId"),
            status: load.text("status").map(|name| parse_state(&name)),
            page_size: load.count("pageSize")?,
            page_token: load.text("pageToken"),
            history_length: load.count("historyLength")?,
            status_timestamp_after: load.text("statusTimestampAfter"),
            include_artifacts: load.text("includeArtifacts").map(|include| include == "true"),
            extra: Extra::new(),
        })
    }

    fn unknown(&self, method: &str) -> RpcError {
        let path = self.segments.join("/");
        RpcError::new(ErrorCode::MethodNotFound, format!("there is no {method} /{path}"))
    }
}

// === impl RestPayload ===

impl RestPayload<'_> {
    fn json(&self) -> Result<Json, RpcError> {
        if self.body.is_empty() {
            return Ok(Json::empty_object());
        }
        let raw = parse(self.body).map_err(|garbled| RpcError::new(ErrorCode::Parse, garbled.to_string()))?;
        Ok(raw.into())
    }

    fn text(&self, name: &str) -> Option<String> {
        let mut pairs = form_urlencoded::parse(self.query.as_bytes());
        let (_, value) = pairs.find(|(key, _)| key == name || is_proto_name(key, name))?;
        Some(value.into_owned()).filter(|value| !value.is_empty())
    }

    fn count(&self, name: &str) -> Result<Option<u32>, RpcError> {
        let refuse = |_| RpcError::new(ErrorCode::InvalidParams, format!("{name}: expected a count"));
        self.text(name).map(|value| value.parse().map_err(refuse)).transpose()
    }
}

fn extended_card(tenant: Option<String>) -> A2aRequest {
    A2aRequest::ExtendedCard(ExtendedCard { tenant, extra: Extra::new() })
}

/// Decodes percent-encoding. Invalid sequences stay unchanged.
fn unescape(segment: &str) -> String {
    let bytes = segment.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let code = segment.get(at + 1..at + 3).filter(|_| *byte == b'%');
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(code) => {
                plain.push(code);
                at += 3;
            }
            None => {
                plain.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}
