//! Messages of protocol version 2026-07-28 as they are read and written, without a tree of values in between.

mod called;

use std::borrow::Cow;

use axum::response::sse::Event;
use rialto_model::{
    call::HOPS_META,
    json::{Document, Raw},
};
use rmcp::{
    ErrorData,
    model::{ClientCapabilities, CreateTaskResult, InputRequiredResult, ProtocolVersion, Tool},
};
use serde::Serialize;

use crate::{
    answer::{Answer, SERVER, Server},
    asking::Responses,
    client::{Abilities, Fluency},
    progress::Mark,
};

/// A request, as far as it must be read to know what to do with it.
pub(crate) struct Asked<'a> {
    id: Raw<'a>,
    pub(crate) method: Cow<'a, str>,
    pub(crate) params: Params<'a>,
}

/// What a request asks for.
pub(crate) struct Params<'a> {
    /// The tool to call.
    pub(crate) name: Option<Cow<'a, str>>,
    /// What to call it with.
    pub(crate) arguments: Option<Raw<'a>>,
    /// What a person answered to the questions of the last call.
    pub(crate) responses: Option<Raw<'a>>,
    /// Which questions those were.
    pub(crate) state: Option<Cow<'a, str>>,
    /// Where to go on in a list.
    pub(crate) cursor: Option<Cow<'a, str>>,
    pub(crate) meta: Meta<'a>,
}

/// What a request says about its sender.
pub(crate) struct Meta<'a> {
    pub(crate) version: Cow<'a, str>,
    client: Option<Cow<'a, str>>,
    progress_token: Option<Raw<'a>>,
    /// What the sender can do when it is asked to.
    pub(crate) abilities: Abilities,
    /// The trace that the sender has begun.
    pub(crate) traceparent: Option<Cow<'a, str>>,
    pub(crate) tracestate: Option<Cow<'a, str>>,
    /// How many calls through us led to this one.
    pub(crate) hops: u8,
    pub(crate) baggage: Option<Cow<'a, str>>,
}

/// An answer that went well.
#[derive(Serialize)]
struct Success<'a, T> {
    jsonrpc: &'static str,
    id: Raw<'a>,
    result: T,
}

/// An answer that went wrong.
#[derive(Serialize)]
struct Trouble<'a> {
    jsonrpc: &'static str,
    id: Raw<'a>,
    error: &'a ErrorData,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    result_type: &'static str,
    #[serde(rename = "_meta")]
    meta: Signature,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<&'a str>,
    ttl_ms: u64,
    cache_scope: &'static str,
    tools: &'a [&'a Tool],
}

#[derive(Serialize)]
struct Signature {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server: &'static Server,
}

#[derive(Serialize)]
struct Progressed<'a> {
    jsonrpc: &'static str,
    method: &'static str,
    params: Progress<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Progress<'a> {
    progress_token: Raw<'a>,
    progress: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<f64>,
    message: &'a str,
}

// === impl Asked ===

impl<'a> Asked<'a> {
    /// Reads a request; none unless it is as it should be in every respect that matters here.
    pub(crate) fn read(body: &'a Document<'_>) -> Option<Self> {
        let [version, id, method, params] = pick(body.raw(), ["jsonrpc", "id", "method", "params"])?;
        let id = id.filter(|id| is_id(*id))?;
        let asked = Self { id, method: text(method?)?, params: Params::read(params?)? };
        (text(version?)? == "2.0").then_some(asked)
    }

    /// What the client calls itself.
    pub(crate) fn client(&self) -> &str {
        self.params.meta.client.as_deref().unwrap_or_default()
    }

    /// Its id, which goes back as it came.
    pub(crate) const fn id(&self) -> Raw<'a> {
        self.id
    }

    /// Under which name the client wants to hear of progress.
    pub(crate) const fn progress_token(&self) -> Option<Raw<'a>> {
        self.params.meta.progress_token
    }
}

// === impl Params ===

