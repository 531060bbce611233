//! Schemas of the responses of each operation, for the OpenAPI document. The tests hold every response that they get against its schema.

use rialto_api_types::{
    agents::{
        AgentCredentialRow, AgentDetail, AgentPage, AgentRow, AgentScores, CardHistory, CardRefresh,
        ProbeList, RefreshProgress, RefreshSummary, RegisteredAgent,
    },
    guardrails::{ActiveGuardrails, GuardrailReport},
    nodes::{NodeList, NodeRow},
    policies::{
        PermissionMatrix, PolicyDetail, PolicyHistory, PolicyList, PolicyNames, PolicyPreview,
        PolicyProblems, PolicyRuling, PolicyTemplates, RemovedPolicy, SavedPolicy,
    },
    schema::{SchemaFn, schema_of},
    secrets::{RemovedSecret, SavedSecret, SecretList},
    tenants::{CreatedOrg, CreatedProject, OrgList, ProjectList},
    tokens::{CreatedToken, SessionList, TokenList},
    tools::DeploymentRow,
    webhooks::{CreatedWebhook, WebhookList, WebhookRow},
};

use super::routes::Route;

/// Usual response of each operation; one that is missing here has no body.
const RESPONSES: &[(&str, SchemaFn)] = &[
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
    ("GET /tools", schema_of::<Vec<DeploymentRow>>),
    ("POST /tools", schema_of::<DeploymentRow>),
    ("GET /tools/{name}", schema_of::<DeploymentRow>),
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
    ("GET /guardrails", schema_of::<ActiveGuardrails>),
    ("POST /guardrails/test", schema_of::<GuardrailReport>),
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

/// Responses with another status, where an operation has such.
const OTHER_RESPONSES: &[(&str, u16, &str, SchemaFn)] = &[
    ("POST /agents", 200, "The agent, which was registered before", schema_of::<RegisteredAgent>),
    ("POST /refresh", 202, "Progress; the work continues in the background", schema_of::<RefreshProgress>),
    ("POST /tools", 200, "The server or function, which was deployed before", schema_of::<DeploymentRow>),
];

/// Response of an operation: its status, a description and the schema of its body, if it has one.
pub(super) type ResponseSchema = (u16, &'static str, Option<SchemaFn>);

/// Every successful response of a route.
pub(super) fn responses_of(route: &Route) -> Vec<ResponseSchema> {
    let operation = operation(route);
    let usual = RESPONSES.iter().find(|(name, _)| *name == operation).map(|(_, schema)| *schema);
    let others = OTHER_RESPONSES.iter().filter(|(name, ..)| *name == operation);
    let others = others.map(|(_, status, description, schema)| (*status, *description, Some(*schema)));
    std::iter::once((route.answer.0, route.answer.1, usual)).chain(others).collect()
}

/// Method and path of a route, below `/api/v1`.
fn operation(route: &Route) -> String {
    format!("{} {}", route.method, route.path.trim_start_matches("/api/v1"))
}
