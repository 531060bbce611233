//! gRPC client: encodes requests and decodes responses.
//!
//! It is an HTTP/2 exchange like any other, through the same client under the same rules: messages are framed in the bodies, and the
//! status is in the trailers, or in the headers of a response without a body.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use rialto_a2a_codec::{
    answer,
    grpc::{
        self, GrpcStatus,
        frame::{FrameError, Frames},
    },
    invalid::InvalidDocument,
    request::A2aOperation,
    task::{SendAnswer, StreamEvent},
    wire::Wire,
};
use rialto_http_client::fetch::{FetchBody, FetchError, FetchResponse};

use crate::{
    credential::RequestAuth,
    error::{AgentError, AuthSent},
};

const MEDIA_TYPE: HeaderValue = HeaderValue::from_static(grpc::MEDIA_TYPE);
const TRAILERS: HeaderValue = HeaderValue::from_static("trailers");
const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// Maximum of `grpc-timeout`: eight digits.
const MAX_TIMEOUT_MS: u128 = 99_999_999;

/// Messages of a response, and its status.
pub(crate) struct GrpcMessages {
    body: FetchBody,
    frames: Frames,
    wire: Wire,
    operation: A2aOperation,
    /// True when the headers already reported success, so that no trailers follow.
    is_over: bool,
}

/// Adds gRPC's headers. A unary call also sends its timeout to the agent.
pub(crate) fn put_headers(headers: &mut HeaderMap, operation: A2aOperation, patience: Duration) {
    headers.insert(header::CONTENT_TYPE, MEDIA_TYPE);
    headers.insert(header::TE, TRAILERS);
    let millis = patience.as_millis().min(MAX_TIMEOUT_MS);
    if !operation.streams()
        && let Ok(value) = HeaderValue::try_from(format!("{millis}m"))
    {
        headers.insert(TIMEOUT, value);
    }
}

/// HTTP status equivalent to a response's headers, to detect errors.
pub(crate) fn http_status(answer: &FetchResponse) -> StatusCode {
    match GrpcStatus::read(&answer.headers).map(|status| status.number) {
        Some(GrpcStatus::UNAUTHENTICATED) => StatusCode::UNAUTHORIZED,
        Some(GrpcStatus::PERMISSION_DENIED) => StatusCode::FORBIDDEN,
        _ => answer.status,
    }
}

/// Opens a response: messages follow, or the headers hold an error.
pub(crate) async fn open(
    answer: FetchResponse,
    wire: Wire,
    operation: A2aOperation,
    login: AuthSent<'_>,
) -> Result<GrpcMessages, AgentError> {
    let first = GrpcStatus::read(&answer.headers);
    if let Some(status) = first.as_ref().filter(|status| !status.is_ok()) {
        return Err(AgentError::grpc(status, login));
    }
    let media_type = answer.media_type().to_ascii_lowercase();
    let is_grpc = media_type.starts_with(grpc::MEDIA_TYPE);
    if is_grpc && answer.status.is_success() {
        let frames = Frames::new(answer.body.limit());
        return Ok(GrpcMessages { body: answer.body, frames, wire, operation, is_over: first.is_some() });
    }
    let status = answer.status;
    let body = answer.body.read().await.map_err(|error| AgentError::fetching(&error))?;
    if status.is_success() {
        let garbled = InvalidDocument::new(grpc::MEDIA_TYPE, format!("the media type \"{media_type}\""));
        return Err(AgentError::garbled(&garbled, &body, login));
    }
    // The server does not know the path, and so not the package.
    Err(AgentError::status(status, &body, login).foreign_if(status == StatusCode::NOT_FOUND))
}

// === impl GrpcMessages ===

impl GrpcMessages {
    /// The one message of a unary response.
    pub(crate) async fn only(mut self, login: AuthSent<'_>) -> Result<SendAnswer, AgentError> {
        let Some(message) = self.next(login).await? else {
            return Err(AgentError::garbled(&InvalidDocument::new("a message", "nothing"), &[], login));
        };
        // The status follows in the trailers.
        if self.next(login).await?.is_some() {
            return Err(AgentError::garbled(&InvalidDocument::new("one message", "more"), &[], login));
        }
        let text = self.text(&message, login)?;
        let read = answer::parse(text.as_bytes()).and_then(|raw| answer::decode_send(self.wire, raw));
        read.map_err(|garbled| AgentError::garbled(&garbled, text.as_bytes(), login))
    }

    /// Next event; none at the end of the stream.
    pub(crate) async fn event(
        &mut self,
        shown: Option<&Arc<RequestAuth>>,
    ) -> Result<Option<StreamEvent>, AgentError> {
        let login = shown.map_or(AuthSent::None, |shown| AuthSent::Shown(shown));
        let Some(message) = self.next(login).await? else { return Ok(None) };
        let text = self.text(&message, login)?;
        let read = answer::parse(text.as_bytes()).and_then(|raw| answer::decode_stream_event(self.wire, raw));
        read.map(Some).map_err(|garbled| AgentError::garbled(&garbled, text.as_bytes(), login))
    }

    fn text(&self, message: &[u8], login: AuthSent<'_>) -> Result<String, AgentError> {
        let read = grpc::answer_text(self.wire, self.operation, message);
        read.map_err(|garbled| AgentError::garbled(&garbled, message, login))
    }

    async fn next(&mut self, login: AuthSent<'_>) -> Result<Option<Bytes>, AgentError> {
        loop {
            match self.frames.next_message() {
                Ok(Some(message)) => return Ok(Some(message)),
                Ok(None) => {}
                Err(FrameError::TooLarge(limit)) => return Err(AgentError::too_large(limit)),
                Err(FrameError::Compressed) => {
                    let garbled =
                        InvalidDocument::new("a message", "a compressed one, which was not asked for");
                    return Err(AgentError::garbled(&garbled, &[], login));
                }
            }
            match self.body.chunk().await.map_err(|error| AgentError::fetching(&error))? {
                Some(piece) => self.frames.feed(&piece),
                None => return self.end(login),
            }
        }
    }

    /// Status of the call, at the end.
    fn end(&self, login: AuthSent<'_>) -> Result<Option<Bytes>, AgentError> {
        match self.body.trailers().and_then(GrpcStatus::read) {
            Some(status) if !status.is_ok() => Err(AgentError::grpc(&status, login)),
            Some(_) if !self.frames.is_cut() => Ok(None),
            None if self.is_over => Ok(None),
            _ => {
                let broken = "the answer ended before it was complete".to_owned();
                Err(AgentError::fetching(&FetchError::Broken(broken)))
            }
        }
    }
}
