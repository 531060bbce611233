//! gRPC to an agent: how a request is put, and how the answer is taken apart.
//!
//! It is an HTTP/2 exchange like any other, and goes out through the same client under the same rules: messages lie framed
//! in the bodies, and how it went stands in the headers behind the answer's, or in its only headers when there is nothing
//! else to say.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use rialto_a2a_wire::{
    answer,
    garbled::Garbled,
    grpc::{
        self, Status,
        frame::{FrameError, Frames},
    },
    request::Operation,
    task::{SendAnswer, StreamEvent},
    wire::Wire,
};
use rialto_edge::fetch::{Body, FetchError, Response};

use crate::{
    credential::Shown,
    trouble::{Login, Trouble},
};

const MEDIA_TYPE: HeaderValue = HeaderValue::from_static(grpc::MEDIA_TYPE);
const TRAILERS: HeaderValue = HeaderValue::from_static("trailers");
const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// The most that `grpc-timeout` can say: eight digits.
const LONGEST_TIMEOUT_MS: u128 = 99_999_999;

/// The messages of an answer, and how it went.
pub(crate) struct Messages {
    body: Body,
    frames: Frames,
    wire: Wire,
    operation: Operation,
    /// Whether it was said before all else that it went well, so that nothing else comes.
    is_over: bool,
}

/// Adds to `headers` what gRPC wants there. An agent that is asked for one answer may know how long we wait for it.
pub(crate) fn put_headers(headers: &mut HeaderMap, operation: Operation, patience: Duration) {
    headers.insert(header::CONTENT_TYPE, MEDIA_TYPE);
    headers.insert(header::TE, TRAILERS);
    let millis = patience.as_millis().min(LONGEST_TIMEOUT_MS);
    if !operation.streams()
        && let Ok(value) = HeaderValue::try_from(format!("{millis}m"))
    {
        headers.insert(TIMEOUT, value);
    }
}

/// What the answer's first headers say in terms of HTTP, where a refusal is looked for.
pub(crate) fn http_status(answer: &Response) -> StatusCode {
    match Status::read(&answer.headers).map(|status| status.number) {
        Some(Status::UNAUTHENTICATED) => StatusCode::UNAUTHORIZED,
        Some(Status::PERMISSION_DENIED) => StatusCode::FORBIDDEN,
        _ => answer.status,
    }
}

/// Looks at an answer's first headers: what follows are messages, or they say why not.
pub(crate) async fn open(
    answer: Response,
    wire: Wire,
    operation: Operation,
    login: Login<'_>,
) -> Result<Messages, Trouble> {
    let first = Status::read(&answer.headers);
    if let Some(status) = first.as_ref().filter(|status| !status.is_ok()) {
        return Err(Trouble::grpc(status, login));
    }
    let media_type = answer.media_type().to_ascii_lowercase();
    let is_grpc = media_type.starts_with(grpc::MEDIA_TYPE);
    if is_grpc && answer.status.is_success() {
        let frames = Frames::new(answer.body.limit());
        return Ok(Messages { body: answer.body, frames, wire, operation, is_over: first.is_some() });
    }
    let status = answer.status;
    let body = answer.body.read().await.map_err(|error| Trouble::fetching(&error))?;
    if status.is_success() {
        let garbled = Garbled::new(grpc::MEDIA_TYPE, format!("the media type \"{media_type}\""));
        return Err(Trouble::garbled(&garbled, &body, login));
    }
    // Whoever is there does not know the path, and so not the package.
    Err(Trouble::status(status, &body, login).foreign_if(status == StatusCode::NOT_FOUND))
}

// === impl Messages ===

impl Messages {
    /// The one answer there is.
    pub(crate) async fn only(mut self, login: Login<'_>) -> Result<SendAnswer, Trouble> {
        let Some(message) = self.next(login).await? else {
            return Err(Trouble::garbled(&Garbled::new("a message", "nothing"), &[], login));
        };
        // How it went stands behind it.
        if self.next(login).await?.is_some() {
            return Err(Trouble::garbled(&Garbled::new("one message", "more"), &[], login));
        }
        let text = self.text(&message, login)?;
        let read = answer::parse(text.as_bytes()).and_then(|raw| answer::decode_send(self.wire, raw));
        read.map_err(|garbled| Trouble::garbled(&garbled, text.as_bytes(), login))
    }

    /// The next event; none when the agent says that this was all.
    pub(crate) async fn event(&mut self, shown: Option<&Arc<Shown>>) -> Result<Option<StreamEvent>, Trouble> {
        let login = shown.map_or(Login::None, |shown| Login::Shown(shown));
        let Some(message) = self.next(login).await? else { return Ok(None) };
        let text = self.text(&message, login)?;
        let read = answer::parse(text.as_bytes()).and_then(|raw| answer::decode_stream_event(self.wire, raw));
        read.map(Some).map_err(|garbled| Trouble::garbled(&garbled, text.as_bytes(), login))
    }

    fn text(&self, message: &[u8], login: Login<'_>) -> Result<String, Trouble> {
        let read = grpc::answer_text(self.wire, self.operation, message);
        read.map_err(|garbled| Trouble::garbled(&garbled, message, login))
    }

    async fn next(&mut self, login: Login<'_>) -> Result<Option<Bytes>, Trouble> {
        loop {
            match self.frames.next_message() {
                Ok(Some(message)) => return Ok(Some(message)),
                Ok(None) => {}
                Err(FrameError::TooLarge(limit)) => return Err(Trouble::too_large(limit)),
                Err(FrameError::Compressed) => {
                    let garbled = Garbled::new("a message", "a compressed one, which was not asked for");
                    return Err(Trouble::garbled(&garbled, &[], login));
                }
            }
            match self.body.chunk().await.map_err(|error| Trouble::fetching(&error))? {
                Some(piece) => self.frames.feed(&piece),
                None => return self.end(login),
            }
        }
    }

    /// How it went, now that nothing more comes.
    fn end(&self, login: Login<'_>) -> Result<Option<Bytes>, Trouble> {
        match self.body.trailers().and_then(Status::read) {
            Some(status) if !status.is_ok() => Err(Trouble::grpc(&status, login)),
            Some(_) if !self.frames.is_cut() => Ok(None),
            None if self.is_over => Ok(None),
            _ => {
                let broken = "the answer ended before it was complete".to_owned();
                Err(Trouble::fetching(&FetchError::Broken(broken)))
            }
        }
    }
}
