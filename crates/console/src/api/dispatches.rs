//! `/api/v1/dispatch`, `/api/v1/dispatches` and `/api/v1/resolve`: work that names nobody.

use axum::response::Response;
use rialto_api_types::{
    dispatches::{DispatchPage, DispatchResult, NewDispatch},
    tasks::TaskDetail,
};
use rialto_model::{
    failure::{Failure, FailureKind},
    ids::DispatchId,
    message::Part,
    routing::WorkDescription,
};

use super::{
    asking::{Asking, patience},
    good,
};
use crate::admin::dispatches::{self, Filter, Wanted};

pub(super) async fn dispatch(asking: Asking) -> Result<Response, Failure> {
    let body: NewDispatch = asking.json()?;
    let wanted = Wanted {
        part: part(&body)?,
        context: body.context_id,
        wall_clock: body.timeout_ms.map(patience),
        trace: asking.trace(),
        work: WorkDescription {
            work_type: body.work_type,
            description: body.description,
            required_skills: body.required_skills,
            input_modes: body.input_modes,
        },
    };
    let done = dispatches::dispatch(&asking.console, &asking.caller, wanted).await?;
    let warning = done.task.guardrail();
    let task = TaskDetail::from(done.task);
    let mut response = good(&DispatchResult { dispatch_id: done.dispatch, agent: done.agent, task })?;
    rialto_edge::warning::put(response.headers_mut(), warning.as_ref());
    Ok(response)
}

pub(super) async fn list(asking: Asking) -> Result<Response, Failure> {
    let filter = Filter {
        work_type: asking.query("workType").map(str::to_owned),
        limit: asking.limit()?,
        cursor: asking.cursor().map(DispatchId::from),
    };
    let (found, next) = dispatches::list(&asking.console, &asking.caller, &filter).await?;
    good(&DispatchPage { dispatches: found, next })
}

pub(super) async fn show(asking: Asking) -> Result<Response, Failure> {
    good(&dispatches::show(&asking.console, &asking.caller, asking.part("id")).await?)
}

pub(super) async fn resolve(asking: Asking) -> Result<Response, Failure> {
    let work: WorkDescription = asking.json()?;
    good(&dispatches::resolve(&asking.console, &asking.caller, &work).await?)
}

/// The message for the agent, or the description of the work.
fn part(body: &NewDispatch) -> Result<Part, Failure> {
    let invalid = |message: &str| Failure::new(FailureKind::Invalid, message);
    match &body.message {
        Some(data) if data.is_object() => Ok(Part::data(data.clone())),
        Some(text) => text
            .read::<String>()
            .map(Part::text)
            .map_err(|_| invalid("message: expected a text or an object")),
        None if body.description.trim().is_empty() => {
            Err(invalid("say what is to be done: a description or a message"))
        }
        None => Ok(Part::text(body.description.clone())),
    }
}
