//! `/api/v1/workflows`.

use axum::response::Response;
use rialto_api_types::workflows::{
    RemovedWorkflow, StatusChange, WorkflowCheck, WorkflowProblem, WorkflowRow, WorkflowVersions,
};
use rialto_flow::problem::Problem;
use rialto_model::{failure::Failure, flow::FlowKind, json::Json};
use serde::Deserialize;
use serde_json::Value;

use super::{asking::Asking, good};
use crate::admin::{
    definitions,
    flows::{self, Wanted},
};

pub(super) async fn list(asking: Asking) -> Result<Response, Failure> {
    let kind = asking.read_query("kind", word::<FlowKind>)?;
    let mut flows = flows::all(&asking.console, &asking.caller).await?;
    flows.retain(|flow| kind.is_none_or(|kind| flow.kind == kind));
    good(&flows.iter().map(WorkflowRow::from_flow).collect::<Vec<_>>())
}

pub(super) async fn check(asking: Asking) -> Result<Response, Failure> {
    let wanted = definitions::Wanted {
        name: asking.query("name").unwrap_or_default().to_owned(),
        text: definition(asking.text()?),
        ..definitions::Wanted::default()
    };
    let checked = definitions::check(&asking.console, &asking.caller, &wanted).await?;
    let name = checked.workflow.as_ref().map(|workflow| workflow.name.clone());
    let problem = |problem: Problem| WorkflowProblem {
        line: problem.place.line,
        column: problem.place.column,
        code: Json::encode(&problem.code).read().unwrap_or_default(),
        message: problem.message,
    };
    let problems = checked.problems.into_iter().map(problem).collect();
    good(&WorkflowCheck { name, problems, more: checked.more })
}

pub(super) async fn keep(asking: Asking) -> Result<Response, Failure> {
    let wanted = Wanted {
        text: definition(asking.text()?),
        name: asking.query("name").unwrap_or_default().to_owned(),
        kind: asking.read_query("kind", word)?,
        status: asking.read_query("status", word)?,
    };
    good(&WorkflowRow::from_flow(&flows::keep(&asking.console, &asking.caller, wanted).await?))
}

pub(super) async fn show(asking: Asking) -> Result<Response, Failure> {
    let version = asking.read_query("version", |text| text.parse().ok())?;
    let shown = flows::show(&asking.console, &asking.caller, asking.part("name"), version).await?;
    good(&WorkflowRow::with_text(&shown.flow))
}

pub(super) async fn versions(asking: Asking) -> Result<Response, Failure> {
    let cursor = asking.read_query("cursor", |text| text.parse().ok())?;
    let (console, caller, name) = (&asking.console, &asking.caller, asking.part("name"));
    let (found, next) = flows::versions(console, caller, name, asking.limit()?, cursor).await?;
    good(&WorkflowVersions { versions: found.iter().map(WorkflowRow::from_flow).collect(), next })
}

pub(super) async fn set_status(asking: Asking) -> Result<Response, Failure> {
    let StatusChange { status } = asking.json()?;
    let set = flows::set_status(&asking.console, &asking.caller, asking.part("name"), status).await?;
    good(&WorkflowRow::from_flow(&set))
}

pub(super) async fn remove(asking: Asking) -> Result<Response, Failure> {
    let name = asking.part("name");
    flows::remove(&asking.console, &asking.caller, name).await?;
    good(&RemovedWorkflow { removed: name.to_owned() })
}

/// A definition as it is, or as a string of JSON: no definition is one.
fn definition(body: &str) -> String {
    serde_json::from_str(body).unwrap_or_else(|_| body.to_owned())
}

/// One of the words that a type is written with.
pub(super) fn word<T: for<'de> Deserialize<'de>>(text: &str) -> Option<T> {
    serde_json::from_value(Value::from(text)).ok()
}
