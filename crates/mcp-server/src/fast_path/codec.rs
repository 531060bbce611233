//! Codec of protocol version 2026-07-28 without an intermediate JSON tree.

mod call_result;

use std::borrow::Cow;

use axum::response::sse::Event;
use rialto_model::{call::HOPS_META, json::RawJson};
use rmcp::{
    ErrorData,
    model::{ClientCapabilities, CreateTaskResult, InputRequiredResult, ProtocolVersion, Tool},
};
use serde::Serialize;

use self::call_result::CallResult;
use crate::{
    client_profile::{DeclaredCapabilities, ProtocolFeatures},
    elicitation::ElicitationResponses,
    progress::ProgressMark,
    tool_result::{SERVER_IDENTITY, ServerIdentity, ToolResult},
};

/// Request, parsed as far as the fast path needs.
pub(crate) struct FastRequest<'a> {
    id: RawJson<'a>,
    pub(crate) method: Cow<'a, str>,
    pub(crate) params: FastParams<'a>,
}

/// Parameters of a request.
pub(crate) struct FastParams<'a> {
    /// The tool to call.
    pub(crate) name: Option<Cow<'a, str>>,
    /// Arguments of the tool.
    pub(crate) arguments: Option<RawJson<'a>>,
    /// Answers to the questions of the last call.
    pub(crate) responses: Option<RawJson<'a>>,
    /// Sealed state that identifies those questions.
    pub(crate) state: Option<Cow<'a, str>>,
    /// Cursor of a list.
    pub(crate) cursor: Option<Cow<'a, str>>,
    pub(crate) meta: RequestMeta<'a>,
}

/// `_meta` of a request: the client and its capabilities.
pub(crate) struct RequestMeta<'a> {
    pub(crate) version: Cow<'a, str>,
    client: Option<Cow<'a, str>>,
    progress_token: Option<RawJson<'a>>,
    /// Declared capabilities.
    pub(crate) abilities: DeclaredCapabilities,
    /// Trace of the client.
    pub(crate) traceparent: Option<Cow<'a, str>>,
    pub(crate) tracestate: Option<Cow<'a, str>>,
    /// Number of calls through Rialto that led to this one.
    pub(crate) hops: u8,
    pub(crate) baggage: Option<Cow<'a, str>>,
}

/// Successful JSON-RPC response.
#[derive(Serialize)]
struct SuccessResponse<'a, T> {
    jsonrpc: &'static str,
    id: RawJson<'a>,
    result: T,
}

/// JSON-RPC error response.
#[derive(Serialize)]
struct ErrorResponse<'a> {
    jsonrpc: &'static str,
    id: RawJson<'a>,
    error: &'a ErrorData,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolListResult<'a> {
    result_type: &'static str,
    #[serde(rename = "_meta")]
    meta: ServerInfoMeta,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<&'a str>,
    ttl_ms: u64,
    cache_scope: &'static str,
    tools: &'a [&'a Tool],
}

#[derive(Serialize)]
struct ServerInfoMeta {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server: &'static ServerIdentity,
}

#[derive(Serialize)]
struct ProgressNotification<'a> {
    jsonrpc: &'static str,
    method: &'static str,
    params: ProgressParams<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProgressParams<'a> {
    progress_token: RawJson<'a>,
    progress: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<f64>,
    message: &'a str,
}

// === impl FastRequest ===

impl<'a> FastRequest<'a> {
    /// Parses a request; none unless every field that matters here is valid.
    pub(crate) fn read(body: RawJson<'a>) -> Option<Self> {
        let [version, id, method, params] = pick(body, ["jsonrpc", "id", "method", "params"])?;
        let id = id.filter(|id| is_id(*id))?;
        let asked = Self { id, method: text(method?)?, params: FastParams::read(params?)? };
        (text(version?)? == "2.0").then_some(asked)
    }

    /// Name of the client.
    pub(crate) fn client(&self) -> &str {
        self.params.meta.client.as_deref().unwrap_or_default()
    }

    /// The id, returned unchanged.
    pub(crate) const fn id(&self) -> RawJson<'a> {
        self.id
    }

    /// Token of the progress notifications that the client asks for.
    pub(crate) const fn progress_token(&self) -> Option<RawJson<'a>> {
        self.params.meta.progress_token
    }
}

// === impl FastParams ===

impl<'a> FastParams<'a> {
    fn read(raw: RawJson<'a>) -> Option<Self> {
        let names = ["name", "arguments", "cursor", "_meta", "inputResponses", "requestState"];
        let [name, arguments, cursor, meta, responses, state] = pick(raw, names)?;
        let arguments = said(arguments);
        let is_object = arguments.is_none_or(|arguments| arguments.get().starts_with('{'));
        let params = Self {
            name: maybe_text(name)?,
            arguments,
            responses: said(responses),
            state: maybe_text(state)?,
            cursor: maybe_text(cursor)?,
            meta: RequestMeta::read(meta?)?,
        };
        is_object.then_some(params)
    }

    /// Answers by key; none when the value is not a map.
    pub(crate) fn responses(&self) -> Option<ElicitationResponses> {
        match self.responses {
            Some(raw) => serde_json::from_str(raw.get()).ok(),
            None => Some(ElicitationResponses::new()),
        }
    }
}

// === impl RequestMeta ===

