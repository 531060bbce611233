//! Orgs and their projects.

use std::collections::BTreeSet;

use rialto_model::{
    clock::Timestamp,
    ids::{OrgId, ProjectId},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Orgs that the caller may see.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "OrgList")]
pub struct OrgList<Row = OrgRow> {
    /// The orgs.
    pub orgs: Vec<Row>,
}

/// Org and what belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrgRow {
    /// Name of the org.
    pub org: String,
    /// Names of its projects.
    pub projects: BTreeSet<String>,
    /// Number of agents and tools registered in it.
    pub agents: usize,
    /// Number of valid tokens of its callers.
    pub tokens: usize,
    /// Number of policies that belong to it.
    pub policies: usize,
    /// Time of its creation; null if it was not created explicitly.
    pub created_at: Option<Timestamp>,
    /// Name of its creator, if known.
    pub created_by: Option<String>,
}

/// Org to create.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(extend("required" = ["org"]))]
pub struct NewOrg {
    /// Name of the org.
    pub org: String,
    /// Name of its first owner, for whom a token is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// Org that was created.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CreatedOrg {
    /// Name of the org.
    pub org: String,
    /// Name of its first owner.
    pub owner: Option<String>,
    /// Token of the owner, which is shown this once.
    pub token: Option<String>,
}

/// Projects of the caller's org.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ProjectList")]
pub struct ProjectList<Row = ProjectRow> {
    /// The projects.
    pub projects: Vec<Row>,
}

/// Project and what belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectRow {
    /// Name of the project.
    pub project: String,
    /// Number of agents and tools registered in it.
    pub agents: usize,
    /// Number of valid tokens of its callers.
    pub tokens: usize,
    /// Time of its creation; null if it was not created explicitly.
    pub created_at: Option<Timestamp>,
    /// Name of its creator, if known.
    pub created_by: Option<String>,
}

/// Project to create.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(extend("required" = ["project"]))]
pub struct NewProject {
    /// Name of the project.
    pub project: String,
}

/// Project that was created.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CreatedProject {
    /// Org it belongs to.
    pub org: OrgId,
    /// Name of the project.
    pub project: ProjectId,
}
