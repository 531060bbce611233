//! What a request says besides what it asks for.

use std::sync::Arc;

use http::{HeaderMap, Uri, header, request::Parts};
use rialto_a2a_wire::{
    card::dialect,
    error::{Code, RpcError},
    rest::Release,
    wire::Wire,
};
use rialto_edge::trace;
use rialto_model::{
    agent::Agent,
    call::{Caller, Door},
    card::Dialect,
    json::Json,
    media::is_json,
    trace::Trace,
};

/// What 1.0.1 calls its JSON.
const A2A_JSON: &str = "application/a2a+json";

/// The header that names the version of the protocol. As a parameter of the address it counts too.
const VERSION: &str = "a2a-version";

/// Who asks, and how it came.
#[derive(Clone, Debug)]
pub struct Visit {
    /// Who.
    pub caller: Caller,
    /// By which binding.
    pub door: Door,
    /// In which dialect.
    pub wire: Wire,
    /// The trace it is a part of.
    pub trace: Option<Box<Trace>>,
    /// Where this server is, for whoever asked; empty where the answer does not say so.
    pub base: String,
    /// The one agent that was asked, if it was not all of them.
    pub agent: Option<Arc<Agent>>,
}

/// The trace that is named in metadata.
pub(crate) fn trace_in(metadata: &Json) -> Option<Box<Trace>> {
    if !metadata.get().contains(trace::PARENT) {
        return None;
    }
    let members = metadata.value();
    let text = |name: &str| members.get(name).and_then(serde_json::Value::as_str);
    let trace = Trace::parse(text(trace::PARENT)?, text(trace::STATE))?;
    Some(Box::new(trace.with_baggage(text(trace::BAGGAGE))))
}

/// Refuses a version that nobody here speaks.
pub(crate) fn check_version(parts: &Parts) -> Result<(), RpcError> {
    let said = parts.headers.get(VERSION).map(|value| value.to_str().unwrap_or("?").to_owned());
    match said.or_else(|| version_in(&parts.uri)) {
        Some(version) if !version.is_empty() && !is_spoken(&version) => {
            let message = format!("A2A {version} is not spoken here; 1.0 and 0.3 are");
            Err(RpcError::new(Code::VersionNotSupported, message))
        }
        _ => Ok(()),
    }
}

/// Refuses a body that says it is something else than JSON.
pub(crate) fn check_kind(headers: &HeaderMap) -> Result<(), RpcError> {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let kind = kind.to_str().unwrap_or("?");
    if is_json(kind) {
        return Ok(());
    }
    let message = format!("Content-Type: expected application/json, found {kind}");
    Err(RpcError::new(Code::ContentTypeNotSupported, message))
}

/// Which release of 1.0 a client goes by: the second has a name of its own for its JSON.
pub(crate) fn release(headers: &HeaderMap) -> Release {
    let names = [header::CONTENT_TYPE, header::ACCEPT].map(|name| headers.get(name)?.to_str().ok());
    let is_second = names.into_iter().flatten().any(|kinds| kinds.contains(A2A_JSON));
    if is_second { Release::Second } else { Release::First }
}

/// Whether a client reads streams of events and nothing else: before 1.0 that is what it is told errors in, too.
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

fn is_spoken(version: &str) -> bool {
    matches!(dialect(version), Some(Dialect::V01 | Dialect::V02 | Dialect::V03 | Dialect::V10))
}
