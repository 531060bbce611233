//! What can be said about the store in the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// The death of this process at any moment. After a power cut the last moments may be missing; nothing is torn.
    #[default]
    Normal,
    /// A power cut too, at the price of a disk flush per commit.
    Full,
}

/// How the store works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// What an acknowledged write survives.
    pub durability: Durability,
}
