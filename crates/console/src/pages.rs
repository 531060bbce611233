//! Pages of the console, below `/factory`.
//!
//! Pages are rendered on the server and work without scripts; a script updates them live. A form posts and redirects, and its errors
//! are shown beside it. Pages call the same operations as the API, with the same permissions.

mod agent;
mod agents;
mod approvals;
mod audit;
mod dispatches;
mod downloads;
mod first_steps;
mod guardrails;
mod layout;
mod overview;
mod policies;
mod policy_playground;
mod request;
mod runs;
mod sign_in;
mod task;
mod tasks;
mod tokens;
mod tools;
mod try_skill;
mod workflow_editor;
mod workflows;

use std::convert::Infallible;

use axum::{
    Router,
    extract::{RawPathParams, Request, State},
    response::{IntoResponse, Redirect, Response},
    routing::{MethodFilter, MethodRouter, get, on},
};
use futures::{FutureExt, future::BoxFuture};
use rialto_admin::{Administration, operation::detached};
use rialto_http_server::session::SIGN_IN;
use rialto_model::failure::Failure;

use self::request::PageRequest;

/// Function that renders a page or handles a form.
type Handler = fn(PageRequest) -> BoxFuture<'static, Result<Response, Failure>>;

macro_rules! page {
    ($method:ident, $path:literal, $handler:path) => {
        (MethodFilter::$method, $path, |request| $handler(request).boxed())
    };
}

/// All pages and forms.
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
    page!(GET, "/factory/agents/{key}/remove", agents::confirm_remove),
    page!(POST, "/factory/agents/{key}/remove", agents::remove),
    page!(GET, "/factory/agents/{key}/try/{skill}", try_skill::form),
    page!(POST, "/factory/agents/{key}/try/{skill}", try_skill::call),
    page!(GET, "/factory/tools", tools::list),
    page!(GET, "/factory/deploy", tools::new),
    page!(POST, "/factory/tools", tools::deploy),
    page!(POST, "/factory/tools/{key}/refresh", tools::refresh),
    page!(POST, "/factory/tools/{key}/approve", tools::approve),
    page!(GET, "/factory/tools/{key}/remove", tools::confirm_remove),
    page!(POST, "/factory/tools/{key}/remove", tools::remove),
    page!(GET, "/factory/tasks", tasks::list),
    page!(GET, "/factory/tasks/{id}", task::show),
    page!(GET, "/factory/tasks/{id}/files/{at}", downloads::download),
    page!(GET, "/factory/tasks/{id}/cancel", task::confirm_cancel),
    page!(POST, "/factory/tasks/{id}/cancel", task::cancel),
    page!(POST, "/factory/tasks/{id}/messages", task::send_message),
    page!(POST, "/factory/tasks/{id}/continue", task::continue_conversation),
    page!(GET, "/factory/workflows", workflows::list),
    page!(POST, "/factory/workflows", workflow_editor::save),
    page!(GET, "/factory/new-workflow", workflow_editor::new),
    page!(POST, "/factory/check-workflow", workflow_editor::check),
    page!(GET, "/factory/workflows/{name}", workflows::show),
    page!(GET, "/factory/workflows/{name}/edit", workflow_editor::edit),
    page!(POST, "/factory/workflows/{name}/status", workflow_editor::set_status),
    page!(GET, "/factory/workflows/{name}/remove", workflow_editor::confirm_remove),
    page!(POST, "/factory/workflows/{name}/remove", workflow_editor::remove),
    page!(POST, "/factory/workflows/{name}/run", workflows::run),
    page!(GET, "/factory/runs/{id}", runs::show),
    page!(GET, "/factory/runs/{id}/cancel", runs::confirm_cancel),
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
    page!(GET, "/factory/policies/test", policy_playground::test),
    page!(GET, "/factory/policies/matrix", policy_playground::matrix),
    page!(POST, "/factory/policies/templates", policies::add_from_template),
    page!(GET, "/factory/policies/{name}", policies::edit),
    page!(GET, "/factory/policies/{name}/remove", policies::confirm_remove),
    page!(POST, "/factory/policies/{name}/remove", policies::remove),
    page!(GET, "/factory/guardrails", guardrails::show_form),
    page!(POST, "/factory/guardrails", guardrails::test),
    page!(GET, "/factory/tokens", tokens::list),
    page!(POST, "/factory/tokens", tokens::create),
    page!(GET, "/factory/tokens/{id}/revoke", tokens::confirm_revoke),
    page!(POST, "/factory/tokens/{id}/revoke", tokens::revoke),
    page!(POST, "/factory/sessions/{id}/end", tokens::end_session),
    page!(GET, "/factory/audit", audit::list),
    page!(POST, "/factory/audit/verify", audit::verify),
    page!(GET, "/factory/audit/verify", audit::progress),
    page!(POST, "/factory/theme", sign_in::theme),
    page!(POST, "/factory/sign-out", sign_in::sign_out),
];

pub(crate) fn router(admin: &Administration) -> Router {
    let mut router: Router<Administration> = Router::new();
    for (method, path, handler) in PAGES {
        router = router.route(path, route(*method, path, *handler));
    }
    router
        .route(SIGN_IN, get(sign_in::form).post(sign_in::submit))
        .route("/factory/", get(missing))
        .route("/factory/{*rest}", get(missing))
        .with_state(admin.clone())
}

/// Forms that act on tasks. They end when the client disconnects, as calls do.
const CALLS: [&str; 4] =
    ["/factory/tasks/", "/factory/runs/", "/factory/agents/{key}/try/", "/factory/workflows/{name}/run"];

fn route(
    method: MethodFilter,
    path: &'static str,
    handler: Handler,
) -> MethodRouter<Administration, Infallible> {
    let is_change = method == MethodFilter::POST && !CALLS.iter().any(|calls| path.starts_with(calls));
    on(
        method,
        move |State(admin): State<Administration>, params: RawPathParams, request: Request| async move {
            let params = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            let request = match PageRequest::read(admin, params, request).await {
                Ok(request) => request,
                Err(response) => return *response,
            };
            let frame = request.frame();
            let result = if is_change { detached(handler(request)).await } else { handler(request).await };
            match result {
                Ok(response) => response,
                Err(failure) => layout::error_page(&frame, &failure),
            }
        },
    )
}

/// Redirects a path with a trailing slash; any other path is not found.
async fn missing(State(admin): State<Administration>, request: Request) -> Response {
    use rialto_model::failure::FailureKind;
    match PageRequest::read(admin, Vec::new(), request).await {
        Ok(request) if request.uri.path().ends_with('/') => {
            let path = request.uri.path().trim_end_matches('/');
            let query = request.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
            Redirect::permanent(&format!("{}{path}{query}", request.base())).into_response()
        }
        Ok(request) => {
            let message = "there is no such page; use the menu";
            layout::error_page(&request.frame(), &Failure::new(FailureKind::NotFound, message))
        }
        Err(response) => response.into_response(),
    }
}
