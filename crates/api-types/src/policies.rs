//! Policies: their texts, templates and decisions.

use rialto_model::{
    call::{CallerId, CallerKind},
    clock::Timestamp,
    ids::OrgId,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Policy texts that the caller may see.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyList {
    /// The texts.
    pub policies: Vec<PolicyRow>,
}

/// Policy text.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRow {
    /// Name of the text: a file, or `store:NAME`.
    pub name: String,
    /// Org it belongs to; null if it applies to all orgs.
    pub org: Option<OrgId>,
    /// Policies in it.
    pub rules: Vec<PolicyRule>,
    /// Cedar text, if it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Name of its author, or `file`; null if unknown. Older servers do not send it.
    #[serde(default)]
    pub created_by: Option<String>,
}

/// Policy text with its history.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyDetail {
    /// The text.
    #[serde(flatten)]
    pub row: PolicyRow,
    /// Earlier versions, newest first.
    pub versions: Vec<PolicyRevision>,
}

/// Earlier version of a policy text, without the text.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyRevision {
    /// Number of the version.
    pub version: i64,
    /// Time it was saved, or replaced if it was a file.
    pub at: Timestamp,
    /// Name of its author, if known.
    pub by: Option<String>,
}

/// Single policy in a text.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyRule {
    /// `@id` of the policy, or its place in the text.
    pub name: String,
    /// Effect when it matches.
    pub effect: PolicyEffect,
    /// `@summary` of the policy, or its scope in words.
    pub summary: String,
}

/// Effect of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PolicyEffect {
    /// It permits.
    Permit,
    /// It forbids, and overrules every permit.
    Forbid,
}

/// Names of all policies, which are valid.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyNames {
    /// The names.
    pub policies: Vec<String>,
}

/// Templates of common policies.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyTemplates {
    /// The templates.
    pub templates: Vec<PolicyTemplateRow>,
}

/// Template of a common policy.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyTemplateRow {
    /// Name of the template.
    pub kind: String,
    /// Its effect in words.
    pub summary: String,
    /// Kind of target it takes.
    pub target: String,
}

/// Policy text that was saved.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SavedPolicy {
    /// Name of the text.
    pub name: String,
    /// Path of its file, or `store:NAME`.
    pub file: String,
    /// Org it belongs to; null if it applies to all orgs.
    pub org: Option<OrgId>,
    /// Policies in it.
    pub policies: Vec<PolicyRule>,
}

/// Policy text that was removed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RemovedPolicy {
    /// Name of the text.
    pub name: String,
    /// Path of its file, or `store:NAME`.
    pub file: String,
}

/// Result of a check of a policy text.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyProblems {
    /// Errors; none if the text is valid.
    pub problems: Vec<PolicyProblem>,
}

/// Error in a policy text.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyProblem {
    /// File and line.
    pub place: String,
    /// Description of the error.
    pub message: String,
    /// Advice, if there is some.
    pub help: Option<String>,
}

/// Preview of the decisions that a policy text would change.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyPreview {
    /// Decisions that would change.
    pub differences: Vec<DecisionChange>,
    /// Errors in the text.
    pub problems: Vec<PolicyProblem>,
}

/// Decision that would change.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionChange {
    /// Name of the caller.
    pub caller: String,
    /// Skill that is called, or action that is administered.
    pub target: String,
    /// Whether the target is an administrative action.
    pub is_admin: bool,
    /// Whether it would be allowed.
    pub allowed: bool,
}

/// Decision about a request, and the reasons for it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRuling {
    /// The decision.
    pub decision: PolicyVerdict,
    /// Caller, as named in the request.
    pub caller: String,
    /// Id of the caller.
    pub caller_id: CallerId,
    /// Names of the policies that decided.
    pub decided_by: Vec<String>,
    /// Action, as named in the request.
    pub action: String,
    /// Skill, agent or org that the action is about.
    pub target: String,
    /// Reason of a denial, and a way to allow it.
    pub why_not: Option<String>,
    /// Effect of each policy on the decision.
    pub policies: Vec<PolicyFinding>,
    /// Errors in the evaluation of policies.
    pub errors: Vec<String>,
}

