//! Those who want to be told of one task at an address of theirs, and how far each was told.
//!
//! Nothing is queued for them: a task's events are in the journal, and whoever delivers reads on from the one that was taken
//! last.

use jiff::Timestamp;

use crate::{
    call::CallerId,
    card::Dialect,
    credential::Secret,
    ids::{Scope, TaskId, TokenId},
    json::Extra,
};

/// Somebody to be told of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushSubscription {
    /// The task.
    pub task: TaskId,
    /// Its name within the task.
    pub id: String,
    /// Where the task belongs.
    pub scope: Scope,
    /// Whose it is.
    pub caller: CallerId,
    /// The access token it was set with: it ends when that is revoked or expires.
    pub created_with: Option<TokenId>,
    /// Where it is told.
    pub url: String,
    /// What it is shown, so that it knows that the call is meant for it.
    pub token: Option<Secret>,
    /// How to log in there.
    pub login: Option<PushLogin>,
    /// How it is told.
    pub dialect: Dialect,
    /// Members of the request that we do not know.
    pub extra: Extra,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// How far it was told.
    pub standing: PushDeliveryState,
}

/// How to log in at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushLogin {
    /// The schemes it takes; the first is used.
    pub schemes: Vec<String>,
    /// What to show.
    pub credentials: Option<Secret>,
}

/// How far somebody was told, and how that goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushDeliveryState {
    /// The last event that is done with.
    pub told: u64,
    /// How often it has failed since it last took one.
    pub failures: u32,
    /// Not before this moment it is tried again.
    pub next_attempt_at: Option<Timestamp>,
    /// Why it failed last.
    pub last_error: Option<String>,
    /// Whether it was given up.
    pub is_dead: bool,
}
