//! Our own tokens.
//!
//! Only their SHA-256 is kept, and it is compared in constant time.

use std::{collections::HashMap, sync::Arc};

use arc_swap::ArcSwap;
use rialto_model::{
    call::Caller,
    clock::{Clock, Timestamp},
    ids::TokenId,
    store::Token,
};
use subtle::ConstantTimeEq;

use super::{AuthError, Hash};

/// Table of all tokens; replaced as a whole, read without a lock.
#[derive(Default)]
pub(crate) struct TokenTable(ArcSwap<StoredTokens>);

#[derive(Default)]
struct StoredTokens {
    /// Tokens by the first bytes of their hash; the rest is compared in constant time.
    by_hash: HashMap<[u8; 8], Vec<StoredToken>>,
    by_id: HashMap<TokenId, TokenStatus>,
}

/// Validity of a token or console session.
struct TokenStatus {
    expires_at: Option<Timestamp>,
    is_revoked: bool,
    /// Token that the session was started with, if it is one of ours.
    parent: Option<TokenId>,
}

/// Token with what a lookup needs.
struct StoredToken {
    hash: Hash,
    caller: Caller,
    expires_at: Option<Timestamp>,
    is_revoked: bool,
}

// === impl TokenTable ===

impl TokenTable {
    /// Replaces all tokens. One whose hash is not 64 hex digits is never accepted.
    pub(crate) fn replace<'a>(&self, tokens: impl IntoIterator<Item = &'a Token>) {
        let mut table = StoredTokens::default();
        for token in tokens {
            table.by_id.insert(TokenId::from(&token.id), TokenStatus::from_token(token));
            // No bearer token leads to a session.
            if let Some(row) = StoredToken::from_token(token).filter(|_| token.session_of.is_none()) {
                table.by_hash.entry(hash_prefix(&row.hash)).or_default().push(row);
            }
        }
        self.0.store(Arc::new(table));
    }

    /// Caller of the token with this hash; none if it is not one of ours.
    pub(crate) fn caller(&self, hash: &Hash, clock: &dyn Clock) -> Option<Result<Caller, AuthError>> {
        let table = self.0.load();
        let near = table.by_hash.get(&hash_prefix(hash))?;
        near.iter().find(|row| bool::from(row.hash.ct_eq(hash))).map(|row| row.caller(clock))
    }
}

impl TokenTable {
    /// True if the token or session with this id is valid. An unknown one is not.
    pub(crate) fn is_valid(&self, id: &TokenId, now: Timestamp) -> bool {
        let table = self.0.load();
        let counts = |id: &TokenId| {
            let row = table.by_id.get(id)?;
            let is_valid = !row.is_revoked && row.expires_at.is_none_or(|end| now < end);
            is_valid.then_some(row)
        };
        counts(id).is_some_and(|row| row.parent.as_ref().is_none_or(|parent| counts(parent).is_some()))
    }
}

// === impl TokenStatus ===

impl TokenStatus {
    fn from_token(token: &Token) -> Self {
        let parent = token.session_of.as_deref().filter(|parent| !parent.is_empty()).map(TokenId::from);
        Self { expires_at: token.expires_at, is_revoked: token.revoked_at.is_some(), parent }
    }
}

// === impl StoredToken ===

impl StoredToken {
    fn from_token(token: &Token) -> Option<Self> {
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
        Some(Self { hash: parse_hash(&token.hash)?, caller, expires_at: token.expires_at, is_revoked })
    }

    fn caller(&self, clock: &dyn Clock) -> Result<Caller, AuthError> {
        if self.is_revoked {
            return Err(AuthError::Revoked);
        }
        match self.expires_at {
            Some(end) if end <= clock.now() => Err(AuthError::Expired(end)),
            _ => Ok(self.caller.clone()),
        }
    }
}

fn hash_prefix(hash: &Hash) -> [u8; 8] {
    let [a, b, c, d, e, f, g, h, ..] = *hash;
    [a, b, c, d, e, f, g, h]
}

fn parse_hash(text: &str) -> Option<Hash> {
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
            hash: crate::auth::hash_token(secret),
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

    fn find(token: &Token, secret: &str) -> Option<Result<Caller, AuthError>> {
        let table = TokenTable::default();
        table.replace([token]);
        let hash = parse_hash(&crate::auth::hash_token(secret)).unwrap();
        table.caller(&hash, &FixedClock(NOON.parse().unwrap()))
    }

    #[test]
    fn a_token_is_its_caller_with_its_kind_and_rights() {
        let caller = find(&token("a"), "a").unwrap().ok().unwrap();
        assert_eq!((caller.id.as_str(), caller.kind), ("a", CallerKind::Agent));
        assert_eq!(caller.rights, TokenScopes::default());
        assert!(find(&token("a"), "b").is_none());
    }

    #[test]
    fn a_token_is_refused_from_the_moment_it_expires() {
        for (end, is_valid) in [("2026-08-01T12:00:00.000000001Z", true), (NOON, false)] {
            let token = Token { expires_at: Some(end.parse().unwrap()), ..token("a") };
            assert_eq!(find(&token, "a").unwrap().is_ok(), is_valid, "{end}");
        }
    }

    #[test]
    fn a_revoked_token_is_refused() {
        let revoked = Token { revoked_at: Some(NOON.parse().unwrap()), ..token("a") };
        assert!(matches!(find(&revoked, "a"), Some(Err(AuthError::Revoked))));
    }

    #[test]
    fn a_session_counts_as_long_as_it_and_its_token_do_and_is_no_bearer_token() {
        let session = Token { session_of: Some("a".to_owned()), ..token("s") };
        let table = TokenTable::default();
        let is_valid = |tokens: &[&Token]| {
            table.replace(tokens.iter().copied());
            table.is_valid(&"s".into(), NOON.parse().unwrap())
        };
        let (now, good) = (Some(NOON.parse().unwrap()), token("a"));
        assert!(is_valid(&[&good, &session]));
        assert!(
            table
                .caller(
                    &parse_hash(&crate::auth::hash_token("s")).unwrap(),
                    &FixedClock(NOON.parse().unwrap())
                )
                .is_none()
        );
        assert!(!is_valid(&[&good, &Token { revoked_at: now, ..session.clone() }]), "ended");
        assert!(!is_valid(&[&good, &Token { expires_at: now, ..session.clone() }]), "expired");
        assert!(!is_valid(&[&Token { revoked_at: now, ..good.clone() }, &session]), "its token is revoked");
        assert!(!is_valid(&[&session]) && !is_valid(&[&good]), "unknown");
        assert!(
            is_valid(&[&Token { session_of: Some(String::new()), ..session.clone() }]),
            "of a signed token"
        );
    }

    #[test]
    fn an_invalid_hash_matches_no_token() {
        assert!(find(&Token { hash: "zz".repeat(32), ..token("a") }, "a").is_none());
    }
}
