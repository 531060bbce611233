//! Fast path past rmcp for well-formed `tools/call` and `tools/list` requests of protocol version 2026-07-28 over HTTP.
//!
//! rmcp sets up a service with its tasks and channels for each such request. Here the request is read, answered and written, and nothing else:
//! a bridged call takes 80 and 82 µs of CPU with the fast path, 127 and 121 µs without it (docs/BENCHMARKS.md).
//!
//! Invariants:
//! - Both paths answer alike, byte for byte but for ids and times: a test compares them request by request.
//! - Unusual and invalid requests are passed to rmcp with their body unchanged.
//! - `[mcp] fast_path = false` switches it off; [`EntryProtocol::fast_path_requests`](crate::McpEndpoint::fast_path_requests) counts the requests that took it.

pub(crate) mod codec;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::{body::Body, response::Response};
use futures::{StreamExt, stream};
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{ACCEPT, CONTENT_TYPE, HOST, ORIGIN},
    request::Parts,
    uri::Authority,
};
use rialto_http_server::event_stream;
use rialto_model::{
    call::{Caller, EntryProtocol},
    failure::Failure,
    json::{Json, RawJson},
};
use rmcp::{ErrorData, model::ProtocolVersion};
use tokio_util::sync::CancellationToken;

use self::codec::FastRequest;
use crate::{
    call_stream::{ToolCallStream, ToolCallUpdate},
    client_profile::ClientProfile,
    config::{Config, SchemaStyle, ToolErrors, ToolList, ToolNames},
    elicitation::QuestionSet,
    errors,
    http::LISTEN,
    task_notifications::ListenRequest,
    tool_result::{ResultMeta, ToolResult},
    tool_service::{ToolCallStart, ToolService},
    trace,
};

const VERSION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");
const NAME_HEADER: HeaderName = HeaderName::from_static("mcp-name");

/// Answers requests without rmcp.
#[derive(Clone)]
pub(crate) struct FastPath {
    pub(crate) desk: Arc<ToolService>,
    hosts: AllowedHosts,
    /// Ends open-ended streams at shutdown.
    stop: CancellationToken,
}

/// Host names that this server answers to.
#[derive(Clone)]
enum AllowedHosts {
    Any,
    /// Host names with or without a port.
    These(Arc<[(String, Option<u16>)]>),
}

// === impl FastPath ===

impl FastPath {
    pub(crate) fn new(desk: Arc<ToolService>, stop: CancellationToken) -> Self {
        let hosts = AllowedHosts::of(&desk.config);
        Self { desk, hosts, stop }
    }

    /// Answers a request, if the fast path supports it.
    pub(crate) async fn answer(&self, parts: &Parts, body: &[u8]) -> Option<Response> {
        if !self.takes(parts) {
            return None;
        }
        if only(&parts.headers, &METHOD_HEADER) == Some(LISTEN) {
            return Box::pin(self.tell_of_tasks(parts, body)).await;
        }
        if !self.desk.config.fast_path {
            return None;
        }
        let response = self.call_or_list(parts, body).await?;
        self.desk.fast_path_requests.fetch_add(1, Ordering::Relaxed);
        Some(response)
    }

    async fn call_or_list(&self, parts: &Parts, body: &[u8]) -> Option<Response> {
        let asked = FastRequest::read(RawJson::parse(std::str::from_utf8(body).ok()?).ok()?)?;
        let is_consistent = asked.params.meta.version == ProtocolVersion::V_2026_07_28.as_str()
            && only(&parts.headers, &METHOD_HEADER) == Some(&asked.method);
        if !is_consistent {
            return None;
        }
        let mut client = self.client(parts, asked.client())?;
        let meta = &asked.params.meta;
        client.abilities = meta.abilities;
        client.caller.hops = client.caller.hops.max(meta.hops);
        client.trace = trace::of(
            meta.traceparent.as_deref(),
            meta.tracestate.as_deref(),
            meta.baggage.as_deref(),
            Some(&parts.headers),
        );
        match (&*asked.method, &asked.params.name) {
            ("tools/list", _) => Some(self.list(&client, &asked).await),
            ("tools/call", Some(name)) if only(&parts.headers, &NAME_HEADER) == Some(name) => {
                let begun = match &asked.params.state {
                    Some(state) => {
                        // A value that is not a map of answers is left to rmcp to reject.
                        let responses = asked.params.responses()?;
                        let args = asked.params.arguments.map_or_else(Json::empty_object, Json::from);
                        match self.desk.meant(name, args) {
                            Ok((name, _)) => {
                                Box::pin(self.desk.go_on(&client, &name, state, responses)).await
                            }
                            Err(error) => Err(error),
                        }
                    }
                    None => {
                        let args = asked.params.arguments.map_or_else(Json::empty_object, Json::from);
                        self.desk.call(&client, name, args).await
                    }
                };
                if let Ok(ToolCallStart::Underway(call)) = &begun
                    && let Some(patience) = call.patience()
                {
                    return Some(Box::pin(self.as_task(&client, begun, patience, asked.id())).await);
                }
                Some(self.follow(begun, asked.id(), asked.progress_token()).await)
            }
            _ => None,
        }
    }

