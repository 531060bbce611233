//! The tokens that we made ourselves.
//!
//! They are known by their SHA-256 only, and compared in constant time.

use std::{collections::HashMap, sync::Arc};

use arc_swap::ArcSwap;
use rialto_model::{
    call::Caller,
    clock::{Clock, Timestamp},
    ids::TokenId,
    store::Token,
};
use subtle::ConstantTimeEq;

use super::{Denial, Hash};

/// All of them; replaced as a whole, read without a lock.
#[derive(Default)]
pub(crate) struct TokenTable(ArcSwap<Table>);

#[derive(Default)]
struct Table {
    /// The first bytes of a hash find its place, the rest is compared in constant time.
    by_hash: HashMap<[u8; 8], Vec<Known>>,
    by_id: HashMap<TokenId, Validity>,
}

/// Whether and until when a token or a console session counts.
struct Validity {
    expires_at: Option<Timestamp>,
    is_revoked: bool,
    /// The token that a session was begun with, if that is one of ours.
    parent: Option<TokenId>,
}

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
        let mut table = Table::default();
        for token in tokens {
            table.by_id.insert(TokenId::from(&token.id), Validity::of(token));
            // No bearer token leads to a session.
            if let Some(known) = Known::of(token).filter(|_| token.session_of.is_none()) {
                table.by_hash.entry(place(&known.hash)).or_default().push(known);
            }
        }
        self.0.store(Arc::new(table));
    }

    /// Who comes with the token of this hash; nothing if it is none of ours.
    pub(crate) fn caller(&self, hash: &Hash, clock: &dyn Clock) -> Option<Result<Caller, Denial>> {
        let table = self.0.load();
        let near = table.by_hash.get(&place(hash))?;
        near.iter().find(|known| bool::from(known.hash.ct_eq(hash))).map(|known| known.caller(clock))
    }
}

impl TokenTable {
    /// Whether the token or session with this id counts now. One that is not known does not.
    pub(crate) fn is_good(&self, id: &TokenId, now: Timestamp) -> bool {
        let table = self.0.load();
        let counts = |id: &TokenId| {
            let known = table.by_id.get(id)?;
            let is_good = !known.is_revoked && known.expires_at.is_none_or(|end| now < end);
            is_good.then_some(known)
        };
        counts(id).is_some_and(|known| known.parent.as_ref().is_none_or(|parent| counts(parent).is_some()))
    }
}

// === impl Validity ===

impl Validity {
    fn of(token: &Token) -> Self {
        let parent = token.session_of.as_deref().filter(|parent| !parent.is_empty()).map(TokenId::from);
        Self { expires_at: token.expires_at, is_revoked: token.revoked_at.is_some(), parent }
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
            token: Some(TokenId::from(&token.id)),
            proof: None,
            hops: 0,
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
    use rialto_model::{call::CallerKind, clock::FixedClock, ids::Scope, token_scopes::TokenScopes};

    use super::*;

    const NOON: &str = "2026-08-01T12:00:00Z";

    fn token(secret: &str) -> Token {
        Token {
            id: secret.to_owned(),
            hash: crate::auth::hash(secret),
            scope: Scope::default(),
            caller: secret.into(),
            kind: CallerKind::Agent,
            rights: TokenScopes::default(),
            created_at: NOON.parse().unwrap(),
            expires_at: None,
            revoked_at: None,
            created_by: None,
            session_of: None,
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
        assert_eq!(caller.rights, TokenScopes::default());
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
    fn a_session_counts_as_long_as_it_and_its_token_do_and_is_no_bearer_token() {
        let session = Token { session_of: Some("a".to_owned()), ..token("s") };
        let table = TokenTable::default();
        let is_good = |tokens: &[&Token]| {
            table.replace(tokens.iter().copied());
            table.is_good(&"s".into(), NOON.parse().unwrap())
        };
        let (now, good) = (Some(NOON.parse().unwrap()), token("a"));
        assert!(is_good(&[&good, &session]));
        assert!(
            table
                .caller(&unhex(&crate::auth::hash("s")).unwrap(), &FixedClock(NOON.parse().unwrap()))
                .is_none()
        );
        assert!(!is_good(&[&good, &Token { revoked_at: now, ..session.clone() }]), "ended");
        assert!(!is_good(&[&good, &Token { expires_at: now, ..session.clone() }]), "expired");
        assert!(!is_good(&[&Token { revoked_at: now, ..good.clone() }, &session]), "its token is revoked");
        assert!(!is_good(&[&session]) && !is_good(&[&good]), "unknown");
        assert!(
            is_good(&[&Token { session_of: Some(String::new()), ..session.clone() }]),
            "of a signed token"
        );
    }

    #[test]
    fn a_hash_that_is_none_lets_nobody_in() {
        assert!(asked(&Token { hash: "zz".repeat(32), ..token("a") }, "a").is_none());
    }
}
