//! MCP over HTTP: one endpoint for every protocol version.

use std::{borrow::Cow, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    response::{IntoResponse, Response},
    routing::any,
};
use futures::future::BoxFuture;
use http::{
    HeaderMap, HeaderValue, Method, StatusCode, Uri,
    header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
    request::Parts,
};
use http_body_util::LengthLimitError;
use rialto_http_server::{problem, stream_limits::StreamLimits};
use rialto_model::{
    call::Caller,
    json::{MAX_DEPTH, is_too_deep},
    token_scopes::{TokenScope, TokenScopes},
};
use rmcp::{
    model::ProtocolVersion,
    transport::{StreamableHttpServerConfig, StreamableHttpService},
};
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use tokio_util::sync::CancellationToken;

use crate::{
    config::{Config, SchemaStyle, ToolErrors, ToolList, ToolNames},
    fast_path::FastPath,
    handler::{CallerSource, McpHandler},
    header_params,
    list_changed::ListChangedNotifier,
    sessions::{AdmissionError, HandshakeStore, McpSessions, NoSession, SessionLimits},
    tool_service::ToolService,
};

/// Header with the method of the body.
const METHOD_HEADER: &str = "mcp-method";

/// Method of a subscription.
pub(crate) const LISTEN: &str = "subscriptions/listen";

/// Header with the session id.
const SESSION_HEADER: &str = "mcp-session-id";

/// Header with the protocol version.
const VERSION_HEADER: &str = "mcp-protocol-version";

/// Path of the endpoint.
const ENDPOINT_PATH: &str = "/mcp";

/// State of the HTTP endpoint.
struct HttpEndpoint {
    fast_path: FastPath,
    sessions: Arc<McpSessions>,
    service: StreamableHttpService<McpHandler, McpSessions>,
    max_body_bytes: usize,
    streams: StreamLimits,
}

/// Router of the MCP endpoint.
pub(crate) fn router(desk: &Arc<ToolService>, stop: CancellationToken, streams: StreamLimits) -> Router {
    let listeners = ListChangedNotifier::new(desk.engine.clone());
    let limits = SessionLimits {
        max: desk.config.max_sessions,
        max_per_caller: desk.config.max_sessions_per_caller,
        idle: Duration::from_secs(desk.config.session_idle_secs),
    };
    let sessions = Arc::new(McpSessions::new(Arc::clone(desk), limits, stop.clone()));
    let mut config = service_config(&desk.config);
    config.session_store = Some(Arc::new(HandshakeStore(Arc::clone(&sessions))));
    tokio::spawn(Arc::clone(&listeners).tell(stop.clone()));
    tokio::spawn(Arc::clone(&sessions).end_revoked());
    tokio::spawn(Arc::clone(&sessions).receive_relayed());
    let handler = McpHandler::new(Arc::clone(desk), listeners, CallerSource::Asked, stop.clone());
    let service =
        StreamableHttpService::new(move || Ok(handler.for_session()), Arc::clone(&sessions), config);
    let (fast_path, max_body_bytes) = (FastPath::new(Arc::clone(desk), stop), desk.config.max_body_bytes);
    let http = Arc::new(HttpEndpoint { fast_path, sessions, service, max_body_bytes, streams });
    Router::new().route(ENDPOINT_PATH, any(serve_boxed)).with_state(http)
}

fn service_config(config: &Config) -> StreamableHttpServerConfig {
    let service = StreamableHttpServerConfig::default()
        // An empty first event breaks clients before 2025-11-25: they read it as JSON.
        .with_sse_retry(None)
        .with_json_response(true)
        .with_legacy_session_mode(config.legacy_sessions)
        .with_max_request_body_bytes(config.max_body_bytes)
        .with_allowed_origins(&config.allowed_origins)
        .enforce_origin_validation();
    if config.allowed_hosts.iter().any(|host| host == "*") {
        service.disable_allowed_hosts()
    } else {
        service.with_allowed_hosts(&config.allowed_hosts)
    }
}

