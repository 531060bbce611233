//! `/api/v1/guardrails`.

use axum::response::Response;
use rialto_api_types::guardrails::{
    ActiveGuardrails, GuardrailAction, GuardrailReport, GuardrailTarget, GuardrailTest,
};
use rialto_guard::config::{Action, Target};
use rialto_model::{
    failure::{Failure, FailureKind},
    json::Json,
    message::Part,
};

use super::{asking::Asking, good};
use crate::admin::guardrails::{self, Asked};

pub(super) async fn show(asking: Asking) -> Result<Response, Failure> {
    let active = guardrails::show(&asking.console, &asking.caller).await?;
    good(&ActiveGuardrails { guardrails: Json::encode(&active) })
}

pub(super) async fn test(asking: Asking) -> Result<Response, Failure> {
    let body: GuardrailTest = asking.json()?;
    let part = match (body.text, body.data) {
        (Some(text), None) => Part::text(text),
        (None, Some(data)) => Part::data(data),
        _ => return Err(Failure::new(FailureKind::Invalid, "send a text, or data, and not both")),
    };
    let asked = Asked {
        checks: body.checks,
        guardrail: body.guardrail.map(|guardrail| guardrail.read()).transpose().map_err(unreadable)?,
        action: body.action.map(action),
        skill: body.skill,
        target: body.target.map_or(Target::Input, target),
        or_usual: body.or_usual,
        ..Asked::about(part)
    };
    good(&GuardrailReport::from(guardrails::test(&asking.console, &asking.caller, asked).await?))
}

const fn target(target: GuardrailTarget) -> Target {
    match target {
        GuardrailTarget::Input => Target::Input,
        GuardrailTarget::Output => Target::Output,
        GuardrailTarget::Both => Target::Both,
    }
}

const fn action(action: GuardrailAction) -> Action {
    match action {
        GuardrailAction::Log => Action::Log,
        GuardrailAction::Warn => Action::Warn,
        GuardrailAction::Redact => Action::Redact,
        GuardrailAction::Block => Action::Block,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn unreadable(error: serde_json::Error) -> Failure {
    Failure::new(FailureKind::Invalid, format!("the body does not fit: guardrail: {error}"))
}
