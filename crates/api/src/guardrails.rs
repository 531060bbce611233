//! `/api/v1/guardrails`.

use axum::response::Response;
use futures::FutureExt;
use rialto_admin::guardrails::{self, GuardrailTestRequest};
use rialto_api_types::{
    guardrails::{GuardrailAction, GuardrailSettings, GuardrailTarget, GuardrailTest, GuardrailTestResult},
    schema::schema_of,
};
use rialto_guardrails::config::{CheckAction, CheckDirection};
use rialto_model::{
    failure::{Failure, FailureKind},
    json::Json,
    message::Part,
};

use super::{
    ok_json,
    request::RouteRequest,
    routes::{Route, get, handler, post},
};

/// Routes of this resource.
pub(super) const ROUTES: &[Route] = &[
    get("/api/v1/guardrails", "Show the active guardrails", "`guardrails`", handler!(show)),
    post(
        "/api/v1/guardrails/test",
        "Test guardrails on a text",
        Some(schema_of::<GuardrailTest>),
        (200, "The verdict, `findings` and the redacted text"),
        handler!(test),
    ),
];

pub(super) async fn show(request: RouteRequest) -> Result<Response, Failure> {
    let active = guardrails::show(&request.admin, &request.caller).await?;
    ok_json(&GuardrailSettings { guardrails: Json::encode(&active) })
}

pub(super) async fn test(request: RouteRequest) -> Result<Response, Failure> {
    let body: GuardrailTest = request.json()?;
    let part = match (body.text, body.data) {
        (Some(text), None) => Part::text(text),
        (None, Some(data)) => Part::data(data),
        _ => return Err(Failure::new(FailureKind::Invalid, "set either text or data")),
    };
    let test = GuardrailTestRequest {
        checks: body.checks,
        guardrail: body.guardrail.map(|guardrail| guardrail.read()).transpose().map_err(unreadable)?,
        action: body.action.map(action),
        skill: body.skill,
        target: body.target.map_or(CheckDirection::Input, target),
        or_usual: body.or_usual,
        ..GuardrailTestRequest::new(part)
    };
    ok_json(&GuardrailTestResult::from(guardrails::test(&request.admin, &request.caller, test).await?))
}

const fn target(target: GuardrailTarget) -> CheckDirection {
    match target {
        GuardrailTarget::Input => CheckDirection::Input,
        GuardrailTarget::Output => CheckDirection::Output,
        GuardrailTarget::Both => CheckDirection::Both,
    }
}

const fn action(action: GuardrailAction) -> CheckAction {
    match action {
        GuardrailAction::Log => CheckAction::Log,
        GuardrailAction::Warn => CheckAction::Warn,
        GuardrailAction::Redact => CheckAction::Redact,
        GuardrailAction::Block => CheckAction::Block,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn unreadable(error: serde_json::Error) -> Failure {
    Failure::new(FailureKind::Invalid, format!("the body is invalid: guardrail: {error}"))
}
