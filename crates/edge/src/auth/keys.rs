//! The keys that an issuer signs with (a JWK set, RFC 7517).
//!
//! They are fetched when they are needed for the first time, again when they are old, and again when a token names one
//! that is not among them: issuers change their keys. Whoever makes up names of keys cannot make us ask the issuer more
//! than twice a minute, and nobody asks while somebody else does. While the issuer does not answer, old keys serve on for
//! an hour.

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

use crate::{
    address::Reach,
    fetch::{Fetch, FetchError, Request},
};

/// How often an issuer is asked at most, once it has answered.
const PAUSE: Duration = Duration::from_secs(30);
/// How often while it never has.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// How long keys are good when the issuer does not say.
const USUAL_AGE: u64 = 300;
const SHORTEST_AGE: u64 = 60;
const LONGEST_AGE: u64 = 24 * 60 * 60;
/// How long keys serve on while the issuer does not answer.
const GRACE: Duration = Duration::from_secs(60 * 60);
/// How long the issuer may take for one answer, and for one piece of it.
const DEADLINE: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(5);
/// A set of keys is small.
const MAX_BYTES: usize = 1024 * 1024;

const RSA: &[Algorithm] = &[
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

/// The keys of one issuer.
pub(crate) struct Keyring {
    place: Place,
    fetch: Arc<dyn Fetch>,
    clock: Arc<dyn Clock>,
    state: ArcSwap<State>,
    /// One asks the issuer, the others wait for it or use what there is.
    turn: Mutex<()>,
}

/// Where an issuer's keys are.
pub(crate) struct Place {
    pub(crate) issuer: String,
    pub(crate) jwks_url: Option<String>,
    pub(crate) reach: Reach,
}

/// Which key a token wants.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) kid: Option<String>,
    pub(crate) algorithm: Algorithm,
}

/// A key, and how long what it proves may be relied on without a look at the keys.
#[derive(Clone)]
pub(crate) struct Found {
    pub(crate) key: Arc<Key>,
    pub(crate) until: Timestamp,
}

/// One key.
pub(crate) struct Key {
    kid: Option<String>,
    algorithms: Vec<Algorithm>,
    pub(crate) key: DecodingKey,
}

/// Why there is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoKey {
    /// The issuer has none of that name, for that algorithm.
    Unknown,
    /// The issuer has never answered, or not for too long.
    Unreachable,
}

/// Why the keys were not fetched.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("{0}")]
    Fetch(#[from] FetchError),
    #[error("{0} is not an address that can be called")]
    Address(String),
    #[error("{0} answered {1}")]
    Status(Uri, StatusCode),
    #[error("{0} is not what it should be: {1}")]
    Garbled(Uri, String),
}

#[derive(Default)]
struct State {
    keys: Option<Arc<Keys>>,
    /// Before this moment the issuer is left alone.
    next: Option<Timestamp>,
}

struct Keys {
    keys: Vec<Arc<Key>>,
    fresh_until: Timestamp,
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

// === impl Keyring ===

impl Keyring {
    pub(crate) fn new(place: Place, fetch: Arc<dyn Fetch>, clock: Arc<dyn Clock>) -> Self {
        Self { place, fetch, clock, state: ArcSwap::default(), turn: Mutex::default() }
    }

    /// The key, or that there is none; nothing if the issuer should be asked first, or is being asked.
    pub(crate) fn look(&self, wanted: &Wanted) -> Option<Result<Found, NoKey>> {
        // Looked at first: if nobody asks now, then the answer to whoever has asked is in the state.
        let is_asked = self.turn.try_lock().is_err();
        self.settled(wanted).filter(|known| known.is_ok() || !is_asked)
    }

    /// The key, after asking the issuer if that may help.
    pub(crate) async fn find(&self, wanted: &Wanted) -> Result<Found, NoKey> {
        if let Some(_turn) = self.turn(wanted).await
            && self.settled(wanted).is_none()
        {
            self.refresh().await;
        }
        self.state.load().find(wanted, self.clock.now())
    }

    /// What there is to say without asking: there is a key that is not old, or the issuer is to be left alone.
    fn settled(&self, wanted: &Wanted) -> Option<Result<Found, NoKey>> {
        let (state, now) = (self.state.load(), self.clock.now());
        let known = state.find(wanted, now);
        let is_fresh = known.as_ref().is_ok_and(|found| now < found.until);
        let is_quiet = state.next.is_some_and(|next| now < next);
        (is_fresh || is_quiet).then_some(known)
    }

    /// Whoever has an old key at hand does not wait for a new one that somebody else already asks for.
    async fn turn(&self, wanted: &Wanted) -> Option<MutexGuard<'_, ()>> {
        if self.state.load().find(wanted, self.clock.now()).is_ok() {
            self.turn.try_lock().ok()
        } else {
            Some(self.turn.lock().await)
        }
    }

    async fn refresh(&self) {
        let before = self.state.load().keys.clone();
        // Said before it is asked: whoever gives up waiting has asked all the same.
        let pause = if before.is_some() { PAUSE } else { FIRST_PAUSE };
        self.put(before, pause);
        match self.fetch_keys().await {
            Ok(keys) => self.put(Some(Arc::new(keys)), PAUSE),
            Err(trouble) => {
                let issuer = &self.place.issuer;
                tracing::warn!("the keys of {issuer} could not be fetched: {trouble}");
            }
        }
    }

    fn put(&self, keys: Option<Arc<Keys>>, pause: Duration) {
        let next = self.clock.now().checked_add(pause).ok();
        self.state.store(Arc::new(State { keys, next }));
    }

