//! `/api/v1/workflows`, `/api/v1/runs` and `/hooks`: workflows over plain HTTP.
//!
//! Whoever may call may run what there is, and sees its own runs; definitions are changed by whoever may administer agents.
//! A hook is an address of a definition's own: what is posted there is what the run is given.

mod ports;

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, Query, Request, State},
    response::Response,
    routing::{get, post},
};
use http::StatusCode;
use rialto_console::admin::tasks::TaskJson;
use rialto_engine::{Engine, Running};
use rialto_flow::{
    definition::Trigger,
    run::{Given, Runner},
};
use rialto_model::{
    call::{Caller, Door, Target},
    failure::{Failure, Kind},
    flow::{Flow, FlowKind, FlowStatus, RunFilter, RunState},
    ids::TaskId,
    json::Json,
    message::Part,
    rights::Right,
    store::Store,
    task::Task,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::ports::{answer, body, caller_of, may_administer, problem, text_body};
use crate::program::Program;

/// Where definitions are.
pub(crate) const WORKFLOWS: &str = "/api/v1/workflows";

/// Where runs are.
pub(crate) const RUNS: &str = "/api/v1/runs";

/// Where definitions have addresses of their own.
pub(crate) const HOOKS: &str = "/hooks";

/// So many runs are on a page when nobody says, and at most.
const USUAL: usize = 50;
const MOST: usize = 200;

type Answered = Result<Response, Failure>;

#[derive(Clone)]
struct Api {
    engine: Engine,
    runner: Runner,
    store: Arc<dyn Store>,
    max_body_bytes: usize,
}

/// How a definition is added.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Adding {
    #[serde(default)]
    name: String,
    kind: Option<FlowKind>,
    status: Option<FlowStatus>,
}

/// How a definition is run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct How {
    #[serde(default)]
    draft: bool,
    wait: Option<bool>,
}

/// Which runs to list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    state: Option<RunState>,
    before: Option<String>,
    #[serde(default)]
    limit: usize,
}

/// What a run that waits is told.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    message: Json,
    /// The step that is meant.
    step: Option<String>,
}

/// A definition, as it is listed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: FlowKind,
    pub(crate) status: FlowStatus,
    pub(crate) version: u64,
    pub(crate) skill: String,
    pub(crate) configured: bool,
    pub(crate) by: &'a str,
    pub(crate) at: rialto_model::clock::Timestamp,
}

/// The addresses.
pub(crate) fn router(program: &Program) -> Router {
    let api = Api {
        engine: program.engine.clone(),
        runner: program.flows.clone(),
        store: Arc::clone(&program.store),
        max_body_bytes: program.config.server.max_body_bytes,
    };
    Router::new()
        .route(WORKFLOWS, get(list).post(add))
        .route("/api/v1/workflows/{name}", get(show).delete(remove))
        .route("/api/v1/workflows/{name}/status", post(set_status))
        .route("/api/v1/workflows/{name}/runs", get(runs).post(run))
        .route("/api/v1/runs/{id}", get(show_run).post(tell_run))
        .route("/api/v1/runs/{id}/cancel", post(cancel_run))
        .route("/hooks/{*path}", post(hook))
        .with_state(Arc::new(api))
}

async fn list(State(api): State<Arc<Api>>, request: Request) -> Response {
    let listed = async move {
        let caller = caller_of(&request, Right::Discover)?;
        let flows = api.runner.book().list(&caller.scope).await?;
        Ok(answer(StatusCode::OK, &flows.iter().map(listed).collect::<Vec<_>>()))
    };
    told(listed.await)
}

async fn add(State(api): State<Arc<Api>>, Query(adding): Query<Adding>, request: Request) -> Response {
    let added = async move {
        let caller = may_administer(&api.engine, caller_of(&request, Right::Admin)?).await?;
        let text = text_body(request, api.max_body_bytes).await?;
        let given = Given {
            scope: caller.scope.clone(),
            text,
            name: adding.name,
            kind: adding.kind,
            by: caller.id.clone(),
            status: adding.status,
            configured: false,
        };
        let flow = api.runner.book().add(&api.engine, given).await?;
        Ok(answer(StatusCode::OK, &listed(&flow)))
    };
    told(added.await)
}

async fn show(State(api): State<Arc<Api>>, Path(name): Path<String>, request: Request) -> Response {
    let shown = async move {
        let caller = caller_of(&request, Right::Discover)?;
        let (flow, _) = api.runner.book().show(&caller.scope, &name).await?;
        let mut shown = serde_json::to_value(listed(&flow)).unwrap_or_default();
        shown["text"] = json!(flow.text);
        Ok(answer(StatusCode::OK, &shown))
    };
    told(shown.await)
}

async fn remove(State(api): State<Arc<Api>>, Path(name): Path<String>, request: Request) -> Response {
    let removed = async move {
        let caller = may_administer(&api.engine, caller_of(&request, Right::Admin)?).await?;
        api.runner.book().remove(&api.engine, &caller.scope, &name, false).await?;
        Ok(answer(StatusCode::OK, &json!({ "removed": name })))
    };
    told(removed.await)
}

async fn set_status(State(api): State<Arc<Api>>, Path(name): Path<String>, request: Request) -> Response {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wanted {
        status: FlowStatus,
    }
    let set = async move {
        let caller = may_administer(&api.engine, caller_of(&request, Right::Admin)?).await?;
        let wanted: Wanted = body(request, api.max_body_bytes).await?;
        let flow = api.runner.book().set_status(&api.engine, &caller.scope, &name, wanted.status).await?;
        Ok(answer(StatusCode::OK, &listed(&flow)))
    };
    told(set.await)
}