/// [`serve`] as a boxed future: it is large, and the router moves it several times before it runs.
fn serve_boxed(State(http): State<Arc<HttpEndpoint>>, request: Request) -> BoxFuture<'static, Response> {
    Box::pin(serve(http, request))
}

async fn serve(http: Arc<HttpEndpoint>, mut request: Request) -> Response {
    let Some(caller) = request.extensions().get::<Caller>().cloned() else {
        return refused(StatusCode::UNAUTHORIZED, "unauthenticated", "this request does not say who calls");
    };
    if is_modern(request.headers()) {
        // Sessions ended with 2025-11-25.
        request.headers_mut().remove(SESSION_HEADER);
    }
    let Some(id) = request.headers().get(SESSION_HEADER).map(|id| id.to_str().unwrap_or_default().to_owned())
    else {
        return answer(&http, request).await;
    };
    // Read before the session is looked up: a slow sender blocks no one else.
    let (parts, body) = request.into_parts();
    let body = match to_bytes(body, http.max_body_bytes).await {
        Ok(body) => body,
        Err(error) => return not_whole(&error, http.max_body_bytes),
    };
    let mut request = Request::from_parts(parts, Body::from(body));
    let admitted = match *request.method() {
        Method::DELETE => http.sessions.end(&id, &caller).await.map(|local| (local, None)),
        _ => http
            .sessions
            .admit(&id, &caller)
            .await
            .map(|admission| (Arc::clone(&admission.local), Some(admission))),
    };
    let (local, admission) = match admitted {
        Ok(admitted) => admitted,
        Err(error) => return not_admitted(&caller, error),
    };
    // rmcp keys the session by its local id, which is never sent to clients.
    let Ok(local) = HeaderValue::from_str(&local) else {
        return not_admitted(&caller, AdmissionError::Unknown);
    };
    request.headers_mut().insert(SESSION_HEADER, local);
    let response = answer(&http, request).await;
    drop(admission);
    response
}

async fn answer(http: &HttpEndpoint, mut request: Request) -> Response {
    if request.uri().query().is_some()
        && let Err(response) = take_wishes(&mut request)
    {
        return *response;
    }
    match *request.method() {
        Method::POST => post(http, request).await,
        Method::DELETE => {
            let mut response = http.service.handle(request).await.map(Body::new);
            // rmcp answers 202; some clients take that for a failure, and the session has already ended.
            if response.status() == StatusCode::ACCEPTED {
                *response.status_mut() = StatusCode::NO_CONTENT;
            }
            response
        }
        Method::GET => {
            match request.extensions().get::<Caller>().map(|caller| http.streams.acquire(caller)) {
                Some(Ok(slot)) => slot.attach(http.service.handle(request).await.map(Body::new)),
                Some(Err(failure)) => problem::respond(&failure),
                None => http.service.handle(request).await.map(Body::new),
            }
        }
        _ => http.service.handle(request).await.map(Body::new),
    }
}

/// True for a protocol version without sessions.
fn is_modern(headers: &HeaderMap) -> bool {
    let version = headers.get(VERSION_HEADER).and_then(|version| version.to_str().ok());
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28.as_str())
}

fn not_admitted(caller: &Caller, error: AdmissionError) -> Response {
    match error {
        AdmissionError::Unknown => {
            refused(StatusCode::NOT_FOUND, "not-found", "there is no such session; initialize a new one")
        }
        AdmissionError::Full(reason) => no_session(caller, reason),
        AdmissionError::Unavailable(failure) => problem::respond(&failure),
    }
}

