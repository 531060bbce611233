//! The tokens that we made ourselves.
//!
//! They are known by their SHA-256 only, and compared in constant time.

use std::{collections::HashMap, sync::Arc};

use arc_swap::ArcSwap;
use rialto_model::{
    call::Caller,
    clock::{Clock, Timestamp},
    store::Token,
};
use subtle::ConstantTimeEq;

use super::{Denial, Hash};

/// All of them; replaced as a whole, read without a lock.
#[derive(Default)]
pub(crate) struct TokenTable(ArcSwap<Table>);

/// The first bytes of a hash find its place, the rest is compared in constant time.
type Table = HashMap<[u8; 8], Vec<Known>>;

/// What is to be said of a token.
struct Known {
    hash: Hash,
    caller: Caller,
    expires_at: Option<Timestamp>,
    is_revoked: bool,
}

// === impl TokenTable ===

impl TokenTable {
    /// Knows `tokens`, and no others, from now on. One whose hash is not 64 hex digits lets nobody in.
    pub(crate) fn replace<'a>(&self, tokens: impl IntoIterator<Item = &'a Token>) {
        let mut table = Table::new();
        for known in tokens.into_iter().filter_map(Known::of) {
            table.entry(place(&known.hash)).or_default().push(known);
        }
        self.0.store(Arc::new(table));
    }

    /// Who comes with the token of this hash; nothing if it is none of ours.
    pub(crate) fn caller(&self, hash: &Hash, clock: &dyn Clock) -> Option<Result<Caller, Denial>> {
        let table = self.0.load();
        let near = table.get(&place(hash))?;
        near.iter().find(|known| bool::from(known.hash.ct_eq(hash))).map(|known| known.caller(clock))
    }
}

// === impl Known ===

impl Known {
    fn of(token: &Token) -> Option<Self> {
        let caller = Caller {
            scope: token.scope.clone(),
            kind: token.kind,
            id: token.caller.clone(),
            rights: token.rights,
            proof: None,
        };
        let is_revoked = token.revoked_at.is_some();
        Some(Self { hash: unhex(&token.hash)?, caller, expires_at: token.expires_at, is_revoked })
    }

    fn caller(&self, clock: &dyn Clock) -> Result<Caller, Denial> {
        if self.is_revoked {
            return Err(Denial::Revoked);
        }
        match self.expires_at {
            Some(end) if end <= clock.now() => Err(Denial::Expired(end)),
            _ => Ok(self.caller.clone()),
        }
    }
}

fn place(hash: &Hash) -> [u8; 8] {
    let [a, b, c, d, e, f, g, h, ..] = *hash;
    [a, b, c, d, e, f, g, h]
}

fn unhex(text: &str) -> Option<Hash> {
    let digits = text.as_bytes();
    let mut hash = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use rialto_model::{call::CallerKind, clock::FixedClock, ids::Scope, rights::Rights};

    use super::*;

    const NOON: &str = "2026-08-01T12:00:00Z";

    fn token(secret: &str) -> Token {
        Token {
            id: secret.to_owned(),
            hash: crate::auth::hash(secret),
            scope: Scope::default(),
            caller: secret.into(),
            kind: CallerKind::Agent,
            rights: Rights::default(),
            created_at: NOON.parse().unwrap(),
            expires_at: None,
            revoked_at: None,
        }
    }

    fn asked(token: &Token, secret: &str) -> Option<Result<Caller, Denial>> {
        let table = TokenTable::default();
        table.replace([token]);
        let hash = unhex(&crate::auth::hash(secret)).unwrap();
        table.caller(&hash, &FixedClock(NOON.parse().unwrap()))
    }

    #[test]
    fn a_token_is_its_caller_with_its_kind_and_rights() {
        let caller = asked(&token("a"), "a").unwrap().ok().unwrap();
        assert_eq!((caller.id.as_str(), caller.kind), ("a", CallerKind::Agent));
        assert_eq!(caller.rights, Rights::default());
        assert!(asked(&token("a"), "b").is_none());
    }

    #[test]
    fn a_token_lets_nobody_in_from_the_moment_it_expires() {
        for (end, is_good) in [("2026-08-01T12:00:00.000000001Z", true), (NOON, false)] {
            let token = Token { expires_at: Some(end.parse().unwrap()), ..token("a") };
            assert_eq!(asked(&token, "a").unwrap().is_ok(), is_good, "{end}");
        }
    }

    #[test]
    fn a_revoked_token_lets_nobody_in() {
        let revoked = Token { revoked_at: Some(NOON.parse().unwrap()), ..token("a") };
        assert!(matches!(asked(&revoked, "a"), Some(Err(Denial::Revoked))));
    }

    #[test]
    fn a_hash_that_is_none_lets_nobody_in() {
        assert!(asked(&Token { hash: "zz".repeat(32), ..token("a") }, "a").is_none());
    }
}
