//! Tokens of trusted issuers (JWT, RFC 7519; OpenID Connect).
//!
//! Only asymmetric signatures are accepted, because a party that can verify with a shared secret can also sign with it. Only the issuer's
//! own keys count: key addresses in a token are ignored.

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
    AdmittedCaller, AuthError, AuthLookup, Hash,
    config::{Config, IssuerConfig, ReplayPolicy},
    issuer_keys::{CachedIssuerKey, IssuerKeys, KeyLookupError, KeyRequest, KeySource},
    {jwt_replay::UsedTokenIds, verified_tokens::VerifiedTokens},
};
use rialto_http_client::{address::Reach, fetch::Fetch};

/// Maximum number of verified tokens that are remembered.
const MAX_VERIFIED_TOKENS: usize = 10_000;
/// Maximum number of used token ids that are remembered.
const MAX_USED_TOKEN_IDS: usize = 100_000;
/// Allowed clock skew, in seconds.
const LEEWAY_SECONDS: i64 = 60;

/// Trusted issuers, and the tokens of theirs that were verified.
pub struct TrustedIssuers {
    issuers: Vec<TrustedIssuer>,
    verified: VerifiedTokens,
    /// True if callers keep their token, for token exchange.
    keeps_proof: bool,
    clock: Arc<dyn Clock>,
}

/// Invalid configuration of an issuer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the issuer \"{issuer}\" {reason}")]
pub struct IssuerError {
    issuer: String,
    reason: &'static str,
}

/// Reason why a signed token is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JwtError {
    #[error(
        "this token is not signed with RS256, PS256, ES256 or EdDSA (or their longer kin), so it is not taken"
    )]
    Algorithm,
    #[error("this token needs extensions (crit) that are not known here")]
    CriticalExtension,
    #[error("this token's issuer is not trusted here; add it to `[auth] issuers`")]
    TrustedIssuer,
    #[error("this token is signed with a key that its issuer does not have")]
    Key,
    #[error("this token's signature is wrong")]
    Signature,
    #[error("this token is for another audience; ask its issuer for one for this server")]
    Audience,
    #[error("this token expired; get a new one from its issuer")]
    Expired,
    #[error("this token is not valid yet; are the clocks right?")]
    NotYetValid,
    #[error("this token lacks a claim, or has it in another form than it should: {0}")]
    Claim(&'static str),
    #[error("this token was used before; get a new one from its issuer")]
    Reused,
}

struct TrustedIssuer {
    config: IssuerConfig,
    keys: IssuerKeys,
    used_ids: Option<UsedTokenIds>,
}

/// Content of a token before verification.
struct UnverifiedToken<'a> {
    issuer: &'a TrustedIssuer,
    key: KeyRequest,
}

#[derive(Deserialize)]
struct IssuerClaim {
    iss: String,
}

// === impl TrustedIssuers ===

impl TrustedIssuers {
    /// Creates the issuers of `config`. Nothing is fetched yet.
    pub fn new(config: Config, fetch: &Arc<dyn Fetch>, clock: &Arc<dyn Clock>) -> Result<Self, IssuerError> {
        let mut issuers: Vec<TrustedIssuer> = Vec::new();
        for config in config.issuers {
            check_config(&config, &issuers)?;
            let source = KeySource {
                issuer: config.issuer.clone(),
                jwks_url: config.jwks_url.clone(),
                reach: if config.allow_private { Reach::Private } else { Reach::Public },
            };
            let keys = IssuerKeys::new(source, Arc::clone(fetch), Arc::clone(clock));
            let used_ids =
                (config.replay == ReplayPolicy::Refuse).then(|| UsedTokenIds::new(MAX_USED_TOKEN_IDS));
            issuers.push(TrustedIssuer { config, keys, used_ids });
        }
        let keeps_proof = config.exchange_tokens;
        Ok(Self {
            issuers,
            verified: VerifiedTokens::new(MAX_VERIFIED_TOKENS),
            keeps_proof,
            clock: Arc::clone(clock),
        })
    }

    /// True if no issuer is configured.
    pub const fn is_empty(&self) -> bool {
        self.issuers.is_empty()
    }

    /// Addresses of the issuers.
    pub fn addresses(&self) -> impl Iterator<Item = &str> {
        self.issuers.iter().map(|issuer| issuer.config.issuer.as_str())
    }

    /// Verifies `token` without asking its issuer.
    pub(crate) fn find_cached(&self, token: &str, hash: &Hash) -> AuthLookup {
        if let Some(admitted) = self.verified.find(hash, self.clock.now()) {
            return AuthLookup::Done(Ok(self.with_proof(admitted, token)));
        }
        match self.read(token) {
            Err(error) => AuthLookup::Done(Err(error.into())),
            Ok(unverified) => match unverified.issuer.keys.find_cached(&unverified.key) {
                None => AuthLookup::Pending,
                Some(found) => AuthLookup::Done(self.verify(&unverified, token, hash, found)),
            },
        }
    }

    /// Verifies `token`.
    pub(crate) async fn find(&self, token: &str, hash: &Hash) -> Result<AdmittedCaller, AuthError> {
        let unverified = self.read(token)?;
        let found = unverified.issuer.keys.find_or_refresh(&unverified.key).await;
        self.verify(&unverified, token, hash, found)
    }

