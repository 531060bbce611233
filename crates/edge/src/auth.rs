//! Who calls.
//!
//! A caller shows a bearer token: one that we made ourselves ([`TokenBook`]), or one that somebody has signed whom we
//! trust ([`Issuers`]). What is remembered of a token is its SHA-256, so a known one costs one hash and one look; only
//! when something has changed, or an issuer has to be asked for its keys, is there anything to wait for.

mod book;
mod config;
mod denial;
mod jwt;
mod keys;
mod seen;
mod tokens;

use std::sync::Arc;

use http::{HeaderMap, header};
use rialto_model::{call::Caller, clock::Clock};
use sha2::{Digest, Sha256};

pub(crate) use self::denial::{Challenge, Denial};
pub use self::{
    book::TokenBook,
    config::{Config, IssuerConfig, Kind, Replay},
    jwt::{IssuerError, Issuers},
};

/// How callers prove who they are.
#[derive(Clone)]
pub enum Authentication {
    /// They need not: everyone is this caller. For a listener that only its owner can reach.
    Open(Caller),
    /// With a bearer token.
    Bearer(Arc<Bearers>),
}

/// Whom to let in for a bearer token.
pub struct Bearers {
    book: TokenBook,
    issuers: Issuers,
    clock: Arc<dyn Clock>,
}

/// What a token comes to, as far as can be said without waiting.
pub(crate) enum Answer {
    /// It is known, and so is what to do about it.
    Known(Result<Caller, Denial>),
    /// Something has to be read first.
    Wait,
}

/// SHA-256 of a token.
type Hash = [u8; 32];

// === impl Bearers ===

impl Bearers {
    /// Lets in whom `book` knows or one of `issuers` has signed for.
    pub fn new(book: TokenBook, issuers: Issuers, clock: Arc<dyn Clock>) -> Self {
        Self { book, issuers, clock }
    }

    pub(crate) const fn issuers(&self) -> &Issuers {
        &self.issuers
    }

    /// Who comes with `token`, if that can be said without waiting.
    pub(crate) fn look(&self, token: &str) -> Answer {
        if self.book.is_behind() {
            return Answer::Wait;
        }
        let hash = Sha256::digest(token.as_bytes()).into();
        match self.book.table().caller(&hash, &*self.clock) {
            Some(known) => Answer::Known(known),
            None if self.may_be_signed(token) => self.issuers.look(token, &hash),
            None => Answer::Known(Err(Denial::Unknown)),
        }
    }

    /// Who comes with `token`, after reading whatever has changed.
    pub(crate) async fn find(&self, token: &str) -> Result<Caller, Denial> {
        self.book.catch_up().await?;
        let hash = Sha256::digest(token.as_bytes()).into();
        match self.book.table().caller(&hash, &*self.clock) {
            Some(known) => known,
            None if self.may_be_signed(token) => self.issuers.find(token, &hash).await,
            None => Err(Denial::Unknown),
        }
    }

    /// Whether there is any sense in asking the issuers.
    fn may_be_signed(&self, token: &str) -> bool {
        !self.issuers.is_empty() && token.bytes().filter(|byte| *byte == b'.').count() == 2
    }
}

/// SHA-256 of a token in hex, as [`Token::hash`](rialto_model::store::Token::hash) wants it.
pub fn hash(token: &str) -> String {
    Sha256::digest(token.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bearer token among `headers`. Two of them are none: nobody could say which one counts.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<&str, Denial> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().ok_or(Denial::NoToken)?;
    if values.next().is_some() {
        return Err(Denial::Twice);
    }
    let (scheme, token) =
        value.to_str().ok().and_then(|value| value.split_once(' ')).ok_or(Denial::Unknown)?;
    if scheme.eq_ignore_ascii_case("bearer") { Ok(token.trim()) } else { Err(Denial::Unknown) }
}