async fn post(http: &HttpEndpoint, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = match to_bytes(body, http.max_body_bytes).await {
        Ok(body) => body,
        Err(error) => return not_whole(&error, http.max_body_bytes),
    };
    if is_too_deep(&body) {
        return not_a_message(
            -32600,
            &format!("the body is nested deeper than {MAX_DEPTH} levels; send it flatter"),
        );
    }
    if let Some(lacking) = parts.extensions.get::<Caller>().and_then(|caller| lacking(caller.rights, &body)) {
        return insufficient(lacking);
    }
    if let Some(caller) = parts.extensions.get::<Caller>()
        && let Some(refusal) = header_params::refusal(&http.fast_path.desk, caller, &parts.headers, &body)
    {
        return (StatusCode::BAD_REQUEST, [(CONTENT_TYPE, "application/json")], refusal).into_response();
    }
    let is_listening = parts.headers.get(METHOD_HEADER).is_some_and(|method| method == LISTEN);
    if is_listening {
        return listen(http, parts, body).await;
    }
    if let Some(response) = http.fast_path.answer(&parts, &body).await {
        return response;
    }
    match method_of(&body).as_deref() {
        Some(LISTEN) => listen(http, parts, body).await,
        Some("initialize") if !parts.headers.contains_key(SESSION_HEADER) => {
            initialize(http, parts, body).await
        }
        _ => pass_on(http, parts, body).await,
    }
}

/// Answers a subscription with a stream.
async fn listen(http: &HttpEndpoint, parts: Parts, body: Bytes) -> Response {
    let Some(caller) = parts.extensions.get::<Caller>() else { return pass_on(http, parts, body).await };
    let slot = match http.streams.acquire(caller) {
        Ok(slot) => slot,
        Err(failure) => return problem::respond(&failure),
    };
    let response = match http.fast_path.answer(&parts, &body).await {
        Some(response) => response,
        None => pass_on(http, parts, body).await,
    };
    slot.attach(response)
}

/// Opens a session, if the caller has one left.
async fn initialize(http: &HttpEndpoint, parts: Parts, body: Bytes) -> Response {
    let Some(caller) = parts.extensions.get::<Caller>().cloned() else {
        return pass_on(http, parts, body).await;
    };
    let _reserved = match http.sessions.reserve(&caller).await {
        Ok(reserved) => reserved,
        Err(reason) => return no_session(&caller, reason),
    };
    let mut response = pass_on(http, parts, body).await;
    let Some(local) = response.headers_mut().remove(SESSION_HEADER) else { return response };
    match http.sessions.seal(local.to_str().unwrap_or_default()).await {
        Ok(id) => {
            if let Some(id) = id.and_then(|id| HeaderValue::from_str(&id).ok()) {
                response.headers_mut().insert(SESSION_HEADER, id);
            }
            response
        }
        Err(failure) => problem::respond(&failure),
    }
}

fn no_session(caller: &Caller, reason: NoSession) -> Response {
    let (status, code, message) = match reason {
        NoSession::Caller(max) => (
            StatusCode::TOO_MANY_REQUESTS,
            "too-many-sessions",
            format!(
                "{} has {max} sessions, and all of them have a stream open; end one with DELETE, or raise [mcp] max_sessions_per_caller",
                caller.id
            ),
        ),
        NoSession::All(max) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "too-many-sessions",
            format!(
                "this server has {max} sessions, and that is the limit; try again later, or raise [mcp] max_sessions"
            ),
        ),
    };
    let mut response = refused(status, code, &message);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
    response
}

/// Passes the request to rmcp.
async fn pass_on(http: &HttpEndpoint, parts: Parts, body: Bytes) -> Response {
    let is_json = is_json(&parts.headers);
    let request = Request::from_parts(parts, Body::from(body.clone()));
    let response = http.service.handle(request).await.map(Body::new);
    // rmcp also sends this for invalid JSON, with the names of its own types.
    if is_json && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        unreadable(&body)
    } else {
        response
    }
}

/// Response to a body that could not be read completely.
fn not_whole(error: &axum::Error, limit: usize) -> Response {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<LengthLimitError>() {
            let message = format!("the body is larger than the limit of {limit} bytes");
            return refused(StatusCode::PAYLOAD_TOO_LARGE, "too-large", &message);
        }
        cause = error.source();
    }
    let message = "the body broke off, or its pieces are not as its head says; send it again";
    refused(StatusCode::BAD_REQUEST, "incomplete-body", message)
}

