//! `/api/v1/workflows`.

use axum::response::Response;
use futures::FutureExt;
use rialto_admin::{
    workflow_drafts,
    workflows::{self, NewWorkflow},
};
use rialto_api_types::workflows::{
    RemovedWorkflow, StatusChange, WorkflowCheck, WorkflowProblem, WorkflowRow, WorkflowVersions,
};
use rialto_api_types::{schema::schema_of, workflows::WorkflowDefinition};
use rialto_model::{failure::Failure, flow::FlowKind, json::Json};
use rialto_workflow::problem::DefinitionProblem;
use serde::Deserialize;
use serde_json::Value;

use super::{
    ok_json,
    request::RouteRequest,
    routes::{PAGED, Route, delete, get, handler, post},
};

/// Routes of this resource.
pub(super) const ROUTES: &[Route] = &[
    Route {
        query: &[("name", "Name, if the definition has none")],
        ..post(
            "/api/v1/check-workflow",
            "Check a workflow definition without saving it",
            Some(schema_of::<WorkflowDefinition>),
            (200, "`problems` by line and column; none if it is valid"),
            handler!(check),
        )
    },
    Route {
        query: &[("kind", "workflow or pipeline")],
        ..get("/api/v1/workflows", "List workflows and pipelines", "The workflows", handler!(list))
    },
    Route {
        query: &[
            ("name", "Name, if the definition has none"),
            ("kind", "workflow or pipeline"),
            ("status", "draft, active or archived, in place of the status in the definition"),
        ],
        ..post(
            "/api/v1/workflows",
            "Save a workflow, replacing any with the same name",
            Some(schema_of::<WorkflowDefinition>),
            (200, "The saved version"),
            handler!(save),
        )
    },
    Route {
        query: &[("version", "Number of an earlier version; the active one by default")],
        ..get("/api/v1/workflows/{name}", "Show a workflow", "The workflow", handler!(show))
    },
    Route {
        query: &[PAGED[0], PAGED[1]],
        ..get(
            "/api/v1/workflows/{name}/versions",
            "List the versions of a workflow, newest first",
            "`versions` and `next`",
            handler!(versions),
        )
    },
    Route {
        response: (200, "Name of the workflow"),
        ..delete("/api/v1/workflows/{name}", "Remove a workflow", handler!(remove))
    },
    post(
        "/api/v1/workflows/{name}/status",
        "Set the status of a workflow: draft, active or archived",
        Some(schema_of::<StatusChange>),
        (200, "The workflow"),
        handler!(set_status),
    ),
];

pub(super) async fn list(request: RouteRequest) -> Result<Response, Failure> {
    let kind = request.parse_query("kind", parse_word::<FlowKind>)?;
    let mut flows = workflows::list_definitions(&request.admin, &request.caller).await?;
    flows.retain(|flow| kind.is_none_or(|kind| flow.kind == kind));
    ok_json(&flows.iter().map(WorkflowRow::from_flow).collect::<Vec<_>>())
}

pub(super) async fn check(request: RouteRequest) -> Result<Response, Failure> {
    let new_workflow = workflow_drafts::WorkflowDraft {
        name: request.query("name").unwrap_or_default().to_owned(),
        text: definition(request.body_text()?),
        ..workflow_drafts::WorkflowDraft::default()
    };
    let checked = workflow_drafts::check_draft(&request.admin, &request.caller, &new_workflow).await?;
    let name = checked.workflow.as_ref().map(|workflow| workflow.name.clone());
    let problem = |problem: DefinitionProblem| WorkflowProblem {
        line: problem.place.line,
        column: problem.place.column,
        code: Json::encode(&problem.code).read().unwrap_or_default(),
        message: problem.message,
    };
    let problems = checked.problems.into_iter().map(problem).collect();
    ok_json(&WorkflowCheck { name, problems, more: checked.more })
}

pub(super) async fn save(request: RouteRequest) -> Result<Response, Failure> {
    let new_workflow = NewWorkflow {
        text: definition(request.body_text()?),
        name: request.query("name").unwrap_or_default().to_owned(),
        kind: request.parse_query("kind", parse_word)?,
        status: request.parse_query("status", parse_word)?,
    };
    ok_json(&WorkflowRow::from_flow(&workflows::save(&request.admin, &request.caller, new_workflow).await?))
}

pub(super) async fn show(request: RouteRequest) -> Result<Response, Failure> {
    let version = request.parse_query("version", |text| text.parse().ok())?;
    let shown = workflows::show(&request.admin, &request.caller, request.path_param("name"), version).await?;
    ok_json(&WorkflowRow::with_text(&shown.flow))
}

pub(super) async fn versions(request: RouteRequest) -> Result<Response, Failure> {
    let cursor = request.parse_query("cursor", |text| text.parse().ok())?;
    let (admin, caller, name) = (&request.admin, &request.caller, request.path_param("name"));
    let (found, next) = workflows::versions(admin, caller, name, request.limit()?, cursor).await?;
    ok_json(&WorkflowVersions { versions: found.iter().map(WorkflowRow::from_flow).collect(), next })
}

pub(super) async fn set_status(request: RouteRequest) -> Result<Response, Failure> {
    let StatusChange { status } = request.json()?;
    let set =
        workflows::set_status(&request.admin, &request.caller, request.path_param("name"), status).await?;
    ok_json(&WorkflowRow::from_flow(&set))
}

pub(super) async fn remove(request: RouteRequest) -> Result<Response, Failure> {
    let name = request.path_param("name");
    workflows::remove(&request.admin, &request.caller, name).await?;
    ok_json(&RemovedWorkflow { removed: name.to_owned() })
}

/// Definition from the body, which may be a JSON string that contains it.
fn definition(body: &str) -> String {
    serde_json::from_str(body).unwrap_or_else(|_| body.to_owned())
}

/// Value of a type that is serialized as a string.
pub(super) fn parse_word<T: for<'de> Deserialize<'de>>(text: &str) -> Option<T> {
    serde_json::from_value(Value::from(text)).ok()
}
