//! `/api/v1/runs`, and the runs of one workflow.

use axum::response::Response;
use futures::FutureExt;
use http::StatusCode;
use rialto_admin::{
    runs::{self, RunOptions, RunQuery, RunSource},
    tasks,
};
use rialto_api_types::{schema::schema_of, workflows::RunInput};
use rialto_api_types::{
    tasks::TaskDetail,
    workflows::{InlineRun, RunPage, RunReply, StartedRun, StartedRunState},
};
use rialto_engine::CallHandle;
use rialto_model::{failure::Failure, ids::TaskId, json::Json, message::Part};

use super::{
    json_response, ok_json,
    request::RouteRequest,
    routes::{PAGED, Route, get, handler, post},
    workflows::parse_word,
};

/// Query parameter for the state of runs.
const STATE: (&str, &str) = ("state", "running, waiting, completed, failed or canceled");

/// Query parameter for the caller's own runs.
const OWN: (&str, &str) = ("own", "`true`: only your own");

/// Query parameters for the time that the caller waits.
const WAIT: [(&str, &str); 2] = [
    ("wait", "`false`: respond at once"),
    ("timeoutMs", "Respond after this many milliseconds; the run continues"),
];

/// Routes of this resource.
pub(super) const ROUTES: &[Route] = &[
    Route {
        query: &[STATE, OWN, PAGED[0], PAGED[1], PAGED[2]],
        ..get(
            "/api/v1/workflows/{name}/runs",
            "List the runs of a workflow, newest first",
            "`runs` and `next`",
            handler!(list_of_workflow),
        )
    },
    Route {
        query: &[("draft", "`true`: run a draft"), WAIT[0], WAIT[1]],
        ..post(
            "/api/v1/workflows/{name}/runs",
            "Start a run of a workflow",
            Some(schema_of::<RunInput>),
            (200, "The task, when it has ended or waits; 202 with `wait=false`"),
            handler!(start),
        )
    },
    Route {
        query: &[("name", "Only runs of this workflow"), STATE, OWN, PAGED[0], PAGED[1], PAGED[2]],
        ..get("/api/v1/runs", "List runs, newest first", "`runs` and `next`", handler!(list_all))
    },
    Route {
        query: &WAIT,
        ..post(
            "/api/v1/runs",
            "Run a workflow without saving it",
            Some(schema_of::<InlineRun>),
            (200, "The task, when it has ended or waits; 202 with `wait=false`"),
            handler!(start_inline),
        )
    },
    get("/api/v1/runs/{id}", "Show a run and its steps", "The run", handler!(show)),
    Route {
        query: &WAIT,
        ..post(
            "/api/v1/runs/{id}",
            "Answer the question of a run",
            Some(schema_of::<RunReply>),
            (200, "The task"),
            handler!(answer),
        )
    },
    Route {
        query: &[WAIT[0]],
        ..post(
            "/api/v1/runs/{id}/resume",
            "Resume a run that no server works on",
            None,
            (200, "The task"),
            handler!(resume),
        )
    },
    post("/api/v1/runs/{id}/cancel", "Cancel a run", None, (200, "The task"), handler!(cancel)),
];

pub(super) async fn list_all(request: RouteRequest) -> Result<Response, Failure> {
    let name = request.query("name").map(str::to_owned);
    list(&request, name).await
}

pub(super) async fn list_of_workflow(request: RouteRequest) -> Result<Response, Failure> {
    let name = request.path_param("name").to_owned();
    list(&request, Some(name)).await
}

pub(super) async fn start(request: RouteRequest) -> Result<Response, Failure> {
    let source =
        RunSource::Saved { name: request.path_param("name").to_owned(), is_draft: request.flag("draft") };
    run_source(&request, source, request.arguments()?).await
}

pub(super) async fn start_inline(request: RouteRequest) -> Result<Response, Failure> {
    let body: InlineRun = request.json()?;
    run_source(&request, RunSource::Inline(body.workflow), body.input).await
}

pub(super) async fn show(request: RouteRequest) -> Result<Response, Failure> {
    ok_json(&runs::record(&request.admin, &request.caller, request.path_param("id")).await?)
}

pub(super) async fn answer(request: RouteRequest) -> Result<Response, Failure> {
    let reply: RunReply = request.json()?;
    let part = match reply.message.read::<String>() {
        Ok(text) => Part::text(text),
        Err(_) => Part::data(reply.message),
    };
    let (id, step) = (request.path_param("id"), reply.step.as_deref());
    let running = runs::answer(
        &request.admin,
        &request.caller,
        id,
        runs::address_step(step, part),
        run_options(&request)?,
    )
    .await?;
    finish(&request, running).await
}

pub(super) async fn resume(request: RouteRequest) -> Result<Response, Failure> {
    let running = runs::resume(&request.admin, &request.caller, request.path_param("id")).await?;
    finish(&request, running).await
}

pub(super) async fn cancel(request: RouteRequest) -> Result<Response, Failure> {
    ok_json(&TaskDetail::from(
        tasks::cancel(&request.admin, &request.caller, request.path_param("id")).await?,
    ))
}

async fn list(request: &RouteRequest, name: Option<String>) -> Result<Response, Failure> {
    let filter = RunQuery {
        name,
        state: request.parse_query("state", parse_word)?,
        own: request.flag("own"),
        limit: request.limit()?,
        cursor: request.cursor().map(TaskId::from),
    };
    let (found, next) = runs::list(&request.admin, &request.caller, &filter).await?;
    ok_json(&RunPage { runs: found, next })
}

async fn run_source(request: &RouteRequest, source: RunSource, input: Json) -> Result<Response, Failure> {
    let running = runs::start(&request.admin, &request.caller, source, input, run_options(request)?).await?;
    finish(request, running).await
}

fn run_options(request: &RouteRequest) -> Result<RunOptions, Failure> {
    Ok(RunOptions { timeout: request.timeout()?, trace: request.trace() })
}

/// Response with the task when it has ended or waits, or at once with `wait=false`: the run then continues in the background.
async fn finish(request: &RouteRequest, running: CallHandle) -> Result<Response, Failure> {
    if request.query("wait") == Some("false") {
        let started = StartedRun { run_id: running.task().clone(), state: StartedRunState::Running };
        return Ok(json_response(StatusCode::ACCEPTED, &started));
    }
    ok_json(&TaskDetail::from(running.finish().await?))
}
