//! Webhooks that receive audit events, and the state of their delivery.
//!
//! A webhook is a place in the audit log. Nothing is queued for it: delivery continues behind the record that was
//! handled last.

use jiff::Timestamp;

use crate::{
    audit_event::{AuditEvent, AuditPhase},
    credential::SecretSource,
    ids::OrgId,
};

/// Receiver of audit events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Our name for it (`hook_…`).
    pub id: String,
    /// Org whose events it receives.
    pub org: OrgId,
    /// URL of the receiver.
    pub url: String,
    /// Phases of the events that it receives.
    pub phases: Vec<AuditPhase>,
    /// Source of the key that signs events. The key itself is never in the store.
    pub secret: SecretSource,
    /// True if private and loopback addresses may be used to reach it.
    pub allow_private: bool,
    /// When it was added.
    pub created_at: Timestamp,
    /// State of the delivery.
    pub standing: DeliveryState,
}

/// State of the delivery to a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryState {
    /// The last record that is done with.
    pub handled: u64,
    /// Number of delivered events.
    pub delivered: u64,
    /// Number of records that will never be delivered: they were given up, or swept before.
    pub lost: u64,
    /// Number of failures since the last success.
    pub failures: u32,
    /// Not before this moment it is tried again.
    pub next_attempt_at: Option<Timestamp>,
    /// Why it failed last; none once it took one again.
    pub last_error: Option<String>,
    /// Reason why deliveries stopped.
    pub disabled: Option<String>,
}

/// The right to deliver, for a while.
#[derive(Clone, Debug)]
pub struct DeliveryLease {
    /// Holder: a name that no other process has.
    pub holder: String,
    /// Now.
    pub now: Timestamp,
    /// When it is over.
    pub until: Timestamp,
}

/// Result of a request for a delivery lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseOutcome {
    /// It is granted; this is how things stand.
    Ours(Box<Webhook>),
    /// Another process has the lease.
    Others,
    /// There is no such webhook.
    Gone,
}

// === impl Webhook ===

impl Webhook {
    /// Returns whether it receives this event.
    pub fn wants(&self, event: &AuditEvent) -> bool {
        self.org.as_str() == &*event.verb.org_id && self.phases.contains(&event.phase)
    }
}
