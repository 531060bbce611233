//! Signing keys of an issuer (JWK set, RFC 7517).
//!
//! They are fetched when they are first needed, again when they are old, and again when a token names an unknown key, because issuers
//! change their keys. Invented key names cannot make this server ask the issuer more than twice a minute, and only one request is in flight
//! at a time. While the issuer does not answer, old keys stay in use for an hour.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use http::{HeaderMap, Method, StatusCode, Uri, header};
use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse},
};
use rialto_model::clock::{Clock, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard};

use rialto_http_client::{
    address::Reach,
    fetch::{Fetch, FetchError, FetchRequest},
};

/// Least interval between two requests to an issuer that has answered.
const REFRESH_INTERVAL: Duration = Duration::from_secs(30);
/// Least interval between two requests to an issuer that has never answered.
const FIRST_REFRESH_INTERVAL: Duration = Duration::from_secs(5);
/// Lifetime of keys when the issuer does not say.
const DEFAULT_AGE_SECONDS: u64 = 300;
const MIN_AGE_SECONDS: u64 = 60;
const MAX_AGE_SECONDS: u64 = 24 * 60 * 60;
/// Time that old keys stay in use while the issuer does not answer.
const STALE_KEYS_GRACE: Duration = Duration::from_secs(60 * 60);
/// Timeout of a request to the issuer, and of one read.
const FETCH_DEADLINE: Duration = Duration::from_secs(10);
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum bytes of a key set.
const MAX_KEY_SET_BYTES: usize = 1024 * 1024;

const RSA_ALGORITHMS: &[Algorithm] = &[
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

/// Keys of one issuer, with their cache.
pub(crate) struct IssuerKeys {
    source: KeySource,
    fetch: Arc<dyn Fetch>,
    clock: Arc<dyn Clock>,
    state: ArcSwap<KeyState>,
    /// Single-flight lock: one request asks the issuer, others wait for it or use what there is.
    refresh_lock: Mutex<()>,
}

/// Address of an issuer's keys.
pub(crate) struct KeySource {
    pub(crate) issuer: String,
    pub(crate) jwks_url: Option<String>,
    pub(crate) reach: Reach,
}

/// Key that a token requires.
#[derive(Clone, Debug)]
pub(crate) struct KeyRequest {
    pub(crate) kid: Option<String>,
    pub(crate) algorithm: Algorithm,
}

/// Key, and the time until which its result may be reused without another check of the keys.
#[derive(Clone)]
pub(crate) struct CachedIssuerKey {
    pub(crate) key: Arc<IssuerKey>,
    pub(crate) until: Timestamp,
}

/// Public key of an issuer.
pub(crate) struct IssuerKey {
    kid: Option<String>,
    algorithms: Vec<Algorithm>,
    pub(crate) key: DecodingKey,
}

/// Reason why there is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyLookupError {
    /// The issuer has no key of that name and algorithm.
    Unknown,
    /// The issuer has never answered, or not for too long.
    Unreachable,
}

/// Failure to fetch the keys.
#[derive(Debug, thiserror::Error)]
enum KeyFetchError {
    #[error("{0}")]
    Fetch(#[from] FetchError),
    #[error("{0} is not an address that can be called")]
    Address(String),
    #[error("{0} answered {1}")]
    Status(Uri, StatusCode),
    #[error("{0} is not what it should be: {1}")]
    Invalid(Uri, String),
}

#[derive(Default)]
struct KeyState {
    keys: Option<Arc<KeySet>>,
    /// Time before which the issuer is not asked again.
    next: Option<Timestamp>,
}

struct KeySet {
    keys: Vec<Arc<IssuerKey>>,
    fresh_until: Timestamp,
}

#[derive(Deserialize)]
struct DiscoveryDocument {
    issuer: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<Value>,
}

// === impl IssuerKeys ===

impl IssuerKeys {
    pub(crate) fn new(source: KeySource, fetch: Arc<dyn Fetch>, clock: Arc<dyn Clock>) -> Self {
        Self { source, fetch, clock, state: ArcSwap::default(), refresh_lock: Mutex::default() }
    }

    /// Key, if it can be found without asking the issuer; none if the issuer should be asked first, or is being asked.
    pub(crate) fn find_cached(
        &self,
        request: &KeyRequest,
    ) -> Option<Result<CachedIssuerKey, KeyLookupError>> {
        // Read first: if no request is in flight now, the result of the last one is in the state.
        let is_asked = self.refresh_lock.try_lock().is_err();
        self.find_without_asking(request).filter(|known| known.is_ok() || !is_asked)
    }