    /// True when the headers qualify for the fast path.
    fn takes(&self, parts: &Parts) -> bool {
        let headers = &parts.headers;
        let accept = only(headers, &ACCEPT).unwrap_or_default();
        only(headers, &VERSION_HEADER) == Some(ProtocolVersion::V_2026_07_28.as_str())
            && matches!(only(headers, &METHOD_HEADER), Some("tools/call" | "tools/list" | LISTEN))
            && accept.contains("application/json")
            && accept.contains("text/event-stream")
            && only(headers, &CONTENT_TYPE).is_some_and(|kind| kind.starts_with("application/json"))
            // Only browsers send `Origin`, and rmcp has the list of allowed ones.
            && !headers.contains_key(ORIGIN)
            && host_of(parts).is_some_and(|host| self.hosts.have(host))
    }

    /// Answers a client that subscribes to its tasks. rmcp answers all other subscriptions.
    async fn tell_of_tasks(&self, parts: &Parts, body: &[u8]) -> Option<Response> {
        let listen = ListenRequest::read(body)?;
        let mut client = self.client(parts, listen.client())?;
        client.abilities = listen.abilities(client.fluency);
        Some(self.listen(client, listen, self.stop.clone()).await)
    }

    fn client(&self, parts: &Parts, name: &str) -> Option<ClientProfile> {
        let caller = parts.extensions.get::<Caller>()?.clone();
        let mode = parts.extensions.get::<ToolNames>().copied().unwrap_or(self.desk.config.tool_names);
        let version = Some(ProtocolVersion::V_2026_07_28.as_str());
        let mut client = ClientProfile::new(caller, EntryProtocol::McpHttp, version, name, mode);
        client.list = parts.extensions.get::<ToolList>().copied();
        client.errors = parts.extensions.get::<ToolErrors>().copied().unwrap_or(self.desk.config.tool_errors);
        client.inline = self.desk.inline;
        let schemas = parts.extensions.get::<SchemaStyle>().copied().unwrap_or(self.desk.config.schemas);
        client.naming = client.naming.with_schemas(schemas);
        Some(client)
    }

    async fn list(&self, client: &ClientProfile, asked: &FastRequest<'_>) -> Response {
        let page = self.desk.list(client, asked.params.cursor.as_deref()).await;
        plain(match page {
            Ok(page) => {
                codec::listed(asked.id(), &page.tools(), page.next.as_deref(), self.desk.config.list_ttl_ms)
            }
            Err(error) => codec::failed(asked.id(), &error),
        })
    }

    /// Waits for the end of a call. The first progress notification turns the response into a stream. A client that disconnects cancels
    /// the call.
    async fn follow(
        &self,
        begun: Result<ToolCallStart, ErrorData>,
        id: RawJson<'_>,
        token: Option<RawJson<'_>>,
    ) -> Response {
        let mut call = match begun {
            Ok(ToolCallStart::Underway(call)) => call,
            Ok(ToolCallStart::Asked(inquiry)) => return plain(self.asked(id, &inquiry).await),
            Ok(ToolCallStart::Done(answer)) => return answered(id, &Ok(answer)),
            Err(error) => return plain(codec::failed(id, &error)),
        };
        loop {
            match (call.next().await, token) {
                (ToolCallUpdate::End(end), _) => return answered(id, &rendered(end, call.errors())),
                (ToolCallUpdate::Asked(inquiry), _) => return plain(self.asked(id, &inquiry).await),
                (ToolCallUpdate::Progress { mark, text }, Some(token)) => {
                    let first = codec::progressed(token, mark, &text);
                    return self.clone().stream(call, &first, Json::from(id), Json::from(token));
                }
                (ToolCallUpdate::Progress { .. }, None) => {}
            }
        }
    }

    /// Rest of a call as a stream of events, with heartbeats while nothing happens.
    fn stream(self, call: Box<ToolCallStream>, first: &[u8], id: Json, token: Json) -> Response {
        let first = codec::event(first);
        let rest = stream::unfold(Some(call), move |call| {
            let (direct, id, token) = (self.clone(), id.clone(), token.clone());
            async move {
                let mut call = call?;
                let (message, call) = match call.next().await {
                    ToolCallUpdate::Progress { mark, text } => {
                        (codec::progressed(token.raw(), mark, &text), Some(call))
                    }
                    ToolCallUpdate::Asked(inquiry) => (direct.asked(id.raw(), &inquiry).await, None),
                    ToolCallUpdate::End(end) => {
                        (codec::called(id.raw(), &rendered(end, call.errors())), None)
                    }
                };
                Some((codec::event(&message), call))
            }
        });
        event_stream::respond(stream::iter([first]).chain(rest), None)
    }

