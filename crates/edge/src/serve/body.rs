//! Bodies of a connection's requests and responses.
//!
//! A request's body must be there in time: a client that sends it byte by byte would keep a request open for ever. No timer is made for
//! a body that has come with its head. A response's body marks its request as in flight until it is written.

use std::{
    pin::Pin,
    sync::atomic::Ordering,
    task::{Context, Poll},
    time::Duration,
};

use axum::{BoxError, body::Body};
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Sleep;

use super::deadlines::{Activity, InFlight};

/// A request's body that must be there in time.
pub(super) struct TimedBody {
    incoming: Incoming,
    limit: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
    activity: std::sync::Arc<Activity>,
}

/// A response's body, and the request that is in flight until it is written.
pub(super) struct TrackedBody {
    body: Body,
    _request: InFlight,
}

/// A body that took too long.
#[derive(Debug, thiserror::Error)]
#[error(
    "the body of the request did not arrive within {0:?}; send it faster, or raise [server] body_timeout_ms"
)]
pub(super) struct BodyTimeout(Duration);

// === impl TimedBody ===

impl TimedBody {
    pub(super) const fn new(incoming: Incoming, limit: Duration, activity: std::sync::Arc<Activity>) -> Self {
        Self { incoming, limit, deadline: None, activity }
    }
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(cx) {
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
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

// === impl TrackedBody ===

impl TrackedBody {
    pub(super) const fn new(body: Body, request: InFlight) -> Self {
        Self { body, _request: request }
    }
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
