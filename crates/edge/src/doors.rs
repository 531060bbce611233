//! A way past the router for the few addresses that most requests go to.
//!
//! A router copies what stands behind a route, and puts a future or two on the heap around it, for each request. That is little,
//! but so is what a call takes. A door that knows its requests by sight says so with a [`Quick`]; what it does not know goes to the
//! router, where the same door has its routes for everything unusual.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{Router, extract::Request, response::Response, routing::future::RouteFuture};
use futures::{
    FutureExt,
    future::{BoxFuture, Either, Map},
};
use tower::Service;

/// Somebody who knows some requests by sight.
#[derive(Clone)]
pub struct Quick {
    /// Whether it knows a request.
    pub knows: fn(&Request) -> bool,
    /// Answers one that it knows.
    pub answer: Arc<dyn Fn(Request) -> BoxFuture<'static, Response> + Send + Sync>,
}

/// A router, and those who are asked before it.
#[derive(Clone)]
pub struct Doors {
    quick: Arc<[Quick]>,
    router: Router,
}

type Quickly = Map<BoxFuture<'static, Response>, fn(Response) -> Result<Response, Infallible>>;

// === impl Doors ===

impl Doors {
    /// Has these answer what they know, and the router the rest.
    pub fn new(router: Router, quick: Vec<Quick>) -> Self {
        Self { quick: quick.into(), router }
    }
}

impl Service<Request> for Doors {
    type Response = Response;
    type Error = Infallible;
    type Future = Either<Quickly, RouteFuture<Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request>::poll_ready(&mut self.router, cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        match self.quick.iter().find(|quick| (quick.knows)(&request)) {
            Some(quick) => Either::Left((quick.answer)(request).map(Ok)),
            None => Either::Right(self.router.call(request)),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, response::IntoResponse, routing::get};
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn what_nobody_knows_by_sight_goes_to_the_router() {
        let router = Router::new().route("/", get(|| async { "the router" }));
        let quick = Quick {
            knows: |request| request.uri().path() == "/quick",
            answer: Arc::new(|_| async { "quick".into_response() }.boxed()),
        };
        let doors = Doors::new(router, vec![quick]);
        for (path, expected) in [("/quick", "quick"), ("/", "the router")] {
            let request = Request::builder().uri(path).body(Body::empty()).unwrap();
            let Ok(answer) = doors.clone().oneshot(request).await;
            let body = axum::body::to_bytes(answer.into_body(), 100).await.unwrap();
            assert_eq!(body, expected);
        }
    }
}
