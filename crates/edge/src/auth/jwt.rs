//! Tokens that others have signed (JWT, RFC 7519; OpenID Connect).
//!
//! Only signatures of a key pair count, because whoever can check a shared secret can also sign with it. The issuer's own
//! keys are the only ones: what a token says about where keys are is not looked at.

use std::sync::Arc;

use jsonwebtoken::{Algorithm, Validation, dangerous::insecure_decode_claims, decode, decode_header};
use rialto_model::{
    call::{Caller, CallerId},
    clock::{Clock, Timestamp},
    credential::CallerProof,
    ids::{OrgId, ProjectId, Scope, is_slug},
    token_scopes::TokenScopes,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{
    Admitted, Answer, Denial, Hash,
    config::{Config, IssuerConfig, Replay},
    keys::{Found, Keyring, NoKey, Place, Wanted},
    seen::{Once, Seen},
};
use crate::{address::Reach, fetch::Fetch};

/// How many good tokens are remembered.
const MAX_SEEN: usize = 10_000;
/// How many names of tokens are remembered that must not come twice.
const MAX_NAMES: usize = 100_000;
/// How far clocks may differ, in seconds.
const LEEWAY: i64 = 60;

/// Those whose tokens are taken.
pub struct Issuers {
    issuers: Vec<Issuer>,
    seen: Seen,
    /// Whether callers bring their tokens along.
    hands_on: bool,
    clock: Arc<dyn Clock>,
}

/// Why an issuer cannot be trusted as it is written down.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the issuer \"{issuer}\" {reason}")]
pub struct IssuerError {
    issuer: String,
    reason: &'static str,
}

/// What is wrong with a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Flaw {
    #[error(
        "this token is not signed with RS256, PS256, ES256 or EdDSA (or their longer kin), so it is not taken"
    )]
    Algorithm,
    #[error("this token needs extensions (crit) that are not known here")]
    Critical,
    #[error("this token's issuer is not trusted here; add it to `[auth] issuers`")]
    Issuer,
    #[error("this token is signed with a key that its issuer does not have")]
    Key,
    #[error("this token's signature is wrong")]
    Signature,
    #[error("this token is for another audience; ask its issuer for one for this server")]
    Audience,
    #[error("this token expired; get a new one from its issuer")]
    Expired,
    #[error("this token is not valid yet; are the clocks right?")]
    Early,
    #[error("this token lacks a claim, or has it in another form than it should: {0}")]
    Claim(&'static str),
    #[error("this token was used before; get a new one from its issuer")]
    Used,
}

struct Issuer {
    config: IssuerConfig,
    keys: Keyring,
    once: Option<Once>,
}

/// What a token says about itself, before anything is proven.
struct Said<'a> {
    issuer: &'a Issuer,
    wanted: Wanted,
}

#[derive(Deserialize)]
struct Peek {
    iss: String,
}

// === impl Issuers ===

impl Issuers {
    /// Those of `config`. Nothing is fetched yet.
    pub fn new(config: Config, fetch: &Arc<dyn Fetch>, clock: &Arc<dyn Clock>) -> Result<Self, IssuerError> {
        let mut issuers: Vec<Issuer> = Vec::new();
        for config in config.issuers {
            check(&config, &issuers)?;
            let place = Place {
                issuer: config.issuer.clone(),
                jwks_url: config.jwks_url.clone(),
                reach: if config.allow_private { Reach::Private } else { Reach::Public },
            };
            let keys = Keyring::new(place, Arc::clone(fetch), Arc::clone(clock));
            let once = (config.replay == Replay::Refuse).then(|| Once::new(MAX_NAMES));
            issuers.push(Issuer { config, keys, once });
        }
        let hands_on = config.exchange_tokens;
        Ok(Self { issuers, seen: Seen::new(MAX_SEEN), hands_on, clock: Arc::clone(clock) })
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.issuers.is_empty()
    }

    /// Their addresses.
    pub fn addresses(&self) -> impl Iterator<Item = &str> {
        self.issuers.iter().map(|issuer| issuer.config.issuer.as_str())
    }

