//! Push notification configs of tasks, and the state of their delivery.
//!
//! Nothing is queued for them: a task's events are in the journal, and delivery continues behind the one that was taken
//! last.

use jiff::Timestamp;

use crate::{
    call::CallerId,
    card::Dialect,
    credential::Secret,
    ids::{Scope, TaskId, TokenId},
    json::Extra,
};

/// Push notification config of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushSubscription {
    /// The task.
    pub task: TaskId,
    /// Its name within the task.
    pub id: String,
    /// Org and project of the task.
    pub scope: Scope,
    /// Caller of the task.
    pub caller: CallerId,
    /// The access token it was set with: it ends when that is revoked or expires.
    pub created_with: Option<TokenId>,
    /// URL of the receiver.
    pub url: String,
    /// Token sent to the receiver, for it to check.
    pub token: Option<Secret>,
    /// Authentication at the receiver.
    pub login: Option<PushLogin>,
    /// A2A version of the notifications.
    pub dialect: Dialect,
    /// Members of the request that we do not know.
    pub extra: Extra,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// State of the delivery.
    pub standing: PushDeliveryState,
}

/// Authentication at a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushLogin {
    /// The schemes it takes; the first is used.
    pub schemes: Vec<String>,
    /// Credentials.
    pub credentials: Option<Secret>,
}

/// State of the delivery to one receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushDeliveryState {
    /// The last event that is done with.
    pub told: u64,
    /// Number of failures since the last success.
    pub failures: u32,
    /// Not before this moment it is tried again.
    pub next_attempt_at: Option<Timestamp>,
    /// Why it failed last.
    pub last_error: Option<String>,
    /// True if it was given up.
    pub is_dead: bool,
}
