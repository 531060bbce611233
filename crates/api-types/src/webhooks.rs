//! Webhooks for call events.

use rialto_model::{audit_event::AuditPhase, clock::Timestamp, ids::OrgId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Webhooks of the caller's org.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "WebhookList")]
pub struct WebhookList<Row = WebhookRow> {
    /// The webhooks.
    pub webhooks: Vec<Row>,
}

/// Webhook without its key.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookRow {
    /// Id of the webhook.
    pub id: String,
    /// Address that events are sent to, without its query.
    pub url: String,
    /// Org whose calls are sent.
    pub org: OrgId,
    /// Events that are sent.
    pub events: Vec<AuditPhase>,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// State of delivery.
    pub state: WebhookState,
    /// Number of the last audit record that was handled.
    pub handled: u64,
    /// Number of events that were delivered.
    pub delivered: u64,
    /// Number of records that will never be delivered.
    pub lost: u64,
    /// Number of failed attempts since the last delivery.
    pub failures: u32,
    /// Time before which there is no other attempt.
    pub next_attempt_at: Option<Timestamp>,
    /// Error of the last attempt, if it failed.
    pub last_error: Option<String>,
    /// Reason why it was disabled.
    pub disabled: Option<String>,
}

/// Webhook that was just created.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CreatedWebhook {
    /// Its row.
    #[serde(flatten)]
    pub row: WebhookRow,
    /// Key that events are signed with, which is shown this once; null if it comes from the environment.
    pub secret: Option<String>,
}

/// Webhook to create.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(extend("required" = ["url"]))]
pub struct NewWebhook {
    /// Address that events are sent to.
    pub url: String,
    /// Org whose calls are sent, by default that of the caller. Another one only at the server's machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// Events to send; by default all but administrative operations.
    pub events: Vec<String>,
    /// Environment variable of the server that holds the key; by default a key is created.
    #[serde(alias = "secret_env", skip_serializing_if = "Option::is_none")]
    pub secret_env: Option<String>,
}

/// State of a webhook's delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WebhookState {
    /// The last attempt succeeded, or there was none.
    Good,
    /// The last attempt failed.
    Failing,
    /// It failed too often, and nothing is sent.
    Disabled,
}

// === impl WebhookState ===

impl WebhookState {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Failing => "failing",
            Self::Disabled => "disabled",
        }
    }
}
