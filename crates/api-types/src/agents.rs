//! Agents: registration, cards, probes and scores.

use std::fmt;

use rialto_model::{
    agent::{AgentTrust, Health, Probe, SignatureStatus},
    card::Interface,
    clock::Timestamp,
    credential::Credential,
    ids::AgentId,
    json::Json,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Page of agents, by slug.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgentPage {
    /// Agents of this page.
    pub agents: Vec<AgentRow>,
    /// Number of agents on all pages.
    pub total: usize,
    /// Cursor of the next page; null on the last one.
    pub next: Option<String>,
}

/// Registered agent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentRow {
    /// Id of the agent.
    pub id: AgentId,
    /// Name on its card.
    pub name: String,
    /// Name that its skills are called by.
    pub slug: String,
    /// Base URL.
    pub url: String,
    /// Trust level.
    pub trust: AgentTrust,
    /// Result of the last probes.
    pub health: Health,
    /// Result of the check of its card's signature.
    pub signature: SignatureStatus,
    /// Skills on its card.
    pub skills: Vec<SkillRow>,
    /// Addresses and dialects that it answers at.
    pub interfaces: Vec<Interface>,
    /// Credential that is sent to it; null if there is none or the caller may not administer agents.
    pub credential: Option<Credential>,
    /// Time of registration.
    pub registered_at: Timestamp,
    /// Time its card was last fetched.
    pub last_fetched_at: Timestamp,
    /// Time of its last answer.
    pub last_seen_at: Option<Timestamp>,
    /// Error of the last probe, if it failed.
    pub last_error: Option<String>,
    /// Call timeout for this agent, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Version of the row.
    pub version: u64,
    /// Whether a changed card is held until it is approved. Older servers do not send it.
    #[serde(default)]
    pub change_held: bool,
    /// Members of the card that were changed or left out when it was read. Older servers do not send them.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// Skill of an agent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillRow {
    /// Id on the card.
    pub id: String,
    /// Canonical name, by which it is called.
    pub name: String,
    /// Name by which older clients call it.
    pub legacy_alias: String,
    /// Description on the card.
    pub description: String,
    /// Tags on the card.
    pub tags: Vec<String>,
    /// JSON Schema of its arguments; null if it takes a message.
    pub input_schema: Option<Json>,
}

/// Registered agent, and the policy that was written with it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegisteredAgent {
    /// The agent.
    #[serde(flatten)]
    pub agent: AgentRow,
    /// Policy that allows everyone to call it, if one was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_by: Option<String>,
}

/// Registered agent whose credential was changed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentCredentialRow {
    /// The agent.
    #[serde(flatten)]
    pub agent: AgentRow,
    /// Source of the credential, in words.
    pub shown_as: Option<String>,
}

/// Registered agent with its card.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentDetail {
    /// The agent.
    #[serde(flatten)]
    pub agent: AgentRow,
    /// Members that a list leaves out.
    #[serde(flatten)]
    pub facts: AgentFacts,
}

/// Members of an agent that a list leaves out.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentFacts {
    /// Card, as the agent published it.
    #[schemars(extend("type" = "object"))]
    pub card: Json,
    /// Source of its credential, in words; null if there is none or the caller may not administer agents.
    pub shown_as: Option<String>,
    /// Form in which its credential is sent, or the reason why it cannot be.
    pub scheme: Option<String>,
    /// Changes of the card that is held until it is approved.
    pub pending: Option<CardChanges>,
    /// Circuit breaker of the server that answers. Older servers do not send it.
    #[schemars(with = "CircuitBreakerRow")]
    pub breaker: Option<CircuitBreakerRow>,
}

/// State of an agent's circuit breaker in one process.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CircuitBreakerRow {
    /// State.
    pub state: CircuitState,
    /// Time until which no call goes through, if there is one.
    pub until: Option<Timestamp>,
    /// Number of failed calls in the present time window, while it is closed.
    pub recent_failures: u32,
    /// How often it has opened in this process.
    pub opened: u64,
    /// Message of the last failure.
    pub reason: Option<String>,
}

