//! `rialto webhooks …`, as `--help` shows it.

use clap::{Args, Subcommand, ValueEnum};
use rialto_model::audit_event::AuditPhase;

use super::Listing;

#[derive(Debug, Subcommand)]
pub(crate) enum Webhooks {
    /// Have an address told of calls from now on; its key is shown this once
    Add(AddWebhook),
    /// List webhooks and how far each was told
    List(Listing),
    /// Tell an address nothing any more
    Remove {
        /// Its id or address
        webhook: String,
    },
    /// Send an event that says it is a test, now, and show how that went
    Test {
        /// Its id or address
        webhook: String,
    },
    /// Try one again now that failed or was disabled
    Retry {
        /// Its id or address
        webhook: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AddWebhook {
    /// Where events are sent
    pub(crate) url: String,
    /// Which events, with commas between them; all but `admin` if none is named
    #[arg(long, value_name = "EVENTS", value_delimiter = ',')]
    pub(crate) events: Vec<EventName>,
    /// The environment variable the key is in that events are signed with; one is made and kept if none is named
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) secret_env: Option<String>,
    #[command(flatten)]
    pub(crate) listing: Listing,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum EventName {
    PreVerb,
    PostVerb,
    VerbError,
    Breaker,
    Guardrail,
    Admin,
}

// === impl EventName ===

impl EventName {
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
