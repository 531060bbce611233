//! Schemas of the responses of each operation, for the OpenAPI document. Tests validate every response against its schema.

use rialto_api_types::{
    agents::{
        AgentCredentialRow, AgentDetail, AgentPage, AgentRow, AgentScores, CardHistory, CardRefresh,
        ProbeList, RefreshProgress, RefreshSummary, RegisteredAgent,
    },
    approvals::{ApprovalPage, ApprovalRow},
    audit::{AuditPage, AuditVerification, CostReport},
    dispatches::{DispatchPage, DispatchResult},
    guardrails::{GuardrailSettings, GuardrailTestResult},
    nodes::{NodeList, NodeRow},
    overview::{CallerIdentity, ProjectOverview},
    policies::{
        PermissionMatrix, PolicyDetail, PolicyHistory, PolicyList, PolicyNames, PolicyPreview,
        PolicyProblems, PolicyRuling, PolicyTemplates, RemovedPolicy, SavedPolicy,
    },
    schema::{SchemaFn, schema_of},
    secrets::{RemovedSecret, SavedSecret, SecretList},
    tasks::{
        AcceptedReply, CallInspection, StartedCall, TaskDetail, TaskEvents, TaskPage, UndeliveredPushes,
    },
    tenants::{CreatedOrg, CreatedProject, OrgList, ProjectList},
    tokens::{CreatedToken, SessionList, TokenList},
    tools::DeploymentRow,
    webhooks::{CreatedWebhook, WebhookList, WebhookRow},
    workflows::{RemovedWorkflow, RunPage, StartedRun, WorkflowCheck, WorkflowRow, WorkflowVersions},
};
use rialto_model::{flow::RunRecord, routing::Dispatch};
use serde_json::{Map, Value};

use super::routes::Route;

/// Default response of each operation. An operation without an entry has no body.
const RESPONSES: &[(&str, SchemaFn)] = &[
    ("GET /openapi.json", schema_of::<Map<String, Value>>),
    ("GET /me", schema_of::<CallerIdentity>),
    ("GET /overview", schema_of::<ProjectOverview>),
    ("GET /agents", schema_of::<AgentPage>),
    ("POST /agents", schema_of::<RegisteredAgent>),
    ("POST /refresh", schema_of::<RefreshSummary>),
    ("GET /refresh", schema_of::<Option<RefreshProgress>>),
    ("GET /agents/{key}", schema_of::<AgentDetail>),
    ("POST /agents/{key}/refresh", schema_of::<CardRefresh>),
    ("POST /agents/{key}/trust", schema_of::<AgentRow>),
    ("PUT /agents/{key}/credential", schema_of::<AgentCredentialRow>),
    ("POST /agents/{key}/approve", schema_of::<AgentRow>),
    ("GET /agents/{key}/probes", schema_of::<ProbeList>),
    ("GET /agents/{key}/standings", schema_of::<AgentScores>),
    ("GET /agents/{key}/history", schema_of::<CardHistory>),
    ("GET /events", schema_of::<String>),
    ("GET /tools", schema_of::<Vec<DeploymentRow>>),
    ("POST /tools", schema_of::<DeploymentRow>),
    ("GET /tools/{name}", schema_of::<DeploymentRow>),
    ("GET /tasks", schema_of::<TaskPage>),
    ("POST /tasks", schema_of::<StartedCall>),
    ("GET /tasks/undelivered", schema_of::<UndeliveredPushes>),
    ("GET /tasks/{id}", schema_of::<TaskDetail>),
    ("GET /tasks/{id}/inspect", schema_of::<CallInspection>),
    ("GET /tasks/{id}/events", schema_of::<TaskEvents>),
    ("POST /tasks/{id}/cancel", schema_of::<TaskDetail>),
    ("POST /tasks/{id}/messages", schema_of::<AcceptedReply>),
    ("POST /check-workflow", schema_of::<WorkflowCheck>),
    ("GET /workflows", schema_of::<Vec<WorkflowRow>>),
    ("POST /workflows", schema_of::<WorkflowRow>),
    ("GET /workflows/{name}", schema_of::<WorkflowRow>),
    ("GET /workflows/{name}/versions", schema_of::<WorkflowVersions>),
    ("DELETE /workflows/{name}", schema_of::<RemovedWorkflow>),
    ("POST /workflows/{name}/status", schema_of::<WorkflowRow>),
    ("GET /workflows/{name}/runs", schema_of::<RunPage>),
    ("POST /workflows/{name}/runs", schema_of::<TaskDetail>),
    ("GET /runs", schema_of::<RunPage>),
    ("POST /runs", schema_of::<TaskDetail>),
    ("GET /runs/{id}", schema_of::<RunRecord>),
    ("POST /runs/{id}", schema_of::<TaskDetail>),
    ("POST /runs/{id}/resume", schema_of::<TaskDetail>),
    ("POST /runs/{id}/cancel", schema_of::<TaskDetail>),
    ("GET /approvals", schema_of::<ApprovalPage>),
    ("GET /approvals/{id}", schema_of::<ApprovalRow>),
    ("POST /approvals/{id}/approve", schema_of::<ApprovalRow>),
    ("POST /approvals/{id}/deny", schema_of::<ApprovalRow>),
    ("POST /dispatch", schema_of::<DispatchResult>),
    ("GET /dispatches", schema_of::<DispatchPage>),
    ("GET /dispatches/{id}", schema_of::<Dispatch>),
    ("POST /resolve", schema_of::<Dispatch>),
    ("GET /audit", schema_of::<AuditPage>),
    ("GET /audit/verify", schema_of::<AuditVerification>),
    ("GET /costs", schema_of::<CostReport>),
    ("GET /policies", schema_of::<PolicyList>),
    ("GET /policies/check", schema_of::<PolicyNames>),
    ("GET /policies/templates", schema_of::<PolicyTemplates>),
    ("POST /policies/templates", schema_of::<SavedPolicy>),
    ("POST /policies/validate", schema_of::<PolicyProblems>),
    ("POST /policies/what-if", schema_of::<PolicyPreview>),
    ("POST /policies/test", schema_of::<PolicyRuling>),
    ("GET /policies/matrix", schema_of::<PermissionMatrix>),
    ("GET /policies/{name}", schema_of::<PolicyDetail>),
    ("PUT /policies/{name}", schema_of::<SavedPolicy>),
    ("DELETE /policies/{name}", schema_of::<RemovedPolicy>),
    ("GET /policies/{name}/history", schema_of::<PolicyHistory>),
    ("POST /policies/{name}/restore", schema_of::<SavedPolicy>),
    ("GET /guardrails", schema_of::<GuardrailSettings>),
    ("POST /guardrails/test", schema_of::<GuardrailTestResult>),
    ("GET /orgs", schema_of::<OrgList>),
    ("POST /orgs", schema_of::<CreatedOrg>),
    ("GET /nodes", schema_of::<NodeList>),
    ("POST /nodes/{name}/drain", schema_of::<NodeRow>),
    ("DELETE /nodes/{name}/drain", schema_of::<NodeRow>),
    ("GET /projects", schema_of::<ProjectList>),
    ("POST /projects", schema_of::<CreatedProject>),
    ("GET /tokens", schema_of::<TokenList>),
    ("POST /tokens", schema_of::<CreatedToken>),
    ("GET /sessions", schema_of::<SessionList>),
    ("GET /webhooks", schema_of::<WebhookList>),
    ("POST /webhooks", schema_of::<CreatedWebhook>),
    ("DELETE /webhooks/{id}", schema_of::<WebhookRow>),
    ("POST /webhooks/{id}/test", schema_of::<WebhookRow>),
    ("POST /webhooks/{id}/retry", schema_of::<WebhookRow>),
    ("GET /secrets", schema_of::<SecretList>),
    ("PUT /secrets/{name}", schema_of::<SavedSecret>),
    ("DELETE /secrets/{name}", schema_of::<RemovedSecret>),
];