    /// Key, after asking the issuer if that may help.
    pub(crate) async fn find_or_refresh(
        &self,
        request: &KeyRequest,
    ) -> Result<CachedIssuerKey, KeyLookupError> {
        if let Some(_lock) = self.lock_for_refresh(request).await
            && self.find_without_asking(request).is_none()
        {
            self.refresh().await;
        }
        self.state.load().find(request, self.clock.now())
    }

    /// Result without asking: a fresh key, or an error while the issuer must not be asked.
    fn find_without_asking(&self, request: &KeyRequest) -> Option<Result<CachedIssuerKey, KeyLookupError>> {
        let (state, now) = (self.state.load(), self.clock.now());
        let known = state.find(request, now);
        let is_fresh = known.as_ref().is_ok_and(|found| now < found.until);
        let is_quiet = state.next.is_some_and(|next| now < next);
        (is_fresh || is_quiet).then_some(known)
    }

    /// Lock for a refresh. A caller with an old key does not wait for a request that is in flight.
    async fn lock_for_refresh(&self, request: &KeyRequest) -> Option<MutexGuard<'_, ()>> {
        if self.state.load().find(request, self.clock.now()).is_ok() {
            self.refresh_lock.try_lock().ok()
        } else {
            Some(self.refresh_lock.lock().await)
        }
    }

    async fn refresh(&self) {
        let before = self.state.load().keys.clone();
        // Set before the request: one whose caller stops waiting counts all the same.
        let pause = if before.is_some() { REFRESH_INTERVAL } else { FIRST_REFRESH_INTERVAL };
        self.store_state(before, pause);
        match self.fetch_keys().await {
            Ok(keys) => self.store_state(Some(Arc::new(keys)), REFRESH_INTERVAL),
            Err(error) => {
                let issuer = &self.source.issuer;
                tracing::warn!("the keys of {issuer} could not be fetched: {error}");
            }
        }
    }

    fn store_state(&self, keys: Option<Arc<KeySet>>, pause: Duration) {
        let next = self.clock.now().checked_add(pause).ok();
        self.state.store(Arc::new(KeyState { keys, next }));
    }

    async fn fetch_keys(&self) -> Result<KeySet, KeyFetchError> {
        let uri = match &self.source.jwks_url {
            Some(url) => url.clone(),
            None => self.discover().await?,
        };
        let (uri, headers, set) = self.get::<JwkSet>(&uri).await?;
        let keys: Vec<_> = set.keys.into_iter().filter_map(IssuerKey::parse).map(Arc::new).collect();
        if keys.is_empty() {
            return Err(KeyFetchError::Invalid(uri, "it has no key that can be used".to_owned()));
        }
        let age = Duration::from_secs(max_age(&headers));
        let now = self.clock.now();
        Ok(KeySet { keys, fresh_until: now.checked_add(age).unwrap_or(now) })
    }

    async fn discover(&self) -> Result<String, KeyFetchError> {
        let issuer = &self.source.issuer;
        let at = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let (uri, _, found) = self.get::<DiscoveryDocument>(&at).await?;
        if found.issuer != *issuer {
            return Err(KeyFetchError::Invalid(uri, format!("it speaks for another issuer than {issuer}")));
        }
        if self.source.reach == Reach::Public && !found.jwks_uri.starts_with("https://") {
            return Err(KeyFetchError::Invalid(uri, "its keys are not at an https address".to_owned()));
        }
        Ok(found.jwks_uri)
    }

    async fn get<T: for<'a> Deserialize<'a>>(&self, at: &str) -> Result<(Uri, HeaderMap, T), KeyFetchError> {
        let uri: Uri = at.parse().map_err(|_| KeyFetchError::Address(at.to_owned()))?;
        let mut request = FetchRequest::new(Method::GET, uri.clone());
        (request.reach, request.patience) = (self.source.reach, READ_TIMEOUT);
        (request.total, request.limit) = (Some(FETCH_DEADLINE), Some(MAX_KEY_SET_BYTES));
        let answer = self.fetch.fetch(request).await?;
        if answer.status != StatusCode::OK {
            return Err(KeyFetchError::Status(uri, answer.status));
        }
        let body = answer.body.read().await?;
        match serde_json::from_slice(&body) {
            Ok(read) => Ok((uri, answer.headers, read)),
            Err(error) => Err(KeyFetchError::Invalid(uri, error.to_string())),
        }
    }
}

