//! One HTTP exchange, as those who need one see it.
//!
//! The promise of [`FetchError`] is that it knows whether the request can have had an effect: only an error for which
//! [`FetchError::surely_not_sent`] holds may be answered by trying again.

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

/// Sixteen mebibytes: how much an answer may hold when nobody says otherwise.
pub const DEFAULT_LIMIT: usize = 16 * 1024 * 1024;

/// What to ask, and how long to wait for it.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method. Only a GET follows redirects.
    pub method: Method,
    /// The absolute address, `http` or `https`.
    pub uri: Uri,
    /// Headers; `Host` and `Content-Length` are made from the rest. Without `Accept-Encoding` gzip is asked for, and
    /// the body comes back decompressed.
    pub headers: HeaderMap,
    /// The body; empty for none.
    pub body: Bytes,
    /// Whether private addresses may be called.
    pub reach: Reach,
    /// How long the status line may take, and each further piece of the body.
    pub patience: Duration,
    /// How long the whole exchange may take.
    pub total: Option<Duration>,
    /// How many bytes a body may have when it is read as a whole, if not as many as the client allows.
    pub limit: Option<usize>,
    /// Whether to speak HTTP/2 from the first byte on, which only some servers understand. gRPC needs it.
    pub http2: bool,
}

/// What came back.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, not yet read.
    pub body: Body,
}

/// A body on its way in.
pub struct Body {
    source: Source,
    patience: Duration,
    deadline: Option<Deadline>,
    limit: usize,
    trailers: Option<Box<HeaderMap>>,
    /// Set while the body is compressed and has not come to its end.
    gunzip: Option<Box<Gunzip>>,
}

/// Why an exchange did not work out. The texts say what happened, to follow "… could not be reached: ".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The address may not be called.
    #[error("{0}")]
    Forbidden(String),
    /// Nobody was there: no such name, no connection, no agreement on encryption.
    #[error("{0}")]
    NotSent(String),
    /// This process or machine could not open a connection: no descriptors, no memory, no DNS, unreadable certificates of its own.
    #[error("{0}")]
    Local(String),
    /// The connection broke after the request may have gone out.
    #[error("{0}")]
    Broken(String),
    /// It took too long; the request may have arrived.
    #[error("took longer than {} to answer", human(*.0))]
    Timeout(Duration),
    /// The body is larger than it may be.
    #[error("the answer is larger than the limit of {0} bytes")]
    TooLarge(usize),
}

/// Makes exchanges: the one real client, or whatever stands in for it.
pub trait Fetch: Send + Sync {
    /// Makes one exchange, up to the headers of the answer.
    fn fetch(&self, request: Request) -> BoxFuture<'static, Result<Response, FetchError>>;
}

/// When the whole exchange must be over, and how long that was when it began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    pub(crate) total: Duration,
}

enum Source {
    Incoming(Incoming),
    Fixed(Option<Bytes>),
}

// === impl Request ===

impl Request {
    /// A request without headers or body, to public addresses, with half a minute of patience.
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

    /// The same request with one more header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }
}

// === impl Response ===

impl Response {
    /// An answer that is already here, for tests and stand-ins.
    pub fn fixed(status: StatusCode, body: impl Into<Bytes>) -> Self {
        Self { status, headers: HeaderMap::new(), body: Body::fixed(body.into()) }
    }

    /// The same answer with one more header.
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

// === impl Body ===

impl Body {
    /// A body that is already here.
    pub fn fixed(bytes: Bytes) -> Self {
        Self {
            source: Source::Fixed(Some(bytes)),
            patience: Duration::MAX,
            deadline: None,
            limit: DEFAULT_LIMIT,
            trailers: None,
            gunzip: None,
        }
    }

    pub(crate) fn incoming(
        incoming: Incoming,
        patience: Duration,
        deadline: Option<Deadline>,
        limit: usize,
    ) -> Self {
        Self { source: Source::Incoming(incoming), patience, deadline, limit, trailers: None, gunzip: None }
    }

    /// The same body, which is compressed with gzip.
    pub(crate) fn gunzipped(mut self) -> Self {
        self.gunzip = Some(Box::new(Gunzip::new(self.limit)));
        self
    }

    /// How many bytes may be taken in as a whole.
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// The next piece, or none at the end. Pieces are as large as they come; their sum is not limited. Compressed ones have
    /// been decompressed, each to at most the limit.
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
            Source::Fixed(bytes) => return Ok(bytes.take().filter(|bytes| !bytes.is_empty())),
            Source::Incoming(incoming) => incoming,
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

    /// The headers that came behind the body, when it has been read to its end.
    pub fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_deref()
    }

    /// The whole body, if it is not larger than the request's limit.
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

    /// How many more bytes will come at least, as far as is known.
    fn announced(&self) -> usize {
        match &self.source {
            Source::Incoming(incoming) => usize::try_from(incoming.size_hint().lower()).unwrap_or(usize::MAX),
            Source::Fixed(bytes) => bytes.as_ref().map_or(0, Bytes::len),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Body")
    }
}

// === impl FetchError ===

impl FetchError {
    /// Whether it is certain that nobody received the request.
    pub const fn surely_not_sent(&self) -> bool {
        matches!(self, Self::Forbidden(_) | Self::NotSent(_) | Self::Local(_))
    }
}

// === impl Fetch ===

/// A function stands in for the network: it sees the request and says what came back.
impl<F: Fn(Request) -> Result<Response, FetchError> + Send + Sync> Fetch for F {
    fn fetch(&self, request: Request) -> BoxFuture<'static, Result<Response, FetchError>> {
        future::ready(self(request)).boxed()
    }
}

/// Waits for a frame. What is already here needs no clock: most bodies come with their headers.
async fn next_frame(
    incoming: &mut Incoming,
    patience: Duration,
    deadline: Option<Deadline>,
) -> Result<Option<hyper::Result<Frame<Bytes>>>, FetchError> {
    let (wait, blame) = wait_for(patience, deadline);
    let mut alarm = pin!(None);
    poll_fn(|cx| {
        if let Poll::Ready(frame) = Pin::new(&mut *incoming).poll_frame(cx) {
            return Poll::Ready(Ok(frame));
        }
        if alarm.is_none() {
            alarm.set(Some(sleep(wait)));
        }
        let rung = alarm.as_mut().as_pin_mut().map_or(Poll::Pending, |alarm| alarm.poll(cx));
        rung.map(|()| Err(FetchError::Timeout(blame)))
    })
    .await
}

/// How long to wait now, and which span to blame when that was too short.
pub(crate) fn wait_for(patience: Duration, deadline: Option<Deadline>) -> (Duration, Duration) {
    match deadline {
        None => (patience, patience),
        Some(deadline) => {
            let left = deadline.at.saturating_duration_since(Instant::now());
            if left < patience { (left, deadline.total) } else { (patience, patience) }
        }
    }
}

/// A span as people say it.
pub(crate) fn human(span: Duration) -> String {
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
        assert!(FetchError::NotSent(String::new()).surely_not_sent());
        assert!(FetchError::Local(String::new()).surely_not_sent());
        assert!(!FetchError::Broken(String::new()).surely_not_sent());
        assert!(!FetchError::Timeout(Duration::ZERO).surely_not_sent());
    }

    #[tokio::test]
    async fn a_function_answers_in_place_of_the_network() {
        let fetch = |request: Request| Ok(Response::fixed(StatusCode::OK, request.uri.to_string()));
        let answer = fetch.fetch(Request::new(Method::GET, Uri::from_static("http://a/b"))).await.unwrap();
        assert_eq!(answer.body.read().await.unwrap(), "http://a/b");
    }
}
