//! MCP as a client speaks it, in both eras: just enough to list and to call.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{StatusCode, header, response};
use serde_json::{Value, json};

use crate::{
    error::{BenchError, context},
    load::{LoadConnection, RequestTemplate},
};

/// MCP version of the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum McpEra {
    /// 2026-07-28: without handshake, stateless requests.
    #[default]
    Modern,
    /// 2025-06-18: a session per connection.
    Legacy,
}

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-06-18";
const SESSION: &str = "mcp-session-id";

// === impl McpEra ===

impl McpEra {
    /// Prepares a request: `token` is what the server wants to see, if it wants one; `name` is the tool that `params`
    /// call, if they call one.
    pub(crate) async fn prepare(
        self,
        connection: &mut LoadConnection,
        (host, token): (SocketAddr, Option<&str>),
        (method, name): (&str, Option<&str>),
        params: Value,
    ) -> Result<RequestTemplate, BenchError> {
        match self {
            Self::Modern => {
                let mut template = post((host, token), method, &with_meta(params), MODERN);
                template.set_header("mcp-method", method);
                name.into_iter().for_each(|name| template.set_header("mcp-name", name));
                Ok(template)
            }
            Self::Legacy => {
                let session = open_session(connection, (host, token)).await?;
                let mut template = post((host, token), method, &params, LEGACY);
                template.set_header(SESSION, &session);
                Ok(template)
            }
        }
    }
}

/// The parameters of a modern request: they carry what a handshake used to.
pub(crate) fn with_meta(mut params: Value) -> Value {
    if let Some(members) = params.as_object_mut() {
        members.insert(
            "_meta".to_owned(),
            json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": client_info(),
            }),
        );
    }
    params
}

/// The parameters of a legacy `initialize`.
pub(crate) fn initialize_params() -> Value {
    json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client_info()})
}

/// The JSON-RPC answer in a response, be it plain JSON or a stream that ends with it.
pub(crate) fn parse_response(head: &response::Parts, body: &Bytes) -> Result<Value, BenchError> {
    let text = std::str::from_utf8(body).map_err(context("the answer is not text"))?;
    if head.status != StatusCode::OK {
        return Err(BenchError::new(format!("the answer is {}: {text}", head.status)));
    }
    let kind = head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let message = if kind.starts_with("text/event-stream") {
        text.lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .filter_map(|data| serde_json::from_str::<Value>(data).ok())
            .find(|message| message.get("id").is_some())
            .ok_or_else(|| BenchError::new("the stream ended without an answer"))?
    } else {
        serde_json::from_str(text).map_err(context("the answer is not JSON"))?
    };
    result_of(message)
}

/// The result in a JSON-RPC answer.
pub(crate) fn result_of(mut message: Value) -> Result<Value, BenchError> {
    match message.get_mut("result") {
        Some(result) => Ok(result.take()),
        None => Err(BenchError::new(format!("the answer has no result: {message}"))),
    }
}

fn client_info() -> Value {
    json!({"name": "rialto-bench", "version": env!("CARGO_PKG_VERSION")})
}

fn post(
    (host, token): (SocketAddr, Option<&str>),
    method: &str,
    params: &Value,
    version: &str,
) -> RequestTemplate {
    let mut template = RequestTemplate::new("/mcp", host, method, params);
    template.set_header(header::ACCEPT.as_str(), "application/json, text/event-stream");
    template.set_header("mcp-protocol-version", version);
    if let Some(token) = token {
        template.set_header(header::AUTHORIZATION.as_str(), &format!("Bearer {token}"));
    }
    template
}

async fn open_session(
    connection: &mut LoadConnection,
    to: (SocketAddr, Option<&str>),
) -> Result<String, BenchError> {
    let hello = post(to, "initialize", &initialize_params(), LEGACY);
    let (head, body) = connection.send(hello.request(0)).await?;
    parse_response(&head, &body)?;
    let session = head.headers.get(SESSION).and_then(|id| id.to_str().ok());
    let session = session.ok_or_else(|| BenchError::new("initialize gave no session"))?.to_owned();
    let mut ready = post(to, "notifications/initialized", &json!({}), LEGACY);
    ready.set_header(SESSION, &session);
    connection.send(ready.notification()).await?;
    Ok(session)
}
