//! Responses that end with the token they were made for.
//!
//! Every response passes here, whatever protocol made it, so no kind of stream can be forgotten. A response of known length is as good as
//! sent. One that may stay open (events, watches, long responses) is bound to its token and, for a browser, to its session. A token of an
//! issuer ends at its `exp`, clock skew included.

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
    auth::{Authentication, BearerAuthenticator},
    session::BrowserSession,
};

/// Expiry of a request's signed token.
#[derive(Clone, Copy)]
pub(crate) struct SignedTokenExpiry(pub(crate) Timestamp);

/// Token of a request, kept until its response is there.
pub(crate) struct TokenBinding {
    bearers: Arc<BearerAuthenticator>,
    /// Token of ours, or none for one of an issuer.
    token: Option<TokenId>,
    ends_at: Option<Timestamp>,
    session: Option<TokenId>,
    /// Generation of tokens when the request was admitted.
    generation: u64,
}

/// Body that ends when its token does.
struct RevocableBody {
    /// Inner body; none once it has ended.
    inner: Option<Body>,
    watched: Vec<WatchedToken>,
}

struct WatchedToken {
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Keeps the token watched.
    _held: Arc<CancellationToken>,
}

// === impl TokenBinding ===

impl TokenBinding {
    /// Binds to the token of an admitted request, if it has one.
    pub(crate) fn new(authentication: &Authentication, extensions: &Extensions) -> Option<Self> {
        let Authentication::Bearer(bearers) = authentication else { return None };
        let session = extensions.get::<BrowserSession>().and_then(|session| session.id.clone());
        let token = extensions.get::<Caller>().and_then(|caller| caller.token.clone());
        let ends_at = extensions.get::<SignedTokenExpiry>().map(|end| end.0);
        if token.is_none() && session.is_none() && ends_at.is_none() {
            return None;
        }
        Some(Self { bearers: Arc::clone(bearers), token, ends_at, session, generation: bearers.generation() })
    }

    /// True if the token has ended since the request was admitted.
    pub(crate) fn has_ended(&self) -> bool {
        self.bearers.generation() != self.generation && self.ids().any(|id| !self.bearers.is_valid(id))
    }

    /// Ends the response when the token ends, if it is open that long.
    pub(crate) fn bind(self, response: Response) -> Response {
        if response.body().size_hint().exact().is_some() {
            return response;
        }
        let by_id = self.ids().map(|id| self.bearers.watch(id));
        let by_end = self.ends_at.map(|end| self.bearers.watch_until(end));
        let watched = by_id.chain(by_end).map(|held| WatchedToken {
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
            // Dropping the body ends its producer.
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
