//! `/api/v1`: everything that can be administered, for programs.
//!
//! There is one table of routes ([`routes`]). The router is built from it, and so is the OpenAPI document, so that they cannot differ.
//! Errors are problems of RFC 9457, lists come in pages with a cursor, and org and project are those of the address, as everywhere.

mod agents;
mod answers;
mod approvals;
mod asking;
mod dispatches;
mod events;
mod flows;
mod guardrails;
mod keeping;
mod openapi;
mod orgs;
mod policies;
mod records;
mod routes;
mod runs;
mod tasks;
mod tools;

use std::convert::Infallible;

use axum::{
    Router,
    extract::{RawPathParams, Request, State},
    response::{IntoResponse, Response},
    routing::{MethodFilter, MethodRouter, any, on},
};
use futures::future::BoxFuture;
use http::{HeaderValue, StatusCode, header};
use rialto_edge::{problem, session::API};
use rialto_model::{failure::Failure, json::Json};
use serde::Serialize;
use serde_json::json;

use self::asking::Asking;
pub use self::routes::{Route, routes};
use crate::{Console, operation::detached};

/// What does a route's work.
pub(crate) type Handler = fn(Asking) -> BoxFuture<'static, Result<Response, Failure>>;

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
        let params = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let answered = match Asking::read(console, route, params, request).await {
            Ok(asking) if route.is_administrative() => detached((route.handler)(asking)).await,
            Ok(asking) => (route.handler)(asking).await,
            Err(failure) => Err(failure),
        };
        answered.unwrap_or_else(|failure| problem::answer(&failure))
    })
}

/// A value as an answer.
fn told<T: Serialize + ?Sized>(status: StatusCode, value: &T) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (status, headers, Json::of(value).get().to_owned()).into_response()
}

fn good<T: Serialize + ?Sized>(value: &T) -> Result<Response, Failure> {
    Ok(told(StatusCode::OK, value))
}

fn done() -> Result<Response, Failure> {
    Ok(StatusCode::NO_CONTENT.into_response())
}