    fn read(&self, token: &str) -> Result<UnverifiedToken<'_>, JwtError> {
        // A header without a known algorithm cannot be decoded.
        let header = decode_header(token).map_err(|_| JwtError::Algorithm)?;
        if header.crit.is_some() {
            return Err(JwtError::CriticalExtension);
        }
        if matches!(header.alg, Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512) {
            return Err(JwtError::Algorithm);
        }
        let IssuerClaim { iss } = insecure_decode_claims(token).map_err(|_| JwtError::Claim("iss"))?;
        let issuer =
            self.issuers.iter().find(|issuer| issuer.config.issuer == iss).ok_or(JwtError::TrustedIssuer)?;
        Ok(UnverifiedToken { issuer, key: KeyRequest { kid: header.kid, algorithm: header.alg } })
    }

    fn verify(
        &self,
        unverified: &UnverifiedToken<'_>,
        token: &str,
        hash: &Hash,
        found: Result<CachedIssuerKey, KeyLookupError>,
    ) -> Result<AdmittedCaller, AuthError> {
        let found = found.map_err(|none| match none {
            KeyLookupError::Unknown => AuthError::InvalidJwt(JwtError::Key),
            KeyLookupError::Unreachable => AuthError::IssuerUnavailable,
        })?;
        let claims = decode_claims(token, &found, unverified.key.algorithm)?;
        let (issuer, now) = (unverified.issuer, self.clock.now());
        let end = issuer.check(&claims, now)?;
        let admitted = AdmittedCaller { caller: issuer.caller(&claims)?, ends_at: Some(with_leeway(end)) };
        match &issuer.used_ids {
            Some(used_ids) => check_not_reused(used_ids, &claims, end, now)?,
            None => self.verified.remember(hash, admitted.clone(), end.min(found.until)),
        }
        Ok(self.with_proof(admitted, token))
    }

    fn with_proof(&self, mut admitted: AdmittedCaller, token: &str) -> AdmittedCaller {
        admitted.caller.proof = self.keeps_proof.then(|| CallerProof::from(token));
        admitted
    }
}

// === impl TrustedIssuer ===

impl TrustedIssuer {
    /// Checks the claims. Returns the expiry.
    fn check(&self, claims: &Map<String, Value>, now: Timestamp) -> Result<Timestamp, JwtError> {
        if claims.get("iss").and_then(Value::as_str) != Some(&self.config.issuer) {
            return Err(JwtError::TrustedIssuer);
        }
        let is_ours = |value: &Value| value.as_str() == Some(&self.config.audience);
        if !claims
            .get("aud")
            .is_some_and(|aud| is_ours(aud) || aud.as_array().is_some_and(|all| all.iter().any(is_ours)))
        {
            return Err(JwtError::Audience);
        }
        let end = parse_timestamp(claims, "exp")?.ok_or(JwtError::Claim("exp"))?;
        if end.as_second().saturating_add(LEEWAY_SECONDS) <= now.as_second() {
            return Err(JwtError::Expired);
        }
        let start = parse_timestamp(claims, "nbf")?;
        if start.is_some_and(|start| start.as_second() > now.as_second().saturating_add(LEEWAY_SECONDS)) {
            return Err(JwtError::NotYetValid);
        }
        Ok(end)
    }

    fn caller(&self, claims: &Map<String, Value>) -> Result<Caller, JwtError> {
        let config = &self.config;
        let id = text_claim(claims, &config.caller_claim).ok_or(JwtError::Claim("the caller's name"))?;
        let place = |claim: &Option<String>, usual: &str, error| match claim {
            None => Ok(usual.to_owned()),
            Some(claim) => {
                text_claim(claims, claim).filter(|name| is_slug(name)).map(str::to_owned).ok_or(error)
            }
        };
        let org = place(&config.org_claim, "default", JwtError::Claim("the caller's org"))?;
        let project = place(&config.project_claim, "main", JwtError::Claim("the caller's project"))?;
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

fn check_config(config: &IssuerConfig, others: &[TrustedIssuer]) -> Result<(), IssuerError> {
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

fn decode_claims(
    token: &str,
    found: &CachedIssuerKey,
    algorithm: Algorithm,
) -> Result<Map<String, Value>, JwtError> {
    let mut signature_only = Validation::new(algorithm);
    // The claims are ours to check: with our clock, and more strictly.
    signature_only.required_spec_claims.clear();
    (signature_only.validate_exp, signature_only.validate_aud) = (false, false);
    let proven = decode(token, &found.key.key, &signature_only).map_err(|_| JwtError::Signature)?;
    Ok(proven.claims)
}

fn check_not_reused(
    used_ids: &UsedTokenIds,
    claims: &Map<String, Value>,
    end: Timestamp,
    now: Timestamp,
) -> Result<(), JwtError> {
    let name = text_claim(claims, "jti").ok_or(JwtError::Claim("jti"))?;
    let is_first = used_ids.insert_new(Sha256::digest(name.as_bytes()).into(), with_leeway(end), now);
    if is_first { Ok(()) } else { Err(JwtError::Reused) }
}

/// Time from which a token that expires at `end` is refused.
fn with_leeway(end: Timestamp) -> Timestamp {
    Timestamp::from_second(end.as_second().saturating_add(LEEWAY_SECONDS)).unwrap_or(Timestamp::MAX)
}

fn text_claim<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    claims.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Timestamp claim in seconds since 1970, with or without a fraction.
fn parse_timestamp(claims: &Map<String, Value>, name: &'static str) -> Result<Option<Timestamp>, JwtError> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    #[expect(clippy::cast_possible_truncation, reason = "a moment out of range is refused below")]
    let second = value.as_i64().or_else(|| value.as_f64().map(|second| second as i64));
    let moment = second.and_then(|second| Timestamp::from_second(second).ok());
    moment.map(Some).ok_or(JwtError::Claim(name))
}
