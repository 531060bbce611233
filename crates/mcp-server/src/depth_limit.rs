//! Depth limit: rejects JSON lines that are nested too deeply.
//!
//! On a pair of streams rmcp reads the lines itself, and ignores one that is too deep for its parser, so the client would get no
//! response. So such a line is replaced beforehand by a request with the same id, which is answered with an error. A line without an id
//! needs no response, and is dropped.

use std::{
    io, mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use rialto_model::json::{RawJson, is_too_deep};
use tokio::io::{AsyncBufRead, AsyncRead, BufReader, ReadBuf};

/// Method of the request that replaces one that is too deep.
pub(crate) const TOO_DEEP: &str = "rialto/too-deep";

/// Input with a limit on the depth of its lines.
pub(crate) struct DepthLimit<R> {
    input: BufReader<R>,
    /// Line that is being received.
    line: Vec<u8>,
    /// Complete line, and the number of its bytes that were passed on.
    whole: Vec<u8>,
    passed: usize,
}

// === impl DepthLimit ===

impl<R: AsyncRead + Unpin> DepthLimit<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input: BufReader::new(input), line: Vec::new(), whole: Vec::new(), passed: 0 }
    }

    /// Reads up to the end of a line. Returns whether there was any input.
    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let there = ready!(Pin::new(&mut self.input).poll_fill_buf(context))?;
        let end = there.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(there.len(), |end| end + 1);
        self.line.extend_from_slice(&there[..taken]);
        Pin::new(&mut self.input).consume(taken);
        if end.is_some() || taken == 0 {
            let line = mem::take(&mut self.line);
            self.whole = if is_too_deep(&line) { instead_of(&line) } else { line };
            self.passed = 0;
        }
        Poll::Ready(Ok(taken > 0 || !self.whole.is_empty()))
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for DepthLimit<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.passed == self.whole.len() {
            if !ready!(self.poll_more(context))? {
                return Poll::Ready(Ok(()));
            }
        }
        let rest = &self.whole[self.passed..];
        let count = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..count]);
        self.passed += count;
        Poll::Ready(Ok(()))
    }
}

/// Replacement of a line that is too deep.
fn instead_of(line: &[u8]) -> Vec<u8> {
    let message = std::str::from_utf8(line).ok().and_then(|text| RawJson::parse(text.trim()).ok());
    let id = message.and_then(|message| message.member("id")).map(RawJson::get);
    // An id is a string or a number; any other value may be what is too deep.
    let id = id.filter(|id| !id.starts_with(['{', '[']) && *id != "null");
    id.map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{TOO_DEEP}\"}}\n").into_bytes())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rialto_model::json::MAX_DEPTH;
    use tokio::io::AsyncReadExt;

    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}{}", "[".repeat(levels), "]".repeat(levels))
    }

    async fn passed(input: &str) -> String {
        let mut output = String::new();
        // Chunks of all sizes come out unchanged.
        let input = in_pieces(input);
        DepthLimit::new(input).read_to_string(&mut output).await.unwrap();
        output
    }

    /// Input that arrives a few bytes at a time.
    fn in_pieces(input: &str) -> impl AsyncRead + Unpin + use<> {
        let (ours, mut theirs) = tokio::io::duplex(7);
        let input = input.to_owned();
        tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut theirs, input.as_bytes()).await });
        ours
    }

    #[tokio::test]
    async fn what_is_not_too_deep_passes_as_it_is() {
        let text = format!("{{\"a\":1}}\n\n{}\nno end", nested(MAX_DEPTH));
        assert_eq!(passed(&text).await, text);
        assert_eq!(passed("").await, "");
    }

    #[tokio::test]
    async fn a_request_that_is_too_deep_becomes_one_that_says_so_and_anything_else_goes() {
        let deep = nested(MAX_DEPTH + 1);
        let request = format!("{{\"params\":{deep},\"id\":\"seven\"}}\n");
        let others = format!("{{\"params\":{deep}}}\n{{\"id\":{deep}}}\n{deep}\n{}\n", "[".repeat(1_000));
        let input = format!("{request}{others}{{}}\n");
        assert_eq!(
            passed(&input).await,
            format!("{{\"jsonrpc\":\"2.0\",\"id\":\"seven\",\"method\":\"{TOO_DEEP}\"}}\n{{}}\n")
        );
    }
}
