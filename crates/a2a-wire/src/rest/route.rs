//! Reads a REST request from its method, path, query and body.

use rialto_model::json::{Extra, Json};
use url::form_urlencoded;

use crate::{
    codec::{params, push, task::parse_state},
    error::{Code, RpcError},
    members::{is_proto_name, parse},
    request::{ExtendedCard, GetTask, ListTasks, Operation, PushListing, PushRef, Request, TaskRef},
    rpc::{Id, Incoming, Refused},
    wire::Wire,
};

/// The path, taken apart.
struct Place<'a> {
    wire: Wire,
    tenant: Option<String>,
    segments: Vec<&'a str>,
}

/// What else came with the request.
struct Load<'a> {
    query: &'a str,
    body: &'a [u8],
}

/// Reads a request. `path` is what follows the interface's URL, with or without a slash at its end. REST requests have no
/// ids; the answer carries `null` there.
pub fn decode_request(method: &str, path: &str, query: &str, body: &[u8]) -> Result<Incoming, Refused> {
    let place = Place::read(path);
    let (wire, load) = (place.wire, Load { query, body });
    match place.request(method, &load) {
        Ok(request) => Ok(Incoming { id: Id::null(), wire, request }),
        Err(error) => Err(Refused { id: Id::null(), wire, error }),
    }
}

/// The dialect that a path belongs to.
pub fn wire_of(path: &str) -> Wire {
    Place::read(path).wire
}

// === impl Place ===

impl<'a> Place<'a> {
    fn read(path: &'a str) -> Self {
        let mut segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let mut place = Self { wire: Wire::V10, tenant: None, segments: Vec::new() };
        match segments.first().copied() {
            Some("v1") => {
                place.wire = Wire::V03Proto;
                segments.remove(0);
            }
            None | Some("message:send" | "message:stream" | "tasks" | "extendedAgentCard") => {}
            // A tenant stands before a path; alone it is only a path that nobody knows.
            Some(tenant) if segments.len() > 1 => {
                place.tenant = Some(unescape(tenant));
                segments.remove(0);
            }
            Some(_) => {}
        }
        place.segments = segments;
        place
    }

    fn request(&self, method: &str, load: &Load<'_>) -> Result<Request, RpcError> {
        let tenant = self.tenant.clone();
        match (method, self.segments.as_slice()) {
            ("POST", ["message:send"]) => self.send(Operation::Send, load),
            ("POST", ["message:stream"]) => self.send(Operation::Stream, load),
            ("GET", ["tasks"]) => self.list(load).map(Request::List),
            (_, ["tasks", task]) => self.task(method, task, load),
            (_, ["tasks", task, "pushNotificationConfigs", rest @ ..]) => self.push(method, task, rest, load),
            ("GET", ["extendedAgentCard"]) if self.wire == Wire::V10 => Ok(extended_card(tenant)),
            ("GET", ["card"]) if self.wire == Wire::V03Proto => Ok(extended_card(tenant)),
            _ => Err(self.unknown(method)),
        }
    }

    fn send(&self, operation: Operation, load: &Load<'_>) -> Result<Request, RpcError> {
        let mut request = params::decode(self.wire, operation, load.json()?.raw())?;
        if let (Request::Send(send) | Request::Stream(send), Some(tenant)) = (&mut request, &self.tenant) {
            send.tenant = Some(tenant.clone());
        }
        Ok(request)
    }

    fn task(&self, method: &str, segment: &str, load: &Load<'_>) -> Result<Request, RpcError> {
        let (id, verb) = match segment.rsplit_once(':') {
            Some((id, verb @ ("cancel" | "subscribe"))) => (id, verb),
            _ => (segment, ""),
        };
        let (id, tenant) = (unescape(id), self.tenant.clone());
        match (method, verb) {
            ("GET", "") => {
                let length = load.count("historyLength")?;
                let history_length = length.filter(|length| self.wire == Wire::V10 || *length > 0);
                Ok(Request::Get(GetTask { id, history_length, tenant, ..GetTask::default() }))
            }
            ("POST", "cancel") => {
                let body = load.json()?;
                let mut extra: Extra = body.read().unwrap_or_default();
                let _ = extra.take("name");
                let metadata = extra.take("metadata").filter(Json::is_object);
                Ok(Request::Cancel(TaskRef { id, tenant, metadata, extra }))
            }
            ("GET" | "POST", "subscribe") => {
                Ok(Request::Subscribe(TaskRef { id, tenant, ..TaskRef::default() }))
            }
            _ => Err(self.unknown(method)),
        }
    }

    fn push(&self, method: &str, task: &str, rest: &[&str], load: &Load<'_>) -> Result<Request, RpcError> {
        let (task_id, tenant) = (unescape(task), self.tenant.clone());
        match (method, rest) {
            ("POST", []) => {
                let mut config = push::decode(self.wire, load.json()?.raw())?;
                config.task_id = Some(task_id);
                config.tenant = tenant.or(config.tenant);
                Ok(Request::PushCreate(config))
            }
            ("GET", []) => {
                let (page_size, page_token) = (load.count("pageSize")?, load.text("pageToken"));
                Ok(Request::PushList(PushListing {
                    tenant,
                    task_id,
                    page_size,
                    page_token,
                    extra: Extra::new(),
                }))
            }
            ("GET" | "DELETE", [id]) => {
                let push = PushRef { tenant, task_id, id: Some(unescape(id)), extra: Extra::new() };
                Ok(if method == "GET" { Request::PushGet(push) } else { Request::PushDelete(push) })
            }
            _ => Err(self.unknown(method)),
        }
    }

    fn list(&self, load: &Load<'_>) -> Result<ListTasks, RpcError> {
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
        RpcError::new(Code::MethodNotFound, format!("there is no {method} /{path}"))
    }
}

// === impl Load ===

impl Load<'_> {
    fn json(&self) -> Result<Json, RpcError> {
        if self.body.is_empty() {
            return Ok(Json::empty_object());
        }
        let raw = parse(self.body).map_err(|garbled| RpcError::new(Code::Parse, garbled.to_string()))?;
        Ok(raw.into())
    }

    fn text(&self, name: &str) -> Option<String> {
        let mut pairs = form_urlencoded::parse(self.query.as_bytes());
        let (_, value) = pairs.find(|(key, _)| key == name || is_proto_name(key, name))?;
        Some(value.into_owned()).filter(|value| !value.is_empty())
    }

    fn count(&self, name: &str) -> Result<Option<u32>, RpcError> {
        let refuse = |_| RpcError::new(Code::InvalidParams, format!("{name}: expected a count"));
        self.text(name).map(|value| value.parse().map_err(refuse)).transpose()
    }
}

fn extended_card(tenant: Option<String>) -> Request {
    Request::ExtendedCard(ExtendedCard { tenant, extra: Extra::new() })
}

/// Undoes percent-encoding. What is not such an encoding stands for itself.
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
