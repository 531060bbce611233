//! HTTP exchange as seen by users of the client.
//!
//! A [`FetchError`] knows whether the request can have had an effect: only an error for which [`FetchError::is_surely_not_sent`] holds may
//! be retried.

use std::{
    fmt,
    future::poll_fn,
    pin::{Pin, pin},
    task::Poll,
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures::{
    FutureExt,
    future::{self, BoxFuture},
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use http_body::{Body as _, Frame};
use hyper::body::Incoming;
use tokio::time::{Instant, sleep};

use crate::{address::Reach, gunzip::Gunzip};

/// Maximum bytes of a response, 16 MiB, where nothing else is configured.
pub const DEFAULT_MAX_BYTES: usize = 16 * 1024 * 1024;

/// Request, with its timeouts.
#[derive(Clone, Debug)]
pub struct FetchRequest {
    /// The method. Only a GET follows redirects.
    pub method: Method,
    /// The absolute address, `http` or `https`.
    pub uri: Uri,
    /// Headers; `Host` and `Content-Length` are made from the rest. Without `Accept-Encoding` gzip is asked for, and
    /// the body comes back decompressed.
    pub headers: HeaderMap,
    /// Body; empty for none.
    pub body: Bytes,
    /// Addresses that may be called.
    pub reach: Reach,
    /// Timeout for the status line, and for each further piece of the body.
    pub patience: Duration,
    /// Timeout for the whole exchange.
    pub total: Option<Duration>,
    /// Maximum bytes of a body that is read as a whole; the client's maximum if there is none.
    pub limit: Option<usize>,
    /// Speak HTTP/2 from the first byte, which only some servers understand. gRPC needs it.
    pub http2: bool,
}

/// Response whose body is not yet read.
#[derive(Debug)]
pub struct FetchResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, not yet read.
    pub body: FetchBody,
}

/// Body of a response.
pub struct FetchBody {
    source: BodySource,
    patience: Duration,
    deadline: Option<FetchDeadline>,
    limit: usize,
    trailers: Option<Box<HeaderMap>>,
    /// Set while the body is compressed and has not come to its end.
    gunzip: Option<Box<Gunzip>>,
}

/// Error of an exchange. The texts follow "… could not be reached: ".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The address is forbidden.
    #[error("{0}")]
    Forbidden(String),
    /// No connection: unknown name, refused, or no agreement on encryption.
    #[error("{0}")]
    NotSent(String),
    /// This process or machine could not open a connection: no descriptors, no memory, no DNS, unreadable certificates of its own.
    #[error("{0}")]
    Local(String),
    /// The connection broke after the request may have gone out.
    #[error("{0}")]
    Broken(String),
    /// The timeout has passed; the request may have arrived.
    #[error("took longer than {} to answer", format_duration(*.0))]
    Timeout(Duration),
    /// The body is larger than it may be.
    #[error("the answer is larger than the limit of {0} bytes")]
    TooLarge(usize),
}

/// HTTP client, or a test's replacement for it.
pub trait Fetch: Send + Sync {
    /// Sends a request and returns the response once its headers have arrived.
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'static, Result<FetchResponse, FetchError>>;
}

/// Deadline of the whole exchange, and its timeout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FetchDeadline {
    pub(crate) at: Instant,
    pub(crate) total: Duration,
}

enum BodySource {
    Incoming(Incoming),
    Fixed(Option<Bytes>),
}

// === impl FetchRequest ===

impl FetchRequest {
    /// Creates a request without headers or body, to public addresses, with a timeout of 30 seconds.
    pub fn new(method: Method, uri: Uri) -> Self {
        Self {
            method,
            uri,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            reach: Reach::Public,
            patience: Duration::from_secs(30),
            total: None,
            limit: None,
            http2: false,
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }
}

// === impl FetchResponse ===

impl FetchResponse {
    /// Creates a response with a body, for tests and replacements of the client.
    pub fn fixed(status: StatusCode, body: impl Into<Bytes>) -> Self {
        Self { status, headers: HeaderMap::new(), body: FetchBody::fixed(body.into()) }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// The media type, without parameters.
    pub fn media_type(&self) -> &str {
        let value = self.headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        value.and_then(|value| value.split(';').next()).map_or("", str::trim)
    }
}

// === impl FetchBody ===

impl FetchBody {
    /// Creates a body from bytes.
    pub fn fixed(bytes: Bytes) -> Self {
        Self {
            source: BodySource::Fixed(Some(bytes)),
            patience: Duration::MAX,
            deadline: None,
            limit: DEFAULT_MAX_BYTES,
            trailers: None,
            gunzip: None,
        }
    }

    pub(crate) fn incoming(
        incoming: Incoming,
        patience: Duration,
        deadline: Option<FetchDeadline>,
        limit: usize,
    ) -> Self {
        Self {
            source: BodySource::Incoming(incoming),
            patience,
            deadline,
            limit,
            trailers: None,
            gunzip: None,
        }
    }

    /// Decompresses the body with gzip.
    pub(crate) fn gunzipped(mut self) -> Self {
        self.gunzip = Some(Box::new(Gunzip::new(self.limit)));
        self
    }

    /// Maximum bytes that may be read as a whole.
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// Next piece, or none at the end. The sum of all pieces is not limited. Each compressed piece is decompressed to at most the limit.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        loop {
            let piece = self.raw_chunk().await?;
            let Some(gunzip) = &mut self.gunzip else { return Ok(piece) };
            let read = match &piece {
                Some(piece) => gunzip.feed(piece)?,
                None => {
                    let rest = gunzip.finish()?;
                    self.gunzip = None;
                    return Ok(Some(rest).filter(|rest| !rest.is_empty()));
                }
            };
            if !read.is_empty() {
                return Ok(Some(read));
            }
        }
    }

