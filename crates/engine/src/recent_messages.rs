//! Messages that started or continued tasks in this process, the last ones.

use std::{collections::VecDeque, hash::BuildHasher, sync::Arc};

use parking_lot::Mutex;
use rialto_model::{call::Caller, ids::TaskId, maps::FastMap, store::hash_message};
use tokio::sync::OwnedMutexGuard;

/// Maximum number of messages; older ones are looked up in the store.
const MAX_RECENT_MESSAGES: usize = 65_536;

/// Tasks by the messages that started them.
#[derive(Default)]
pub(crate) struct RecentMessages(Mutex<RecentMessageTable>);

#[derive(Default)]
struct RecentMessageTable {
    by_message: FastMap<MessageKey, MessageTasks>,
    oldest: VecDeque<MessageKey>,
}

/// Key of a caller's message. There are many, so it is not a text but two numbers: the one that stores keep, and one that cannot be
/// foreseen outside of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct MessageKey {
    number: u64,
    other: u64,
}

/// Tasks that messages of one id started or continued, the newest last. Locked while a message is handled: a duplicate that arrives
/// meanwhile waits for the outcome.
pub(crate) type MessageTasks = Arc<tokio::sync::Mutex<Vec<TaskId>>>;

// === impl RecentMessages ===

impl RecentMessages {
    /// Locks the tasks of a message; also returns the number of the message that is removed for it, if there is one.
    pub(crate) async fn lock(
        &self,
        caller: &Caller,
        message: &str,
    ) -> (OwnedMutexGuard<Vec<TaskId>>, Option<u64>) {
        let mut removed = None;
        let slot = {
            let mut known = self.0.lock();
            let key = known.key(caller, message);
            if let Some(slot) = known.by_message.get(&key) {
                Arc::clone(slot)
            } else {
                let slot = MessageTasks::default();
                known.by_message.insert(key, Arc::clone(&slot));
                known.oldest.push_back(key);
                if known.oldest.len() > MAX_RECENT_MESSAGES
                    && let Some(oldest) = known.oldest.pop_front()
                {
                    known.by_message.remove(&oldest);
                    removed = Some(oldest.number);
                }
                slot
            }
        };
        (slot.lock_owned().await, removed)
    }

    /// The tasks of a message, if it is known.
    pub(crate) fn find(&self, caller: &Caller, message: &str) -> Option<MessageTasks> {
        let known = self.0.lock();
        known.by_message.get(&known.key(caller, message)).cloned()
    }
}

// === impl RecentMessageTable ===

impl RecentMessageTable {
    fn key(&self, caller: &Caller, message: &str) -> MessageKey {
        let owner = (caller.scope.org.as_str(), caller.scope.project.as_str(), caller.id.as_str());
        let other = self.by_message.hasher().hash_one((owner, message));
        MessageKey { number: message_number(caller, message), other }
    }
}

/// Number of a message, as stores keep it.
pub(crate) fn message_number(caller: &Caller, message: &str) -> u64 {
    let owner = [caller.scope.org.as_str(), caller.scope.project.as_str(), caller.id.as_str()];
    let [org, project, id] = owner.map(str::as_bytes);
    hash_message(org, project, id, message.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_two_callers_are_never_taken_for_each_other() {
        let known = RecentMessageTable::default();
        let key_of = |caller: &str, message: &str| known.key(&Caller::user(caller), message);
        assert_eq!(key_of("ann", "m"), key_of("ann", "m"));
        assert_ne!(key_of("ann", "m"), key_of("an", "nm"));
        assert_ne!(key_of("a", "1:b"), key_of("a1:", "b"));
        assert_ne!(key_of("1:a", "b"), key_of("1", ":ab"));
    }
}
