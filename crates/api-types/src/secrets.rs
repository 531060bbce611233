//! Secrets in the store. They are set and removed here, and never read back.

use rialto_model::clock::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Secrets in the store.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SecretList")]
pub struct SecretList<Row = SecretSummary> {
    /// The secrets.
    pub secrets: Vec<Row>,
}

/// Secret without its value.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretSummary {
    /// Name of the secret.
    pub name: String,
    /// Time it was set.
    pub set_at: Timestamp,
    /// Name of the key it is encrypted with.
    pub key: String,
    /// Agents of the project whose credential it is.
    pub used_by: Vec<String>,
}

/// Value of a secret.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretValue {
    /// The value.
    pub value: String,
}

/// Secret that was set.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SavedSecret {
    /// Name of the secret.
    pub name: String,
}

/// Secret that was removed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemovedSecret {
    /// Name of the secret.
    pub name: String,
    /// Agents of the project whose credential it was.
    pub used_by: Vec<String>,
}
