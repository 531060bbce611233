//! Table of all routes of `/api/v1`. Each resource has its routes beside their handlers.

use rialto_api_types::schema::SchemaFn;

use super::{
    Handler, agents, approvals, audit, dispatches, events, guardrails, nodes, openapi, overview, policies,
    runs, secrets, tasks, tenants, tokens, tools, webhooks, workflows,
};

/// Route of the API.
pub struct Route {
    /// HTTP method.
    pub method: &'static str,
    /// Path, without org and project.
    pub path: &'static str,
    /// Summary of its operation.
    pub summary: &'static str,
    /// Query parameters with their descriptions. Others are errors.
    pub query: &'static [(&'static str, &'static str)],
    /// Schema of the request body.
    pub body: Option<SchemaFn>,
    /// Status and description of a successful response.
    pub response: (u16, &'static str),
    /// Function that handles its requests.
    pub(crate) handler: Handler,
}

/// Query parameters of a list with pages. `before` is the former name of `cursor`.
pub(super) const PAGED: [(&str, &str); 3] = [
    ("limit", "Maximum number of rows, 50 by default and 500 at most"),
    ("cursor", "`next` of the previous page"),
    ("before", "Former name of `cursor`"),
];

/// Handler of a route, as a function pointer.
macro_rules! handler {
    ($handler:path) => {
        |request| $handler(request).boxed()
    };
}
pub(super) use handler;

/// Routes that change nothing but tasks, although they are not `GET`. All other routes that are not `GET` are administrative.
const NOT_ADMINISTRATIVE: [&str; 10] = [
    "/api/v1/tasks",
    "/api/v1/runs",
    "/api/v1/workflows/{name}/runs",
    "/api/v1/dispatch",
    "/api/v1/resolve",
    "/api/v1/check-workflow",
    "/api/v1/guardrails/test",
    "/api/v1/policies/validate",
    "/api/v1/policies/what-if",
    "/api/v1/policies/test",
];

// === impl Route ===

impl Route {
    /// Whether it is an administrative operation: each request writes one audit record, whatever its result.
    pub fn is_administrative(&self) -> bool {
        let is_below = |root: &&str| {
            self.path.strip_prefix(*root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.method != "GET" && !NOT_ADMINISTRATIVE.iter().any(is_below)
    }

    /// Name of an administrative operation in the audit log.
    pub fn operation(&self) -> Option<&'static str> {
        if !self.is_administrative() {
            return None;
        }
        let path = self.path.strip_prefix("/api/v1/").unwrap_or(self.path);
        Some(match (self.method, path) {
            ("POST", "agents") => "agent.register",
            ("POST", "refresh" | "agents/{key}/refresh") => "agent.refresh",
            ("POST", "agents/{key}/trust") => "agent.set_trust",
            ("POST", "agents/{key}/approve") => "agent.approve_card",
            ("PUT", "agents/{key}/credential") => "agent.set_credential",
            ("DELETE", "agents/{key}") => "agent.remove",
            ("POST", "tools") => "tool.deploy",
            ("DELETE", "tools/{name}") => "tool.remove",
            ("DELETE", "policies/{name}") => "policy.remove",
            (_, "policies/{name}/restore") => "policy.restore",
            (_, path) if path.starts_with("policies") => "policy.save",
            ("DELETE", "workflows/{name}") => "workflow.remove",
            (_, "workflows/{name}/status") => "workflow.set_status",
            (_, path) if path.starts_with("workflows") => "workflow.save",
            (_, path) if path.starts_with("approvals") => "approve_call",
            ("POST", "orgs") => "org.create",
            ("DELETE", "orgs/{org}") => "org.remove",
            ("POST", "nodes/{name}/drain") => "node.drain",
            ("DELETE", "nodes/{name}/drain") => "node.undrain",
            ("POST", "projects") => "project.create",
            ("DELETE", "projects/{project}") => "project.remove",
            ("POST", "tokens") => "token.create",
            ("DELETE", "tokens/{id}") => "token.revoke",
            ("DELETE", "sessions/{id}") => "session.end",
            ("POST", "webhooks") => "webhook.add",
            ("POST", "webhooks/{id}/test") => "webhook.test",
            ("POST", "webhooks/{id}/retry") => "webhook.retry",
            ("DELETE", "webhooks/{id}") => "webhook.remove",
            ("DELETE", "secrets/{name}") => "secret.remove",
            (_, path) if path.starts_with("secrets") => "secret.set",
            _ => "administer",
        })
    }
}

/// All routes, in the order of the OpenAPI document.
pub fn routes() -> impl Iterator<Item = &'static Route> {
    [
        openapi::ROUTES,
        overview::ROUTES,
        agents::ROUTES,
        events::ROUTES,
        tools::ROUTES,
        tasks::ROUTES,
        workflows::ROUTES,
        runs::ROUTES,
        approvals::ROUTES,
        dispatches::ROUTES,
        audit::ROUTES,
        policies::ROUTES,
        tenants::ROUTES,
        nodes::ROUTES,
        tokens::ROUTES,
        guardrails::ROUTES,
        webhooks::ROUTES,
        secrets::ROUTES,
    ]
    .into_iter()
    .flatten()
}

pub(super) const fn get(
    path: &'static str,
    summary: &'static str,
    description: &'static str,
    handler: Handler,
) -> Route {
    Route { method: "GET", path, summary, query: &[], body: None, response: (200, description), handler }
}

pub(super) const fn post(
    path: &'static str,
    summary: &'static str,
    body: Option<SchemaFn>,
    response: (u16, &'static str),
    handler: Handler,
) -> Route {
    Route { method: "POST", path, summary, query: &[], body, response, handler }
}

pub(super) const fn delete(path: &'static str, summary: &'static str, handler: Handler) -> Route {
    Route { method: "DELETE", path, summary, query: &[], body: None, response: (204, "Removed"), handler }
}
