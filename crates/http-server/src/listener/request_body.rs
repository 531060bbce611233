//! Bodies of a connection's requests.
//!
//! A body must arrive in time: a client that sends it byte by byte would keep a request open for ever. No timer is made for a body that
//! arrived with its head.
//!
//! Over HTTP/2 a request that is answered before its body was read, as one without a token is, would be reset once its body is dropped.
//! Some clients then report the reset instead of the response (curl 7.88 does). So the rest of such a body is received and discarded,
//! within limits.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
    time::Duration,
};

use axum::BoxError;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::time::Sleep;

use super::deadlines::ConnectionActivity;

/// Limits of discarded bodies. A client that sends more is reset.
const MAX_DISCARDED_BYTES: usize = 4 * 1024 * 1024;
const MAX_DISCARD_TIME: Duration = Duration::from_secs(2);

/// Request body with a deadline.
pub(super) struct TimedBody {
    /// Taken when this is dropped, and not before.
    incoming: Option<Incoming>,
    limit: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
    activity: Arc<ConnectionActivity>,
    unread: Option<Arc<UnreadBody>>,
}

/// The body of an HTTP/2 request that was dropped before its end.
#[derive(Default)]
pub(super) struct UnreadBody(Mutex<Option<Incoming>>);

/// A body that took too long.
#[derive(Debug, thiserror::Error)]
#[error(
    "the body of the request did not arrive within {0:?}; send it faster, or raise [server] body_timeout_ms"
)]
pub(super) struct BodyTimeout(Duration);

// === impl TimedBody ===

impl TimedBody {
    pub(super) const fn new(incoming: Incoming, limit: Duration, activity: Arc<ConnectionActivity>) -> Self {
        Self { incoming: Some(incoming), limit, deadline: None, activity, unread: None }
    }

    /// Leaves the rest of the body to `unread` when it is dropped.
    pub(super) fn with_rest_to(self, unread: Arc<UnreadBody>) -> Self {
        let mut body = self;
        body.unread = Some(unread);
        body
    }
}

impl Drop for TimedBody {
    fn drop(&mut self) {
        if let (Some(unread), Some(incoming)) = (&self.unread, self.incoming.take())
            && !incoming.is_end_stream()
        {
            *unread.0.lock() = Some(incoming);
        }
    }
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some(incoming) = &mut self.incoming else { return Poll::Ready(None) };
        if let Poll::Ready(frame) = Pin::new(incoming).poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let limit = self.limit;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        if deadline.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        if !self.activity.is_http2() {
            self.activity.is_body_late.store(true, Ordering::Relaxed);
        }
        Poll::Ready(Some(Err(Box::new(BodyTimeout(limit)))))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.as_ref().map_or_else(SizeHint::default, HttpBody::size_hint)
    }
}

// === impl UnreadBody ===

impl UnreadBody {
    /// The body, if it was dropped before its end.
    pub(super) fn take(&self) -> Option<Incoming> {
        self.0.lock().take()
    }
}

/// Receives a body and discards it, until it ends or a limit is reached.
pub(super) async fn discard(mut body: impl HttpBody<Data = Bytes> + Unpin) {
    let received = async {
        let mut left = MAX_DISCARDED_BYTES;
        while let Some(Ok(frame)) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            let Some(rest) = left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) else { return };
            left = rest;
        }
    };
    // One that takes longer is reset, as one that is larger is.
    let _ = tokio::time::timeout(MAX_DISCARD_TIME, received).await;
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::atomic::AtomicUsize};

    use futures::{StreamExt, stream};
    use http_body_util::StreamBody;

    use super::*;

    #[tokio::test]
    async fn only_so_much_is_discarded_and_only_for_so_long() {
        let sent = AtomicUsize::new(0);
        let pieces = stream::repeat_with(|| {
            sent.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[0; 65_536])))
        });
        discard(StreamBody::new(Box::pin(pieces))).await;
        assert_eq!(sent.into_inner(), MAX_DISCARDED_BYTES / 65_536 + 1);
        let begun = tokio::time::Instant::now();
        let silent = stream::pending::<Result<Frame<Bytes>, Infallible>>();
        discard(StreamBody::new(silent.boxed())).await;
        assert!(begun.elapsed() >= MAX_DISCARD_TIME);
    }
}
