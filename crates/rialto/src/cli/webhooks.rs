//! Options of `rialto webhooks`.

use clap::{Args, Subcommand, ValueEnum};
use rialto_model::verb::Phase;

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
    pub(crate) const fn phase(self) -> Phase {
        match self {
            Self::PreVerb => Phase::PreVerb,
            Self::PostVerb => Phase::PostVerb,
            Self::VerbError => Phase::VerbError,
            Self::Breaker => Phase::Breaker,
            Self::Guardrail => Phase::Guardrail,
            Self::Admin => Phase::Admin,
        }
    }
}
