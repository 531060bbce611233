//! `/api/v1/tokens` and `/api/v1/sessions`.

use axum::response::Response;
use futures::FutureExt;
use http::StatusCode;
use rialto_admin::{sessions, tokens};
use rialto_api_types::{
    schema::schema_of,
    tokens::{CreatedToken, NewToken, SessionList, TokenList},
};
use rialto_model::failure::Failure;

use super::{
    json_response, no_content, ok_json,
    request::RouteRequest,
    routes::{Route, delete, get, handler, post},
};

/// Routes of this resource.
pub(super) const ROUTES: &[Route] = &[
    get("/api/v1/tokens", "List the tokens of the org", "`tokens`", handler!(list)),
    post(
        "/api/v1/tokens",
        "Create a token; it is shown once",
        Some(schema_of::<NewToken>),
        (201, "The token"),
        handler!(create),
    ),
    delete("/api/v1/tokens/{id}", "Revoke a token", handler!(revoke)),
    get(
        "/api/v1/sessions",
        "List console sessions: your own, or those of the org if you may administer tokens",
        "`sessions`",
        handler!(list_sessions),
    ),
    delete("/api/v1/sessions/{id}", "End a console session", handler!(end_session)),
];
pub(super) async fn list(request: RouteRequest) -> Result<Response, Failure> {
    let now = request.admin.engine().now();
    let tokens = tokens::list(&request.admin, &request.caller).await?;
    ok_json(&TokenList { tokens: tokens.iter().map(|token| tokens::token_row(token, now)).collect() })
}

pub(super) async fn create(request: RouteRequest) -> Result<Response, Failure> {
    let new: NewToken = request.json()?;
    let (row, token) = tokens::create(&request.admin, &request.caller, &new).await?;
    let row = tokens::token_row(&row, request.admin.engine().now());
    Ok(json_response(StatusCode::CREATED, &CreatedToken { row, token }))
}

pub(super) async fn revoke(request: RouteRequest) -> Result<Response, Failure> {
    tokens::revoke(&request.admin, &request.caller, request.path_param("id")).await?;
    no_content()
}

pub(super) async fn list_sessions(request: RouteRequest) -> Result<Response, Failure> {
    let sessions = sessions::list(&request.admin, &request.caller).await?;
    ok_json(&SessionList { sessions: sessions.iter().map(sessions::session_row).collect() })
}

pub(super) async fn end_session(request: RouteRequest) -> Result<Response, Failure> {
    sessions::end(&request.admin, &request.caller, request.path_param("id")).await?;
    no_content()
}
