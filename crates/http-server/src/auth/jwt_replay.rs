//! Replay protection: ids (`jti`) of signed tokens that were used.

use std::collections::{BTreeSet, HashMap};

use parking_lot::Mutex;
use rialto_model::clock::Timestamp;

use super::Hash;

/// Ids of used tokens. When there are too many, the one that expires first is removed first.
pub(crate) struct UsedTokenIds {
    ids: Mutex<UsedIds>,
    capacity: usize,
}

#[derive(Default)]
struct UsedIds {
    until: HashMap<Hash, Timestamp>,
    by_end: BTreeSet<(Timestamp, Hash)>,
}

// === impl UsedTokenIds ===

impl UsedTokenIds {
    /// Keeps at most this number of ids.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { ids: Mutex::default(), capacity }
    }

    /// Inserts an id until `until`. True if it was not used before.
    pub(crate) fn insert_new(&self, name: Hash, until: Timestamp, now: Timestamp) -> bool {
        let mut ids = self.ids.lock();
        ids.remove_expired(now);
        if ids.until.contains_key(&name) {
            return false;
        }
        if ids.until.len() >= self.capacity {
            ids.remove_oldest();
        }
        ids.until.insert(name, until);
        ids.by_end.insert((until, name));
        true
    }
}

// === impl UsedIds ===

impl UsedIds {
    fn remove_expired(&mut self, now: Timestamp) {
        while self.by_end.first().is_some_and(|(until, _)| *until <= now) {
            self.remove_oldest();
        }
    }

    fn remove_oldest(&mut self) {
        if let Some((_, name)) = self.by_end.pop_first() {
            self.until.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_name_comes_once_while_it_lasts() {
        let used = UsedTokenIds::new(10);
        assert!(used.insert_new([1; 32], at(5), at(0)));
        assert!(!used.insert_new([1; 32], at(5), at(4)));
        assert!(used.insert_new([1; 32], at(9), at(5)));
    }

    #[test]
    fn the_name_that_expires_first_makes_room() {
        let used = UsedTokenIds::new(2);
        for (name, until) in [(1, 9), (2, 5), (3, 7)] {
            assert!(used.insert_new([name; 32], at(until), at(0)));
        }
        assert!(!used.insert_new([1; 32], at(9), at(0)));
        assert_eq!(used.ids.lock().until.len(), 2);
    }
}
