//! Every route of `/api/v1`, once: what it is called, what it takes, and what does its work.

mod registry;
mod rules;
mod work;

use rialto_api_types::schema::SchemaFn;

use super::Handler;

/// One route.
pub struct Route {
    /// The method.
    pub method: &'static str,
    /// The path, without org and project.
    pub path: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// Its parameters behind the question mark, with what they mean. There are no others.
    pub query: &'static [(&'static str, &'static str)],
    /// Schema of the body it takes.
    pub body: Option<SchemaFn>,
    /// The status of a good answer, and what it holds.
    pub answer: (u16, &'static str),
    /// What does its work.
    pub(crate) handler: Handler,
}

/// A page: how many, from where, and the latter as it was called once.
const PAGED: [(&str, &str); 3] = [
    ("limit", "At most so many rows, 50 when it is not said, 500 at most"),
    ("cursor", "`next` of the page before"),
    ("before", "The same as `cursor`"),
];

/// What does a route's work.
macro_rules! here {
    ($handler:path) => {
        |asking| $handler(asking).boxed()
    };
}
use here;

/// Routes that are posted to and change nothing but tasks, or nothing at all. Every other one that is not read is administrative.
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
    /// Whether it changes what is administered: then it leaves one record in the audit trail, whatever comes of it.
    pub fn is_administrative(&self) -> bool {
        let is_below = |root: &&str| {
            self.path.strip_prefix(*root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.method != "GET" && !NOT_ADMINISTRATIVE.iter().any(is_below)
    }

    /// What an administrative route does, as the audit trail calls it.
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

/// All of them.
pub fn routes() -> impl Iterator<Item = &'static Route> {
    [registry::ROUTES, work::ROUTES, rules::ROUTES].into_iter().flatten()
}

const fn get(path: &'static str, summary: &'static str, holds: &'static str, handler: Handler) -> Route {
    Route { method: "GET", path, summary, query: &[], body: None, answer: (200, holds), handler }
}

const fn post(
    path: &'static str,
    summary: &'static str,
    body: Option<SchemaFn>,
    answer: (u16, &'static str),
    handler: Handler,
) -> Route {
    Route { method: "POST", path, summary, query: &[], body, answer, handler }
}

const fn delete(path: &'static str, summary: &'static str, handler: Handler) -> Route {
    Route { method: "DELETE", path, summary, query: &[], body: None, answer: (204, "It is gone"), handler }
}
