//! `/api/v1/guardrails`: which guardrails are in force, and what they would find, for whoever may administer.

use std::sync::Arc;

use axum::{
    Router,
    body::to_bytes,
    extract::{Request, State},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::{HeaderValue, StatusCode, header};
use rialto_engine::Engine;
use rialto_guard::{
    config::Target,
    setting::{Called, Guardrails},
};
use rialto_model::{call::Caller, json::Json, message::Part};
use rialto_policy::Action;
use serde::Deserialize;
use serde_json::json;

use crate::{
    events::{admit, refused},
    program::Program,
};

/// Where it is.
pub(crate) const PATH: &str = "/api/v1/guardrails";

const TEST: &str = "/api/v1/guardrails/test";

#[derive(Clone)]
struct Api {
    engine: Engine,
    max_body_bytes: usize,
}

/// Something to be tried out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    /// A text.
    text: Option<String>,
    /// Or data, which is looked through in its strings.
    data: Option<Json>,
    /// Whose guardrails: `<agent>.<skill>`. Without it, those for everything.
    skill: Option<String>,
    /// Which way it goes: `input` (default) or `output`.
    target: Option<Target>,
}

/// The addresses.
pub(crate) fn router(program: &Program) -> Router {
    let api = Api { engine: program.engine.clone(), max_body_bytes: program.config.server.max_body_bytes };
    Router::new().route(PATH, get(show)).route(TEST, post(test)).with_state(Arc::new(api))
}

async fn show(State(api): State<Arc<Api>>, request: Request) -> Response {
    let caller = match admit(
        &api.engine,
        request.extensions().get::<Caller>().cloned(),
        Action::AdminPolicies,
    )
    .await
    {
        Ok(caller) => caller,
        Err(refusal) => return refusal,
    };
    let mut setting = api.engine.guarding().map_or_else(Guardrails::default, |all| all.setting().clone());
    // What is looked for in other orgs is theirs to know.
    setting.orgs.retain(|org, _| org == caller.scope.org.as_str());
    answer(&json!({ "guardrails": setting }))
}

async fn test(State(api): State<Arc<Api>>, request: Request) -> Response {
    let caller = match admit(
        &api.engine,
        request.extensions().get::<Caller>().cloned(),
        Action::AdminPolicies,
    )
    .await
    {
        Ok(caller) => caller,
        Err(refusal) => return refusal,
    };
    let Ok(body) = to_bytes(request.into_body(), api.max_body_bytes).await else {
        let why = "the body did not come whole, or is too large";
        return refused(StatusCode::PAYLOAD_TOO_LARGE, "invalid", why);
    };
    let body: Body = match serde_json::from_slice(&body) {
        Ok(body) => body,
        Err(error) => return refused(StatusCode::BAD_REQUEST, "invalid", &error.to_string()),
    };
    let part = match (body.text, body.data) {
        (Some(text), None) => Part::text(text),
        (None, Some(data)) => Part::data(data),
        _ => return refused(StatusCode::BAD_REQUEST, "invalid", "send a text, or data, and not both"),
    };
    let name = body.skill.unwrap_or_default();
    let called = called(caller.scope.org.as_str(), &name);
    let Some(guarding) = api.engine.guarding() else {
        return answer(&json!({ "verdict": "pass", "findings": [], "guardrails": [], "notAsked": 0 }));
    };
    let places = guarding.places(&called);
    let target = body.target.unwrap_or(Target::Input);
    let guards = guarding.guards(&called);
    let findings = guards.as_ref().map(|guards| guards.check(&[part], target)).unwrap_or_default();
    let unasked = guards.map_or(0, |guards| guards.classifiers(target).count());
    answer(&json!({
        "verdict": findings.verdict(),
        "findings": findings.found,
        "guardrails": places.into_iter().map(shown).collect::<Vec<_>>(),
        "notAsked": unasked,
    }))
}

/// Who is meant by the name of a skill, as guardrails know it.
pub(crate) fn called<'a>(org: &'a str, name: &'a str) -> Called<'a> {
    let agent = name.split_once('.').map_or(name, |(agent, _)| agent);
    Called { org, agent, skill: name, canonical: name }
}

/// Where a guardrail stands in the configuration.
pub(crate) fn shown(place: &str) -> String {
    if place.is_empty() { "guardrails".to_owned() } else { format!("guardrails.{place}") }
}

fn answer(body: &serde_json::Value) -> Response {
    let kind = HeaderValue::from_static("application/json");
    (StatusCode::OK, [(header::CONTENT_TYPE, kind)], body.to_string()).into_response()
}
