//! Signed tokens that were verified before, so that each is verified once.

use std::{collections::HashMap, mem};

use parking_lot::RwLock;
use rialto_model::clock::Timestamp;

use super::{AdmittedCaller, Hash};

/// Cache of verified tokens, in two halves: when the younger half is full it becomes the older one, and the older one is dropped. Tokens in
/// use stay, and no order has to be kept.
pub(crate) struct VerifiedTokens {
    parts: RwLock<TokenHalves>,
    half: usize,
}

#[derive(Default)]
struct TokenHalves {
    young: HashMap<Hash, VerifiedToken>,
    old: HashMap<Hash, VerifiedToken>,
}

#[derive(Clone)]
struct VerifiedToken {
    admitted: AdmittedCaller,
    until: Timestamp,
}

// === impl VerifiedTokens ===

impl VerifiedTokens {
    /// Keeps at most this number of tokens.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { parts: RwLock::default(), half: (capacity / 2).max(1) }
    }

    pub(crate) fn find(&self, hash: &Hash, now: Timestamp) -> Option<AdmittedCaller> {
        let parts = self.parts.read();
        if let Some(good) = parts.young.get(hash) {
            return good.caller_at(now);
        }
        let good = parts.old.get(hash)?.clone();
        drop(parts);
        let admitted = good.caller_at(now)?;
        self.insert(hash, good);
        Some(admitted)
    }

    pub(crate) fn remember(&self, hash: &Hash, admitted: AdmittedCaller, until: Timestamp) {
        self.insert(hash, VerifiedToken { admitted, until });
    }

    fn insert(&self, hash: &Hash, good: VerifiedToken) {
        let mut parts = self.parts.write();
        if parts.young.len() >= self.half {
            parts.old = mem::take(&mut parts.young);
        }
        parts.young.insert(*hash, good);
    }
}

// === impl VerifiedToken ===

impl VerifiedToken {
    fn caller_at(&self, now: Timestamp) -> Option<AdmittedCaller> {
        (now < self.until).then(|| self.admitted.clone())
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
        let verified = VerifiedTokens::new(10);
        verified.remember(&[1; 32], Caller::user("ann").into(), at(5));
        assert!(verified.find(&[1; 32], at(4)).is_some());
        assert!(verified.find(&[1; 32], at(5)).is_none());
        assert!(verified.find(&[2; 32], at(4)).is_none());
    }

    #[test]
    fn tokens_in_use_stay_cached_and_others_are_dropped() {
        let verified = VerifiedTokens::new(10);
        for n in 0..100 {
            verified.remember(&[n; 32], Caller::user("ann").into(), at(5));
            assert!(verified.find(&[0; 32], at(1)).is_some(), "{n}");
        }
        let parts = verified.parts.read();
        assert!(parts.young.len() + parts.old.len() <= 10);
        drop(parts);
        assert!(verified.find(&[1; 32], at(1)).is_none());
    }
}