    async fn raw_chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        let incoming = match &mut self.source {
            BodySource::Fixed(bytes) => return Ok(bytes.take().filter(|bytes| !bytes.is_empty())),
            BodySource::Incoming(incoming) => incoming,
        };
        loop {
            match next_frame(incoming, self.patience, self.deadline).await? {
                None => return Ok(None),
                Some(Err(_)) => {
                    return Err(FetchError::Broken(
                        "the connection broke in the middle of the answer".into(),
                    ));
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => return Ok(Some(bytes)),
                    Err(frame) => self.trailers = frame.into_trailers().ok().map(Box::new),
                },
            }
        }
    }

    /// Trailers, once the body has been read to its end.
    pub fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_deref()
    }

    /// Reads the whole body, if it is not larger than the limit.
    pub async fn read(mut self) -> Result<Bytes, FetchError> {
        let limit = self.limit;
        let fits = |size: usize| if size > limit { Err(FetchError::TooLarge(limit)) } else { Ok(()) };
        fits(self.announced())?;
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        fits(first.len())?;
        let Some(second) = self.chunk().await? else { return Ok(first) };
        let mut whole = BytesMut::with_capacity(self.announced().min(limit) + first.len() + second.len());
        whole.extend_from_slice(&first);
        let mut next = Some(second);
        while let Some(piece) = next {
            fits(whole.len() + piece.len())?;
            whole.extend_from_slice(&piece);
            next = self.chunk().await?;
        }
        Ok(whole.freeze())
    }

    /// Least number of bytes that will still arrive, as far as is announced.
    fn announced(&self) -> usize {
        match &self.source {
            BodySource::Incoming(incoming) => {
                usize::try_from(incoming.size_hint().lower()).unwrap_or(usize::MAX)
            }
            BodySource::Fixed(bytes) => bytes.as_ref().map_or(0, Bytes::len),
        }
    }
}

impl fmt::Debug for FetchBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Body")
    }
}

// === impl FetchError ===

impl FetchError {
    /// True if it is certain that no server received the request.
    pub const fn is_surely_not_sent(&self) -> bool {
        matches!(self, Self::Forbidden(_) | Self::NotSent(_) | Self::Local(_))
    }
}

// === impl Fetch ===

/// Function in place of the network: it receives the request and returns the response.
impl<F: Fn(FetchRequest) -> Result<FetchResponse, FetchError> + Send + Sync> Fetch for F {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'static, Result<FetchResponse, FetchError>> {
        future::ready(self(request)).boxed()
    }
}

/// Waits for a frame. No timer is made for one that has arrived: most bodies arrive with their headers.
async fn next_frame(
    incoming: &mut Incoming,
    patience: Duration,
    deadline: Option<FetchDeadline>,
) -> Result<Option<hyper::Result<Frame<Bytes>>>, FetchError> {
    let (wait, exceeded) = remaining_time(patience, deadline);
    let mut alarm = pin!(None);
    poll_fn(|cx| {
        if let Poll::Ready(frame) = Pin::new(&mut *incoming).poll_frame(cx) {
            return Poll::Ready(Ok(frame));
        }
        if alarm.is_none() {
            alarm.set(Some(sleep(wait)));
        }
        let elapsed = alarm.as_mut().as_pin_mut().map_or(Poll::Pending, |alarm| alarm.poll(cx));
        elapsed.map(|()| Err(FetchError::Timeout(exceeded)))
    })
    .await
}

/// Time left to wait, and the timeout that is reported when it passes.
pub(crate) fn remaining_time(patience: Duration, deadline: Option<FetchDeadline>) -> (Duration, Duration) {
    match deadline {
        None => (patience, patience),
        Some(deadline) => {
            let left = deadline.at.saturating_duration_since(Instant::now());
            if left < patience { (left, deadline.total) } else { (patience, patience) }
        }
    }
}

/// Formats a duration for people.
pub(crate) fn format_duration(span: Duration) -> String {
    if span.subsec_millis() == 0 {
        format!("{} s", span.as_secs())
    } else {
        format!("{} ms", span.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_says_how_long_was_waited() {
        assert_eq!(FetchError::Timeout(Duration::from_secs(5)).to_string(), "took longer than 5 s to answer");
        assert_eq!(
            FetchError::Timeout(Duration::from_millis(1500)).to_string(),
            "took longer than 1500 ms to answer"
        );
    }

    #[test]
    fn only_what_was_never_sent_may_be_tried_again() {
        assert!(FetchError::NotSent(String::new()).is_surely_not_sent());
        assert!(FetchError::Local(String::new()).is_surely_not_sent());
        assert!(!FetchError::Broken(String::new()).is_surely_not_sent());
        assert!(!FetchError::Timeout(Duration::ZERO).is_surely_not_sent());
    }

    #[tokio::test]
    async fn a_function_answers_in_place_of_the_network() {
        let fetch = |request: FetchRequest| Ok(FetchResponse::fixed(StatusCode::OK, request.uri.to_string()));
        let answer =
            fetch.fetch(FetchRequest::new(Method::GET, Uri::from_static("http://a/b"))).await.unwrap();
        assert_eq!(answer.body.read().await.unwrap(), "http://a/b");
    }
}
