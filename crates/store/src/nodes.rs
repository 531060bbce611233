//! Limits of the table of nodes that both stores keep.

use jiff::{SignedDuration, Timestamp};

/// Time for which a node that was lost is listed.
const LISTED_AFTER_LOSS: SignedDuration = SignedDuration::from_hours(24);

/// Nodes whose last heartbeat was before this time are forgotten.
pub(crate) fn forgotten_before(now: Timestamp) -> Timestamp {
    now.checked_sub(LISTED_AFTER_LOSS).unwrap_or(Timestamp::MIN)
}

/// The process id as it is kept.
pub(crate) fn process_from(number: i64) -> u32 {
    u32::try_from(number).unwrap_or_default()
}
