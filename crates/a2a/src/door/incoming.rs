//! What a request says besides what it asks for.

use std::sync::Arc;

use http::{HeaderMap, Uri, header, request::Parts};
use rialto_a2a_wire::{
    error::{Code, RpcError},
    rest::Release,
    wire::Wire,
};
use rialto_edge::trace;
use rialto_model::{
    agent::Agent,
    call::{Caller, Door},
    json::Json,
    media::is_json,
    message::{Content, Message, Part, Role},
    trace::Trace,
};

use super::render::Length;
use crate::extension;

/// What 1.0.1 calls its JSON.
const A2A_JSON: &str = "application/a2a+json";

/// The header that names the version of the protocol. As a parameter of the address it counts too.
const VERSION: &str = "a2a-version";

/// The versions that are spoken at this door.
const SPOKEN: [&str; 4] = ["1.0", "0.3", "0.2", "0.1"];

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
    /// URIs of the protocol extensions that are named beside the request.
    pub extensions: Vec<String>,
}

// === impl Visit ===

impl Visit {
    /// How much of the history is wanted: in 0.1 who says nothing wants none, and so does who says zero.
    pub(crate) fn history(&self, said: Length) -> Length {
        if self.wire == Wire::V01 { said.or(Some(0)) } else { said }
    }

    /// The extensions that a message wants in use: those that it names, and those that are named beside it.
    pub(crate) fn wanted(&self, message: &Message) -> Vec<String> {
        let mut wanted = self.extensions.clone();
        wanted.extend(message.extensions.iter().filter(|uri| !self.extensions.contains(uri)).cloned());
        wanted
    }

    /// Refuses a message to an agent that demands an extension which the client does not speak. Only 1.0 has a word for that.
    pub(crate) fn check_extensions(&self, wanted: &[String]) -> Result<(), RpcError> {
        let Some(agent) = self.agent.as_ref().filter(|_| self.wire == Wire::V10) else { return Ok(()) };
        let missing = extension::required(&agent.card).into_iter().find(|uri| !wanted.contains(uri));
        let Some(uri) = missing else { return Ok(()) };
        let message = format!("{} demands the extension {uri}; name it in A2A-Extensions", agent.slug);
        Err(RpcError::new(Code::ExtensionSupportRequired, message))
    }
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
            let message = format!("A2A {version} is not spoken here; {} are", SPOKEN.join(", "));
            Err(RpcError::new(Code::VersionNotSupported, message))
        }
        _ => Ok(()),
    }
}

/// Refuses a message that lacks what it must have. Before 1.0 clients left out more than they should, and are understood.
pub(crate) fn check_message(wire: Wire, message: &Message) -> Result<(), RpcError> {
    let refused = |what: &str| Err(RpcError::new(Code::InvalidParams, format!("message.{what}")));
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

/// Major and minor number count, a patch does not.
fn is_spoken(version: &str) -> bool {
    let mut numbers = version.trim().splitn(3, '.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let is_patch = numbers.next().is_none_or(|patch| patch.parse::<u32>().is_ok());
    is_patch && SPOKEN.iter().any(|spoken| spoken.split_once('.') == Some((major, minor)))
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
