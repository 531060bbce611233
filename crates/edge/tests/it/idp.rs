//! An issuer of tokens: a server with keys that can be changed, and a pen.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    Json, Router,
    extract::State,
    response::{IntoResponse, Response},
    routing,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, StatusCode, header};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, jwk::Jwk};
use parking_lot::Mutex;
use rialto_http_server::auth::{IssuerConfig, ReplayPolicy, TokenCallerKind};
use serde_json::{Value, json};

use crate::{fixture::noon, server::Server};

pub(crate) const RSA: &[u8] = include_bytes!("keys/rs256.pem");
pub(crate) const RSA_PUBLIC: &[u8] = include_bytes!("keys/rs256.pub.pem");
pub(crate) const EC: &[u8] = include_bytes!("keys/es256.pem");
pub(crate) const ED: &[u8] = include_bytes!("keys/ed25519.pem");

/// A key under a name.
#[derive(Clone, Copy)]
pub(crate) struct Pen {
    pub(crate) kid: &'static str,
    pub(crate) algorithm: Algorithm,
    pub(crate) pem: &'static [u8],
}

/// The issuer, at work.
pub(crate) struct Idp {
    server: Server,
    desk: Arc<Desk>,
}

/// State of the issuer.
struct Desk {
    keys: Mutex<Vec<Value>>,
    is_up: Mutex<bool>,
    asked: AtomicUsize,
    speaks_for: Mutex<Option<String>>,
}

// === impl Pen ===

impl Pen {
    pub(crate) const RSA: Self = Self { kid: "rsa", algorithm: Algorithm::RS256, pem: RSA };
    pub(crate) const EC: Self = Self { kid: "ec", algorithm: Algorithm::ES256, pem: EC };
    pub(crate) const ED: Self = Self { kid: "ed", algorithm: Algorithm::EdDSA, pem: ED };

    fn key(self) -> EncodingKey {
        match self.algorithm {
            Algorithm::ES256 => EncodingKey::from_ec_pem(self.pem),
            Algorithm::EdDSA => EncodingKey::from_ed_pem(self.pem),
            _ => EncodingKey::from_rsa_pem(self.pem),
        }
        .unwrap()
    }

    /// The public half, as issuers publish it. An RSA key may be for any of its algorithms.
    pub(crate) fn jwk(self) -> Value {
        let mut jwk = Jwk::from_encoding_key(&self.key(), self.algorithm).unwrap();
        (jwk.common.key_id, jwk.common.key_algorithm) = (Some(self.kid.to_owned()), None);
        serde_json::to_value(jwk).unwrap()
    }

    pub(crate) fn sign(self, claims: &Value) -> String {
        let header = Header { kid: Some(self.kid.to_owned()), ..Header::new(self.algorithm) };
        self.sign_under(&header, claims)
    }

    pub(crate) fn sign_under(self, header: &Header, claims: &Value) -> String {
        encode(header, claims, &self.key()).unwrap()
    }
}

// === impl Idp ===

impl Idp {
    /// An issuer with these keys.
    pub(crate) async fn with(pens: &[Pen]) -> Self {
        let desk = Arc::new(Desk {
            keys: Mutex::new(pens.iter().map(|pen| pen.jwk()).collect()),
            is_up: Mutex::new(true),
            asked: AtomicUsize::new(0),
            speaks_for: Mutex::default(),
        });
        let router = Router::new()
            .route("/.well-known/openid-configuration", routing::get(discover))
            .route("/keys", routing::get(keys))
            .with_state(Arc::clone(&desk));
        Self { server: Server::start(router).await, desk }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// Configuration that trusts the issuer.
    pub(crate) fn config(&self) -> IssuerConfig {
        IssuerConfig {
            issuer: self.url(),
            audience: "rialto".to_owned(),
            jwks_url: None,
            caller_claim: "sub".to_owned(),
            caller_prefix: String::new(),
            org_claim: None,
            project_claim: None,
            scope_claim: "scope".to_owned(),
            default_scope: String::new(),
            kind: TokenCallerKind::User,
            replay: ReplayPolicy::Allow,
            allow_private: true,
        }
    }

    /// Claims of ann: a token for us, valid for ten minutes.
    pub(crate) fn ann(&self) -> Value {
        let now = noon().as_second();
        json!({ "iss": self.url(), "aud": "rialto", "sub": "ann", "exp": now + 600, "scope": "openid call" })
    }

    /// Claims of ann with another claim.
    pub(crate) fn ann_with(&self, name: &str, value: impl Into<Value>) -> Value {
        let mut claims = self.ann();
        claims[name] = value.into();
        claims
    }

    /// From now on it has these keys.
    pub(crate) fn change_keys(&self, keys: Vec<Value>) {
        *self.desk.keys.lock() = keys;
    }

    /// From now on it does not answer, or does again.
    pub(crate) fn is_up(&self, is_up: bool) {
        *self.desk.is_up.lock() = is_up;
    }

    pub(crate) fn speaks_for(&self, issuer: &str) {
        *self.desk.speaks_for.lock() = Some(issuer.to_owned());
    }

    /// Interval at which its keys were asked for.
    pub(crate) fn asked(&self) -> usize {
        self.desk.asked.load(Ordering::SeqCst)
    }
}

async fn discover(State(desk): State<Arc<Desk>>, headers: HeaderMap) -> Json<Value> {
    let base = format!("http://{}", headers[header::HOST].to_str().unwrap());
    let issuer = desk.speaks_for.lock().clone().unwrap_or_else(|| base.clone());
    Json(json!({ "issuer": issuer, "jwks_uri": format!("{base}/keys") }))
}

async fn keys(State(desk): State<Arc<Desk>>) -> Response {
    desk.asked.fetch_add(1, Ordering::SeqCst);
    if !*desk.is_up.lock() {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    let keys = desk.keys.lock().clone();
    ([(header::CACHE_CONTROL, "max-age=120")], Json(json!({ "keys": keys }))).into_response()
}

/// A token that says it needs no signature.
pub(crate) fn unsigned(claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.", part(&json!({ "alg": "none", "typ": "JWT" })), part(claims))
}

/// Token with other claims and the old signature.
pub(crate) fn tampered(token: &str, claims: &Value) -> String {
    let parts: Vec<&str> = token.split('.').collect();
    format!("{}.{}.{}", parts[0], URL_SAFE_NO_PAD.encode(claims.to_string()), parts[2])
}