impl<'a> Params<'a> {
    fn read(raw: Raw<'a>) -> Option<Self> {
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
            meta: Meta::read(meta?)?,
        };
        is_object.then_some(params)
    }

    /// The answers by their names; none when they are something else.
    pub(crate) fn responses(&self) -> Option<Responses> {
        match self.responses {
            Some(raw) => serde_json::from_str(raw.get()).ok(),
            None => Some(Responses::new()),
        }
    }
}

// === impl Meta ===

impl<'a> Meta<'a> {
    fn read(raw: Raw<'a>) -> Option<Self> {
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
                // A client without a version is malformed, and left to rmcp.
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

/// The members with these names, as far as they are there; none when it is no object, or one of them is there twice.
fn pick<'a, const N: usize>(raw: Raw<'a>, names: [&str; N]) -> Option<[Option<Raw<'a>>; N]> {
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

/// What is there and not `null`.
fn said(raw: Option<Raw<'_>>) -> Option<Raw<'_>> {
    raw.filter(|raw| raw.get() != "null")
}

fn text(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    let plain = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if plain.contains('\\') {
        return serde_json::from_str(raw.get()).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(plain))
}

/// A text that need not be there; none when something else is there.
fn maybe_text(raw: Option<Raw<'_>>) -> Option<Option<Cow<'_, str>>> {
    said(raw).map_or(Some(None), |raw| text(raw).map(Some))
}

/// The answer to a call.
pub(crate) fn called(id: Raw<'_>, outcome: &Result<Answer, ErrorData>) -> Vec<u8> {
    match outcome {
        Ok(answer) => called::well(id, answer),
        Err(error) => failed(id, error),
    }
}

/// A call that cannot go on before somebody has answered.
pub(crate) fn asked(id: Raw<'_>, questions: &InputRequiredResult) -> Vec<u8> {
    bytes(&Success { jsonrpc: "2.0", id, result: questions })
}

/// A call that became a task.
pub(crate) fn became(id: Raw<'_>, task: &CreateTaskResult) -> Vec<u8> {
    bytes(&Success { jsonrpc: "2.0", id, result: task })
}

/// A page of tools.
pub(crate) fn listed(id: Raw<'_>, tools: &[&Tool], next_cursor: Option<&str>, ttl_ms: u64) -> Vec<u8> {
    let result = Listed {
        result_type: "complete",
        meta: Signature { server: &SERVER },
        next_cursor,
        ttl_ms,
        cache_scope: "private",
        tools,
    };
    bytes(&Success { jsonrpc: "2.0", id, result })
}

/// An error.
pub(crate) fn failed(id: Raw<'_>, error: &ErrorData) -> Vec<u8> {
    bytes(&Trouble { jsonrpc: "2.0", id, error })
}

/// A note of progress.
pub(crate) fn progressed(progress_token: Raw<'_>, mark: Mark, message: &str) -> Vec<u8> {
    let params = Progress { progress_token, progress: mark.progress, total: mark.total, message };
    bytes(&Progressed { jsonrpc: "2.0", method: "notifications/progress", params })
}

/// A message as one event of a stream, on one line: line ends, which JSON has only as white space, become spaces.
pub(crate) fn event(message: &[u8]) -> Event {
    Event::default().data(String::from_utf8_lossy(message).replace(['\n', '\r'], " "))
}

/// All of these can be said in JSON: their maps have texts for keys.
fn bytes<T: Serialize>(message: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(768);
    if let Err(error) = serde_json::to_writer(&mut bytes, message) {
        tracing::error!("an answer could not be written: {error}");
    }
    bytes
}

/// An id is a text or a whole number.
fn is_id(raw: Raw<'_>) -> bool {
    raw.get().starts_with('"') || raw.get().parse::<i64>().is_ok()
}

/// What a client declares; none when that is not readable.
fn abilities(raw: Raw<'_>) -> Option<Abilities> {
    if raw.get() == "{}" {
        return Some(Abilities::default());
    }
    let declared = serde_json::from_str::<ClientCapabilities>(raw.get()).ok()?;
    let fluency = Fluency::of(Some(ProtocolVersion::V_2026_07_28.as_str()));
    Some(Abilities::of(&declared, fluency))
}

#[cfg(test)]
mod tests;
