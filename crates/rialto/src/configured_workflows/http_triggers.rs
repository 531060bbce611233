//! `/hooks`: HTTP triggers of workflows. The posted body is the input of the run.

use axum::{
    Router,
    body::to_bytes,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
    routing::post,
};
use http::StatusCode;
use rialto_engine::Engine;
use rialto_http_server::problem;
use rialto_model::{
    call::{Caller, EntryProtocol},
    failure::{Failure, FailureKind},
    flow::{Flow, FlowStatus},
    json::{Json, MAX_DEPTH, is_too_deep},
    token_scopes::TokenScope,
};
use rialto_workflow::{definition::WorkflowTrigger, run::WorkflowRunner};
use serde_json::json;

use crate::app::App;

/// Path of HTTP triggers.
pub(crate) const HOOKS_PATH: &str = "/hooks";

#[derive(Clone)]
struct WorkflowHooks {
    engine: Engine,
    runner: WorkflowRunner,
    max_body_bytes: usize,
}

/// The addresses.
pub(crate) fn router(program: &App) -> Router {
    let hooks = WorkflowHooks {
        engine: program.engine.clone(),
        runner: program.flows.clone(),
        max_body_bytes: program.config.server.max_body_bytes,
    };
    Router::new().route("/hooks/{*path}", post(handle_hook)).with_state(hooks)
}

async fn handle_hook(
    State(hooks): State<WorkflowHooks>,
    Path(path): Path<String>,
    request: Request,
) -> Response {
    hooks.start_run(&path, request).await.unwrap_or_else(|failure| problem::respond(&failure))
}

// === impl WorkflowHooks ===

impl WorkflowHooks {
    /// Starts a run, detached.
    async fn start_run(&self, path: &str, request: Request) -> Result<Response, Failure> {
        let caller = request.extensions().get::<Caller>().cloned();
        let unknown = || Failure::new(FailureKind::Unauthenticated, "this request has no caller");
        let caller = caller.ok_or_else(unknown)?;
        if !caller.rights.have(TokenScope::Call) {
            return Err(TokenScope::Call.lacking());
        }
        let trace = rialto_http_server::trace::from_headers(request.headers());
        let flow = self.find_definition(&caller, path).await?;
        let input = self.read_input(request).await?;
        let target =
            self.runner.definitions().resolve_target(&self.engine, &caller, &flow.name, false).await?;
        let request = rialto_engine::CallRequest {
            trace,
            ..rialto_engine::CallRequest::skill(caller, EntryProtocol::Http, target, input)
        };
        let running = self.engine.calls().start(request).await?.into_handle()?;
        let told = json!({ "runId": running.task(), "state": "running" });
        Ok((StatusCode::ACCEPTED, axum::Json(told)).into_response())
    }

    /// The definition that has this address. Those that are not in use have none.
    async fn find_definition(&self, caller: &Caller, path: &str) -> Result<Flow, Failure> {
        let book = self.runner.definitions();
        for flow in book.list(&caller.scope).await? {
            if flow.status != FlowStatus::Active {
                continue;
            }
            let (_, workflow) = book.show(&caller.scope, &flow.name).await?;
            let is_meant = |trigger: &WorkflowTrigger| matches!(trigger, WorkflowTrigger::Http { path: own } if own == path);
            if workflow.triggers.iter().any(is_meant) {
                return Ok(flow);
            }
        }
        Err(Failure::new(FailureKind::NotFound, format!("no workflow has the address {HOOKS_PATH}/{path}")))
    }

    /// Input of a run: the body, or an empty object.
    async fn read_input(&self, request: Request) -> Result<Json, Failure> {
        let invalid = |message: String| Failure::new(FailureKind::Invalid, message);
        let body = to_bytes(request.into_body(), self.max_body_bytes).await;
        let body = body.map_err(|_| invalid("the body is incomplete or too large".to_owned()))?;
        if is_too_deep(&body) {
            return Err(invalid(format!("the body is nested deeper than {MAX_DEPTH} levels")));
        }
        let text =
            std::str::from_utf8(&body).map_err(|_| invalid("the body is not UTF-8 text".to_owned()))?;
        if text.trim().is_empty() {
            return Ok(Json::empty_object());
        }
        Json::parse(text.trim()).map_err(|error| invalid(format!("the body is not JSON: {error}")))
    }
}