    /// Who comes with `token`, if that can be said without asking its issuer.
    pub(crate) fn look(&self, token: &str, hash: &Hash) -> Answer {
        if let Some(admitted) = self.seen.caller(hash, self.clock.now()) {
            return Answer::Known(Ok(self.with_proof(admitted, token)));
        }
        match self.read(token) {
            Err(flaw) => Answer::Known(Err(flaw.into())),
            Ok(said) => match said.issuer.keys.look(&said.wanted) {
                None => Answer::Wait,
                Some(found) => Answer::Known(self.prove(&said, token, hash, found)),
            },
        }
    }

    /// Who comes with `token`.
    pub(crate) async fn find(&self, token: &str, hash: &Hash) -> Result<Admitted, Denial> {
        let said = self.read(token)?;
        let found = said.issuer.keys.find(&said.wanted).await;
        self.prove(&said, token, hash, found)
    }

    fn read(&self, token: &str) -> Result<Said<'_>, Flaw> {
        // Whatever else its header says, one that names no algorithm we know cannot be read.
        let header = decode_header(token).map_err(|_| Flaw::Algorithm)?;
        if header.crit.is_some() {
            return Err(Flaw::Critical);
        }
        if matches!(header.alg, Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512) {
            return Err(Flaw::Algorithm);
        }
        let Peek { iss } = insecure_decode_claims(token).map_err(|_| Flaw::Claim("iss"))?;
        let issuer = self.issuers.iter().find(|issuer| issuer.config.issuer == iss).ok_or(Flaw::Issuer)?;
        Ok(Said { issuer, wanted: Wanted { kid: header.kid, algorithm: header.alg } })
    }

    fn prove(
        &self,
        said: &Said<'_>,
        token: &str,
        hash: &Hash,
        found: Result<Found, NoKey>,
    ) -> Result<Admitted, Denial> {
        let found = found.map_err(|none| match none {
            NoKey::Unknown => Denial::Flawed(Flaw::Key),
            NoKey::Unreachable => Denial::NoKeys,
        })?;
        let claims = signed_claims(token, &found, said.wanted.algorithm)?;
        let (issuer, now) = (said.issuer, self.clock.now());
        let end = issuer.check(&claims, now)?;
        let admitted = Admitted { caller: issuer.caller(&claims)?, ends_at: Some(with_leeway(end)) };
        match &issuer.once {
            Some(once) => is_first(once, &claims, end, now)?,
            None => self.seen.remember(hash, admitted.clone(), end.min(found.until)),
        }
        Ok(self.with_proof(admitted, token))
    }

    fn with_proof(&self, mut admitted: Admitted, token: &str) -> Admitted {
        admitted.caller.proof = self.hands_on.then(|| CallerProof::from(token));
        admitted
    }
}

// === impl Issuer ===

impl Issuer {
    /// Whether a token is meant for us, now. Answers when it expires.
    fn check(&self, claims: &Map<String, Value>, now: Timestamp) -> Result<Timestamp, Flaw> {
        if claims.get("iss").and_then(Value::as_str) != Some(&self.config.issuer) {
            return Err(Flaw::Issuer);
        }
        let is_ours = |value: &Value| value.as_str() == Some(&self.config.audience);
        if !claims
            .get("aud")
            .is_some_and(|aud| is_ours(aud) || aud.as_array().is_some_and(|all| all.iter().any(is_ours)))
        {
            return Err(Flaw::Audience);
        }
        let end = moment(claims, "exp")?.ok_or(Flaw::Claim("exp"))?;
        if end.as_second().saturating_add(LEEWAY) <= now.as_second() {
            return Err(Flaw::Expired);
        }
        let start = moment(claims, "nbf")?;
        if start.is_some_and(|start| start.as_second() > now.as_second().saturating_add(LEEWAY)) {
            return Err(Flaw::Early);
        }
        Ok(end)
    }

