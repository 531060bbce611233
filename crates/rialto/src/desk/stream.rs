//! What a server tells as it happens.

use std::{collections::VecDeque, time::Duration};

use http::{HeaderValue, Method, StatusCode, header};
use rialto_a2a_wire::sse::{SseEvent, SseParser};
use rialto_edge::fetch::{Body, Request};
use rialto_model::failure::{Failure, FailureKind};

use super::there::There;

/// A server that has nothing to tell says so more often than this.
const SILENCE: Duration = Duration::from_secs(60);

/// The largest event.
const LARGEST: usize = 64 * 1024 * 1024;

/// A stream of server-sent events.
pub(crate) struct Stream<'a> {
    there: &'a There,
    body: Body,
    parser: SseParser,
    ready: VecDeque<SseEvent>,
}

// === impl Stream ===

impl Stream<'_> {
    /// The next event; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<SseEvent>, Failure> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let Some(bytes) = self.body.chunk().await.map_err(|error| self.there.lost(&error))? else {
                return Ok(None);
            };
            let events = self.parser.feed(&bytes).map_err(|error| {
                Failure::new(FailureKind::PeerGarbled, format!("{}: {error}", self.there.base()))
            })?;
            self.ready.extend(events);
        }
    }
}

// === impl There ===

impl There {
    /// Listens at a path below `/api/v1`, from behind the event with this id on.
    pub(crate) async fn listen(&self, path: &str, seen: Option<&str>) -> Result<Stream<'_>, Failure> {
        let mut request = self.request(Method::GET, &format!("/api/v1{path}"))?;
        request = request.header(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(seen) = seen.and_then(|seen| HeaderValue::from_str(seen).ok()) {
            request = request.header(header::HeaderName::from_static("last-event-id"), seen);
        }
        let request = Request { patience: SILENCE, ..request };
        let answer = self.fetch(request).await?;
        if answer.status == StatusCode::OK && answer.media_type() == "text/event-stream" {
            let (body, parser) = (answer.body, SseParser::new(LARGEST));
            return Ok(Stream { there: self, body, parser, ready: VecDeque::new() });
        }
        let answer = self.read(answer).await?;
        Err(self.told(&Method::GET, path, &answer).await)
    }
}
