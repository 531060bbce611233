//! Messages of protocol version 2026-07-28 as they are read and written, without a tree of values in between.

use std::borrow::Cow;

use rialto_model::json::{Json, Raw};
use rmcp::{
    ErrorData,
    model::{ClientCapabilities, ContentBlock, Tool},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::answer::{Answer, Marks, SERVER, Server};

/// A request, as far as it must be read to know what to do with it.
#[derive(Deserialize)]
pub(crate) struct Asked<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    pub(crate) method: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) params: Params<'a>,
}

/// What a request asks for.
#[derive(Deserialize)]
pub(crate) struct Params<'a> {
    /// The tool to call.
    #[serde(borrow)]
    pub(crate) name: Option<Cow<'a, str>>,
    /// What to call it with.
    #[serde(borrow)]
    pub(crate) arguments: Option<&'a RawValue>,
    /// Where to go on in a list.
    #[serde(borrow)]
    pub(crate) cursor: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "_meta")]
    pub(crate) meta: Meta<'a>,
}

/// What a request says about its sender.
#[derive(Deserialize)]
pub(crate) struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    pub(crate) version: Cow<'a, str>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: &'a RawValue,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientInfo")]
    client: Option<Named<'a>>,
    #[serde(borrow, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
    /// The trace that the sender has begun.
    #[serde(borrow)]
    pub(crate) traceparent: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) tracestate: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[expect(dead_code, reason = "a client without a version is malformed, and left to rmcp")]
    #[serde(borrow)]
    version: Cow<'a, str>,
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
struct Called<'a> {
    result_type: &'static str,
    content: &'a [ContentBlock],
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a Json>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
    #[serde(rename = "_meta")]
    meta: Marks,
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
    message: &'a str,
}

// === impl Asked ===

impl<'a> Asked<'a> {
    /// Reads a request; none unless it is as it should be in every respect that matters here.
    pub(crate) fn read(body: &'a [u8]) -> Option<Self> {
        let asked: Self = serde_json::from_slice(body).ok()?;
        let meta = &asked.params.meta;
        let is_well_formed = asked.jsonrpc == "2.0"
            && is_id(asked.id)
            && meta.progress_token.is_none_or(is_id)
            && is_capabilities(meta.capabilities)
            && asked.params.arguments.is_none_or(|args| args.get().starts_with('{'));
        is_well_formed.then_some(asked)
    }

    /// What the client calls itself.
    pub(crate) fn client(&self) -> &str {
        self.params.meta.client.as_ref().map_or("", |client| &client.name)
    }

    /// Its id, which goes back as it came.
    pub(crate) fn id(&self) -> Raw<'a> {
        self.id.into()
    }

    /// Under which name the client wants to hear of progress.
    pub(crate) fn progress_token(&self) -> Option<Raw<'a>> {
        self.params.meta.progress_token.map(Raw::from)
    }
}

/// The answer to a call.
pub(crate) fn called(id: Raw<'_>, outcome: &Result<Answer, ErrorData>) -> Vec<u8> {
    match outcome {
        Ok(answer) => {
            let result = Called {
                result_type: "complete",
                content: &answer.content,
                structured_content: answer.structured.as_ref(),
                is_error: answer.is_error,
                meta: Marks { server: Some(&SERVER), ..answer.marks.clone() },
            };
            // It is told twice, once of them with its quotes escaped.
            let length = answer.structured.as_ref().map_or(0, |data| 3 * data.get().len());
            bytes_of(&Success { jsonrpc: "2.0", id, result }, length)
        }
        Err(error) => failed(id, error),
    }
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
pub(crate) fn progressed(progress_token: Raw<'_>, step: u32, message: &str) -> Vec<u8> {
    let params = Progress { progress_token, progress: f64::from(step), message };
    bytes(&Progressed { jsonrpc: "2.0", method: "notifications/progress", params })
}

/// A message as one event of a stream. An event's data may not have line ends; JSON has them only as white space.
pub(crate) fn event(message: &[u8]) -> Vec<u8> {
    let line = message.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte });
    b"data: ".iter().copied().chain(line).chain(*b"\n\n").collect()
}

/// All of these can be said in JSON: their maps have texts for keys.
fn bytes<T: Serialize>(message: &T) -> Vec<u8> {
    bytes_of(message, 0)
}

/// The same, with room for so much besides the envelope.
fn bytes_of<T: Serialize>(message: &T, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(768 + length);
    if let Err(error) = serde_json::to_writer(&mut bytes, message) {
        tracing::error!("an answer could not be written: {error}");
    }
    bytes
}

/// An id is a text or a whole number.
fn is_id(raw: &RawValue) -> bool {
    raw.get().starts_with('"') || raw.get().parse::<i64>().is_ok()
}

fn is_capabilities(raw: &RawValue) -> bool {
    raw.get() == "{}" || serde_json::from_str::<ClientCapabilities>(raw.get()).is_ok()
}