/// Scope that the caller lacks for the request. Requests of callers with every scope are not parsed.
fn lacking(rights: TokenScopes, body: &[u8]) -> Option<TokenScope> {
    if rights.have(TokenScope::Call) && rights.have(TokenScope::Discover) {
        return None;
    }
    let needed = match &*method_of(body)? {
        "tools/call" | "tasks/get" | "tasks/update" | "tasks/cancel" | "resources/read"
        | "resources/list" => TokenScope::Call,
        "tools/list" => TokenScope::Discover,
        _ => return None,
    };
    (!rights.have(needed)).then_some(needed)
}

/// Method of a body.
fn method_of(body: &[u8]) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct MethodName<'a> {
        #[serde(borrow)]
        method: Cow<'a, str>,
    }
    serde_json::from_slice::<MethodName<'_>>(body).ok().map(|named| named.method)
}

/// Response to a caller without the scope: the client may ask its user for a better token.
fn insufficient(lacking: TokenScope) -> Response {
    let (word, message) = (lacking.as_str(), lacking.lacking().message);
    let mut response = refused(StatusCode::FORBIDDEN, "insufficient-scope", &message);
    let challenge = format!("Bearer realm=\"rialto\", error=\"insufficient_scope\", scope=\"{word}\"");
    if let Ok(challenge) = HeaderValue::from_str(&challenge) {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/json"))
}

/// Response to a body that is not a message.
fn unreadable(body: &[u8]) -> Response {
    match serde_json::from_slice::<&RawValue>(body) {
        Err(error) => not_a_message(-32700, &format!("the body is not JSON: {error}")),
        Ok(json) if json.get().starts_with('[') => {
            not_a_message(-32600, "a batch is not taken; send one message in each request")
        }
        Ok(_) => not_a_message(-32600, "the body is not a JSON-RPC 2.0 message of MCP"),
    }
}

fn not_a_message(code: i64, message: &str) -> Response {
    let error = json!({ "code": code, "message": message });
    let message = json!({ "jsonrpc": "2.0", "id": null, "error": error });
    (StatusCode::BAD_REQUEST, Json(message)).into_response()
}

/// Removes the options from the URL: `?names=`, `?tools=`, `?schemas=` and `?errors=`.
fn take_wishes(request: &mut Request) -> Result<(), Box<Response>> {
    let uri = request.uri().clone();
    if let Some(names) = wish(&uri, "names", ToolNames::parse, "auto, canonical, legacy and both")? {
        request.extensions_mut().insert(names);
    }
    if let Some(list) = wish(&uri, "tools", ToolList::parse, "all and search")? {
        request.extensions_mut().insert(list);
    }
    if let Some(schemas) = wish(&uri, "schemas", SchemaStyle::parse, "auto, portable and original")? {
        request.extensions_mut().insert(schemas);
    }
    if let Some(errors) = wish(&uri, "errors", ToolErrors::parse, "result and protocol")? {
        request.extensions_mut().insert(errors);
    }
    Ok(())
}

fn wish<T>(
    uri: &Uri,
    name: &str,
    parse: impl FnOnce(&str) -> Option<T>,
    choices: &str,
) -> Result<Option<T>, Box<Response>> {
    let Some(asked) = asked(uri, name) else { return Ok(None) };
    let refusal = || {
        let message = format!("`{name}` is one of {choices}");
        Box::new(refused(StatusCode::BAD_REQUEST, &format!("invalid-{name}"), &message))
    };
    parse(asked).map(Some).ok_or_else(refusal)
}

fn asked<'a>(uri: &'a Uri, name: &str) -> Option<&'a str> {
    let mut pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, asked)| asked)
}

fn refused(status: StatusCode, error: &str, message: &str) -> Response {
    (status, Json(json!({ "error": error, "message": message }))).into_response()
}