impl<'a> RequestMeta<'a> {
    fn read(raw: RawJson<'a>) -> Option<Self> {
        let [version, capabilities, client, token, traceparent, tracestate, baggage, counted] = pick(
            raw,
            [
                "io.modelcontextprotocol/protocolVersion",
                "io.modelcontextprotocol/clientCapabilities",
                "io.modelcontextprotocol/clientInfo",
                "progressToken",
                "traceparent",
                "tracestate",
                "baggage",
                HOPS_META,
            ],
        )?;
        let client = match said(client) {
            None => None,
            Some(client) => {
                let [name, version] = pick(client, ["name", "version"])?;
                // A client without a version is invalid, and left to rmcp.
                text(version?)?;
                Some(text(name?)?)
            }
        };
        let progress_token = said(token);
        let abilities = abilities(capabilities?)?;
        let meta = Self {
            version: text(version?)?,
            client,
            progress_token,
            abilities,
            traceparent: maybe_text(traceparent)?,
            tracestate: maybe_text(tracestate)?,
            baggage: maybe_text(baggage)?,
            hops: counted.map_or(0, |count| count.get().parse().unwrap_or(u8::MAX)),
        };
        progress_token.is_none_or(is_id).then_some(meta)
    }
}

/// Members with these names; none when the value is not an object or one of them occurs twice.
fn pick<'a, const N: usize>(raw: RawJson<'a>, names: [&str; N]) -> Option<[Option<RawJson<'a>>; N]> {
    let mut found = [None; N];
    for (name, member) in raw.members()? {
        let place = names.iter().position(|known| **known == *name);
        if let Some(place) = place.and_then(|place| found.get_mut(place))
            && place.replace(member).is_some()
        {
            return None;
        }
    }
    Some(found)
}

/// Value that is present and not `null`.
fn said(raw: Option<RawJson<'_>>) -> Option<RawJson<'_>> {
    raw.filter(|raw| raw.get() != "null")
}

fn text(raw: RawJson<'_>) -> Option<Cow<'_, str>> {
    let plain = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if plain.contains('\\') {
        return serde_json::from_str(raw.get()).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(plain))
}

/// Optional string; none when the value is not a string.
fn maybe_text(raw: Option<RawJson<'_>>) -> Option<Option<Cow<'_, str>>> {
    said(raw).map_or(Some(None), |raw| text(raw).map(Some))
}

/// Response of a call.
pub(crate) fn called(id: RawJson<'_>, outcome: &Result<ToolResult, ErrorData>) -> Vec<u8> {
    match outcome {
        Ok(answer) => bytes(&SuccessResponse { jsonrpc: "2.0", id, result: CallResult::from(answer) }),
        Err(error) => failed(id, error),
    }
}

/// Response of a call that needs answers first.
pub(crate) fn asked(id: RawJson<'_>, questions: &InputRequiredResult) -> Vec<u8> {
    bytes(&SuccessResponse { jsonrpc: "2.0", id, result: questions })
}

/// Response of a call that became a task.
pub(crate) fn became(id: RawJson<'_>, task: &CreateTaskResult) -> Vec<u8> {
    bytes(&SuccessResponse { jsonrpc: "2.0", id, result: task })
}

/// Response with a page of tools.
pub(crate) fn listed(id: RawJson<'_>, tools: &[&Tool], next_cursor: Option<&str>, ttl_ms: u64) -> Vec<u8> {
    let result = ToolListResult {
        result_type: "complete",
        meta: ServerInfoMeta { server: &SERVER_IDENTITY },
        next_cursor,
        ttl_ms,
        cache_scope: "private",
        tools,
    };
    bytes(&SuccessResponse { jsonrpc: "2.0", id, result })
}

/// Error response.
pub(crate) fn failed(id: RawJson<'_>, error: &ErrorData) -> Vec<u8> {
    bytes(&ErrorResponse { jsonrpc: "2.0", id, error })
}

/// Progress notification.
pub(crate) fn progressed(progress_token: RawJson<'_>, mark: ProgressMark, message: &str) -> Vec<u8> {
    let params = ProgressParams { progress_token, progress: mark.progress, total: mark.total, message };
    bytes(&ProgressNotification { jsonrpc: "2.0", method: "notifications/progress", params })
}

/// Message as one server-sent event on one line: line breaks, which JSON has only as white space, become spaces.
pub(crate) fn event(message: &[u8]) -> Event {
    Event::default().data(String::from_utf8_lossy(message).replace(['\n', '\r'], " "))
}

/// Serializes a message. All of them can be encoded: their map keys are strings.
fn bytes<T: Serialize>(message: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(768);
    if let Err(error) = serde_json::to_writer(&mut bytes, message) {
        tracing::error!("a response could not be serialized: {error}");
    }
    bytes
}

/// An id is a string or an integer.
fn is_id(raw: RawJson<'_>) -> bool {
    raw.get().starts_with('"') || raw.get().parse::<i64>().is_ok()
}

/// Declared capabilities; none when they cannot be parsed.
fn abilities(raw: RawJson<'_>) -> Option<DeclaredCapabilities> {
    if raw.get() == "{}" {
        return Some(DeclaredCapabilities::default());
    }
    let declared = serde_json::from_str::<ClientCapabilities>(raw.get()).ok()?;
    let fluency = ProtocolFeatures::of(Some(ProtocolVersion::V_2026_07_28.as_str()));
    Some(DeclaredCapabilities::of(&declared, fluency))
}

#[cfg(test)]
mod tests;
