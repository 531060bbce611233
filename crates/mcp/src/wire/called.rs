//! The answer to a call that went well.
//!
//! It is what is written most, and it says its result twice: as it is, and as a text with all its quotes escaped. So it is
//! written by hand; it is the same JSON that serde would write.

use rialto_model::json::{Raw, push_json, push_text};
use rmcp::model::ContentBlock;

use crate::answer::{Answer, Marks, SERVER};

/// What the envelope and the marks take, most of the time.
const ENVELOPE: usize = 640;

pub(super) fn well(id: Raw<'_>, answer: &Answer) -> Vec<u8> {
    // The result is told twice, once of them with its quotes escaped.
    let length = answer.structured.as_ref().map_or(0, |data| 5 * data.get().len() / 2);
    let mut out = Vec::with_capacity(ENVELOPE + length);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.get().as_bytes());
    out.extend_from_slice(b",\"result\":{\"resultType\":\"complete\",\"content\":[");
    for (at, block) in answer.content.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        push_block(&mut out, block);
    }
    out.push(b']');
    if let Some(structured) = &answer.structured {
        out.extend_from_slice(b",\"structuredContent\":");
        out.extend_from_slice(structured.get().as_bytes());
    }
    if answer.is_error {
        out.extend_from_slice(b",\"isError\":true");
    }
    push_marks(&mut out, &answer.marks);
    out.extend_from_slice(b"}}");
    out
}

fn push_block(out: &mut Vec<u8>, block: &ContentBlock) {
    match block {
        ContentBlock::Text(text) if text.meta.is_none() && text.annotations.is_none() => {
            out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
            push_text(out, &text.text);
            out.push(b'}');
        }
        block => {
            // Writing to memory does not fail, and the maps in it have texts for keys.
            if let Err(error) = serde_json::to_writer(out, block) {
                tracing::error!("a part of an answer could not be written: {error}");
            }
        }
    }
}

fn push_marks(out: &mut Vec<u8>, marks: &Marks) {
    out.extend_from_slice(b",\"_meta\":{");
    for (name, text) in [
        ("\"rialto/taskId\":", marks.task.as_deref()),
        ("\"rialto/contextId\":", marks.context.as_deref()),
        ("\"rialto/state\":", marks.state),
        ("\"rialto/remoteTaskId\":", marks.remote_task.as_deref()),
    ] {
        if let Some(text) = text {
            out.extend_from_slice(name.as_bytes());
            push_text(out, text);
            out.push(b',');
        }
    }
    if let Some(notice) = &marks.guardrail {
        out.extend_from_slice(b"\"rialto/guardrail\":");
        // Writing to memory does not fail, and there is nothing here that JSON cannot say.
        let _ = push_json(out, &**notice);
        out.push(b',');
    }
    for (name, value) in marks.beside.iter().flat_map(|beside| beside.raw().members()).flatten() {
        push_text(out, &name);
        out.push(b':');
        out.extend_from_slice(value.get().as_bytes());
        out.push(b',');
    }
    out.extend_from_slice(b"\"io.modelcontextprotocol/serverInfo\":{");
    for (name, text) in
        [("\"name\":", SERVER.name), (",\"title\":", SERVER.title), (",\"version\":", SERVER.version)]
    {
        out.extend_from_slice(name.as_bytes());
        push_text(out, text);
    }
    out.extend_from_slice(b"}}");
}
