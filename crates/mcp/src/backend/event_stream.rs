//! Server-sent events of an HTTP response, with a limit on the size of each event.
//!
//! The parser keeps an event in memory until the blank line that ends it, so without the limit a server could make it grow for ever. The
//! sum of all events has no limit: a stream may stay open for as long as its server runs.

use bytes::Bytes;
use futures::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};
use rialto_http_client::fetch::FetchBody;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::{Sse, SseStream};

/// Media type of a stream of events.
pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// Maximum size of one event.
pub(super) const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// Events of a response, until it ends, breaks or exceeds the limit.
pub(super) type SseEvents = BoxStream<'static, Result<Sse, SseError>>;

/// Size of the event that is being received, across the chunks that carry it.
#[derive(Default)]
struct EventSize {
    bytes: usize,
    /// True while the current line has no bytes.
    is_line_empty: bool,
    /// True when the last byte was a carriage return: a line feed after it ends the same line.
    after_return: bool,
}

/// Parses the events of a body.
pub(super) fn read_events(body: FetchBody) -> SseEvents {
    SseStream::from_bytes_stream(limited(body)).boxed()
}

fn limited(body: FetchBody) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static {
    stream::unfold(Some((body, EventSize::default())), |state| async move {
        let (mut body, mut size) = state?;
        match body.chunk().await {
            Ok(Some(chunk)) if size.add(&chunk) => Some((Ok(chunk), Some((body, size)))),
            Ok(Some(_)) => Some((Err(std::io::Error::other("an event is too large")), None)),
            Ok(None) => None,
            Err(error) => Some((Err(std::io::Error::other(error)), None)),
        }
    })
}

// === impl EventSize ===

impl EventSize {
    /// Counts a chunk; false when an event in it is too large.
    fn add(&mut self, chunk: &[u8]) -> bool {
        chunk.iter().all(|&byte| {
            self.bytes += 1;
            let is_same_end = byte == b'\n' && self.after_return;
            self.after_return = byte == b'\r';
            match byte {
                _ if is_same_end => {}
                b'\r' | b'\n' if self.is_line_empty => self.bytes = 0,
                b'\r' | b'\n' => self.is_line_empty = true,
                _ => self.is_line_empty = false,
            }
            self.bytes <= MAX_EVENT_BYTES
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_line_ends_an_event_whatever_ends_the_lines_and_wherever_a_chunk_ends() {
        for end in ["\n", "\r", "\r\n"] {
            let event = format!("event: message{end}data: {{}}{end}{end}");
            let mut size = EventSize::default();
            for byte in event.as_bytes() {
                assert!(size.add(&[*byte]));
            }
            assert!(size.bytes <= 1, "{event:?} left {} bytes", size.bytes);
        }
    }

    #[test]
    fn an_event_of_many_lines_is_too_large_whatever_ends_the_lines() {
        for line in ["data: x\n", "data: x\r", "data: x\r\n"] {
            let chunk = line.repeat(128 * 1024);
            let mut size = EventSize::default();
            let taken = (0..1_000).take_while(|_| size.add(chunk.as_bytes())).count();
            assert_eq!(taken, MAX_EVENT_BYTES / chunk.len(), "{line:?}");
        }
    }
}
