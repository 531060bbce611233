//! `/api/v1`: everything that can be administered, for programs.
//!
//! There is one table of routes ([`routes`]). The router is built from it, and so is the OpenAPI document, so that they cannot differ.
//! Errors are problems of RFC 9457, lists come in pages with a cursor, and org and project are those of the address, as everywhere.

mod agents;
mod asking;
mod openapi;
mod policies;
mod records;
mod routes;
mod tasks;

use std::convert::Infallible;

use axum::{
    Router,
    extract::{RawPathParams, Request, State},
    response::{IntoResponse, Response},
    routing::{MethodFilter, MethodRouter, on},
};
use futures::future::BoxFuture;
use http::{HeaderValue, StatusCode, header};
use rialto_edge::problem;
use rialto_model::{failure::Failure, json::Json};
use serde::Serialize;

use self::asking::Asking;
pub use self::routes::{ROUTES, Route};
use crate::Console;

/// What does a route's work.
pub(crate) type Handler = fn(Asking) -> BoxFuture<'static, Result<Response, Failure>>;

pub(crate) fn router(console: &Console) -> Router {
    let mut router: Router<Console> = Router::new();
    for route in ROUTES {
        if let Some(handler) = route.handler {
            router = router.route(route.path, method(route, handler));
        }
    }
    router.with_state(console.clone())
}

/// The OpenAPI document of all routes.
pub fn document() -> String {
    openapi::document().to_string()
}

fn method(route: &Route, handler: Handler) -> MethodRouter<Console, Infallible> {
    let filter = match route.method {
        "POST" => MethodFilter::POST,
        "PUT" => MethodFilter::PUT,
        "DELETE" => MethodFilter::DELETE,
        _ => MethodFilter::GET,
    };
    on(filter, move |State(console): State<Console>, params: RawPathParams, request: Request| async move {
        let params = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let answered = match Asking::read(console, params, request).await {
            Ok(asking) => handler(asking).await,
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
