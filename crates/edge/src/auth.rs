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
mod streams;
mod tokens;

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, header};
use rialto_model::{
    call::Caller,
    clock::{Clock, Timestamp},
    ids::{TokenId, fresh},
    store::Token,
};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

pub(crate) use self::denial::{Challenge, Denial};
pub use self::{
    book::TokenBook,
    config::{Config, IssuerConfig, Kind, Replay},
    jwt::{IssuerError, Issuers},
};

use self::streams::OpenStreams;

/// How often it is looked whether a token has ended.
const REVOCATION_POLL: Duration = Duration::from_millis(500);

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
    streams: OpenStreams,
}

/// A caller that is let in.
#[derive(Clone)]
pub(crate) struct Admitted {
    pub(crate) caller: Caller,
    /// When the signed token it came with ends, clock skew included. None for tokens of ours, which are known by their ids.
    pub(crate) ends_at: Option<Timestamp>,
}

/// What a token comes to, as far as can be said without waiting.
pub(crate) enum Answer {
    /// It is known, and so is what to do about it.
    Known(Result<Admitted, Denial>),
    /// Something has to be read first.
    Wait,
}

/// SHA-256 of a token.
type Hash = [u8; 32];

// === impl Admitted ===

impl From<Caller> for Admitted {
    fn from(caller: Caller) -> Self {
        Self { caller, ends_at: None }
    }
}

// === impl Bearers ===

impl Bearers {
    /// Lets in whom `book` knows or one of `issuers` has signed for.
    pub fn new(book: TokenBook, issuers: Issuers, clock: Arc<dyn Clock>) -> Self {
        Self { book, issuers, clock, streams: OpenStreams::default() }
    }

    /// Follows revocations until it is told to stop: what is open for a token ends soon after the token does, whichever process revoked it.
    pub async fn follow_revocations(&self, stop: CancellationToken) {
        loop {
            // Without the store nothing new is known; the next round tries again.
            let _ = self.book.catch_up().await;
            self.streams.end_where(self.clock.now(), |token| !self.is_good(token));
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(REVOCATION_POLL) => {}
            }
        }
    }

    /// Whether a token or session of ours counts now, as far as was read.
    pub(crate) fn is_good(&self, id: &TokenId) -> bool {
        self.book.table().is_good(id, self.clock.now())
    }

    /// The generation that tokens were read at. While it stays, only time ends a token.
    pub(crate) fn generation(&self) -> u64 {
        self.book.generation()
    }

    /// Is cancelled when the token or session ends.
    pub(crate) fn watch(&self, id: &TokenId) -> Arc<CancellationToken> {
        let watched = self.streams.watch(id);
        // It may have ended between the check of the request and now.
        if !self.is_good(id) {
            watched.cancel();
        }
        watched
    }

    /// Is cancelled when a signed token ends.
    pub(crate) fn watch_until(&self, end: Timestamp) -> Arc<CancellationToken> {
        let watched = self.streams.watch_until(end);
        if end <= self.clock.now() {
            watched.cancel();
        }
        watched
    }

    /// Begins a console session of a caller that has shown its token.
    pub(crate) async fn begin_session(&self, caller: &Caller, lifetime: Duration) -> Option<TokenId> {
        let (now, id) = (self.clock.now(), format!("ses_{}", fresh()));
        let session = Token {
            hash: format!("session {id}"),
            scope: caller.scope.clone(),
            caller: caller.id.clone(),
            kind: caller.kind,
            rights: caller.rights,
            created_at: now,
            expires_at: now.checked_add(lifetime).ok(),
            revoked_at: None,
            created_by: Some(caller.id.to_string()),
            session_of: Some(caller.token.as_ref().map(ToString::to_string).unwrap_or_default()),
            id: id.clone(),
        };
        match self.book.add_session(&session).await {
            Ok(()) => Some(TokenId::from(id)),
            Err(error) => {
                tracing::error!("a console session could not be written down: {error}");
                None
            }
        }
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
            Some(known) => Answer::Known(known.map(Admitted::from)),
            None if self.may_be_signed(token) => self.issuers.look(token, &hash),
            None => Answer::Known(Err(Denial::Unknown)),
        }
    }

    /// Who comes with `token`, after reading whatever has changed.
    pub(crate) async fn find(&self, token: &str) -> Result<Admitted, Denial> {
        self.book.catch_up().await?;
        let hash = Sha256::digest(token.as_bytes()).into();
        match self.book.table().caller(&hash, &*self.clock) {
            Some(known) => known.map(Admitted::from),
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
