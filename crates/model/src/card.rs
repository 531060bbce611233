//! An agent's card, as far as the bridge reads it. The card itself is kept raw beside what was read from it.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    cost::Cents,
    ids::SkillId,
    json::{Extra, Json},
};

/// Member of a card's own JSON that lists what was changed or left out when it was taken in. Only the registry writes it.
pub const WARNINGS: &str = "rialto/warnings";

/// The generations of A2A on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Dialect {
    /// `tasks/send`, the task's id made by the client.
    #[serde(rename = "0.1")]
    V01,
    /// `message/send`, cards at `agent.json`.
    #[serde(rename = "0.2")]
    V02,
    /// `message/send`, cards at `agent-card.json`.
    #[serde(rename = "0.3")]
    V03,
    /// `SendMessage`.
    #[serde(rename = "1.0")]
    V10,
}

/// How a dialect is carried.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Binding {
    /// JSON-RPC 2.0 over HTTP POST.
    #[serde(rename = "JSONRPC")]
    JsonRpc,
    /// Resources and verbs over HTTP.
    #[serde(rename = "HTTP+JSON")]
    HttpJson,
    /// gRPC.
    #[serde(rename = "GRPC")]
    Grpc,
    /// Something a card names that we do not know.
    #[serde(untagged)]
    Other(String),
}

/// One address an agent answers at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AgentInterface")]
pub struct Interface {
    /// Where.
    pub url: String,
    /// How.
    pub binding: Binding,
    /// In which dialect.
    pub dialect: Dialect,
    /// To be echoed in every request to this address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// One thing an agent can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skill {
    /// Its id, verbatim.
    pub id: SkillId,
    /// Its name for people.
    pub name: String,
    /// Description.
    pub description: String,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Requests it is good at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// Media types it takes, when they differ from the card's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_modes: Vec<String>,
    /// Media types it gives, when they differ from the card's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_modes: Vec<String>,
    /// JSON Schema of its arguments, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Json>,
    /// Cost of one task, if stated. It is read from a member that stays among those below.
    #[serde(skip)]
    pub cost: Option<Cents>,
    /// Members we do not know.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
    /// Name in lists, where it differs from the agent's name and the skill's id. The directory sets it.
    #[serde(skip)]
    pub called: Option<Arc<str>>,
}

/// Card of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// The agent's name.
    pub name: String,
    /// Description.
    pub description: String,
    /// The agent's own version.
    pub version: Option<String>,
    /// Its addresses, in the card's order of preference. Empty for a minimal card: then the base URL is the address.
    pub interfaces: Vec<Interface>,
    /// Skills.
    pub skills: Vec<Arc<Skill>>,
    /// Media types that skills take which name none of their own (`defaultInputModes`); empty when it does not say.
    pub input_modes: Vec<String>,
    /// Media types that such skills give (`defaultOutputModes`).
    pub output_modes: Vec<String>,
    /// True if it can stream.
    pub streaming: bool,
    /// True if it can push.
    pub push_notifications: bool,
    /// True if there is more to read for those who log in.
    pub extended: bool,
    /// True if the card carries signatures.
    pub signed: bool,
    /// Cost of one task of a skill that states none.
    pub cost: Option<Cents>,
    /// The whole card, as it came.
    pub raw: Json,
}

// === impl Dialect ===

impl Dialect {
    /// The version as cards and headers spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V01 => "0.1",
            Self::V02 => "0.2",
            Self::V03 => "0.3",
            Self::V10 => "1.0",
        }
    }
}

impl std::fmt::Display for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl Skill ===

impl Skill {
    /// Returns whether it says that doing it twice does no more than doing it once, so that it may be done again after a crash.
    pub fn is_repeatable(&self) -> bool {
        let hints = self.extra.get("annotations").and_then(|json| json.read::<Extra>().ok());
        let is_set = |name: &str| {
            hints.as_ref().and_then(|hints| hints.get(name)).is_some_and(|hint| hint.get() == "true")
        };
        is_set("idempotentHint") || is_set("readOnlyHint")
    }

    /// Returns whether it says that it may destroy something. One that only reads does not, whatever else it says.
    pub fn is_destructive(&self) -> bool {
        let hints = self.extra.get("annotations").and_then(|json| json.read::<Extra>().ok());
        let is_set = |name: &str| {
            hints.as_ref().and_then(|hints| hints.get(name)).is_some_and(|hint| hint.get() == "true")
        };
        is_set("destructiveHint") && !is_set("readOnlyHint")
    }

    /// Returns whether it says that it takes long, so that nobody need wait to find out: by the tag `long-running`.
    pub fn takes_long(&self) -> bool {
        self.tags.iter().any(|tag| tag.eq_ignore_ascii_case("long-running"))
    }
}

// === impl Card ===

impl Card {
    /// Warnings about what was changed or left out when the card was parsed, for people to read.
    pub fn warnings(&self) -> Vec<String> {
        if !self.raw.get().contains(WARNINGS) {
            return Vec::new();
        }
        self.raw.raw().member(WARNINGS).and_then(|warnings| warnings.read().ok()).unwrap_or_default()
    }

    /// The skill with that id.
    pub fn skill(&self, id: &str) -> Option<&Arc<Skill>> {
        self.skills.iter().find(|skill| skill.id.as_str() == id)
    }
}