    fn caller(&self, claims: &Map<String, Value>) -> Result<Caller, Flaw> {
        let config = &self.config;
        let id = text(claims, &config.caller_claim).ok_or(Flaw::Claim("the caller's name"))?;
        let place = |claim: &Option<String>, usual: &str, flaw| match claim {
            None => Ok(usual.to_owned()),
            Some(claim) => text(claims, claim).filter(|name| is_slug(name)).map(str::to_owned).ok_or(flaw),
        };
        let org = place(&config.org_claim, "default", Flaw::Claim("the caller's org"))?;
        let project = place(&config.project_claim, "main", Flaw::Claim("the caller's project"))?;
        Ok(Caller {
            scope: Scope { org: OrgId::from(org), project: ProjectId::from(project) },
            kind: config.kind.into(),
            id: CallerId::from(format!("{}{id}", config.caller_prefix)),
            rights: self.rights(claims),
            token: None,
            proof: None,
            hops: 0,
        })
    }

    fn rights(&self, claims: &Map<String, Value>) -> TokenScopes {
        match claims.get(&self.config.scope_claim) {
            None => TokenScopes::parse_known(&self.config.default_scope),
            Some(Value::String(words)) => TokenScopes::parse_known(words),
            Some(Value::Array(words)) => TokenScopes::from_scopes(
                words.iter().filter_map(Value::as_str).filter_map(|word| word.parse().ok()),
            ),
            Some(_) => TokenScopes::NONE,
        }
    }
}

fn check(config: &IssuerConfig, others: &[Issuer]) -> Result<(), IssuerError> {
    let refuse = |reason| Err(IssuerError { issuer: config.issuer.clone(), reason });
    let is_safe =
        |url: &str| url.starts_with("https://") || (config.allow_private && url.starts_with("http://"));
    if !is_safe(&config.issuer) || !config.jwks_url.as_deref().is_none_or(is_safe) {
        return refuse("and its `jwks_url` must be https addresses (http only with `allow_private = true`)");
    }
    if config.audience.is_empty() {
        return refuse("needs an `audience`; without one, tokens for any other service would open this one");
    }
    if config.caller_claim.is_empty() {
        return refuse("needs a `caller_claim`, the claim with the caller's name");
    }
    if config.default_scope.parse::<TokenScopes>().is_err() {
        return refuse("has a `default_scope` with other words than call, discover and admin");
    }
    if others.iter().any(|other| other.config.issuer == config.issuer) {
        return refuse("is there twice; name it once");
    }
    Ok(())
}

fn signed_claims(token: &str, found: &Found, algorithm: Algorithm) -> Result<Map<String, Value>, Flaw> {
    let mut signature_only = Validation::new(algorithm);
    // The claims are ours to check: with our clock, and more strictly.
    signature_only.required_spec_claims.clear();
    (signature_only.validate_exp, signature_only.validate_aud) = (false, false);
    let proven = decode(token, &found.key.key, &signature_only).map_err(|_| Flaw::Signature)?;
    Ok(proven.claims)
}

fn is_first(once: &Once, claims: &Map<String, Value>, end: Timestamp, now: Timestamp) -> Result<(), Flaw> {
    let name = text(claims, "jti").ok_or(Flaw::Claim("jti"))?;
    let is_first = once.is_first(Sha256::digest(name.as_bytes()).into(), with_leeway(end), now);
    if is_first { Ok(()) } else { Err(Flaw::Used) }
}

/// The moment from which a token that ends at `end` is refused.
fn with_leeway(end: Timestamp) -> Timestamp {
    Timestamp::from_second(end.as_second().saturating_add(LEEWAY)).unwrap_or(Timestamp::MAX)
}

fn text<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    claims.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// A moment in seconds since 1970, with or without a fraction.
fn moment(claims: &Map<String, Value>, name: &'static str) -> Result<Option<Timestamp>, Flaw> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    #[expect(clippy::cast_possible_truncation, reason = "a moment out of range is refused below")]
    let second = value.as_i64().or_else(|| value.as_f64().map(|second| second as i64));
    let moment = second.and_then(|second| Timestamp::from_second(second).ok());
    moment.map(Some).ok_or(Flaw::Claim(name))
}
