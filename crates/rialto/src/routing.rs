//! `/api/v1/dispatch`, `/api/v1/dispatches` and `/api/v1/resolve`: choosing agents over plain HTTP.
//!
//! Whoever may call may dispatch, and sees its own choices; whoever may read the audit trail sees everybody's.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::to_bytes,
    extract::{Path, Query, Request, State},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::{HeaderValue, StatusCode, header};
use rialto_console::admin::tasks::TaskJson;
use rialto_edge::status;
use rialto_engine::{DispatchRequest, Engine};
use rialto_model::{
    call::{Caller, Door},
    failure::{Failure, Kind},
    ids::DispatchId,
    json::{DEEPEST, Json, is_too_deep},
    message::Part,
    rights::Right,
    routing::{DispatchFilter, Work},
};
use rialto_policy::Action;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::json;

use crate::program::Program;

/// Where work is given away.
pub(crate) const DISPATCH: &str = "/api/v1/dispatch";

/// Where choices are read back.
pub(crate) const DISPATCHES: &str = "/api/v1/dispatches";

/// Where it is said who would be chosen.
pub(crate) const RESOLVE: &str = "/api/v1/resolve";

/// How long a caller may wait, in milliseconds.
const LONGEST_WAIT: u64 = 3_600_000;

#[derive(Clone)]
struct Api {
    engine: Engine,
    max_body_bytes: usize,
}

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

/// Which choices to list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Page {
    work_type: Option<String>,
    before: Option<String>,
    #[serde(default)]
    limit: usize,
}

/// A result, and the choice it came from.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Dispatched<'a> {
    dispatch_id: Option<&'a DispatchId>,
    agent: Option<&'a str>,
    task: TaskJson<'a>,
}

/// The addresses.
pub(crate) fn router(program: &Program) -> Router {
    let api = Api { engine: program.engine.clone(), max_body_bytes: program.config.server.max_body_bytes };
    Router::new()
        .route(DISPATCH, post(dispatch))
        .route(DISPATCHES, get(list))
        .route("/api/v1/dispatches/{id}", get(show))
        .route(RESOLVE, post(resolve))
        .with_state(Arc::new(api))
}

async fn dispatch(State(api): State<Arc<Api>>, request: Request) -> Response {
    api.dispatch(request).await.unwrap_or_else(|failure| problem(&failure))
}

async fn list(
    State(api): State<Arc<Api>>,
    page: Result<Query<Page>, axum::extract::rejection::QueryRejection>,
    request: Request,
) -> Response {
    let page = match page {
        Ok(Query(page)) => page,
        Err(error) => return problem(&Failure::new(Kind::Invalid, error.body_text())),
    };
    let before = page.before.map(DispatchId::from);
    let filter =
        DispatchFilter { work_type: page.work_type, before, limit: page.limit, ..DispatchFilter::default() };
    match api.read_back(caller_of(&request, Right::Call), filter).await {
        Ok(found) => {
            let next = found.last().map(|last| last.id.clone());
            answer(&json!({ "dispatches": found, "next": next }))
        }
        Err(failure) => problem(&failure),
    }
}

async fn show(State(api): State<Arc<Api>>, Path(id): Path<String>, request: Request) -> Response {
    let filter = DispatchFilter { id: Some(id.clone()), limit: 1, ..DispatchFilter::default() };
    match api.read_back(caller_of(&request, Right::Call), filter).await {
        Ok(found) => match found.first() {
            Some(record) => answer(record),
            None => problem(&Failure::new(Kind::NotFound, format!("there is no choice \"{id}\""))),
        },
        Err(failure) => problem(&failure),
    }
}

async fn resolve(State(api): State<Arc<Api>>, request: Request) -> Response {
    match api.resolve(request).await {
        Ok(record) => answer(&record),
        Err(failure) => problem(&failure),
    }
}

// === impl Api ===

impl Api {
    async fn dispatch(&self, request: Request) -> Result<Response, Failure> {
        let caller = caller_of(&request, Right::Call)?;
        let trace = rialto_edge::trace::of(request.headers());
        let body: Body = self.body(request).await?;
        let part = body.part()?;
        let wait = body.timeout_ms.map(|ms| Duration::from_millis(ms.min(LONGEST_WAIT)));
        let work = Work {
            work_type: body.work_type,
            description: body.description,
            required_skills: body.required_skills,
            input_modes: body.input_modes,
        };
        let wanted = DispatchRequest {
            context: body.context_id,
            wall_clock: wait,
            trace,
            ..DispatchRequest::new(caller, Door::Http, work, vec![part])
        };
        let running = Box::pin(self.engine.dispatch(wanted)).await?;
        let id = running.dispatch().cloned();
        let task = running.finish().await?;
        let agent = self.engine.registry().get(&task.head.agent);
        let agent = agent.as_ref().map(|agent| agent.slug.as_str());
        let mut response = answer(&Dispatched { dispatch_id: id.as_ref(), agent, task: TaskJson::of(&task) });
        rialto_edge::warning::put(response.headers_mut(), task.guardrail().as_ref());
        Ok(response)
    }

    async fn resolve(&self, request: Request) -> Result<rialto_model::routing::Dispatch, Failure> {
        let caller = caller_of(&request, Right::Discover)?;
        let work: Work = self.body(request).await?;
        self.engine.explain_here(&caller, &work).await
    }

    async fn read_back(
        &self,
        caller: Result<Caller, Failure>,
        filter: DispatchFilter,
    ) -> Result<Vec<rialto_model::routing::Dispatch>, Failure> {
        let caller = caller?;
        self.engine.sync().await?;
        let own = (!self.sees_all(&caller)).then(|| caller.id.clone());
        self.engine.dispatches(&caller, DispatchFilter { caller: own, ..filter }).await
    }

    /// Whether the caller may see what everybody in its org did.
    fn sees_all(&self, caller: &Caller) -> bool {
        caller.rights.have(Right::Admin) && self.engine.may_administer(caller, Action::AdminAudit).is_ok()
    }

    async fn body<T: DeserializeOwned>(&self, request: Request) -> Result<T, Failure> {
        let invalid = |message: String| Failure::new(Kind::Invalid, message);
        let body = to_bytes(request.into_body(), self.max_body_bytes).await;
        let body = body.map_err(|_| invalid("the body did not come whole, or is too large".to_owned()))?;
        if is_too_deep(&body) {
            return Err(invalid(format!("the body is nested deeper than {DEEPEST} levels")));
        }
        serde_json::from_slice(&body).map_err(|error| invalid(format!("the body does not fit: {error}")))
    }
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

fn caller_of(request: &Request, right: Right) -> Result<Caller, Failure> {
    let caller = request.extensions().get::<Caller>().cloned();
    let unknown = || Failure::new(Kind::Unauthenticated, "this request does not say who calls");
    let caller = caller.ok_or_else(unknown)?;
    if caller.rights.have(right) { Ok(caller) } else { Err(right.lacking()) }
}

fn answer<T: Serialize>(value: &T) -> Response {
    let json = HeaderValue::from_static("application/json");
    (StatusCode::OK, [(header::CONTENT_TYPE, json)], Json::of(value).get().to_owned()).into_response()
}

fn problem(failure: &Failure) -> Response {
    let body = json!({
        "error": failure.kind.class(),
        "code": failure.kind.rpc_code(),
        "message": failure.message,
        "data": failure.data,
    });
    (status::of(failure.kind), axum::Json(body)).into_response()
}
