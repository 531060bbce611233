//! The checks that come before any protocol, in one step.
//!
//! A request passes when it was meant for us ([`Guard`]) and we know who sent it ([`Authentication`]), in this order: a
//! request that another page made somebody's browser send learns nothing about tokens. It is one layer, because each
//! layer of a router costs every request a copy of all that is below and a future on the heap.

use std::{
    future::{Ready, ready},
    sync::Arc,
    task::{Context, Poll},
};

use axum::{
    extract::Request,
    response::{IntoResponse, Response},
};
use futures::future::Either;
use tower::{Layer, Service};

use crate::{
    auth::{Authentication, unauthenticated},
    guard::Guard,
};

/// A layer that lets through what may come in. What is behind it finds a [`Caller`](rialto_model::call::Caller) in each
/// request's extensions, or is not reached.
#[derive(Clone)]
pub struct Gate(Arc<Checks>);

/// What is behind a gate.
#[derive(Clone)]
pub struct Gated<S> {
    gate: Gate,
    inner: S,
}

struct Checks {
    guard: Guard,
    authentication: Authentication,
}

// === impl Gate ===

impl Gate {
    /// A gate for what `guard` and `authentication` both accept.
    pub fn new(guard: Guard, authentication: Authentication) -> Self {
        Self(Arc::new(Checks { guard, authentication }))
    }

    /// Prepares `request` for what is behind, or says why it gets no further.
    fn refuse(&self, request: &mut Request) -> Option<Response> {
        let Checks { guard, authentication } = &*self.0;
        if let Err(refusal) = guard.check(request.uri(), request.headers()) {
            return Some(refusal.into_response());
        }
        let Some(caller) = authentication.caller(request.headers()) else {
            return Some(unauthenticated(request.headers()));
        };
        guard.limit(request.body_mut());
        request.extensions_mut().insert(caller);
        None
    }
}

impl<S> Layer<S> for Gate {
    type Service = Gated<S>;

    fn layer(&self, inner: S) -> Gated<S> {
        Gated { gate: self.clone(), inner }
    }
}

// === impl Gated ===

impl<S: Service<Request, Response = Response>> Service<Request> for Gated<S> {
    type Response = Response;
    type Error = S::Error;
    type Future = Either<S::Future, Ready<Result<Response, S::Error>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        match self.gate.refuse(&mut request) {
            None => Either::Left(self.inner.call(request)),
            Some(refusal) => Either::Right(ready(Ok(refusal))),
        }
    }
}
