//! `/api/v1/dispatch`, `/api/v1/dispatches` and `/api/v1/resolve`: work that names nobody.

use axum::response::Response;
use rialto_model::{
    failure::{Failure, Kind},
    ids::DispatchId,
    json::Json,
    message::Part,
    routing::{Dispatch, Work},
};
use serde::{Deserialize, Serialize};

use super::{
    asking::{Asking, patience},
    good,
};
use crate::admin::{
    dispatches::{self, Filter, Wanted},
    tasks::TaskJson,
};

/// Work for whoever does it best.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Body {
    #[serde(default, alias = "work_type")]
    work_type: String,
    #[serde(default)]
    description: String,
    #[serde(default, alias = "required_skills")]
    required_skills: Vec<String>,
    #[serde(default, alias = "input_modes")]
    input_modes: Vec<String>,
    /// What is said to the agent: a text or an object; without it, the description.
    message: Option<Json>,
    #[serde(alias = "context_id")]
    context_id: Option<String>,
    #[serde(alias = "timeout_ms")]
    timeout_ms: Option<u64>,
}

/// A result, and the choice it came from.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Dispatched<'a> {
    dispatch_id: Option<&'a DispatchId>,
    agent: Option<&'a str>,
    task: TaskJson<'a>,
}

#[derive(Serialize)]
struct List<'a> {
    dispatches: &'a [Dispatch],
    next: Option<DispatchId>,
}

pub(super) async fn dispatch(asking: Asking) -> Result<Response, Failure> {
    let body: Body = asking.json()?;
    let wanted = Wanted {
        part: body.part()?,
        context: body.context_id,
        wall_clock: body.timeout_ms.map(patience),
        trace: asking.trace(),
        work: Work {
            work_type: body.work_type,
            description: body.description,
            required_skills: body.required_skills,
            input_modes: body.input_modes,
        },
    };
    let done = dispatches::dispatch(&asking.console, &asking.caller, wanted).await?;
    let task = TaskJson::of(&done.task);
    let told = Dispatched { dispatch_id: done.dispatch.as_ref(), agent: done.agent.as_deref(), task };
    let mut response = good(&told)?;
    rialto_edge::warning::put(response.headers_mut(), done.task.guardrail().as_ref());
    Ok(response)
}

pub(super) async fn list(asking: Asking) -> Result<Response, Failure> {
    let filter = Filter {
        work_type: asking.query("workType").map(str::to_owned),
        limit: asking.limit()?,
        cursor: asking.cursor().map(DispatchId::from),
    };
    let (found, next) = dispatches::list(&asking.console, &asking.caller, &filter).await?;
    good(&List { dispatches: &found, next })
}

pub(super) async fn show(asking: Asking) -> Result<Response, Failure> {
    good(&dispatches::show(&asking.console, &asking.caller, asking.part("id")).await?)
}

pub(super) async fn resolve(asking: Asking) -> Result<Response, Failure> {
    let work: Work = asking.json()?;
    good(&dispatches::resolve(&asking.console, &asking.caller, &work).await?)
}

// === impl Body ===

impl Body {
    fn part(&self) -> Result<Part, Failure> {
        let invalid = |message: &str| Failure::new(Kind::Invalid, message);
        match &self.message {
            Some(data) if data.is_object() => Ok(Part::data(data.clone())),
            Some(text) => text
                .read::<String>()
                .map(Part::text)
                .map_err(|_| invalid("message: expected a text or an object")),
            None if self.description.trim().is_empty() => {
                Err(invalid("say what is to be done: a description or a message"))
            }
            None => Ok(Part::text(self.description.clone())),
        }
    }
}
