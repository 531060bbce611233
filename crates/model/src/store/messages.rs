//! Messages that began tasks, and claims on them, for deduplication.

use jiff::Timestamp;

use super::layer::store_trait;
use crate::{
    call::CallerId,
    ids::{ProcessId, Scope, TaskId},
    store::StoreError,
    task::TaskHead,
};

/// Claim of one process that a message is the one that begins or continues a task.
///
/// It makes the same message one task also when it reaches two processes at once. It is needed only while several processes
/// share a store, and lives as long as its task can be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageClaim {
    /// Key of the message: caller, target, message id and content hash.
    pub key: String,
    /// The task.
    pub task: TaskId,
    /// The process that has the claim.
    pub runner: ProcessId,
    /// When it was made.
    pub at: Timestamp,
}

/// Maximum number of tasks found by one message id. Clients that reuse one id for all messages get no more.
pub const MAX_TASKS_PER_MESSAGE: usize = 16;

store_trait! {
    /// Messages that began tasks, and claims on them, for deduplication. Part of every [`Store`](super::Store).
    pub trait MessageStore {
        /// The tasks that began with messages of that name of a caller's, the newest first and no more than [`MAX_TASKS_PER_MESSAGE`].
        /// It does not flush the write buffer, so tasks acknowledged a moment ago may be missing: the caller remembers that much
        /// itself.
        async fn tasks_by_message(
            &self,
            scope: &Scope,
            caller: &CallerId,
            message: &str,
        ) -> Result<Vec<TaskHead>, StoreError>;

        /// A number for each message that began a task ([`hash_message`]), for a process that is the only one at work and has
        /// all of them at most `limit`; none where that is not so or not known. A caller that has them need not call
        /// [`Self::tasks_by_message`] about messages whose number is not among them.
        async fn message_numbers(&self, runner: ProcessId, limit: usize) -> Result<Option<Vec<u64>>, StoreError>;

        /// Claims a message for the task that it is to begin or continue, atomically among all processes that share the store.
        /// Where another task has the claim, it stays, and is returned.
        async fn claim_message(&self, claim: &MessageClaim) -> Result<Option<MessageClaim>, StoreError>;

        /// Gives up a claim whose task was never begun. A claim of another task stays.
        async fn release_message(&self, claim: &MessageClaim) -> Result<(), StoreError>;
    }
}

/// A number that is most likely another one for another message. Stores keep it, so it is the same for ever: FNV-1a over all
/// four and a byte that no text holds behind each, stirred at the end so that every bit counts.
pub fn hash_message(org: &[u8], project: &[u8], caller: &[u8], message: &[u8]) -> u64 {
    let mut number = 0xcbf2_9ce4_8422_2325_u64;
    for text in [org, project, caller, message] {
        for byte in text.iter().chain(&[0xff]) {
            number = (number ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    number ^= number >> 33;
    number = number.wrapping_mul(0xff51_afd7_ed55_8ccd);
    number ^ (number >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_message_never_changes_and_tells_where_each_text_ends() {
        assert_eq!(hash_message(b"default", b"main", b"ann", b"m-1"), 4_195_711_437_444_453_245);
        assert_ne!(hash_message(b"a", b"b", b"c", b"de"), hash_message(b"a", b"b", b"cd", b"e"));
    }
}