    /// Waits for the call; after the timeout it becomes a task, which reports the progress then.
    async fn as_task(
        &self,
        client: &ClientProfile,
        begun: Result<ToolCallStart, ErrorData>,
        patience: Duration,
        id: RawJson<'_>,
    ) -> Response {
        let Ok(ToolCallStart::Underway(call)) = begun else { return self.follow(begun, id, None).await };
        let waited = self.desk.or_task(client, call, patience).await;
        if let Ok(Ok(ToolCallUpdate::End(end))) = waited {
            return answered(id, &rendered(end, client.errors));
        }
        plain(match waited {
            Ok(Ok(ToolCallUpdate::Asked(inquiry))) => self.asked(id, &inquiry).await,
            Ok(Ok(ToolCallUpdate::End(_) | ToolCallUpdate::Progress { .. })) => {
                codec::failed(id, &ErrorData::internal_error("it goes on", None))
            }
            Ok(Err(task)) => codec::became(id, &task),
            Err(error) => codec::failed(id, &error),
        })
    }

    async fn asked(&self, id: RawJson<'_>, inquiry: &QuestionSet) -> Vec<u8> {
        match Box::pin(self.desk.ask(inquiry)).await {
            Ok(questions) => codec::asked(id, &questions),
            Err(error) => codec::failed(id, &error),
        }
    }
}

// === impl AllowedHosts ===

impl AllowedHosts {
    fn of(config: &Config) -> Self {
        if config.allowed_hosts.iter().any(|host| host == "*") {
            return Self::Any;
        }
        let names = config.allowed_hosts.iter().map(|host| match host.parse::<Authority>() {
            Ok(authority) => (name_of(authority.host()), authority.port_u16()),
            Err(_) => (name_of(host), None),
        });
        Self::These(names.collect())
    }

    fn have(&self, host: &str) -> bool {
        let Self::These(known) = self else { return true };
        let is_known = |name: &str, port: Option<u16>| {
            let fits = |only: &Option<u16>| only.is_none_or(|only| port == Some(only));
            known.iter().any(|(known, only)| known.eq_ignore_ascii_case(name) && fits(only))
        };
        if let Some((name, port)) = ordinary(host) {
            return is_known(name, port);
        }
        let Ok(authority) = host.parse::<Authority>() else { return false };
        is_known(&name_of(authority.host()), authority.port_u16())
    }
}

/// Normalized host name.
fn name_of(host: &str) -> String {
    host.trim_matches(['[', ']']).to_ascii_lowercase()
}

/// Name and port of a host that consists of nothing else; none for one that needs the full parser.
fn ordinary(host: &str) -> Option<(&str, Option<u16>)> {
    let (name, port) = match host.split_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            (name, Some(port.parse().ok()?))
        }
        Some(_) => return None,
        None => (host, None),
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    (!name.is_empty() && name.bytes().all(is_plain)).then_some((name, port))
}

/// Host of a request; HTTP/2 puts it into the URI.
fn host_of(parts: &Parts) -> Option<&str> {
    if parts.headers.contains_key(HOST) {
        only(&parts.headers, &HOST)
    } else {
        parts.uri.authority().map(Authority::as_str)
    }
}

/// Value of a header that occurs exactly once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() { None } else { value.to_str().ok() }
}

/// Result of a call in the error form that its client asked for.
fn rendered(end: Result<ToolResult, Failure>, errors: ToolErrors) -> Result<ToolResult, ErrorData> {
    end.or_else(|failure| errors::told(&failure, errors))
}

/// Response of a finished call, with guardrail warnings in a header.
fn answered(id: RawJson<'_>, outcome: &Result<ToolResult, ErrorData>) -> Response {
    let mut response = plain(codec::called(id, outcome));
    if let Ok(ToolResult { marks: ResultMeta { guardrail: Some(notice), .. }, .. }) = outcome {
        rialto_http_server::guardrail_header::insert(response.headers_mut(), Some(notice));
    }
    response
}

fn plain(message: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(message));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_answer_to_our_names_however_they_are_spelt() {
        let config = Config {
            allowed_hosts: ["localhost", "Bridge.example:8080", "[::1]"].map(str::to_owned).to_vec(),
            ..Config::default()
        };
        let hosts = AllowedHosts::of(&config);
        for ours in ["localhost", "LOCALHOST:1", "bridge.EXAMPLE:8080", "[::1]", "[::1]:80", "user@localhost"]
        {
            assert!(hosts.have(ours), "{ours}");
        }
        for other in [
            "",
            ":80",
            "bridge.example",
            "bridge.example:80",
            "localhost.",
            "evil.example",
            "localhost:80:80",
            "a b",
        ] {
            assert!(!hosts.have(other), "{other}");
        }
    }
}
