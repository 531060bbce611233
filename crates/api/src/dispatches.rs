//! `/api/v1/dispatch`, `/api/v1/dispatches` and `/api/v1/resolve`: routing of work.

use axum::response::Response;
use futures::FutureExt;
use rialto_admin::dispatches::{self, DispatchQuery, WorkRequest};
use rialto_api_types::{
    dispatches::{DispatchPage, DispatchResult, NewDispatch},
    schema::schema_of,
    tasks::TaskDetail,
};
use rialto_model::{
    failure::{Failure, FailureKind},
    ids::DispatchId,
    message::Part,
    routing::WorkDescription,
};

use super::{
    ok_json,
    request::{RouteRequest, to_timeout},
    routes::{PAGED, Route, get, handler, post},
};

/// Routes of this resource.
pub(super) const ROUTES: &[Route] = &[
    post(
        "/api/v1/dispatch",
        "Route work to the best agent",
        Some(schema_of::<NewDispatch>),
        (200, "The result and the id of the routing decision"),
        handler!(dispatch),
    ),
    Route {
        query: &[
            ("workType", "Only decisions about this type of work"),
            ("limit", "Maximum number of rows, 50 by default and 200 at most"),
            PAGED[1],
            PAGED[2],
        ],
        ..get(
            "/api/v1/dispatches",
            "List routing decisions, newest first",
            "`dispatches` and `next`",
            handler!(list),
        )
    },
    get(
        "/api/v1/dispatches/{id}",
        "Show a routing decision, by its id or the id of its task",
        "The routing decision",
        handler!(show),
    ),
    post(
        "/api/v1/resolve",
        "Preview a routing decision without calling an agent",
        Some(schema_of::<NewDispatch>),
        (200, "The routing decision"),
        handler!(preview),
    ),
];

pub(super) async fn dispatch(request: RouteRequest) -> Result<Response, Failure> {
    let body: NewDispatch = request.json()?;
    let work_request = WorkRequest {
        part: part(&body)?,
        context: body.context_id,
        timeout: body.timeout_ms.map(to_timeout),
        trace: request.trace(),
        work: WorkDescription {
            work_type: body.work_type,
            description: body.description,
            required_skills: body.required_skills,
            input_modes: body.input_modes,
        },
    };
    let done = dispatches::dispatch(&request.admin, &request.caller, work_request).await?;
    let warning = done.task.guardrail();
    let task = TaskDetail::from(done.task);
    let mut response = ok_json(&DispatchResult { dispatch_id: done.dispatch, agent: done.agent, task })?;
    rialto_http_server::guardrail_header::insert(response.headers_mut(), warning.as_ref());
    Ok(response)
}

pub(super) async fn list(request: RouteRequest) -> Result<Response, Failure> {
    let filter = DispatchQuery {
        work_type: request.query("workType").map(str::to_owned),
        limit: request.limit()?,
        cursor: request.cursor().map(DispatchId::from),
    };
    let (found, next) = dispatches::list(&request.admin, &request.caller, &filter).await?;
    ok_json(&DispatchPage { dispatches: found, next })
}

pub(super) async fn show(request: RouteRequest) -> Result<Response, Failure> {
    ok_json(&dispatches::show(&request.admin, &request.caller, request.path_param("id")).await?)
}

pub(super) async fn preview(request: RouteRequest) -> Result<Response, Failure> {
    let work: WorkDescription = request.json()?;
    ok_json(&dispatches::preview(&request.admin, &request.caller, &work).await?)
}

/// Message for the agent: by default the description of the work.
fn part(body: &NewDispatch) -> Result<Part, Failure> {
    let invalid = |message: &str| Failure::new(FailureKind::Invalid, message);
    match &body.message {
        Some(data) if data.is_object() => Ok(Part::data(data.clone())),
        Some(text) => text
            .read::<String>()
            .map(Part::text)
            .map_err(|_| invalid("message: expected a string or an object")),
        None if body.description.trim().is_empty() => Err(invalid("set a description or a message")),
        None => Ok(Part::text(body.description.clone())),
    }
}
