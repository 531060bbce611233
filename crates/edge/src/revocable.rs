//! Responses that end with the token they were made for.
//!
//! Every response passes here, whatever protocol made it, so no kind of stream can be forgotten. A response of known length is as good as
//! sent; one that may stay open (events, watches, long answers) is bound to its token and, for a browser, to its session. A token that others
//! have signed ends at its `exp`, as late as clocks may differ.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use http::Extensions;
use http_body::{Body as _, Frame, SizeHint};
use rialto_model::{call::Caller, clock::Timestamp, ids::TokenId};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::{
    auth::{Authentication, Bearers},
    session::Session,
};

/// When the signed token of a request ends.
#[derive(Clone, Copy)]
pub(crate) struct SignedTokenEnd(pub(crate) Timestamp);

/// The token that a request came with, kept until its response is there.
pub(crate) struct TokenHold {
    bearers: Arc<Bearers>,
    /// A token of ours, or none for one that others have signed.
    token: Option<TokenId>,
    ends_at: Option<Timestamp>,
    session: Option<TokenId>,
    /// The generation of tokens when the request was let in.
    generation: u64,
}

/// A body that ends when its token does.
struct RevocableBody {
    /// Nothing once it was ended.
    inner: Option<Body>,
    watched: Vec<Watched>,
}

struct Watched {
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
    /// As long as this is held the token is looked after.
    _held: Arc<CancellationToken>,
}

// === impl TokenHold ===

impl TokenHold {
    /// Keeps the token of a request that was let in, if it came with one.
    pub(crate) fn new(authentication: &Authentication, extensions: &Extensions) -> Option<Self> {
        let Authentication::Bearer(bearers) = authentication else { return None };
        let session = extensions.get::<Session>().and_then(|session| session.id.clone());
        let token = extensions.get::<Caller>().and_then(|caller| caller.token.clone());
        let ends_at = extensions.get::<SignedTokenEnd>().map(|end| end.0);
        if token.is_none() && session.is_none() && ends_at.is_none() {
            return None;
        }
        Some(Self { bearers: Arc::clone(bearers), token, ends_at, session, generation: bearers.generation() })
    }

    /// Whether the token has ended since the request was let in.
    pub(crate) fn has_ended(&self) -> bool {
        self.bearers.generation() != self.generation && self.ids().any(|id| !self.bearers.is_good(id))
    }

    /// The response, which ends when the token does if it stays open until then.
    pub(crate) fn bind(self, response: Response) -> Response {
        if response.body().size_hint().exact().is_some() {
            return response;
        }
        let by_id = self.ids().map(|id| self.bearers.watch(id));
        let by_end = self.ends_at.map(|end| self.bearers.watch_until(end));
        let watched = by_id.chain(by_end).map(|held| Watched {
            ended: Box::pin(CancellationToken::clone(&held).cancelled_owned()),
            _held: held,
        });
        let watched = watched.collect();
        response.map(|body| Body::new(RevocableBody { inner: Some(body), watched }))
    }

    fn ids(&self) -> impl Iterator<Item = &TokenId> {
        self.token.iter().chain(&self.session)
    }
}

// === impl RevocableBody ===

impl http_body::Body for RevocableBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.watched.iter_mut().any(|watched| watched.ended.as_mut().poll(cx).is_ready()) {
            // What made the stream learns that nobody listens any more.
            self.inner = None;
        }
        match &mut self.inner {
            Some(inner) => Pin::new(inner).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or_else(SizeHint::default, http_body::Body::size_hint)
    }
}