    async fn fetch_keys(&self) -> Result<Keys, Trouble> {
        let uri = match &self.place.jwks_url {
            Some(url) => url.clone(),
            None => self.discover().await?,
        };
        let (uri, headers, set) = self.get::<Set>(&uri).await?;
        let keys: Vec<_> = set.keys.into_iter().filter_map(Key::read).map(Arc::new).collect();
        if keys.is_empty() {
            return Err(Trouble::Garbled(uri, "it has no key that can be used".to_owned()));
        }
        let age = Duration::from_secs(max_age(&headers));
        let now = self.clock.now();
        Ok(Keys { keys, fresh_until: now.checked_add(age).unwrap_or(now) })
    }

    async fn discover(&self) -> Result<String, Trouble> {
        let issuer = &self.place.issuer;
        let at = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let (uri, _, found) = self.get::<Discovery>(&at).await?;
        if found.issuer != *issuer {
            return Err(Trouble::Garbled(uri, format!("it speaks for another issuer than {issuer}")));
        }
        if self.place.reach == Reach::Public && !found.jwks_uri.starts_with("https://") {
            return Err(Trouble::Garbled(uri, "its keys are not at an https address".to_owned()));
        }
        Ok(found.jwks_uri)
    }

    async fn get<T: for<'a> Deserialize<'a>>(&self, at: &str) -> Result<(Uri, HeaderMap, T), Trouble> {
        let uri: Uri = at.parse().map_err(|_| Trouble::Address(at.to_owned()))?;
        let mut request = Request::new(Method::GET, uri.clone());
        (request.reach, request.patience) = (self.place.reach, PATIENCE);
        (request.total, request.limit) = (Some(DEADLINE), Some(MAX_BYTES));
        let answer = self.fetch.fetch(request).await?;
        if answer.status != StatusCode::OK {
            return Err(Trouble::Status(uri, answer.status));
        }
        let body = answer.body.read().await?;
        match serde_json::from_slice(&body) {
            Ok(read) => Ok((uri, answer.headers, read)),
            Err(error) => Err(Trouble::Garbled(uri, error.to_string())),
        }
    }
}

// === impl State ===

impl State {
    fn find(&self, wanted: &Wanted, now: Timestamp) -> Result<Found, NoKey> {
        let keys = self.keys.as_ref().filter(|keys| keys.serve_at(now)).ok_or(NoKey::Unreachable)?;
        let mut fitting = keys.keys.iter().filter(|key| key.fits(wanted));
        let key = fitting.next().ok_or(NoKey::Unknown)?;
        // A token that names no key means the only one there is.
        if wanted.kid.is_none() && fitting.next().is_some() {
            return Err(NoKey::Unknown);
        }
        Ok(Found { key: Arc::clone(key), until: keys.fresh_until })
    }
}

// === impl Keys ===

impl Keys {
    fn serve_at(&self, now: Timestamp) -> bool {
        self.fresh_until.checked_add(GRACE).is_ok_and(|end| now < end)
    }
}

// === impl Key ===

impl Key {
    /// A key that signatures can be checked with. Secrets are no such keys: whoever can check with one can also sign.
    fn read(value: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        if jwk.common.public_key_use.as_ref().is_some_and(|purpose| *purpose != PublicKeyUse::Signature) {
            return None;
        }
        let mut algorithms = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => RSA.to_vec(),
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

    fn fits(&self, wanted: &Wanted) -> bool {
        self.algorithms.contains(&wanted.algorithm) && (wanted.kid.is_none() || self.kid == wanted.kid)
    }
}

/// How long an answer may be kept, in seconds, within our own bounds.
fn max_age(headers: &HeaderMap) -> u64 {
    let said = headers.get(header::CACHE_CONTROL).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let words = || said.split(',').map(str::trim);
    if words().any(|word| word.eq_ignore_ascii_case("no-store") || word.eq_ignore_ascii_case("no-cache")) {
        return SHORTEST_AGE;
    }
    let age = words().find_map(|word| word.strip_prefix("max-age=")?.parse().ok());
    age.unwrap_or(USUAL_AGE).clamp(SHORTEST_AGE, LONGEST_AGE)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_kept_for_as_long_as_is_said_within_bounds() {
        for (said, seconds) in [
            ("public, max-age=600", 600),
            ("max-age=1", 60),
            ("max-age=99999999", 86_400),
            ("max-age=soon", 300),
            ("no-store, max-age=600", 60),
            ("", 300),
        ] {
            let headers = HeaderMap::from_iter([(header::CACHE_CONTROL, HeaderValue::from_static(said))]);
            assert_eq!(max_age(&headers), seconds, "{said}");
        }
    }

    #[test]
    fn a_secret_is_no_key() {
        assert!(Key::read(json!({ "kty": "oct", "kid": "a", "k": "c2VjcmV0" })).is_none());
        assert!(Key::read(json!({ "kty": "oct", "kid": "a", "k": "c2VjcmV0", "alg": "HS256" })).is_none());
    }

    #[test]
    fn a_key_is_for_signatures_and_for_its_own_algorithm() {
        let rsa = json!({ "kty": "RSA", "kid": "a", "n": "AQAB", "e": "AQAB" });
        assert_eq!(Key::read(rsa.clone()).unwrap().algorithms, RSA);
        let mut only = rsa.clone();
        only["alg"] = json!("PS256");
        assert_eq!(Key::read(only).unwrap().algorithms, [Algorithm::PS256]);
        let mut sealing = rsa;
        sealing["use"] = json!("enc");
        assert!(Key::read(sealing).is_none());
        assert!(Key::read(json!({ "kty": "from the future" })).is_none());
    }
}
