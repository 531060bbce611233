//! Authentication of callers.
//!
//! A caller sends a bearer token: one of our own ([`TokenCache`]), or one signed by a trusted issuer ([`TrustedIssuers`]). Tokens are
//! remembered by their SHA-256, so a known token costs one hash and one lookup. Only when tokens have changed, or an issuer has to be asked
//! for its keys, does a request wait.

mod config;
mod error;
mod issuer_keys;
mod jwt;
mod jwt_replay;
mod open_responses;
mod token_cache;
mod token_table;
mod verified_tokens;

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

pub(crate) use self::error::{AuthError, BearerChallenge};
pub use self::{
    config::{Config, IssuerConfig, ReplayPolicy, TokenCallerKind},
    jwt::{IssuerError, TrustedIssuers},
    token_cache::TokenCache,
};

use self::open_responses::OpenResponses;

/// Interval at which open responses are checked for revoked tokens.
const REVOCATION_POLL: Duration = Duration::from_millis(500);

/// Way callers are authenticated.
#[derive(Clone)]
pub enum Authentication {
    /// Not at all: everyone is this caller. For a listener that only its owner can reach.
    Open(Caller),
    /// By bearer token.
    Bearer(Arc<BearerAuthenticator>),
}

/// Authenticates bearer tokens.
pub struct BearerAuthenticator {
    tokens: TokenCache,
    issuers: TrustedIssuers,
    clock: Arc<dyn Clock>,
    responses: OpenResponses,
}

/// Authenticated caller.
#[derive(Clone)]
pub(crate) struct AdmittedCaller {
    pub(crate) caller: Caller,
    /// Time when its signed token expires, clock skew included. None for our own tokens, which are known by their ids.
    pub(crate) ends_at: Option<Timestamp>,
}

/// Result of authentication without waiting.
pub(crate) enum AuthLookup {
    /// The result is known.
    Done(Result<AdmittedCaller, AuthError>),
    /// Something has to be read first.
    Pending,
}

/// SHA-256 of a token.
type Hash = [u8; 32];

// === impl AdmittedCaller ===

impl From<Caller> for AdmittedCaller {
    fn from(caller: Caller) -> Self {
        Self { caller, ends_at: None }
    }
}

// === impl BearerAuthenticator ===

impl BearerAuthenticator {
    /// Accepts the tokens of `tokens` and those signed by one of `issuers`.
    pub fn new(tokens: TokenCache, issuers: TrustedIssuers, clock: Arc<dyn Clock>) -> Self {
        Self { tokens, issuers, clock, responses: OpenResponses::default() }
    }

    /// Follows revocations until `stop`: responses open for a token end soon after the token, whichever process revoked it.
    pub async fn follow_revocations(&self, stop: CancellationToken) {
        loop {
            // Without the store nothing new is known; the next round tries again.
            let _ = self.tokens.refresh().await;
            self.responses.cancel_ended(self.clock.now(), |token| !self.is_valid(token));
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(REVOCATION_POLL) => {}
            }
        }
    }

    /// True if a token or session of ours is valid, as far as was read.
    pub(crate) fn is_valid(&self, id: &TokenId) -> bool {
        self.tokens.table().is_valid(id, self.clock.now())
    }

    /// Generation at which tokens were read. While it stays, tokens end only by time.
    pub(crate) fn generation(&self) -> u64 {
        self.tokens.generation()
    }

    /// Cancellation that fires when the token or session ends.
    pub(crate) fn watch(&self, id: &TokenId) -> Arc<CancellationToken> {
        let watched = self.responses.watch(id);
        // It may have ended between the check of the request and now.
        if !self.is_valid(id) {
            watched.cancel();
        }
        watched
    }

    /// Cancellation that fires when a signed token expires.
    pub(crate) fn watch_until(&self, end: Timestamp) -> Arc<CancellationToken> {
        let watched = self.responses.watch_until(end);
        if end <= self.clock.now() {
            watched.cancel();
        }
        watched
    }

    /// Starts a console session of an authenticated caller.
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
        match self.tokens.add_session(&session).await {
            Ok(()) => Some(TokenId::from(id)),
            Err(error) => {
                tracing::error!("a console session could not be written down: {error}");
                None
            }
        }
    }

    pub(crate) const fn issuers(&self) -> &TrustedIssuers {
        &self.issuers
    }

    /// Authenticates `token` without waiting.
    pub(crate) fn find_cached(&self, token: &str) -> AuthLookup {
        if self.tokens.is_outdated() {
            return AuthLookup::Pending;
        }
        let hash = Sha256::digest(token.as_bytes()).into();
        match self.tokens.table().caller(&hash, &*self.clock) {
            Some(known) => AuthLookup::Done(known.map(AdmittedCaller::from)),
            None if self.is_possibly_signed(token) => self.issuers.find_cached(token, &hash),
            None => AuthLookup::Done(Err(AuthError::Unknown)),
        }
    }

    /// Authenticates `token` after reading what has changed.
    pub(crate) async fn find(&self, token: &str) -> Result<AdmittedCaller, AuthError> {
        self.tokens.refresh().await?;
        let hash = Sha256::digest(token.as_bytes()).into();
        match self.tokens.table().caller(&hash, &*self.clock) {
            Some(known) => known.map(AdmittedCaller::from),
            None if self.is_possibly_signed(token) => self.issuers.find(token, &hash).await,
            None => Err(AuthError::Unknown),
        }
    }

    /// True if the token may be a JWT.
    fn is_possibly_signed(&self, token: &str) -> bool {
        !self.issuers.is_empty() && token.bytes().filter(|byte| *byte == b'.').count() == 2
    }
}

/// SHA-256 of a token in hex, as [`Token::hash`](rialto_model::store::Token::hash) wants it.
pub fn hash_token(token: &str) -> String {
    Sha256::digest(token.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bearer token in `headers`. Two are an error: it is not clear which one counts.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Result<&str, AuthError> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().ok_or(AuthError::NoToken)?;
    if values.next().is_some() {
        return Err(AuthError::TwoTokens);
    }
    let (scheme, token) =
        value.to_str().ok().and_then(|value| value.split_once(' ')).ok_or(AuthError::Unknown)?;
    if scheme.eq_ignore_ascii_case("bearer") { Ok(token.trim()) } else { Err(AuthError::Unknown) }
}
