//! Those who want to be told of calls at an address of theirs, and how far each was told.
//!
//! A webhook is a place in the audit trail. Nothing is queued for it: whoever delivers reads on from the record that was
//! handled last.

use jiff::Timestamp;

use crate::{
    audit_event::{AuditEvent, AuditPhase},
    credential::SecretSource,
    ids::OrgId,
};

/// Somebody to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Our name for it (`hook_…`).
    pub id: String,
    /// Of whose calls it hears.
    pub org: OrgId,
    /// Where it is told.
    pub url: String,
    /// Which events it wants.
    pub phases: Vec<AuditPhase>,
    /// Where the key is that events are signed with. The key itself is never in the store.
    pub secret: SecretSource,
    /// Whether private and loopback addresses may be used to reach it.
    pub allow_private: bool,
    /// When it was added.
    pub created_at: Timestamp,
    /// How far it was told.
    pub standing: DeliveryState,
}

/// How far a webhook was told, and how that goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryState {
    /// The last record that is done with.
    pub handled: u64,
    /// How many events it took.
    pub delivered: u64,
    /// How many records it will never be told of: they were given up, or swept before they could be delivered.
    pub lost: u64,
    /// How often it has failed since it last took one.
    pub failures: u32,
    /// Not before this moment it is tried again.
    pub next_attempt_at: Option<Timestamp>,
    /// Why it failed last; none once it took one again.
    pub last_error: Option<String>,
    /// Why it is told nothing any more.
    pub disabled: Option<String>,
}

/// The right to deliver, for a while.
#[derive(Clone, Debug)]
pub struct DeliveryLease {
    /// Whose it is: a name that no other process has.
    pub holder: String,
    /// Now.
    pub now: Timestamp,
    /// When it is over.
    pub until: Timestamp,
}

/// What became of the wish to deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseOutcome {
    /// It is granted; this is how things stand.
    Ours(Box<Webhook>),
    /// Somebody else delivers just now.
    Others,
    /// There is no such webhook.
    Gone,
}

// === impl Webhook ===

impl Webhook {
    /// Whether it wants to hear of this.
    pub fn wants(&self, event: &AuditEvent) -> bool {
        self.org.as_str() == &*event.verb.org_id && self.phases.contains(&event.phase)
    }
}
