//! `/factory`: what a person sees.
//!
//! Pages are made here, whole; a script makes them livelier and is not needed. A form posts and redirects; what was wrong with it is
//! shown where it stands. Each page asks the same operations as the API, so it can show and do no more than that.

mod agent;
mod agents;
mod approvals;
mod audit;
mod bench;
mod definitions;
mod dispatches;
mod files;
mod first_steps;
mod flows;
mod guardrails;
mod layout;
mod overview;
mod policies;
mod runs;
mod signing;
mod task;
mod tasks;
mod tokens;
mod tools;
mod trying;
mod visit;

use std::convert::Infallible;

use axum::{
    Router,
    extract::{RawPathParams, Request, State},
    response::{IntoResponse, Redirect, Response},
    routing::{MethodFilter, MethodRouter, get, on},
};
use futures::{FutureExt, future::BoxFuture};
use rialto_edge::session::SIGN_IN;
use rialto_model::failure::Failure;

use self::visit::Visit;
pub(crate) use self::visit::base_of;
use crate::{Console, operation::detached};

/// What makes a page, or does what a form asks.
type Handler = fn(Visit) -> BoxFuture<'static, Result<Response, Failure>>;

macro_rules! page {
    ($method:ident, $path:literal, $handler:path) => {
        (MethodFilter::$method, $path, |visit| $handler(visit).boxed())
    };
}

/// Every page and every form.
const PAGES: &[(MethodFilter, &str, Handler)] = &[
    page!(GET, "/factory", overview::show),
    page!(GET, "/factory/agents", agents::list),
    page!(POST, "/factory/agents", agents::register),
    page!(GET, "/factory/register", agents::new),
    page!(GET, "/factory/refresh", agents::progress),
    page!(POST, "/factory/refresh", agents::refresh_all),
    page!(GET, "/factory/agents/{key}", agent::show),
    page!(POST, "/factory/agents/{key}/refresh", agents::refresh),
    page!(POST, "/factory/agents/{key}/trust", agent::trust),
    page!(POST, "/factory/agents/{key}/approve", agent::approve),
    page!(GET, "/factory/agents/{key}/remove", agents::ask_remove),
    page!(POST, "/factory/agents/{key}/remove", agents::remove),
    page!(GET, "/factory/agents/{key}/try/{skill}", trying::form),
    page!(POST, "/factory/agents/{key}/try/{skill}", trying::begin),
    page!(GET, "/factory/tools", tools::list),
    page!(GET, "/factory/deploy", tools::new),
    page!(POST, "/factory/tools", tools::deploy),
    page!(POST, "/factory/tools/{key}/refresh", tools::refresh),
    page!(POST, "/factory/tools/{key}/approve", tools::approve),
    page!(GET, "/factory/tools/{key}/remove", tools::ask_remove),
    page!(POST, "/factory/tools/{key}/remove", tools::remove),
    page!(GET, "/factory/tasks", tasks::list),
    page!(GET, "/factory/tasks/{id}", task::show),
    page!(GET, "/factory/tasks/{id}/files/{at}", files::download),
    page!(GET, "/factory/tasks/{id}/cancel", task::ask_cancel),
    page!(POST, "/factory/tasks/{id}/cancel", task::cancel),
    page!(POST, "/factory/tasks/{id}/messages", task::say),
    page!(POST, "/factory/tasks/{id}/continue", task::go_on),
    page!(GET, "/factory/workflows", flows::list),
    page!(POST, "/factory/workflows", definitions::keep),
    page!(GET, "/factory/new-workflow", definitions::new),
    page!(POST, "/factory/check-workflow", definitions::check),
    page!(GET, "/factory/workflows/{name}", flows::show),
    page!(GET, "/factory/workflows/{name}/edit", definitions::edit),
    page!(POST, "/factory/workflows/{name}/status", definitions::set_status),
    page!(GET, "/factory/workflows/{name}/remove", definitions::ask_remove),
    page!(POST, "/factory/workflows/{name}/remove", definitions::remove),
    page!(POST, "/factory/workflows/{name}/run", flows::begin),
    page!(GET, "/factory/runs/{id}", runs::show),
    page!(GET, "/factory/runs/{id}/cancel", runs::ask_cancel),
    page!(POST, "/factory/runs/{id}/cancel", runs::cancel),
    page!(POST, "/factory/runs/{id}/messages", runs::answer),
    page!(POST, "/factory/runs/{id}/resume", runs::resume),
    page!(GET, "/factory/approvals", approvals::list),
    page!(POST, "/factory/approvals/{id}/approve", approvals::approve),
    page!(POST, "/factory/approvals/{id}/deny", approvals::deny),
    page!(GET, "/factory/dispatches", dispatches::list),
    page!(GET, "/factory/dispatches/{id}", dispatches::show),
    page!(GET, "/factory/policies", policies::list),
    page!(POST, "/factory/policies", policies::save),
    page!(POST, "/factory/check-policy", policies::check),
    page!(GET, "/factory/policies/new", policies::new),
    page!(GET, "/factory/policies/test", bench::test),
    page!(GET, "/factory/policies/matrix", bench::matrix),
    page!(POST, "/factory/policies/templates", policies::add_usual),
    page!(GET, "/factory/policies/{name}", policies::edit),
    page!(GET, "/factory/policies/{name}/remove", policies::ask_remove),
    page!(POST, "/factory/policies/{name}/remove", policies::remove),
    page!(GET, "/factory/guardrails", guardrails::bench),
    page!(POST, "/factory/guardrails", guardrails::test),
    page!(GET, "/factory/tokens", tokens::list),
    page!(POST, "/factory/tokens", tokens::create),
    page!(GET, "/factory/tokens/{id}/revoke", tokens::ask_revoke),
    page!(POST, "/factory/tokens/{id}/revoke", tokens::revoke),
    page!(POST, "/factory/sessions/{id}/end", tokens::end_session),
    page!(GET, "/factory/audit", audit::list),
    page!(POST, "/factory/audit/verify", audit::verify),
    page!(GET, "/factory/audit/verify", audit::progress),
    page!(POST, "/factory/theme", signing::theme),
    page!(POST, "/factory/sign-out", signing::sign_out),
];

