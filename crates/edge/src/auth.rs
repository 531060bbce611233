//! Who calls.
//!
//! Tokens are known by their SHA-256 only, and compared in constant time.

use std::{collections::HashMap, sync::Arc};

use arc_swap::ArcSwap;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use rialto_model::{
    call::{Caller, CallerKind},
    store::Token,
};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::refusal::Refusal;

/// How callers prove who they are.
#[derive(Clone)]
pub enum Authentication {
    /// They need not: everyone is this caller. For a listener that only its owner can reach.
    Open(Caller),
    /// With a bearer token of this table.
    Tokens(Arc<TokenTable>),
}

/// The tokens that may come in; replaced as a whole, read without a lock.
#[derive(Default)]
pub struct TokenTable(ArcSwap<Table>);

/// The first bytes of a hash find its place, the rest is compared in constant time.
type Table = HashMap<[u8; 8], Vec<(Hash, Caller)>>;
type Hash = [u8; 32];

// === impl Authentication ===

impl Authentication {
    /// Who comes with `headers`.
    pub(crate) fn caller(&self, headers: &HeaderMap) -> Option<Caller> {
        match self {
            Self::Open(caller) => Some(caller.clone()),
            Self::Tokens(table) => table.caller(bearer(headers)?),
        }
    }
}

// === impl TokenTable ===

impl TokenTable {
    /// A table of `tokens`. One whose hash is not 64 hex digits lets nobody in.
    pub fn new(tokens: &[Token]) -> Self {
        let table = Self::default();
        table.replace(tokens);
        table
    }

    /// Lets in `tokens`, and nobody else, from now on.
    pub fn replace(&self, tokens: &[Token]) {
        let mut table = Table::new();
        for token in tokens {
            let Some(hash) = unhex(&token.hash) else { continue };
            let caller =
                Caller { scope: token.scope.clone(), kind: CallerKind::User, id: token.caller.clone() };
            table.entry(place(&hash)).or_default().push((hash, caller));
        }
        self.0.store(Arc::new(table));
    }

    /// Who comes with `token`.
    pub fn caller(&self, token: &str) -> Option<Caller> {
        let hash: Hash = Sha256::digest(token.as_bytes()).into();
        let table = self.0.load();
        let near = table.get(&place(&hash))?;
        near.iter().find(|(known, _)| bool::from(known.ct_eq(&hash))).map(|(_, caller)| caller.clone())
    }
}

/// SHA-256 of a token in hex, as [`Token::hash`] wants it.
pub fn hash(token: &str) -> String {
    Sha256::digest(token.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// What somebody is told who is not known.
pub(crate) fn unauthenticated(headers: &HeaderMap) -> Response {
    let (challenge, message) = if headers.contains_key(header::AUTHORIZATION) {
        ("Bearer error=\"invalid_token\"", "this token is not known; make one with `rialto tokens create`")
    } else {
        ("Bearer", "send `Authorization: Bearer <token>`; make a token with `rialto tokens create`")
    };
    let mut response = Refusal::new(StatusCode::UNAUTHORIZED, "unauthenticated", message).into_response();
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    response
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
