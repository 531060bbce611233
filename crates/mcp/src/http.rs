//! MCP over HTTP: one address, every protocol version.

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
use rialto_edge::{problem, streams::StreamLimits};
use rialto_model::{
    call::Caller,
    json::{MAX_DEPTH, is_too_deep},
    rights::{Right, Rights},
};
use rmcp::{
    model::ProtocolVersion,
    transport::{StreamableHttpServerConfig, StreamableHttpService},
};
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use tokio_util::sync::CancellationToken;

use crate::{
    changes::Listeners,
    config::{Config, Schemas, ToolErrors, ToolList, ToolNames},
    desk::Desk,
    fast_path::FastPath,
    handler::{Handler, Whose},
    params,
    sessions::{AdmissionError, Handshakes, NoSession, SessionLimits, Sessions},
};

/// Where a client says what its body asks for.
const METHOD: &str = "mcp-method";

/// How a client says that it wants to hear of something.
pub(crate) const LISTEN: &str = "subscriptions/listen";

/// Where a client names its session.
const SESSION: &str = "mcp-session-id";

/// Where a client names the version that it speaks.
const VERSION: &str = "mcp-protocol-version";

/// Where the door is.
const PATH: &str = "/mcp";

/// Serves `/mcp`.
struct Http {
    fast_path: FastPath,
    sessions: Arc<Sessions>,
    service: StreamableHttpService<Handler, Sessions>,
    max_body_bytes: usize,
    streams: StreamLimits,
}

/// Router of the MCP endpoint.
pub(crate) fn router(desk: &Arc<Desk>, stop: CancellationToken, streams: StreamLimits) -> Router {
    let listeners = Listeners::new(desk.engine.clone());
    let limits = SessionLimits {
        max: desk.config.max_sessions,
        max_per_caller: desk.config.max_sessions_per_caller,
        idle: Duration::from_secs(desk.config.session_idle_secs),
    };
    let sessions = Arc::new(Sessions::new(Arc::clone(desk), limits, stop.clone()));
    let mut config = service_config(&desk.config);
    config.session_store = Some(Arc::new(Handshakes(Arc::clone(&sessions))));
    tokio::spawn(Arc::clone(&listeners).tell(stop.clone()));
    tokio::spawn(Arc::clone(&sessions).end_revoked());
    tokio::spawn(Arc::clone(&sessions).receive_relayed());
    let handler = Handler::new(Arc::clone(desk), listeners, Whose::Asked, stop.clone());
    let service =
        StreamableHttpService::new(move || Ok(handler.for_session()), Arc::clone(&sessions), config);
    let (fast_path, max_body_bytes) = (FastPath::new(Arc::clone(desk), stop), desk.config.max_body_bytes);
    let http = Arc::new(Http { fast_path, sessions, service, max_body_bytes, streams });
    Router::new().route(PATH, any(serve_boxed)).with_state(http)
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
fn serve_boxed(State(http): State<Arc<Http>>, request: Request) -> BoxFuture<'static, Response> {
    Box::pin(serve(http, request))
}

async fn serve(http: Arc<Http>, mut request: Request) -> Response {
    let Some(caller) = request.extensions().get::<Caller>().cloned() else {
        return refused(StatusCode::UNAUTHORIZED, "unauthenticated", "this request does not say who calls");
    };
    if is_modern(request.headers()) {
        // Sessions ended with 2025-11-25.
        request.headers_mut().remove(SESSION);
    }
    let Some(id) = request.headers().get(SESSION).map(|id| id.to_str().unwrap_or_default().to_owned()) else {
        return answer(&http, request).await;
    };
    // Read before the session is looked for: nobody else waits for a slow sender.
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
    // rmcp knows the session by this name, and gives it to nobody.
    let Ok(local) = HeaderValue::from_str(&local) else {
        return not_admitted(&caller, AdmissionError::Unknown);
    };
    request.headers_mut().insert(SESSION, local);
    let response = answer(&http, request).await;
    drop(admission);
    response
}

async fn answer(http: &Http, mut request: Request) -> Response {
    if request.uri().query().is_some()
        && let Err(response) = take_wishes(&mut request)
    {
        return *response;
    }
    match *request.method() {
        Method::POST => post(http, request).await,
        Method::DELETE => {
            let mut response = http.service.handle(request).await.map(Body::new);
            // rmcp says that it will do it; it has done it, and some clients take the other for a failure.
            if response.status() == StatusCode::ACCEPTED {
                *response.status_mut() = StatusCode::NO_CONTENT;
            }
            response
        }
        Method::GET => match request.extensions().get::<Caller>().map(|caller| http.streams.take(caller)) {
            Some(Ok(slot)) => slot.hold(http.service.handle(request).await.map(Body::new)),
            Some(Err(failure)) => problem::answer(&failure),
            None => http.service.handle(request).await.map(Body::new),
        },
        _ => http.service.handle(request).await.map(Body::new),
    }
}