/// Responses with another status.
const OTHER_RESPONSES: &[(&str, u16, &str, SchemaFn)] = &[
    ("POST /agents", 200, "The agent, which was registered before", schema_of::<RegisteredAgent>),
    ("POST /refresh", 202, "Progress; the work continues in the background", schema_of::<RefreshProgress>),
    ("POST /tools", 200, "The server or function, which was deployed before", schema_of::<DeploymentRow>),
    (
        "POST /workflows/{name}/runs",
        202,
        "Id of the run, which continues in the background",
        schema_of::<StartedRun>,
    ),
    ("POST /runs", 202, "Id of the run, which continues in the background", schema_of::<StartedRun>),
    ("POST /runs/{id}", 202, "Id of the run, which continues in the background", schema_of::<StartedRun>),
    (
        "POST /runs/{id}/resume",
        202,
        "Id of the run, which continues in the background",
        schema_of::<StartedRun>,
    ),
];

/// Response of an operation: its status, a description and the schema of its body, if it has one.
pub(super) type ResponseSchema = (u16, &'static str, Option<SchemaFn>);

/// Every successful response of a route.
pub(super) fn responses_of(route: &Route) -> Vec<ResponseSchema> {
    let operation = operation(route);
    let usual = RESPONSES.iter().find(|(name, _)| *name == operation).map(|(_, schema)| *schema);
    let others = OTHER_RESPONSES.iter().filter(|(name, ..)| *name == operation);
    let others = others.map(|(_, status, description, schema)| (*status, *description, Some(*schema)));
    std::iter::once((route.response.0, route.response.1, usual)).chain(others).collect()
}

/// Method and path of a route, below `/api/v1`.
fn operation(route: &Route) -> String {
    format!("{} {}", route.method, route.path.trim_start_matches("/api/v1"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::routes;

    #[test]
    fn every_route_with_a_response_body_has_a_schema() {
        let known: HashSet<String> = routes().map(operation).collect();
        let described = RESPONSES.iter().map(|(name, _)| *name);
        for name in described.chain(OTHER_RESPONSES.iter().map(|(name, ..)| *name)) {
            assert!(known.contains(name), "{name} is not a route");
        }
        for route in routes() {
            let (status, _, schema) = responses_of(route).swap_remove(0);
            assert_eq!(schema.is_some(), status != 204, "{} {}", route.method, route.path);
        }
    }
}
