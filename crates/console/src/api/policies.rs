//! `/api/v1/policies`.

use axum::response::Response;
use http::StatusCode;
use rialto_model::failure::Failure;
use rialto_policy::Rule;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{asking::Asking, done, good, told};
use crate::admin::policies::{self, Asked, Text, USUAL, Usual};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    #[serde(default)]
    name: String,
    text: String,
}

pub(super) async fn list(asking: Asking) -> Result<Response, Failure> {
    let texts = policies::list(&asking.console, &asking.caller).await?;
    good(&json!({ "policies": texts.iter().map(shown).collect::<Vec<_>>() }))
}

pub(super) async fn show(asking: Asking) -> Result<Response, Failure> {
    let text = policies::show(&asking.console, &asking.caller, asking.part("name")).await?;
    let history = policies::history(&asking.console, &asking.caller, &text.name).await?;
    let versions = history.iter().map(|old| json!({ "version": old.version, "at": old.at, "by": old.by }));
    let mut told = shown(&text);
    told["text"] = json!(text.text);
    told["versions"] = json!(versions.collect::<Vec<_>>());
    good(&told)
}

pub(super) async fn save(asking: Asking) -> Result<Response, Failure> {
    let body: Body = asking.json()?;
    let name = policies::save(&asking.console, &asking.caller, asking.part("name"), &body.text).await?;
    good(&json!({ "name": name }))
}

pub(super) async fn remove(asking: Asking) -> Result<Response, Failure> {
    policies::remove(&asking.console, &asking.caller, asking.part("name")).await?;
    done()
}

pub(super) async fn validate(asking: Asking) -> Result<Response, Failure> {
    let body: Body = asking.json()?;
    let problems = policies::validate(&asking.console, &asking.caller, &body.name, &body.text).await?;
    let problems = problems
        .iter()
        .map(|problem| json!({ "place": problem.place, "message": problem.message, "help": problem.help }));
    good(&json!({ "problems": problems.collect::<Vec<_>>() }))
}

pub(super) async fn test(asking: Asking) -> Result<Response, Failure> {
    let asked: Asked = asking.json()?;
    let answer = policies::test(&asking.console, &asking.caller, &asked).await?;
    good(&policies::answer(&asked, &answer))
}

pub(super) async fn matrix(asking: Asking) -> Result<Response, Failure> {
    let names = asking.query("callers").unwrap_or(asking.caller.id.as_str());
    let names: Vec<String> =
        names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let matrix = policies::matrix(&asking.console, &asking.caller, &names).await?;
    let rows = matrix.rows.iter().map(|(target, may)| json!({ "target": target, "may": may }));
    good(&json!({ "callers": matrix.callers, "rows": rows.collect::<Vec<_>>(), "more": matrix.more }))
}

pub(super) async fn templates(_: Asking) -> Result<Response, Failure> {
    let told =
        USUAL.map(|(kind, summary, target)| json!({ "kind": kind, "summary": summary, "target": target }));
    good(&json!({ "templates": told }))
}

pub(super) async fn add(asking: Asking) -> Result<Response, Failure> {
    let usual: Usual = asking.json()?;
    let name = policies::add_usual(&asking.console, &asking.caller, &usual).await?;
    Ok(told(StatusCode::CREATED, &json!({ "name": name })))
}

fn shown(text: &Text) -> Value {
    let rule =
        |rule: &Rule| json!({ "name": rule.name, "effect": rule.effect.as_str(), "summary": rule.summary });
    json!({ "name": text.name, "rules": text.rules.iter().map(rule).collect::<Vec<_>>() })
}
