//! `/api/v1/runs`, and the runs of one workflow.

use axum::response::Response;
use http::StatusCode;
use rialto_api_types::{
    tasks::TaskDetail,
    workflows::{InlineRun, RunPage, RunReply, StartedRun, StartedRunState},
};
use rialto_engine::CallHandle;
use rialto_model::{failure::Failure, ids::TaskId, json::Json, message::Part};

use super::{asking::Asking, flows::word, good, told};
use crate::admin::{
    runs::{self, Filter, How, What},
    tasks,
};

pub(super) async fn all(asking: Asking) -> Result<Response, Failure> {
    let name = asking.query("name").map(str::to_owned);
    list(&asking, name).await
}

pub(super) async fn of_workflow(asking: Asking) -> Result<Response, Failure> {
    let name = asking.part("name").to_owned();
    list(&asking, Some(name)).await
}

pub(super) async fn begin(asking: Asking) -> Result<Response, Failure> {
    let what = What::Kept { name: asking.part("name").to_owned(), is_draft: asking.is_set("draft") };
    start(&asking, what, asking.arguments()?).await
}

pub(super) async fn begin_inline(asking: Asking) -> Result<Response, Failure> {
    let body: InlineRun = asking.json()?;
    start(&asking, What::Inline(body.workflow), body.input).await
}

pub(super) async fn show(asking: Asking) -> Result<Response, Failure> {
    good(&runs::record(&asking.console, &asking.caller, asking.part("id")).await?)
}

pub(super) async fn tell(asking: Asking) -> Result<Response, Failure> {
    let said: RunReply = asking.json()?;
    let part = match said.message.read::<String>() {
        Ok(text) => Part::text(text),
        Err(_) => Part::data(said.message),
    };
    let (id, step) = (asking.part("id"), said.step.as_deref());
    let running =
        runs::tell(&asking.console, &asking.caller, id, runs::meant_for(step, part), how(&asking)?).await?;
    over(&asking, running).await
}

pub(super) async fn resume(asking: Asking) -> Result<Response, Failure> {
    let running = runs::resume(&asking.console, &asking.caller, asking.part("id")).await?;
    over(&asking, running).await
}

pub(super) async fn cancel(asking: Asking) -> Result<Response, Failure> {
    good(&TaskDetail::from(tasks::cancel(&asking.console, &asking.caller, asking.part("id")).await?))
}

async fn list(asking: &Asking, name: Option<String>) -> Result<Response, Failure> {
    let filter = Filter {
        name,
        state: asking.read_query("state", word)?,
        own: asking.is_set("own"),
        limit: asking.limit()?,
        cursor: asking.cursor().map(TaskId::from),
    };
    let (found, next) = runs::list(&asking.console, &asking.caller, &filter).await?;
    good(&RunPage { runs: found, next })
}

async fn start(asking: &Asking, what: What, input: Json) -> Result<Response, Failure> {
    let running = runs::start(&asking.console, &asking.caller, what, input, how(asking)?).await?;
    over(asking, running).await
}

fn how(asking: &Asking) -> Result<How, Failure> {
    Ok(How { wall_clock: asking.patience()?, trace: asking.trace() })
}

/// The task, when it is over or waits; or at once, where nobody waits for it: then it goes on by itself.
async fn over(asking: &Asking, running: CallHandle) -> Result<Response, Failure> {
    if asking.query("wait") == Some("false") {
        let started = StartedRun { run_id: running.task().clone(), state: StartedRunState::Running };
        return Ok(told(StatusCode::ACCEPTED, &started));
    }
    good(&TaskDetail::from(running.finish().await?))
}
