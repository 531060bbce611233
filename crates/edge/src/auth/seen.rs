//! What is remembered of tokens that others have signed, and never more than so much of it.

use std::{
    collections::{BTreeSet, HashMap},
    mem,
};

use parking_lot::{Mutex, RwLock};
use rialto_model::clock::Timestamp;

use super::{Admitted, Hash};

/// Tokens that were found good. The memory is of two parts: when the younger is full it becomes the older one, and the
/// older one is forgotten. So what is used stays, and nothing has to be put in order.
pub(crate) struct Seen {
    parts: RwLock<Parts>,
    half: usize,
}

#[derive(Default)]
struct Parts {
    young: HashMap<Hash, Good>,
    old: HashMap<Hash, Good>,
}

#[derive(Clone)]
struct Good {
    admitted: Admitted,
    until: Timestamp,
}

/// Names of tokens that must not come twice. When there are too many, the one that expires first is forgotten first.
pub(crate) struct Once {
    names: Mutex<Names>,
    most: usize,
}

#[derive(Default)]
struct Names {
    until: HashMap<Hash, Timestamp>,
    by_end: BTreeSet<(Timestamp, Hash)>,
}

// === impl Seen ===

impl Seen {
    /// Remembers at most so many.
    pub(crate) fn new(most: usize) -> Self {
        Self { parts: RwLock::default(), half: (most / 2).max(1) }
    }

    pub(crate) fn caller(&self, hash: &Hash, now: Timestamp) -> Option<Admitted> {
        let parts = self.parts.read();
        if let Some(good) = parts.young.get(hash) {
            return good.at(now);
        }
        let good = parts.old.get(hash)?.clone();
        drop(parts);
        let admitted = good.at(now)?;
        self.keep(hash, good);
        Some(admitted)
    }

    pub(crate) fn remember(&self, hash: &Hash, admitted: Admitted, until: Timestamp) {
        self.keep(hash, Good { admitted, until });
    }

    fn keep(&self, hash: &Hash, good: Good) {
        let mut parts = self.parts.write();
        if parts.young.len() >= self.half {
            parts.old = mem::take(&mut parts.young);
        }
        parts.young.insert(*hash, good);
    }
}

// === impl Good ===

impl Good {
    fn at(&self, now: Timestamp) -> Option<Admitted> {
        (now < self.until).then(|| self.admitted.clone())
    }
}

// === impl Once ===

impl Once {
    /// Remembers at most so many.
    pub(crate) fn new(most: usize) -> Self {
        Self { names: Mutex::default(), most }
    }

    /// Whether this name comes for the first time. It is remembered `until` then.
    pub(crate) fn is_first(&self, name: Hash, until: Timestamp, now: Timestamp) -> bool {
        let mut names = self.names.lock();
        names.forget_before(now);
        if names.until.contains_key(&name) {
            return false;
        }
        if names.until.len() >= self.most {
            names.forget_first();
        }
        names.until.insert(name, until);
        names.by_end.insert((until, name));
        true
    }
}

// === impl Names ===

impl Names {
    fn forget_before(&mut self, now: Timestamp) {
        while self.by_end.first().is_some_and(|(until, _)| *until <= now) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some((_, name)) = self.by_end.pop_first() {
            self.until.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use rialto_model::call::Caller;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_token_is_good_until_its_moment() {
        let seen = Seen::new(10);
        seen.remember(&[1; 32], Caller::user("ann").into(), at(5));
        assert!(seen.caller(&[1; 32], at(4)).is_some());
        assert!(seen.caller(&[1; 32], at(5)).is_none());
        assert!(seen.caller(&[2; 32], at(4)).is_none());
    }

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten() {
        let seen = Seen::new(10);
        for n in 0..100 {
            seen.remember(&[n; 32], Caller::user("ann").into(), at(5));
            assert!(seen.caller(&[0; 32], at(1)).is_some(), "{n}");
        }
        let parts = seen.parts.read();
        assert!(parts.young.len() + parts.old.len() <= 10);
        drop(parts);
        assert!(seen.caller(&[1; 32], at(1)).is_none());
    }

    #[test]
    fn a_name_comes_once_while_it_lasts() {
        let once = Once::new(10);
        assert!(once.is_first([1; 32], at(5), at(0)));
        assert!(!once.is_first([1; 32], at(5), at(4)));
        assert!(once.is_first([1; 32], at(9), at(5)));
    }

    #[test]
    fn the_name_that_expires_first_makes_room() {
        let once = Once::new(2);
        for (name, until) in [(1, 9), (2, 5), (3, 7)] {
            assert!(once.is_first([name; 32], at(until), at(0)));
        }
        assert!(!once.is_first([1; 32], at(9), at(0)));
        assert_eq!(once.names.lock().until.len(), 2);
    }
}
