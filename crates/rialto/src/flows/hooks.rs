//! `/hooks`: addresses of definitions' own. What is posted there is what the run is given.

use axum::{
    Router,
    body::to_bytes,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
    routing::post,
};
use http::StatusCode;
use rialto_edge::problem;
use rialto_engine::Engine;
use rialto_flow::{definition::Trigger, run::Runner};
use rialto_model::{
    call::{Caller, EntryProtocol},
    failure::{Failure, FailureKind},
    flow::{Flow, FlowStatus},
    json::{Json, MAX_DEPTH, is_too_deep},
    token_scopes::TokenScope,
};
use serde_json::json;

use crate::program::Program;

/// Where definitions have addresses of their own.
pub(crate) const HOOKS: &str = "/hooks";

#[derive(Clone)]
struct Hooks {
    engine: Engine,
    runner: Runner,
    max_body_bytes: usize,
}

/// The addresses.
pub(crate) fn router(program: &Program) -> Router {
    let hooks = Hooks {
        engine: program.engine.clone(),
        runner: program.flows.clone(),
        max_body_bytes: program.config.server.max_body_bytes,
    };
    Router::new().route("/hooks/{*path}", post(hook)).with_state(hooks)
}

async fn hook(State(hooks): State<Hooks>, Path(path): Path<String>, request: Request) -> Response {
    hooks.begin(&path, request).await.unwrap_or_else(|failure| problem::answer(&failure))
}

// === impl Hooks ===

impl Hooks {
    /// Begins a run, which goes on by itself.
    async fn begin(&self, path: &str, request: Request) -> Result<Response, Failure> {
        let caller = request.extensions().get::<Caller>().cloned();
        let unknown = || Failure::new(FailureKind::Unauthenticated, "this request does not say who calls");
        let caller = caller.ok_or_else(unknown)?;
        if !caller.rights.have(TokenScope::Call) {
            return Err(TokenScope::Call.lacking());
        }
        let trace = rialto_edge::trace::of(request.headers());
        let flow = self.meant(&caller, path).await?;
        let input = self.input(request).await?;
        let target = self.runner.book().target_of(&self.engine, &caller, &flow.name, false).await?;
        let request = rialto_engine::Request {
            trace,
            ..rialto_engine::Request::skill(caller, EntryProtocol::Http, target, input)
        };
        let running = self.engine.call(request).await?;
        let told = json!({ "runId": running.task(), "state": "running" });
        Ok((StatusCode::ACCEPTED, axum::Json(told)).into_response())
    }

    /// The definition that has this address. Those that are not in use have none.
    async fn meant(&self, caller: &Caller, path: &str) -> Result<Flow, Failure> {
        let book = self.runner.book();
        for flow in book.list(&caller.scope).await? {
            if flow.status != FlowStatus::Active {
                continue;
            }
            let (_, workflow) = book.show(&caller.scope, &flow.name).await?;
            let is_meant = |trigger: &Trigger| matches!(trigger, Trigger::Http { path: own } if own == path);
            if workflow.triggers.iter().any(is_meant) {
                return Ok(flow);
            }
        }
        Err(Failure::new(FailureKind::NotFound, format!("no workflow has the address {HOOKS}/{path}")))
    }

    /// What a run is given: the body, or an empty object.
    async fn input(&self, request: Request) -> Result<Json, Failure> {
        let invalid = |message: String| Failure::new(FailureKind::Invalid, message);
        let body = to_bytes(request.into_body(), self.max_body_bytes).await;
        let body = body.map_err(|_| invalid("the body did not come whole, or is too large".to_owned()))?;
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
