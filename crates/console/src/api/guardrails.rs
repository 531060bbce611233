//! `/api/v1/guardrails`.

use axum::response::Response;
use rialto_guard::config::{Action, Guardrail, Target};
use rialto_model::{
    failure::{Failure, Kind},
    json::Json,
    message::Part,
};
use serde::Deserialize;
use serde_json::json;

use super::{asking::Asking, good};
use crate::admin::guardrails::{self, Asked};

/// Something to be tried out.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Body {
    /// A text.
    text: Option<String>,
    /// Or data, which is looked through in its strings.
    data: Option<Json>,
    /// Whose guardrails: `<agent>.<skill>`. Without it, those for everything.
    skill: Option<String>,
    /// Which way it goes: `input` (default) or `output`.
    target: Option<Target>,
    /// What is looked for in place of what is in force.
    checks: Option<Vec<String>>,
    /// A guardrail in place of that.
    guardrail: Option<Guardrail>,
    /// What is done when something of `checks` is found.
    action: Option<Action>,
    /// Whether the usual checks are tried where nothing is in force.
    #[serde(default)]
    or_usual: bool,
}

pub(super) async fn show(asking: Asking) -> Result<Response, Failure> {
    good(&json!({ "guardrails": guardrails::show(&asking.console, &asking.caller).await? }))
}

pub(super) async fn test(asking: Asking) -> Result<Response, Failure> {
    let body: Body = asking.json()?;
    let part = match (body.text, body.data) {
        (Some(text), None) => Part::text(text),
        (None, Some(data)) => Part::data(data),
        _ => return Err(Failure::new(Kind::Invalid, "send a text, or data, and not both")),
    };
    let asked = Asked {
        checks: body.checks,
        guardrail: body.guardrail,
        action: body.action,
        skill: body.skill,
        target: body.target.unwrap_or(Target::Input),
        or_usual: body.or_usual,
        ..Asked::about(part)
    };
    good(&guardrails::test(&asking.console, &asking.caller, asked).await?)
}
