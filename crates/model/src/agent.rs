//! A registered agent: one row of the registry.

use std::{fmt, sync::Arc};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    backing::Backing,
    card::{Card, Dialect},
    credential::Credential,
    ids::{AgentId, Scope},
    json::Json,
};

/// How far an agent is trusted. Policies read it on every call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "TrustLevel")]
pub enum AgentTrust {
    /// A stranger: each skill needs a permit.
    #[default]
    External,
    /// One of ours.
    Trusted,
    /// The platform's own; nobody can hand this out.
    System,
}

/// How an agent is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Health {
    /// Never asked.
    #[default]
    Unknown,
    /// A valid card in under two seconds.
    Healthy,
    /// A valid card, but slowly; or an invalid one.
    Degraded,
    /// No answer, or not a good one.
    Unreachable,
}

/// What became of the card's signature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "CardSignature")]
pub enum SignatureStatus {
    /// There is none.
    #[default]
    None,
    /// There is one, but no key to check it with.
    Unchecked,
    /// It was checked and holds.
    Valid,
}

/// Storage of an agent's row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowStorage {
    /// In the store.
    #[default]
    Stored,
    /// In this process only: it was named by the person at the client.
    Session,
    /// In the store, but only the configuration changes it.
    Configured,
}

/// A card that waits for approval because cards are pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingCard {
    /// The card.
    pub card: Arc<Card>,
    /// When it was first seen.
    pub seen_at: Timestamp,
}

/// One registered agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Our name for it.
    pub id: AgentId,
    /// Org and project.
    pub scope: Scope,
    /// Its canonical base URL, or `mcp:<name>` and `function:<name>`; unique in its project.
    pub url: String,
    /// Its name's slug, unique in its project.
    pub slug: String,
    /// Its card.
    pub card: Arc<Card>,
    /// A newer card that waits for approval.
    pub pending: Option<PendingCard>,
    /// Trust level.
    pub trust: AgentTrust,
    /// Health.
    pub health: Health,
    /// Result of the check of its card's signature.
    pub signature: SignatureStatus,
    /// Backend of the row.
    pub backing: Backing,
    /// Storage of this row.
    pub keep: RowStorage,
    /// Credential sent with each request.
    pub credential: Option<Credential>,
    /// True if private and loopback addresses may be used to reach it.
    pub allow_private: bool,
    /// The path its card was found at, relative to the base URL.
    pub card_path: Option<String>,
    /// The validator of the stored card.
    pub etag: Option<String>,
    /// The dialect it turned out to speak, when that is not what its card says.
    pub speaks: Option<Dialect>,
    /// Its own wall clock, in place of the org's.
    pub timeout_ms: Option<u64>,
    /// When it was registered.
    pub registered_at: Timestamp,
    /// When its card was last fetched.
    pub last_fetched_at: Timestamp,
    /// When it last answered.
    pub last_seen_at: Option<Timestamp>,
    /// Why the last refresh or probe failed.
    pub last_error: Option<String>,
    /// Moves with every change of the row.
    pub version: u64,
}

/// One health probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Probe {
    /// Which agent.
    pub agent: AgentId,
    /// When.
    pub at: Timestamp,
    /// What was found.
    pub health: Health,
    /// How long it took.
    pub elapsed_ms: u64,
    /// Why it was not good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A card that was replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardRevision {
    /// When it was replaced.
    pub replaced_at: Timestamp,
    /// The card.
    pub card: Json,
}

// === impl Agent ===

impl Agent {
    /// Row of a new agent with default values: stored, in the default project.
    pub fn new(id: AgentId, slug: String, url: String, card: Arc<Card>, at: Timestamp) -> Self {
        Self {
            id,
            scope: Scope::default(),
            url,
            slug,
            card,
            pending: None,
            trust: AgentTrust::default(),
            health: Health::Unknown,
            signature: SignatureStatus::None,
            backing: Backing::A2a,
            keep: RowStorage::Stored,
            credential: None,
            allow_private: false,
            card_path: None,
            etag: None,
            speaks: None,
            timeout_ms: None,
            registered_at: at,
            last_fetched_at: at,
            last_seen_at: None,
            last_error: None,
            version: 1,
        }
    }
}

// === impl RowStorage ===

impl RowStorage {
    /// Returns whether the row outlives the process.
    pub const fn is_stored(self) -> bool {
        matches!(self, Self::Stored | Self::Configured)
    }
}

// === impl AgentTrust ===

impl AgentTrust {
    /// Its name, as policies spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::External => "external",
            Self::Trusted => "trusted",
            Self::System => "system",
        }
    }

    /// Parses a level that a person may assign: not `system`. `internal` is an old word for `trusted`.
    pub fn parse_assignable(name: &str) -> Option<Self> {
        match name {
            "external" => Some(Self::External),
            "trusted" | "internal" => Some(Self::Trusted),
            _ => None,
        }
    }
}

impl fmt::Display for AgentTrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl Health ===

impl Health {
    /// Its name, as policies and listings spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
            Self::Unreachable => "unreachable",
        }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_can_hand_out_system_trust() {
        assert_eq!(AgentTrust::parse_assignable("system"), None);
        assert_eq!(AgentTrust::parse_assignable("internal"), Some(AgentTrust::Trusted));
    }
}
