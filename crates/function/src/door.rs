//! Plain HTTP: `POST /call/<skill>` with the arguments as the body, and the result as the answer.

use std::sync::Arc;

use axum::{
    Router,
    body::to_bytes,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::{HeaderValue, StatusCode, header};
use rialto_edge::problem;
use rialto_engine::Engine;
use rialto_model::{
    call::{Caller, EntryProtocol},
    failure::{Failure, FailureKind},
    token_scopes::TokenScope,
};

use crate::{answer, body, openapi::Descriptions};

/// Where it is.
pub const PATH: &str = "/call";

#[derive(Clone)]
struct Plain {
    engine: Engine,
    descriptions: Arc<Descriptions>,
    max_body_bytes: usize,
    needs_token: bool,
}

/// The door's addresses. Requests must have come through the gate, which says who calls.
/// The OpenAPI document says whether they need a token.
pub fn router(engine: Engine, max_body_bytes: usize, needs_token: bool) -> Router {
    let plain = Plain { engine, descriptions: Arc::default(), max_body_bytes, needs_token };
    Router::new()
        .route("/call/openapi.json", get(describe))
        .route("/call/{*name}", post(call))
        .with_state(plain)
}

async fn describe(State(plain): State<Plain>, request: Request) -> Response {
    let caller = match caller(&request, TokenScope::Discover) {
        Ok(caller) => caller,
        Err(failure) => return problem::answer(&failure),
    };
    if let Err(failure) = plain.engine.sync().await {
        return problem::answer(&failure);
    }
    let document = plain.descriptions.document(&plain.engine, &caller, plain.needs_token);
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
    ];
    (StatusCode::OK, headers, document).into_response()
}

async fn call(State(plain): State<Plain>, Path(name): Path<String>, request: Request) -> Response {
    let headers = request.headers().clone();
    match plain.make(name.trim_end_matches('/'), request).await {
        Ok(task) => answer::of_task(&task, &headers),
        Err(failure) => problem::answer(&failure),
    }
}

// === impl Plain ===

impl Plain {
    async fn make(&self, name: &str, request: Request) -> Result<rialto_model::task::Task, Failure> {
        let caller = caller(&request, TokenScope::Call)?;
        let headers = request.headers().clone();
        let trace = rialto_edge::trace::of(request.headers());
        let body = to_bytes(request.into_body(), self.max_body_bytes).await.map_err(|_| {
            let message =
                format!("the body did not come whole, or is larger than {} bytes", self.max_body_bytes);
            Failure::new(FailureKind::Invalid, message)
        })?;
        self.engine.sync().await?;
        let target = self.engine.resolve(&caller, name).ok_or_else(|| {
            let message =
                format!("there is no skill \"{name}\" here; GET {PATH}/openapi.json shows those there are");
            Failure::new(FailureKind::NotFound, message)
        })?;
        let parts = Box::pin(body::parts(&headers, body, &target)).await?;
        let request = rialto_engine::Request {
            trace,
            ..rialto_engine::Request::message(caller, EntryProtocol::Http, target, parts)
        };
        self.engine.call(request).await?.finish().await
    }
}

/// Who calls, if it has this right.
fn caller(request: &Request, right: TokenScope) -> Result<Caller, Failure> {
    let caller = request.extensions().get::<Caller>().cloned();
    let caller = caller
        .ok_or_else(|| Failure::new(FailureKind::Unauthenticated, "this request does not say who calls"))?;
    if caller.rights.have(right) {
        return Ok(caller);
    }
    let message = format!("this token lacks the scope `{}`", right.as_str());
    Err(Failure::new(FailureKind::Denied, message))
}