pub(crate) fn router(console: &Console) -> Router {
    let mut router: Router<Console> = Router::new();
    for (method, path, handler) in PAGES {
        router = router.route(path, route(*method, path, *handler));
    }
    router
        .route(SIGN_IN, get(signing::form).post(signing::sign_in))
        .route("/factory/", get(missing))
        .route("/factory/{*rest}", get(missing))
        .with_state(console.clone())
}

/// Forms that go on with tasks: those end with their client, as calls do.
const CALLS: [&str; 4] =
    ["/factory/tasks/", "/factory/runs/", "/factory/agents/{key}/try/", "/factory/workflows/{name}/run"];

fn route(method: MethodFilter, path: &'static str, handler: Handler) -> MethodRouter<Console, Infallible> {
    let is_change = method == MethodFilter::POST && !CALLS.iter().any(|calls| path.starts_with(calls));
    on(method, move |State(console): State<Console>, params: RawPathParams, request: Request| async move {
        let params = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let visit = match Visit::read(console, params, request).await {
            Ok(visit) => visit,
            Err(response) => return *response,
        };
        let frame = visit.frame();
        let made = if is_change { detached(handler(visit)).await } else { handler(visit).await };
        match made {
            Ok(response) => response,
            Err(failure) => layout::trouble(&frame, &failure),
        }
    })
}

/// Leads to the page that is meant where there is a slash too many; else says that there is none.
async fn missing(State(console): State<Console>, request: Request) -> Response {
    use rialto_model::failure::FailureKind;
    match Visit::read(console, Vec::new(), request).await {
        Ok(visit) if visit.uri.path().ends_with('/') => {
            let path = visit.uri.path().trim_end_matches('/');
            let query = visit.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
            Redirect::permanent(&format!("{}{path}{query}", visit.base())).into_response()
        }
        Ok(visit) => {
            let message = "there is no such page; the menu leads to those there are";
            layout::trouble(&visit.frame(), &Failure::new(FailureKind::NotFound, message))
        }
        Err(response) => response.into_response(),
    }
}
