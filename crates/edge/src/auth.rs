//! Who calls.
//!
//! A caller shows a bearer token. What is remembered of a token is its SHA-256, so a known one costs one hash and one
//! look; only when something has changed since the last request is there anything to wait for.

mod book;
mod denial;
mod tokens;

use std::sync::Arc;

use http::{HeaderMap, header};
use rialto_model::{call::Caller, clock::Clock};
use sha2::{Digest, Sha256};

pub use self::book::TokenBook;
pub(crate) use self::denial::Denial;

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
    /// Lets in whom `book` knows.
    pub fn new(book: TokenBook, clock: Arc<dyn Clock>) -> Self {
        Self { book, clock }
    }

    /// Who comes with `token`, if that is known already.
    pub(crate) fn look(&self, token: &str) -> Answer {
        if self.book.is_behind() { Answer::Wait } else { Answer::Known(self.known(token)) }
    }

    /// Who comes with `token`, after reading whatever has changed.
    pub(crate) async fn find(&self, token: &str) -> Result<Caller, Denial> {
        self.book.catch_up().await?;
        self.known(token)
    }

    fn known(&self, token: &str) -> Result<Caller, Denial> {
        let hash = Sha256::digest(token.as_bytes()).into();
        self.book.table().caller(&hash, &*self.clock).unwrap_or(Err(Denial::Unknown))
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
