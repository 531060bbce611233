//! The checks that come before any protocol, in one step.
//!
//! A request passes when it was meant for us ([`Guard`]) and we know who sent it ([`Authentication`]), in this order: a
//! request that another page made somebody's browser send learns nothing about tokens. It is one layer, because each
//! layer of a router costs every request a copy of all that is below and a future on the heap. Only a request that has
//! to wait (tokens have changed since the last one) pays for a future of its own.

use std::{
    future::{Ready, ready},
    sync::Arc,
    task::{Context, Poll},
};

use axum::{
    extract::Request,
    response::{IntoResponse, Response},
};
use futures::future::{BoxFuture, Either};
use rialto_model::call::Caller;
use tower::{Layer, Service};

use crate::{
    auth::{Answer, Authentication, Denial, bearer},
    guard::Guard,
};

/// A layer that lets through what may come in. What is behind it finds a [`Caller`] in each request's extensions, or is
/// not reached.
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

/// How a request fares.
enum Verdict {
    /// It is on its way.
    Passes,
    /// It gets no further.
    Refused(Response),
    /// Whose it is takes a moment to find out.
    Waits,
}

// === impl Gate ===

impl Gate {
    /// A gate for what `guard` and `authentication` both accept.
    pub fn new(guard: Guard, authentication: Authentication) -> Self {
        Self(Arc::new(Checks { guard, authentication }))
    }

    /// Prepares `request` for what is behind, or says why it gets no further.
    fn judge(&self, request: &mut Request) -> Verdict {
        let Checks { guard, authentication } = &*self.0;
        if let Err(refusal) = guard.check(request.uri(), request.headers()) {
            return Verdict::Refused(refusal.into_response());
        }
        let answer = match authentication {
            Authentication::Open(caller) => Answer::Known(Ok(caller.clone())),
            Authentication::Bearer(bearers) => match bearer(request.headers()) {
                Ok(token) => bearers.look(token),
                Err(denial) => Answer::Known(Err(denial)),
            },
        };
        match answer {
            Answer::Wait => Verdict::Waits,
            Answer::Known(known) => match self.admit(request, known) {
                None => Verdict::Passes,
                Some(refusal) => Verdict::Refused(refusal),
            },
        }
    }

    /// The same for a request that had to wait.
    async fn find(&self, request: &mut Request) -> Option<Response> {
        let found = match &self.0.authentication {
            Authentication::Open(caller) => Ok(caller.clone()),
            Authentication::Bearer(bearers) => match bearer(request.headers()).map(str::to_owned) {
                Ok(token) => bearers.find(&token).await,
                Err(denial) => Err(denial),
            },
        };
        self.admit(request, found)
    }

    fn admit(&self, request: &mut Request, found: Result<Caller, Denial>) -> Option<Response> {
        match found {
            Err(denial) => Some(denial.into_response()),
            Ok(caller) => {
                self.0.guard.limit(request.body_mut());
                request.extensions_mut().insert(caller);
                None
            }
        }
    }
}

impl<S> Layer<S> for Gate {
    type Service = Gated<S>;

    fn layer(&self, inner: S) -> Gated<S> {
        Gated { gate: self.clone(), inner }
    }
}

// === impl Gated ===

impl<S> Service<Request> for Gated<S>
where
    S: Service<Request, Response = Response> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
{
    type Response = Response;
    type Error = S::Error;
    type Future = Either<S::Future, Either<Ready<Outcome<S>>, BoxFuture<'static, Outcome<S>>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        match self.gate.judge(&mut request) {
            Verdict::Passes => Either::Left(self.inner.call(request)),
            Verdict::Refused(refusal) => Either::Right(Either::Left(ready(Ok(refusal)))),
            Verdict::Waits => {
                let gate = self.gate.clone();
                // The one that was polled is ready, its copy need not be.
                let copy = self.inner.clone();
                let mut inner = std::mem::replace(&mut self.inner, copy);
                Either::Right(Either::Right(Box::pin(async move {
                    match gate.find(&mut request).await {
                        None => inner.call(request).await,
                        Some(refusal) => Ok(refusal),
                    }
                })))
            }
        }
    }
}

type Outcome<S> = Result<Response, <S as Service<Request>>::Error>;
