//! `/api/v1/policies`.

use axum::response::Response;
use http::StatusCode;
use rialto_model::failure::Failure;
use rialto_policy::{Problem, Rule};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{asking::Asking, flows::word, good, told};
use crate::{
    admin::{
        policies::{self, Asked, Location, Text, USUAL, Usual},
        what_if,
    },
    office::{KeptPolicy, PolicyVersion, Shelf},
};

/// Which text is wanted back.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Restored {
    version: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    #[serde(default)]
    name: String,
    text: String,
}

pub(super) async fn list(asking: Asking) -> Result<Response, Failure> {
    let texts = policies::list(&asking.console, &asking.caller).await?;
    let with_text = |text: &Text| {
        let mut told = shown(text);
        told["text"] = json!(text.text);
        told
    };
    let mut rows: Vec<Value> = if asking.is_set("texts") {
        texts.iter().map(with_text).collect()
    } else {
        texts.iter().map(shown).collect()
    };
    for (row, text) in rows.iter_mut().zip(&texts) {
        row["createdBy"] = json!(policies::author(&asking.console, &asking.caller, text).await?);
    }
    good(&json!({ "policies": rows }))
}

pub(super) async fn show(asking: Asking) -> Result<Response, Failure> {
    let text = policies::show(&asking.console, &asking.caller, asking.part("name")).await?;
    let history = policies::history(&asking.console, &asking.caller, &text.name, location(&asking)?).await?;
    let versions = history.iter().map(|old| json!({ "version": old.version, "at": old.at, "by": old.by }));
    let mut told = shown(&text);
    told["createdBy"] = json!(policies::author(&asking.console, &asking.caller, &text).await?);
    told["text"] = json!(text.text);
    told["versions"] = json!(versions.collect::<Vec<_>>());
    good(&told)
}

pub(super) async fn save(asking: Asking) -> Result<Response, Failure> {
    let (body, location): (Body, _) = (asking.json()?, location(&asking)?);
    let (console, caller, name) = (&asking.console, &asking.caller, asking.part("name"));
    let kept = policies::save(console, caller, name, &body.text, location).await?;
    good(&saved(&asking, &kept).await?)
}

pub(super) async fn remove(asking: Asking) -> Result<Response, Failure> {
    let location = location(&asking)?;
    let gone = policies::remove(&asking.console, &asking.caller, asking.part("name"), location).await?;
    good(&json!({ "name": gone.name, "file": gone.place }))
}

pub(super) async fn history(asking: Asking) -> Result<Response, Failure> {
    let location = location(&asking)?;
    let versions = policies::history(&asking.console, &asking.caller, asking.part("name"), location).await?;
    good(&json!({ "versions": versions.iter().map(version).collect::<Vec<_>>() }))
}

pub(super) async fn restore(asking: Asking) -> Result<Response, Failure> {
    let (Restored { version }, location) = (asking.json()?, location(&asking)?);
    let (console, caller, name) = (&asking.console, &asking.caller, asking.part("name"));
    let kept = policies::restore(console, caller, name, version, location).await?;
    good(&saved(&asking, &kept).await?)
}

pub(super) async fn check(asking: Asking) -> Result<Response, Failure> {
    good(&json!({ "policies": policies::check(&asking.console, &asking.caller).await? }))
}

pub(super) async fn validate(asking: Asking) -> Result<Response, Failure> {
    let body: Body = asking.json()?;
    let problems = policies::validate(&asking.console, &asking.caller, &body.name, &body.text).await?;
    good(&json!({ "problems": problems.iter().map(problem).collect::<Vec<_>>() }))
}

pub(super) async fn what_if(asking: Asking) -> Result<Response, Failure> {
    let body: Body = asking.json()?;
    let (console, caller) = (&asking.console, &asking.caller);
    let problems = policies::validate(console, caller, &body.name, &body.text).await?;
    let differences = what_if::what_if(console, caller, &body.name, &body.text).await?;
    let differences = differences.iter().map(|it| {
        json!({ "caller": it.caller, "target": it.target, "isAdmin": it.is_admin, "allowed": it.allowed })
    });
    let problems = problems.iter().map(problem).collect::<Vec<_>>();
    good(&json!({ "differences": differences.collect::<Vec<_>>(), "problems": problems }))
}

fn problem(problem: &Problem) -> Value {
    json!({ "place": problem.place, "message": problem.message, "help": problem.help })
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
    let matrix = what_if::matrix(&asking.console, &asking.caller, &names).await?;
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
    let kept = policies::add_usual(&asking.console, &asking.caller, &usual).await?;
    Ok(told(StatusCode::CREATED, &saved(&asking, &kept).await?))
}

fn shown(text: &Text) -> Value {
    json!({ "name": text.name, "org": text.org, "rules": text.rules.iter().map(rule).collect::<Vec<_>>() })
}

fn rule(rule: &Rule) -> Value {
    json!({ "name": rule.name, "effect": rule.effect.as_str(), "summary": rule.summary })
}

/// What was kept, and the policies in it.
async fn saved(asking: &Asking, kept: &KeptPolicy) -> Result<Value, Failure> {
    let rules = policies::rules_in(&asking.console, &asking.caller, kept).await?;
    let rules: Vec<Value> = rules.iter().map(rule).collect();
    Ok(json!({ "name": kept.listed, "file": kept.place, "org": kept.org, "policies": rules }))
}

/// An older text. A file's is known by when it was replaced, one in the store by when it was made and by whom.
fn version(old: &PolicyVersion) -> Value {
    let PolicyVersion { name, version, at, by, text, shelf } = old;
    match shelf {
        Shelf::Files => {
            json!({ "name": name, "version": version, "replacedAt": at.to_string(), "text": text })
        }
        Shelf::Store => {
            json!({ "name": name, "version": version, "changedAt": at.to_string(), "by": by, "text": text })
        }
    }
}

/// Where it is kept, and for whom it is, as far as that is said.
fn location(asking: &Asking) -> Result<Location, Failure> {
    Ok(Location { shelf: asking.read_query("shelf", word)?, all_orgs: asking.is_set("allOrgs") })
}