/// State of a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CircuitState {
    /// Calls go through.
    Closed,
    /// Calls fail at once.
    Open,
    /// One call at a time goes through as a trial.
    HalfOpen,
}

/// Difference between two cards of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CardChanges {
    /// Skills that were added.
    pub added: Vec<String>,
    /// Skills that were removed.
    pub removed: Vec<String>,
    /// Members that were changed.
    pub changed: Vec<CardChange>,
}

/// Member of a card that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CardChange {
    /// `card`, or the id of a skill.
    pub of: String,
    /// Name of the member.
    pub member: String,
    /// Value before the change.
    pub before: String,
    /// Value after the change.
    pub after: String,
}

/// Cards that an agent had before, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CardHistory {
    /// Cards that were replaced.
    pub history: Vec<ReplacedCard>,
    /// Changes of the card that is held until it is approved.
    pub pending: Option<CardChanges>,
}

/// Card that was replaced.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplacedCard {
    /// Time of the replacement.
    pub replaced_at: Timestamp,
    /// Difference to the card that replaced it.
    pub changes: CardChanges,
}

/// Result of fetching the card of one agent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CardRefresh {
    /// Slug of the agent.
    pub agent: String,
    /// Result.
    pub outcome: RefreshOutcome,
    /// Changes of the card, if it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<CardChanges>,
    /// Reason why the card could not be fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Result of fetching a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RefreshOutcome {
    /// The card is the one in use.
    Unchanged,
    /// The card has changed and is in use.
    Changed,
    /// The card has changed and is held until it is approved.
    Held,
    /// The card could not be fetched.
    Failed,
}

/// Result of fetching the cards of several agents.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RefreshSummary {
    /// Number of agents that answered.
    pub refreshed: usize,
    /// Number of agents that did not.
    pub failed: usize,
    /// Result of each agent.
    pub outcomes: Vec<CardRefresh>,
}

/// Progress of fetching cards in the background.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefreshProgress {
    /// Number of agents.
    pub all: usize,
    /// Number of agents that have answered.
    pub answered: usize,
    /// Number of agents that did not answer.
    pub silent: usize,
    /// Whether all are done.
    pub is_over: bool,
    /// Time of the start.
    pub begun_at: Timestamp,
}

/// Latest probes of an agent, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProbeList {
    /// The probes.
    pub probes: Vec<Probe>,
}

/// Learned success rates of an agent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgentScores {
    /// One for each type of work, the latest first.
    pub standings: Vec<AgentScore>,
}

/// Learned success rate of an agent at one type of work, as a Beta distribution.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentScore {
    /// Type of work.
    pub work_type: String,
    /// One, and the weight of its successes.
    pub alpha: f64,
    /// One, and the weight of its failures.
    pub beta: f64,
    /// Number of observations.
    pub observed: u64,
}

/// Agent to register.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(extend("required" = ["url"]))]
pub struct NewAgent {
    /// Base URL.
    pub url: String,
    /// Trust level; `external` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["external", "trusted", null]))]
    pub trust: Option<String>,
    /// Path of its card, if it is not at a well-known one.
    #[serde(alias = "card_path", skip_serializing_if = "Option::is_none")]
    pub card_path: Option<String>,
    /// Call timeout for this agent, in milliseconds.
    #[serde(alias = "timeout_ms", skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Source of the secret that is sent to it: `env:NAME`, `file:PATH` or `store:NAME`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Credential that is sent to it, in place of `secret`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<Credential>,
    /// Whether to write a policy that allows everyone to call it.
    pub allow: bool,
}

/// Trust level to set.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrustChange {
    /// Trust level.
    #[schemars(extend("enum" = ["external", "trusted"]))]
    pub trust: String,
}

/// Agents whose cards are fetched.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RefreshRequest {
    /// Slugs, ids, URLs or names of the agents; all agents by default.
    pub agents: Vec<String>,
}

// === impl RefreshOutcome ===

impl fmt::Display for RefreshOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unchanged => "unchanged",
            Self::Changed => "changed",
            Self::Held => "held",
            Self::Failed => "failed",
        })
    }
}
