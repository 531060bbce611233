//! MCP over HTTP: one address, every protocol version.

use std::sync::Arc;

use axum::{
    Json, Router,
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
    routing::any,
};
use http::{StatusCode, Uri};
use rialto_model::call::Caller;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    changes::Listeners,
    config::{Config, ToolNames},
    desk::Desk,
    handler::{Handler, Whose},
    sessions::Sessions,
};

/// Where a client names its session.
const SESSION: &str = "mcp-session-id";

/// Serves `/mcp`.
#[derive(Clone)]
struct Http {
    sessions: Arc<Sessions>,
    service: Arc<StreamableHttpService<Handler, Sessions>>,
}

/// The router of the door.
pub(crate) fn router(desk: &Arc<Desk>, stop: CancellationToken) -> Router {
    let listeners = Arc::<Listeners>::default();
    let sessions = Arc::new(Sessions::new(desk.config.max_sessions));
    let config = service_config(&desk.config, stop.clone());
    tokio::spawn(Arc::clone(&listeners).tell(desk.engine.registry().watch(), stop.clone()));
    let handler = Handler::new(Arc::clone(desk), listeners, Whose::Asked, stop);
    let service = StreamableHttpService::new(move || Ok(handler.clone()), Arc::clone(&sessions), config);
    Router::new().route("/mcp", any(serve)).with_state(Http { sessions, service: Arc::new(service) })
}

fn service_config(config: &Config, stop: CancellationToken) -> StreamableHttpServerConfig {
    let service = StreamableHttpServerConfig::default()
        // An empty first event breaks clients before 2025-11-25: they read it as JSON.
        .with_sse_retry(None)
        .with_json_response(true)
        .with_legacy_session_mode(config.legacy_sessions)
        .with_max_request_body_bytes(config.max_body_bytes)
        .with_cancellation_token(stop)
        .with_allowed_origins(&config.allowed_origins)
        .enforce_origin_validation();
    if config.allowed_hosts.iter().any(|host| host == "*") {
        service.disable_allowed_hosts()
    } else {
        service.with_allowed_hosts(&config.allowed_hosts)
    }
}

async fn serve(State(http): State<Http>, mut request: Request) -> Response {
    let Some(caller) = request.extensions().get::<Caller>() else {
        return refused(StatusCode::UNAUTHORIZED, "unauthenticated", "this request does not say who calls");
    };
    let session = request.headers().get(SESSION).and_then(|id| id.to_str().ok());
    if session.is_some_and(|id| !http.sessions.is_open_to(id, caller)) {
        // Somebody else's session is not there at all.
        return refused(StatusCode::NOT_FOUND, "not-found", "there is no such session; initialize a new one");
    }
    match names_asked(request.uri()) {
        Ok(Some(names)) => drop(request.extensions_mut().insert(names)),
        Ok(None) => {}
        Err(()) => {
            let message = "`names` is one of auto, canonical, legacy and both";
            return refused(StatusCode::BAD_REQUEST, "invalid-names", message);
        }
    }
    http.service.handle(request).await.map(Body::new)
}

/// What `?names=` asks for.
fn names_asked(uri: &Uri) -> Result<Option<ToolNames>, ()> {
    let mut pairs = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let Some((_, asked)) = pairs.find(|(key, _)| *key == "names") else { return Ok(None) };
    ToolNames::parse(asked).map(Some).ok_or(())
}

fn refused(status: StatusCode, error: &str, message: &str) -> Response {
    (status, Json(json!({ "error": error, "message": message }))).into_response()
}