async fn run(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    Query(how): Query<How>,
    request: Request,
) -> Response {
    let run = async move {
        let caller = caller_of(&request, Right::Call)?;
        let trace = rialto_edge::trace::of(request.headers());
        let input = api.input(request).await?;
        let target = api.runner.book().target_of(&api.engine, &caller, &name, how.draft).await?;
        let request = rialto_engine::Request {
            trace,
            ..rialto_engine::Request::skill(caller, Door::Http, target, input)
        };
        let running = api.engine.call(request).await?;
        if how.wait == Some(false) { Ok(begun(running)) } else { Ok(over(&running.finish().await?)) }
    };
    told(run.await)
}

async fn hook(State(api): State<Arc<Api>>, Path(path): Path<String>, request: Request) -> Response {
    let begun = async move {
        let caller = caller_of(&request, Right::Call)?;
        let trace = rialto_edge::trace::of(request.headers());
        let flow = api.hooked(&caller, &path).await?;
        let input = api.input(request).await?;
        let target = api.runner.book().target_of(&api.engine, &caller, &flow.name, false).await?;
        let request = rialto_engine::Request {
            trace,
            ..rialto_engine::Request::skill(caller, Door::Http, target, input)
        };
        Ok(begun(api.engine.call(request).await?))
    };
    told(begun.await)
}

async fn runs(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    Query(page): Query<Page>,
    request: Request,
) -> Response {
    let listed = async move {
        let caller = caller_of(&request, Right::Call)?;
        let filter = RunFilter {
            caller: Some(caller.id.clone()),
            name: Some(name),
            state: page.state,
            before: page.before.map(TaskId::from),
            limit: if page.limit == 0 { USUAL } else { page.limit.min(MOST) },
        };
        let found =
            api.store.runs(&caller.scope, &filter).await.map_err(rialto_flow::run::BookError::from)?;
        let next = found.last().map(|last| last.id.clone());
        Ok(answer(StatusCode::OK, &json!({ "runs": Json::of(&found), "next": next })))
    };
    told(listed.await)
}

async fn show_run(State(api): State<Arc<Api>>, Path(id): Path<String>, request: Request) -> Response {
    let shown = async move {
        let caller = caller_of(&request, Right::Call)?;
        let record = api.store.run(&caller.scope, &TaskId::from(&id)).await;
        let record = record.map_err(rialto_flow::run::BookError::from)?;
        let record = record.filter(|record| record.run.caller == caller.id);
        let record =
            record.ok_or_else(|| Failure::new(Kind::NotFound, format!("there is no run \"{id}\"")))?;
        Ok(answer(StatusCode::OK, &record))
    };
    told(shown.await)
}

async fn tell_run(State(api): State<Arc<Api>>, Path(id): Path<String>, request: Request) -> Response {
    let went_on = async move {
        let caller = caller_of(&request, Right::Call)?;
        let said: Told = body(request, api.max_body_bytes).await?;
        let worker = api.engine.worker(&caller, &id).await?;
        let mut part = match said.message.read::<String>() {
            Ok(text) => Part::text(text),
            Err(_) => Part::data(said.message),
        };
        part.metadata = said.step.map(|step| Json::of(&json!({ "rialto/flow": { "node": step } })));
        let target = Target { agent: worker.agent, skill: None };
        let mut request = rialto_engine::Request::message(caller, Door::Http, target, vec![part]);
        request.task = Some(id);
        Ok(over(&api.engine.call(request).await?.finish().await?))
    };
    told(went_on.await)
}

async fn cancel_run(State(api): State<Arc<Api>>, Path(id): Path<String>, request: Request) -> Response {
    let canceled = async move {
        let caller = caller_of(&request, Right::Call)?;
        Ok(over(&api.engine.cancel(&caller, &id).await?))
    };
    told(canceled.await)
}

// === impl Api ===

impl Api {
    /// What a run is given: the body, or an empty object.
    async fn input(&self, request: Request) -> Result<Json, Failure> {
        let text = text_body(request, self.max_body_bytes).await?;
        if text.trim().is_empty() {
            return Ok(Json::empty_object());
        }
        Json::parse(text.trim())
            .map_err(|error| Failure::new(Kind::Invalid, format!("the body is not JSON: {error}")))
    }

    /// The definition that has this address. Those that are not in use have none.
    async fn hooked(&self, caller: &Caller, path: &str) -> Result<Flow, Failure> {
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
        Err(Failure::new(Kind::NotFound, format!("no workflow has the address {HOOKS}/{path}")))
    }
}

/// A definition for listings.
pub(crate) fn listed(flow: &Flow) -> Listed<'_> {
    Listed {
        name: &flow.name,
        kind: flow.kind,
        status: flow.status,
        version: flow.version,
        skill: flow.kind.skill_id(&flow.name),
        configured: flow.configured,
        by: flow.by.as_str(),
        at: flow.at,
    }
}

fn told(answered: Answered) -> Response {
    answered.unwrap_or_else(|failure| problem(&failure))
}

/// A run that goes on by itself.
fn begun(running: Running) -> Response {
    let id = running.task().clone();
    drop(running);
    answer(StatusCode::ACCEPTED, &json!({ "runId": id, "state": "running" }))
}

fn over(task: &Task) -> Response {
    answer(StatusCode::OK, &TaskJson::of(task))
}
