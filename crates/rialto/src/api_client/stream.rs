//! Stream of server-sent events.

use std::{collections::VecDeque, time::Duration};

use http::{HeaderValue, Method, StatusCode, header};
use rialto_a2a_codec::sse::{SseEvent, SseParser};
use rialto_http_client::fetch::{FetchBody, FetchRequest};
use rialto_model::failure::{Failure, FailureKind};

use super::remote::RemoteApi;

/// Maximum time without data; servers send keep-alives more often.
const MAX_SILENCE: Duration = Duration::from_secs(60);

/// The largest event.
const MAX_EVENT_BYTES: usize = 64 * 1024 * 1024;

/// A stream of server-sent events.
pub(crate) struct ServerEventStream<'a> {
    remote: &'a RemoteApi,
    body: FetchBody,
    parser: SseParser,
    ready: VecDeque<SseEvent>,
}

// === impl ServerEventStream ===

impl ServerEventStream<'_> {
    /// The next event; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<SseEvent>, Failure> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let Some(bytes) =
                self.body.chunk().await.map_err(|error| self.remote.connection_failure(&error))?
            else {
                return Ok(None);
            };
            let events = self.parser.feed(&bytes).map_err(|error| {
                Failure::new(FailureKind::PeerGarbled, format!("{}: {error}", self.remote.base()))
            })?;
            self.ready.extend(events);
        }
    }
}

// === impl RemoteApi ===

impl RemoteApi {
    /// Listens at a path below `/api/v1`, from behind the event with this id on.
    pub(crate) async fn listen(
        &self,
        path: &str,
        seen: Option<&str>,
    ) -> Result<ServerEventStream<'_>, Failure> {
        let mut request = self.request(Method::GET, &format!("/api/v1{path}"))?;
        request = request.header(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(seen) = seen.and_then(|seen| HeaderValue::from_str(seen).ok()) {
            request = request.header(header::HeaderName::from_static("last-event-id"), seen);
        }
        let request = FetchRequest { patience: MAX_SILENCE, ..request };
        let answer = self.fetch(request).await?;
        if answer.status == StatusCode::OK && answer.media_type() == "text/event-stream" {
            let (body, parser) = (answer.body, SseParser::new(MAX_EVENT_BYTES));
            return Ok(ServerEventStream { remote: self, body, parser, ready: VecDeque::new() });
        }
        let answer = self.read_body(answer).await?;
        Err(self.response_failure(&Method::GET, path, &answer).await)
    }
}
