//! What requests carry and answers are made of.

use axum::{
    body::to_bytes,
    extract::Request,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use rialto_edge::status;
use rialto_engine::Engine;
use rialto_model::{
    call::Caller,
    failure::{Failure, Kind},
    json::{DEEPEST, Json, is_too_deep},
    rights::Right,
};
use rialto_policy::Action;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

/// Who calls, if it has this right.
pub(super) fn caller_of(request: &Request, right: Right) -> Result<Caller, Failure> {
    let caller = request.extensions().get::<Caller>().cloned();
    let unknown = || Failure::new(Kind::Unauthenticated, "this request does not say who calls");
    let caller = caller.ok_or_else(unknown)?;
    if caller.rights.have(right) { Ok(caller) } else { Err(right.lacking()) }
}

/// The same caller, if it may change what is deployed.
pub(super) async fn may_administer(engine: &Engine, caller: Caller) -> Result<Caller, Failure> {
    engine.sync().await?;
    engine.may_administer(&caller, Action::AdminAgents)?;
    Ok(caller)
}

/// The body as text.
pub(super) async fn text_body(request: Request, most: usize) -> Result<String, Failure> {
    let invalid = |message: String| Failure::new(Kind::Invalid, message);
    let body = to_bytes(request.into_body(), most).await;
    let body = body.map_err(|_| invalid("the body did not come whole, or is too large".to_owned()))?;
    if is_too_deep(&body) {
        return Err(invalid(format!("the body is nested deeper than {DEEPEST} levels")));
    }
    String::from_utf8(body.into()).map_err(|_| invalid("the body is not UTF-8 text".to_owned()))
}

/// The body as JSON.
pub(super) async fn body<T: DeserializeOwned>(request: Request, most: usize) -> Result<T, Failure> {
    let text = text_body(request, most).await?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::new(Kind::Invalid, format!("the body does not fit: {error}")))
}

pub(super) fn answer<T: Serialize + ?Sized>(status: StatusCode, value: &T) -> Response {
    let json = HeaderValue::from_static("application/json");
    (status, [(header::CONTENT_TYPE, json)], Json::of(value).get().to_owned()).into_response()
}

pub(super) fn problem(failure: &Failure) -> Response {
    let body = json!({
        "error": failure.kind.class(),
        "code": failure.kind.rpc_code(),
        "message": failure.message,
        "data": failure.data,
    });
    (status::of(failure.kind), axum::Json(body)).into_response()
}