/// Whether a request says that it speaks a version without sessions.
fn is_modern(headers: &HeaderMap) -> bool {
    let version = headers.get(VERSION).and_then(|version| version.to_str().ok());
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28.as_str())
}

fn not_admitted(caller: &Caller, error: AdmissionError) -> Response {
    match error {
        AdmissionError::Unknown => {
            refused(StatusCode::NOT_FOUND, "not-found", "there is no such session; initialize a new one")
        }
        AdmissionError::Full(reason) => no_session(caller, reason),
        AdmissionError::Unavailable(failure) => problem::answer(&failure),
    }
}

async fn post(http: &Http, request: Request) -> Response {
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
        && let Some(refusal) = params::refusal(&http.fast_path.desk, caller, &parts.headers, &body)
    {
        return (StatusCode::BAD_REQUEST, [(CONTENT_TYPE, "application/json")], refusal).into_response();
    }
    let is_listening = parts.headers.get(METHOD).is_some_and(|method| method == LISTEN);
    if is_listening {
        return listen(http, parts, body).await;
    }
    if let Some(response) = http.fast_path.answer(&parts, &body).await {
        return response;
    }
    match method_of(&body).as_deref() {
        Some(LISTEN) => listen(http, parts, body).await,
        Some("initialize") if !parts.headers.contains_key(SESSION) => initialize(http, parts, body).await,
        _ => pass_on(http, parts, body).await,
    }
}

/// Answers a client that subscribes: a stream, for as long as it listens.
async fn listen(http: &Http, parts: Parts, body: Bytes) -> Response {
    let Some(caller) = parts.extensions.get::<Caller>() else { return pass_on(http, parts, body).await };
    let slot = match http.streams.take(caller) {
        Ok(slot) => slot,
        Err(failure) => return problem::answer(&failure),
    };
    let response = match http.fast_path.answer(&parts, &body).await {
        Some(response) => response,
        None => pass_on(http, parts, body).await,
    };
    slot.hold(response)
}

/// Opens a session, if there is room for one more of its caller.
async fn initialize(http: &Http, parts: Parts, body: Bytes) -> Response {
    let Some(caller) = parts.extensions.get::<Caller>().cloned() else {
        return pass_on(http, parts, body).await;
    };
    let _reserved = match http.sessions.reserve(&caller).await {
        Ok(reserved) => reserved,
        Err(reason) => return no_session(&caller, reason),
    };
    let mut response = pass_on(http, parts, body).await;
    let Some(local) = response.headers_mut().remove(SESSION) else { return response };
    match http.sessions.seal(local.to_str().unwrap_or_default()).await {
        Ok(id) => {
            if let Some(id) = id.and_then(|id| HeaderValue::from_str(&id).ok()) {
                response.headers_mut().insert(SESSION, id);
            }
            response
        }
        Err(failure) => problem::answer(&failure),
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

/// Has rmcp answer.
async fn pass_on(http: &Http, parts: Parts, body: Bytes) -> Response {
    let is_json = is_json(&parts.headers);
    let request = Request::from_parts(parts, Body::from(body.clone()));
    let response = http.service.handle(request).await.map(Body::new);
    // rmcp also says this of JSON that it cannot read, and tells why in its own types' names.
    if is_json && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        unreadable(&body)
    } else {
        response
    }
}

/// The answer to a body that could not be read to its end.
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

/// What a caller lacks for what it asks. Nobody looks into the requests of those who lack nothing.
fn lacking(rights: Rights, body: &[u8]) -> Option<Right> {
    if rights.have(Right::Call) && rights.have(Right::Discover) {
        return None;
    }
    let needed = match &*method_of(body)? {
        "tools/call" | "tasks/get" | "tasks/update" | "tasks/cancel" | "resources/read"
        | "resources/list" => Right::Call,
        "tools/list" => Right::Discover,
        _ => return None,
    };
    (!rights.have(needed)).then_some(needed)
}

/// The method that a body names.
fn method_of(body: &[u8]) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        method: Cow<'a, str>,
    }
    serde_json::from_slice::<Named<'_>>(body).ok().map(|named| named.method)
}

/// The answer to a caller who lacks a right: the client may ask its user for a better token.
fn insufficient(lacking: Right) -> Response {
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

/// The answer to a body that is not a message.
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

/// Takes options from the address: `?names=`, `?tools=`, `?schemas=` and `?errors=`.
fn take_wishes(request: &mut Request) -> Result<(), Box<Response>> {
    let uri = request.uri().clone();
    if let Some(names) = wish(&uri, "names", ToolNames::parse, "auto, canonical, legacy and both")? {
        request.extensions_mut().insert(names);
    }
    if let Some(list) = wish(&uri, "tools", ToolList::parse, "all and search")? {
        request.extensions_mut().insert(list);
    }
    if let Some(schemas) = wish(&uri, "schemas", Schemas::parse, "auto, portable and original")? {
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