// === impl KeyState ===

impl KeyState {
    fn find(&self, request: &KeyRequest, now: Timestamp) -> Result<CachedIssuerKey, KeyLookupError> {
        let keys =
            self.keys.as_ref().filter(|keys| keys.is_usable_at(now)).ok_or(KeyLookupError::Unreachable)?;
        let mut fitting = keys.keys.iter().filter(|key| key.matches(request));
        let key = fitting.next().ok_or(KeyLookupError::Unknown)?;
        // A token that names no key means the only one there is.
        if request.kid.is_none() && fitting.next().is_some() {
            return Err(KeyLookupError::Unknown);
        }
        Ok(CachedIssuerKey { key: Arc::clone(key), until: keys.fresh_until })
    }
}

// === impl KeySet ===

impl KeySet {
    fn is_usable_at(&self, now: Timestamp) -> bool {
        self.fresh_until.checked_add(STALE_KEYS_GRACE).is_ok_and(|end| now < end)
    }
}

// === impl IssuerKey ===

impl IssuerKey {
    /// Parses a key for verification. Shared secrets are ignored: a party that can verify with one can also sign.
    fn parse(value: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        if jwk.common.public_key_use.as_ref().is_some_and(|purpose| *purpose != PublicKeyUse::Signature) {
            return None;
        }
        let mut algorithms = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => RSA_ALGORITHMS.to_vec(),
            AlgorithmParameters::EllipticCurve(point) => match point.curve {
                EllipticCurve::P256 => vec![Algorithm::ES256],
                EllipticCurve::P384 => vec![Algorithm::ES384],
                _ => return None,
            },
            AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => {
                vec![Algorithm::EdDSA]
            }
            _ => return None,
        };
        if let Some(only) = jwk.common.key_algorithm {
            algorithms.retain(|algorithm| KeyAlgorithm::from(*algorithm) == only);
        }
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        Some(Self { kid: jwk.common.key_id, algorithms, key })
    }

    fn matches(&self, request: &KeyRequest) -> bool {
        self.algorithms.contains(&request.algorithm) && (request.kid.is_none() || self.kid == request.kid)
    }
}

/// Lifetime of a response in seconds, within our own bounds.
fn max_age(headers: &HeaderMap) -> u64 {
    let directives =
        headers.get(header::CACHE_CONTROL).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let words = || directives.split(',').map(str::trim);
    if words().any(|word| word.eq_ignore_ascii_case("no-store") || word.eq_ignore_ascii_case("no-cache")) {
        return MIN_AGE_SECONDS;
    }
    let age = words().find_map(|word| word.strip_prefix("max-age=")?.parse().ok());
    age.unwrap_or(DEFAULT_AGE_SECONDS).clamp(MIN_AGE_SECONDS, MAX_AGE_SECONDS)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_kept_for_as_long_as_is_said_within_bounds() {
        for (directives, seconds) in [
            ("public, max-age=600", 600),
            ("max-age=1", 60),
            ("max-age=99999999", 86_400),
            ("max-age=soon", 300),
            ("no-store, max-age=600", 60),
            ("", 300),
        ] {
            let headers =
                HeaderMap::from_iter([(header::CACHE_CONTROL, HeaderValue::from_static(directives))]);
            assert_eq!(max_age(&headers), seconds, "{directives}");
        }
    }

    #[test]
    fn a_secret_is_no_key() {
        assert!(IssuerKey::parse(json!({ "kty": "oct", "kid": "a", "k": "c2VjcmV0" })).is_none());
        assert!(
            IssuerKey::parse(json!({ "kty": "oct", "kid": "a", "k": "c2VjcmV0", "alg": "HS256" })).is_none()
        );
    }

    #[test]
    fn a_key_is_for_signatures_and_for_its_own_algorithm() {
        let rsa = json!({ "kty": "RSA", "kid": "a", "n": "AQAB", "e": "AQAB" });
        assert_eq!(IssuerKey::parse(rsa.clone()).unwrap().algorithms, RSA_ALGORITHMS);
        let mut only = rsa.clone();
        only["alg"] = json!("PS256");
        assert_eq!(IssuerKey::parse(only).unwrap().algorithms, [Algorithm::PS256]);
        let mut sealing = rsa;
        sealing["use"] = json!("enc");
        assert!(IssuerKey::parse(sealing).is_none());
        assert!(IssuerKey::parse(json!({ "kty": "from the future" })).is_none());
    }
}
