//! Administration API, `/api/v1`.
//!
//! Router and OpenAPI document are built from one table of routes ([`routes`]), so they cannot differ. Errors are problems of RFC 9457,
//! lists have pages with a cursor, and org and project come from the path.

mod agents;
mod approvals;
mod audit;
mod dispatches;
mod events;
mod guardrails;
mod nodes;
mod openapi;
mod overview;
mod policies;
mod request;
mod response_schemas;
mod routes;
mod runs;
mod secrets;
mod tasks;
mod tenants;
mod tokens;
mod tools;
mod webhooks;
mod workflows;

use std::{convert::Infallible, sync::atomic::Ordering};

use axum::{
    Router,
    extract::{RawPathParams, Request, State},
    response::{IntoResponse, Response},
    routing::{MethodFilter, MethodRouter, any, on},
};
use futures::future::BoxFuture;
use http::{HeaderValue, StatusCode, header};
use rialto_admin::{
    Administration,
    operation::{AdminOperation, detached},
};
use rialto_http_server::{problem, session::API};
use rialto_model::{
    call::Caller,
    failure::{Failure, FailureKind},
    json::Json,
};
use serde::Serialize;
use serde_json::json;

use self::request::RouteRequest;
pub use self::routes::{Route, routes};

/// Function that handles the requests of a route.
pub(crate) type Handler = fn(RouteRequest) -> BoxFuture<'static, Result<Response, Failure>>;

/// Path parameters by name.
type Params = Vec<(String, String)>;

/// Router of the API. Requests must carry a caller, which admission adds.
pub fn router(admin: &Administration) -> Router {
    let mut router: Router<Administration> = Router::new();
    for (path, known) in by_path() {
        let methods: Vec<&str> = known.iter().map(|route| route.method).collect();
        let mut here = MethodRouter::new().fallback(move || not_allowed(path, methods.join(", ")));
        for route in known {
            here = here.merge(method(route));
        }
        router = router.route(path, here);
    }
    let missing = any(|request: Request| async move { not_found(request.uri().path()) });
    router.route(API, missing.clone()).route("/api/v1/{*rest}", missing).with_state(admin.clone())
}

/// Routes of each path, in their order.
fn by_path() -> Vec<(&'static str, Vec<&'static Route>)> {
    let mut paths: Vec<(&str, Vec<&Route>)> = Vec::new();
    for route in routes() {
        match paths.iter_mut().find(|(path, _)| *path == route.path) {
            Some((_, known)) => known.push(route),
            None => paths.push((route.path, vec![route])),
        }
    }
    paths
}

/// Response for an unknown path.
fn not_found(path: &str) -> Response {
    let detail = format!("there is no route {path}; {API}/openapi.json lists all routes");
    unknown_route(StatusCode::NOT_FOUND, &detail)
}

/// Response for a method that a path does not support.
async fn not_allowed(path: &'static str, methods: String) -> Response {
    let detail = format!("{path} supports {methods}; {API}/openapi.json lists all routes");
    let mut response = unknown_route(StatusCode::METHOD_NOT_ALLOWED, &detail);
    if let Ok(methods) = HeaderValue::from_str(&methods) {
        response.headers_mut().insert(header::ALLOW, methods);
    }
    response
}

/// Problem of an unknown route. Its title differs from other problems, so that clients of newer servers recognize it.
fn unknown_route(status: StatusCode, detail: &str) -> Response {
    let body = json!({ "title": "unknown-route", "status": status.as_u16(), "detail": detail });
    let kind = HeaderValue::from_static("application/problem+json");
    (status, [(header::CONTENT_TYPE, kind)], body.to_string()).into_response()
}

/// OpenAPI document of all routes.
pub fn document() -> String {
    openapi::document("").to_string()
}

fn method(route: &'static Route) -> MethodRouter<Administration, Infallible> {
    let filter = match route.method {
        "POST" => MethodFilter::POST,
        "PUT" => MethodFilter::PUT,
        "DELETE" => MethodFilter::DELETE,
        _ => MethodFilter::GET,
    };
    on(
        filter,
        move |State(admin): State<Administration>, params: RawPathParams, request: Request| async move {
            let params: Params =
                params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            let response = match route.operation() {
                Some(verb) => handle_admin(admin, route, verb, params, request).await,
                None => match RouteRequest::read(admin, route, params, request).await {
                    Ok(request) => (route.handler)(request).await,
                    Err(failure) => Err(failure),
                },
            };
            response.unwrap_or_else(|failure| problem::respond(&failure))
        },
    )
}

/// Handles a request of an administrative route. An unreadable request is recorded too, without its content, which may contain a
/// secret.
async fn handle_admin(
    admin: Administration,
    route: &'static Route,
    verb: &'static str,
    params: Params,
    request: Request,
) -> Result<Response, Failure> {
    let caller = request.extensions().get::<Caller>().cloned();
    let object = params.first().map_or_else(|| route.path.to_owned(), |(_, value)| value.clone());
    let (result, is_unreadable) = match RouteRequest::read(admin.clone(), route, params, request).await {
        Ok(request) => {
            let unreadable = request.unreadable();
            let result = detached((route.handler)(request)).await;
            (result, unreadable.load(Ordering::Relaxed))
        }
        Err(failure) => (Err(failure), true),
    };
    if let Some(caller) = caller.filter(|_| is_unreadable && result.is_err()) {
        let bad_input = Failure::new(FailureKind::Invalid, "bad input: the request could not be read");
        // The response describes the error, also if the audit log is unavailable.
        let _ = admin.record::<()>(&caller, &AdminOperation::new(verb, object), Err(bad_input)).await;
    }
    result
}

/// JSON response with a status.
fn json_response<T: Serialize + ?Sized>(status: StatusCode, value: &T) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (status, headers, Json::encode(value).get().to_owned()).into_response()
}

fn ok_json<T: Serialize + ?Sized>(value: &T) -> Result<Response, Failure> {
    Ok(json_response(StatusCode::OK, value))
}

fn no_content() -> Result<Response, Failure> {
    Ok(StatusCode::NO_CONTENT.into_response())
}
