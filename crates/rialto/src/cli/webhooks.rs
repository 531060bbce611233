//! Options of `rialto webhooks`.

use clap::{Args, Subcommand, ValueEnum};
use rialto_model::audit_event::AuditPhase;

use super::OutputOptions;

#[derive(Debug, Subcommand)]
pub(crate) enum WebhooksCommand {
    /// Add a webhook for new events; its signing key is shown only once
    Add(AddWebhookOptions),
    /// List webhooks with their last delivered record
    List(OutputOptions),
    /// Remove a webhook
    Remove {
        /// Webhook id or URL
        webhook: String,
    },
    /// Send a test event now and show the result
    Test {
        /// Webhook id or URL
        webhook: String,
    },
    /// Retry a failed or disabled webhook now
    Retry {
        /// Webhook id or URL
        webhook: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AddWebhookOptions {
    /// URL that receives the events
    pub(crate) url: String,
    /// Events, separated by commas (default: all but `admin`)
    #[arg(long, value_name = "EVENTS", value_delimiter = ',')]
    pub(crate) events: Vec<WebhookEventName>,
    /// Environment variable with the signing key (default: a new key is created and stored)
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) secret_env: Option<String>,
    #[command(flatten)]
    pub(crate) listing: OutputOptions,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum WebhookEventName {
    PreVerb,
    PostVerb,
    VerbError,
    Breaker,
    Guardrail,
    Admin,
}

// === impl WebhookEventName ===

impl WebhookEventName {
    pub(crate) const fn phase(self) -> AuditPhase {
        match self {
            Self::PreVerb => AuditPhase::PreVerb,
            Self::PostVerb => AuditPhase::PostVerb,
            Self::VerbError => AuditPhase::VerbError,
            Self::Breaker => AuditPhase::Breaker,
            Self::Guardrail => AuditPhase::Guardrail,
            Self::Admin => AuditPhase::Admin,
        }
    }
}
