//! `/api/v1`: everything that can be administered, for programs.
//!
//! There is one table of routes ([`routes`]). The router is built from it, and so is the OpenAPI document, so that they cannot differ.
//! Errors are problems of RFC 9457, lists come in pages with a cursor, and org and project are those of the address, as everywhere.

mod agents;
mod approvals;
mod asking;
mod dispatches;
mod events;
mod flows;
mod guardrails;
mod keeping;
mod nodes;
mod openapi;
mod orgs;
mod policies;
mod records;
mod response_schemas;
mod routes;
mod runs;
mod tasks;
mod tools;

use std::{convert::Infallible, sync::atomic::Ordering};

use axum::{
    Router,
    extract::{RawPathParams, Request, State},
    response::{IntoResponse, Response},
    routing::{MethodFilter, MethodRouter, any, on},
};
use futures::future::BoxFuture;
use http::{HeaderValue, StatusCode, header};
use rialto_edge::{problem, session::API};
use rialto_model::{
    call::Caller,
    failure::{Failure, FailureKind},
    json::Json,
};
use serde::Serialize;
use serde_json::json;

use self::asking::Asking;
pub use self::routes::{Route, routes};
use crate::{
    Console,
    operation::{Operation, detached},
};

/// What does a route's work.
pub(crate) type Handler = fn(Asking) -> BoxFuture<'static, Result<Response, Failure>>;

/// The parts of a path, by name.
type Params = Vec<(String, String)>;

pub(crate) fn router(console: &Console) -> Router {
    let mut router: Router<Console> = Router::new();
    for (path, known) in by_path() {
        let methods: Vec<&str> = known.iter().map(|route| route.method).collect();
        let mut here = MethodRouter::new().fallback(move || not_allowed(path, methods.join(", ")));
        for route in known {
            here = here.merge(method(route));
        }
        router = router.route(path, here);
    }
    let missing = any(|request: Request| async move { missing(request.uri().path()) });
    router.route(API, missing.clone()).route("/api/v1/{*rest}", missing).with_state(console.clone())
}

/// The routes of each path, in their order.
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

/// What is said of a path that nobody answers at.
fn missing(path: &str) -> Response {
    let detail = format!("there is nothing at {path}; {API}/openapi.json lists every route");
    unknown_route(StatusCode::NOT_FOUND, &detail)
}

/// What is said of a method that a path does not take.
async fn not_allowed(path: &'static str, methods: String) -> Response {
    let detail = format!("{path} takes {methods}; {API}/openapi.json lists every route");
    let mut response = unknown_route(StatusCode::METHOD_NOT_ALLOWED, &detail);
    if let Ok(methods) = HeaderValue::from_str(&methods) {
        response.headers_mut().insert(header::ALLOW, methods);
    }
    response
}

/// A problem of the address, which a client may know of a newer server: it can be told from one of what was asked for.
fn unknown_route(status: StatusCode, detail: &str) -> Response {
    let body = json!({ "title": "unknown-route", "status": status.as_u16(), "detail": detail });
    let kind = HeaderValue::from_static("application/problem+json");
    (status, [(header::CONTENT_TYPE, kind)], body.to_string()).into_response()
}

/// The OpenAPI document of all routes.
pub fn document() -> String {
    openapi::document("").to_string()
}

fn method(route: &'static Route) -> MethodRouter<Console, Infallible> {
    let filter = match route.method {
        "POST" => MethodFilter::POST,
        "PUT" => MethodFilter::PUT,
        "DELETE" => MethodFilter::DELETE,
        _ => MethodFilter::GET,
    };
    on(filter, move |State(console): State<Console>, params: RawPathParams, request: Request| async move {
        let params: Params = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let answered = match route.operation() {
            Some(verb) => administer(console, route, verb, params, request).await,
            None => match Asking::read(console, route, params, request).await {
                Ok(asking) => (route.handler)(asking).await,
                Err(failure) => Err(failure),
            },
        };
        answered.unwrap_or_else(|failure| problem::answer(&failure))
    })
}

/// Handles a request of an administrative route. One that cannot be read leaves a record like any other: who tried what. What was sent is
/// not repeated there, because it may hold a secret.
async fn administer(
    console: Console,
    route: &'static Route,
    verb: &'static str,
    params: Params,
    request: Request,
) -> Result<Response, Failure> {
    let caller = request.extensions().get::<Caller>().cloned();
    let object = params.first().map_or_else(|| route.path.to_owned(), |(_, value)| value.clone());
    let (answered, is_unreadable) = match Asking::read(console.clone(), route, params, request).await {
        Ok(asking) => {
            let unreadable = asking.unreadable();
            let answered = detached((route.handler)(asking)).await;
            (answered, unreadable.load(Ordering::Relaxed))
        }
        Err(failure) => (Err(failure), true),
    };
    if let Some(caller) = caller.filter(|_| is_unreadable && answered.is_err()) {
        let bad_input = Failure::new(FailureKind::Invalid, "bad input: the request could not be read");
        // What is answered says what is wrong, also where the trail takes no record.
        let _ = console.record::<()>(&caller, &Operation::new(verb, object), Err(bad_input)).await;
    }
    answered
}

/// A value as an answer.
fn told<T: Serialize + ?Sized>(status: StatusCode, value: &T) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (status, headers, Json::encode(value).get().to_owned()).into_response()
}

fn good<T: Serialize + ?Sized>(value: &T) -> Result<Response, Failure> {
    Ok(told(StatusCode::OK, value))
}

fn done() -> Result<Response, Failure> {
    Ok(StatusCode::NO_CONTENT.into_response())
}