/// Decision of the policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PolicyVerdict {
    /// It is allowed.
    Allow,
    /// It is denied.
    Deny,
}

/// Effect of one policy on a decision.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyFinding {
    /// Name of the policy.
    pub name: String,
    /// Effect when it matches.
    pub effect: PolicyEffect,
    /// Its part in the decision, as a word.
    pub outcome: String,
    /// Its part in the decision, in words.
    pub reason: String,
    /// Summary of the policy.
    pub summary: String,
    /// Text that holds it.
    pub file: String,
    /// Org it belongs to; null if it applies to all orgs.
    pub org: Option<OrgId>,
}

/// Permissions of several callers, as a table.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PermissionMatrix {
    /// Callers, one for each column.
    pub callers: Vec<String>,
    /// Skills and agents, one for each row.
    pub rows: Vec<PermissionRow>,
    /// Number of rows that are left out.
    pub more: usize,
}

/// Permissions to call one skill or agent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PermissionRow {
    /// Name of the skill or agent.
    pub target: String,
    /// Whether each caller may call it.
    pub may: Vec<bool>,
}

/// Texts that a policy had, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PolicyHistory")]
pub struct PolicyHistory<Version = PolicyTextVersion> {
    /// Earlier versions.
    pub versions: Vec<Version>,
}

/// Text that a policy had.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PolicyTextVersion {
    /// Text in a file.
    File(ReplacedPolicyFile),
    /// Text in the store.
    Stored(StoredPolicyText),
}

/// Text of a policy file that was replaced.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplacedPolicyFile {
    /// Name of the policy text.
    pub name: String,
    /// Number of the version.
    pub version: i64,
    /// Time it was replaced.
    pub replaced_at: Timestamp,
    /// Cedar text; null if there was none.
    pub text: Option<String>,
}

/// Policy text that was saved in the store.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoredPolicyText {
    /// Name of the policy text.
    pub name: String,
    /// Number of the version.
    pub version: i64,
    /// Time it was saved.
    pub changed_at: Timestamp,
    /// Name of its author, if known.
    pub by: Option<String>,
    /// Cedar text; null if it was removed.
    pub text: Option<String>,
}

/// Policy text to save or to check.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyText {
    /// Name of the text that it replaces.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Cedar text.
    pub text: String,
}

/// Version of a policy text to restore.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyRestoration {
    /// Number of the version.
    pub version: i64,
}

/// Request to decide about.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(extend("required" = ["action"]))]
pub struct PolicyQuestion {
    /// Name of the caller, or the slug, id or URL of an agent; by default the caller of this request.
    pub caller: String,
    /// Kind of the caller; `user` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<CallerKind>,
    /// Action: `a2a_invoke`, `admin_agents`, …
    pub action: String,
    /// Name of a skill or an agent; empty for administrative actions.
    pub target: String,
}

/// Policy to write from a template.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(extend("required" = ["kind", "target"]))]
pub struct NewPolicy {
    /// Template: `allow-agent`, `allow-skill`, `allow-trust`, `allow-tag`, `allow-admin`, `deny-agent`, `deny-skill`, `require-approval`.
    pub kind: String,
    /// Agent, skill, tag, trust level or action that the policy is about.
    pub target: String,
    /// Caller that it applies to; empty for all callers.
    pub caller: String,
    /// Kind of that caller; `user` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller_kind: Option<CallerKind>,
    /// User who must approve, with `require-approval`.
    pub by: String,
    /// Name of the policy; one with the same name is replaced.
    pub name: String,
    /// Role that it applies to: `owner`, or empty for all callers.
    #[schemars(extend("enum" = ["", "owner"]))]
    pub role: String,
    /// Place to keep it in, by default that of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shelf: Option<PolicyPlace>,
    /// Whether it applies to all orgs; for the server's owner.
    pub all_orgs: bool,
}

/// Place of policy texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PolicyPlace {
    /// Files of the server's machine.
    Files,
    /// The store.
    Store,
}

// === impl PolicyEffect ===

impl PolicyEffect {
    /// Its name in Cedar.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Permit => "permit",
            Self::Forbid => "forbid",
        }
    }
}

// === impl PolicyVerdict ===

impl PolicyVerdict {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}
