//! Call endpoint: `POST /call/<skill>` with the arguments as the body and the result as the response.

use std::sync::Arc;

use axum::{
    Router,
    body::to_bytes,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::{HeaderValue, StatusCode, header};
use rialto_engine::Engine;
use rialto_http_server::problem;
use rialto_model::{
    call::{Caller, EntryProtocol},
    failure::{Failure, FailureKind},
    token_scopes::TokenScope,
};

use crate::{openapi::OpenApiDocuments, request_body, response};

/// Path of the endpoint.
pub const CALL_PATH: &str = "/call";

#[derive(Clone)]
struct CallEndpoint {
    engine: Engine,
    documents: Arc<OpenApiDocuments>,
    max_body_bytes: usize,
    needs_token: bool,
}

/// Routes of the endpoint. Requests must have passed admission, which identifies the caller. The OpenAPI document says whether they need a
/// token.
pub fn router(engine: Engine, max_body_bytes: usize, needs_token: bool) -> Router {
    let endpoint = CallEndpoint { engine, documents: Arc::default(), max_body_bytes, needs_token };
    Router::new()
        .route("/call/openapi.json", get(openapi))
        .route("/call/{*name}", post(call))
        .with_state(endpoint)
}

async fn openapi(State(endpoint): State<CallEndpoint>, request: Request) -> Response {
    let caller = match authorized_caller(&request, TokenScope::Discover) {
        Ok(caller) => caller,
        Err(failure) => return problem::respond(&failure),
    };
    if let Err(failure) = endpoint.engine.policies().sync().await {
        return problem::respond(&failure);
    }
    let document = endpoint.documents.render(&endpoint.engine, &caller, endpoint.needs_token);
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
    ];
    (StatusCode::OK, headers, document).into_response()
}

async fn call(State(endpoint): State<CallEndpoint>, Path(name): Path<String>, request: Request) -> Response {
    let headers = request.headers().clone();
    match endpoint.execute(name.trim_end_matches('/'), request).await {
        Ok(task) => response::render_task(&task, &headers),
        Err(failure) => problem::respond(&failure),
    }
}

// === impl CallEndpoint ===

impl CallEndpoint {
    async fn execute(&self, name: &str, request: Request) -> Result<rialto_model::task::Task, Failure> {
        let caller = authorized_caller(&request, TokenScope::Call)?;
        let headers = request.headers().clone();
        let trace = rialto_http_server::trace::from_headers(request.headers());
        let body = to_bytes(request.into_body(), self.max_body_bytes).await.map_err(|_| {
            let message =
                format!("the body did not come whole, or is larger than {} bytes", self.max_body_bytes);
            Failure::new(FailureKind::Invalid, message)
        })?;
        let synced = self.engine.policies().sync().await?;
        let target = self.engine.calls().resolve(&caller, name).ok_or_else(|| {
            let message = format!(
                "there is no skill \"{name}\" here; GET {CALL_PATH}/openapi.json shows those there are"
            );
            Failure::new(FailureKind::NotFound, message)
        })?;
        let parts = Box::pin(request_body::read_parts(&headers, body, &target)).await?;
        let request = rialto_engine::CallRequest {
            trace,
            synced: Some(synced),
            ..rialto_engine::CallRequest::message(caller, EntryProtocol::Http, target, parts)
        };
        self.engine.calls().start(request).await?.into_handle()?.finish().await
    }
}

/// Caller of a request, if it has this right.
fn authorized_caller(request: &Request, right: TokenScope) -> Result<Caller, Failure> {
    let caller = request.extensions().get::<Caller>().cloned();
    let caller = caller
        .ok_or_else(|| Failure::new(FailureKind::Unauthenticated, "this request does not say who calls"))?;
    if caller.rights.have(right) {
        return Ok(caller);
    }
    let message = format!("this token lacks the scope `{}`", right.as_str());
    Err(Failure::new(FailureKind::Denied, message))
}
