//! Context of a request: caller, dialect, extensions and trace.

use std::sync::Arc;

use http::{HeaderMap, Uri, header, request::Parts};
use rialto_a2a_codec::{
    error::{ErrorCode, RpcError},
    rest::Release,
    wire::Wire,
};
use rialto_http_server::trace;
use rialto_model::{
    agent::Agent,
    call::{Caller, EntryProtocol},
    json::Json,
    media::is_json,
    message::{Content, Message, Part, Role},
    trace::Trace,
};

use super::render::HistoryLength;
use crate::extension;

/// Media type of JSON in 1.0.1.
const A2A_JSON_TYPE: &str = "application/a2a+json";

/// Header with the protocol version. A query parameter of the same name is accepted too.
const VERSION_HEADER: &str = "a2a-version";

/// Supported protocol versions.
const SUPPORTED_VERSIONS: [&str; 4] = ["1.0", "0.3", "0.2", "0.1"];

/// Context of a request.
#[derive(Clone, Debug)]
pub struct A2aRequestContext {
    /// Authenticated caller.
    pub caller: Caller,
    /// Binding of the request.
    pub door: EntryProtocol,
    /// Dialect of the request.
    pub wire: Wire,
    /// Trace context.
    pub trace: Option<Box<Trace>>,
    /// Public base URL of this server for the caller; empty where the response does not contain it.
    pub base: String,
    /// The one agent that was addressed, if it was not the whole server.
    pub agent: Option<Arc<Agent>>,
    /// URIs of the requested protocol extensions.
    pub extensions: Vec<String>,
}

// === impl A2aRequestContext ===

impl A2aRequestContext {
    /// Requested history length: in 0.1 both an absent length and zero mean no history.
    pub(crate) fn history(&self, said: HistoryLength) -> HistoryLength {
        if self.wire == Wire::V01 { said.or(Some(0)) } else { said }
    }

    /// Requested extensions: those in the message, and those in the request's headers.
    pub(crate) fn wanted(&self, message: &Message) -> Vec<String> {
        let mut wanted = self.extensions.clone();
        wanted.extend(message.extensions.iter().filter(|uri| !self.extensions.contains(uri)).cloned());
        wanted
    }

    /// Rejects a message to an agent that requires an extension which the client does not support. Only 1.0 has an error for that.
    pub(crate) fn check_extensions(&self, wanted: &[String]) -> Result<(), RpcError> {
        let Some(agent) = self.agent.as_ref().filter(|_| self.wire == Wire::V10) else { return Ok(()) };
        let missing = extension::required(&agent.card).into_iter().find(|uri| !wanted.contains(uri));
        let Some(uri) = missing else { return Ok(()) };
        let message = format!("{} demands the extension {uri}; name it in A2A-Extensions", agent.slug);
        Err(RpcError::new(ErrorCode::ExtensionSupportRequired, message))
    }
}

/// Trace context in metadata.
pub(crate) fn trace_in(metadata: &Json) -> Option<Box<Trace>> {
    if !metadata.get().contains(trace::TRACEPARENT) {
        return None;
    }
    let members = metadata.value();
    let text = |name: &str| members.get(name).and_then(serde_json::Value::as_str);
    let trace = Trace::parse(text(trace::TRACEPARENT)?, text(trace::TRACESTATE))?;
    Some(Box::new(trace.with_baggage(text(trace::BAGGAGE))))
}

/// Rejects an unsupported version.
pub(crate) fn check_version(parts: &Parts) -> Result<(), RpcError> {
    let said = parts.headers.get(VERSION_HEADER).map(|value| value.to_str().unwrap_or("?").to_owned());
    match said.or_else(|| version_in(&parts.uri)) {
        Some(version) if !version.is_empty() && !is_spoken(&version) => {
            let message = format!("A2A {version} is not spoken here; {} are", SUPPORTED_VERSIONS.join(", "));
            Err(RpcError::new(ErrorCode::VersionNotSupported, message))
        }
        _ => Ok(()),
    }
}

/// Rejects a message without required members. Before 1.0 clients often left them out, and are accepted.
pub(crate) fn check_message(wire: Wire, message: &Message) -> Result<(), RpcError> {
    let refused = |what: &str| Err(RpcError::new(ErrorCode::InvalidParams, format!("message.{what}")));
    if message.parts.is_empty() {
        return refused("parts: expected at least one part");
    }
    if wire != Wire::V10 {
        return Ok(());
    }
    if message.id.is_empty() {
        return refused("messageId: expected a name for the message");
    }
    if message.role != Role::User {
        return refused("role: expected ROLE_USER, who is the one that sends messages here");
    }
    let is_bare = |part: &Part| matches!(part.content, Content::Unknown(_));
    match message.parts.iter().position(is_bare) {
        Some(place) => refused(&format!("parts[{place}]: expected one of text, raw, url and data")),
        None => Ok(()),
    }
}

/// Rejects a body with another media type than JSON.
pub(crate) fn check_kind(headers: &HeaderMap) -> Result<(), RpcError> {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let kind = kind.to_str().unwrap_or("?");
    if is_json(kind) {
        return Ok(());
    }
    let message = format!("Content-Type: expected application/json, found {kind}");
    Err(RpcError::new(ErrorCode::ContentTypeNotSupported, message))
}

/// Release of 1.0 that a client uses: the second has a media type of its own.
pub(crate) fn release(headers: &HeaderMap) -> Release {
    let names = [header::CONTENT_TYPE, header::ACCEPT].map(|name| headers.get(name)?.to_str().ok());
    let is_second = names.into_iter().flatten().any(|kinds| kinds.contains(A2A_JSON_TYPE));
    if is_second { Release::Second } else { Release::First }
}

/// True for a client that parses only event streams: before 1.0 it gets errors as events, too.
pub(crate) fn reads_events_only(headers: &HeaderMap) -> bool {
    let kinds = headers.get(header::ACCEPT).and_then(|kinds| kinds.to_str().ok()).unwrap_or_default();
    kinds.contains("text/event-stream") && !kinds.contains("json") && !kinds.contains('*')
}

fn version_in(uri: &Uri) -> Option<String> {
    let pairs = url::form_urlencoded::parse(uri.query()?.as_bytes());
    pairs
        .into_iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("A2A-Version"))
        .map(|(_, version)| version.into())
}

/// Major and minor version are compared, the patch is not.
fn is_spoken(version: &str) -> bool {
    let mut numbers = version.trim().splitn(3, '.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let is_patch = numbers.next().is_none_or(|patch| patch.parse::<u32>().is_ok());
    is_patch && SUPPORTED_VERSIONS.iter().any(|spoken| spoken.split_once('.') == Some((major, minor)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_its_first_two_numbers() {
        for version in ["1.0", "1.0.1", "0.3", "0.3.0", "0.2", "0.2.6", "0.1", " 1.0"] {
            assert!(is_spoken(version), "{version}");
        }
        for version in ["1.7", "1", "2.0", "0.4", "1.0.x", "1.0.0.0", "v1.0", "?", "1.00", "10.0"] {
            assert!(!is_spoken(version), "{version}");
        }
    }
}
