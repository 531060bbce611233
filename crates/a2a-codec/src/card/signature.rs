//! Signed cards: a detached JWS over the card's canonical JSON (RFC 8785), without its `signatures`.
//!
//! A signature may cover less than the whole card (see the schema beside this module), so a valid one comes with the text that it
//! covers. Trust that text, not the card it came with.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{
    Algorithm, DecodingKey, EncodingKey,
    crypto::{sign as sign_bytes, verify as verify_bytes},
    jwk::{AlgorithmParameters, Jwk, JwkSet},
};
use rialto_model::json::{Extra, Json};
use serde_json::{Map, Value, json};

use super::schema;
use crate::object::text_of;

/// Result of verifying a card's signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignatureVerdict {
    /// At least one is valid.
    Verified {
        /// Id of the key, as the signature names it.
        kid: Option<String>,
        /// Signed part of the card.
        covered: String,
    },
    /// None is valid, for this reason.
    Invalid(String),
    /// The card is not signed.
    NoSignature,
}

/// Public keys to verify signatures with.
#[derive(Clone, Debug, Default)]
pub struct VerificationKeys(Vec<VerificationKey>);

/// Private key to sign with.
#[derive(Clone)]
pub struct Signer {
    kid: String,
    algorithm: Algorithm,
    key: EncodingKey,
}

/// Error of an unusable key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Not a key, or not of a supported type.
    #[error("expected an ES256, RS256 or EdDSA key as JWK, JWK set or PEM")]
    Unusable,
    /// The card is not a JSON object.
    #[error("expected a card to sign")]
    NotACard,
    /// The key cannot sign.
    #[error("the card could not be signed")]
    Failed(#[from] jsonwebtoken::errors::Error),
}

#[derive(Clone)]
struct VerificationKey {
    kid: Option<String>,
    algorithms: &'static [Algorithm],
    key: DecodingKey,
}

const EC: &[Algorithm] = &[Algorithm::ES256, Algorithm::ES384];
const RSA: &[Algorithm] = &[
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];
const ED: &[Algorithm] = &[Algorithm::EdDSA];

/// Maximum number of signatures that are verified.
const MAX_SIGNATURES: usize = 16;

/// Verifies a card's signatures. One valid one is enough.
pub fn verify(card: &str, keys: &VerificationKeys) -> SignatureVerdict {
    let Ok(mut members) = serde_json::from_str::<Extra>(card) else {
        return SignatureVerdict::Invalid("the card is not a JSON object".to_owned());
    };
    let signatures = match members.take("signatures").as_ref().map(Json::value) {
        Some(Value::Array(signatures)) if !signatures.is_empty() => signatures,
        None | Some(Value::Null | Value::Array(_)) => return SignatureVerdict::NoSignature,
        Some(_) => return SignatureVerdict::Invalid("the card's signatures are not a list".to_owned()),
    };
    let readings = readings(&members);
    let mut reason = String::new();
    for signature in signatures.iter().take(MAX_SIGNATURES) {
        match check(signature, &readings, keys) {
            Ok((kid, covered)) => return SignatureVerdict::Verified { kid, covered },
            Err(why) => reason = why,
        }
    }
    SignatureVerdict::Invalid(reason)
}

/// Adds a signature to the card, over the members that A2A 1.0 defines.
pub fn sign(card: &str, signer: &Signer) -> Result<String, KeyError> {
    let mut members = serde_json::from_str::<Extra>(card).map_err(|_| KeyError::NotACard)?;
    let mut signatures: Vec<Json> =
        members.take("signatures").map(|list| list.read()).and_then(Result::ok).unwrap_or_default();
    let known = schema::known(Json::encode(&members).value());
    let payload = canonical(schema::filled(known)).ok_or(KeyError::NotACard)?;
    let header = json!({"alg": signer.algorithm, "kid": signer.kid, "typ": "JOSE"});
    let protected = URL_SAFE_NO_PAD.encode(header.to_string());
    let signature = sign_bytes(&signing_input(&protected, &payload), &signer.key, signer.algorithm)?;
    signatures.push(Json::from(json!({"protected": protected, "signature": signature})));
    members.push("signatures", Json::encode(&signatures));
    Ok(text_of(&members))
}

// === impl Keys ===

impl VerificationKeys {
    /// No keys: nothing verifies.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// True without any key.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the key of a JWK, or all usable keys of a JWK set.
    pub fn add_jwk(&mut self, jwk: &str) -> Result<(), KeyError> {
        let keys: Vec<VerificationKey> = match serde_json::from_str::<JwkSet>(jwk) {
            Ok(set) => set.keys.iter().filter_map(VerificationKey::from_jwk).collect(),
            Err(_) => serde_json::from_str(jwk)
                .ok()
                .as_ref()
                .and_then(VerificationKey::from_jwk)
                .into_iter()
                .collect(),
        };
        if keys.is_empty() {
            return Err(KeyError::Unusable);
        }
        self.0.extend(keys);
        Ok(())
    }

    /// Adds the public key of a PEM file, under the key id in signatures.
    pub fn add_pem(&mut self, kid: Option<String>, pem: &[u8]) -> Result<(), KeyError> {
        let (algorithms, key) = DecodingKey::from_ec_pem(pem)
            .map(|key| (EC, key))
            .or_else(|_| DecodingKey::from_rsa_pem(pem).map(|key| (RSA, key)))
            .or_else(|_| DecodingKey::from_ed_pem(pem).map(|key| (ED, key)))
            .map_err(|_| KeyError::Unusable)?;
        self.0.push(VerificationKey { kid, algorithms, key });
        Ok(())
    }
}

// === impl VerificationKey ===

impl VerificationKey {
    fn from_jwk(jwk: &Jwk) -> Option<Self> {
        let algorithms = match jwk.algorithm {
            AlgorithmParameters::EllipticCurve(_) => EC,
            AlgorithmParameters::RSA(_) => RSA,
            AlgorithmParameters::OctetKeyPair(_) => ED,
            _ => return None,
        };
        let key = DecodingKey::from_jwk(jwk).ok()?;
        Some(Self { kid: jwk.common.key_id.clone(), algorithms, key })
    }

    fn answers_to(&self, kid: Option<&str>) -> bool {
        kid.is_none() || self.kid.is_none() || self.kid.as_deref() == kid
    }
}

impl std::fmt::Debug for VerificationKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").field("kid", &self.kid).finish_non_exhaustive()
    }
}

// === impl Signer ===

impl Signer {
    /// Reads the private key of a PEM file (PKCS #8), with the key id for signatures.
    pub fn from_pem(kid: impl Into<String>, pem: &[u8]) -> Result<Self, KeyError> {
        let (algorithm, key) = EncodingKey::from_ec_pem(pem)
            .map(|key| (Algorithm::ES256, key))
            .or_else(|_| EncodingKey::from_rsa_pem(pem).map(|key| (Algorithm::RS256, key)))
            .or_else(|_| EncodingKey::from_ed_pem(pem).map(|key| (Algorithm::EdDSA, key)))
            .map_err(|_| KeyError::Unusable)?;
        Ok(Self { kid: kid.into(), algorithm, key })
    }

    /// Signs a token (JWT) with these claims.
    pub fn token(&self, claims: &Json) -> Result<String, KeyError> {
        let header = json!({ "alg": self.algorithm, "kid": self.kid, "typ": "JWT" });
        let protected = URL_SAFE_NO_PAD.encode(header.to_string());
        let input = signing_input(&protected, claims.get().as_bytes());
        let signature = sign_bytes(&input, &self.key, self.algorithm)?;
        Ok([&*String::from_utf8_lossy(&input), ".", &signature].concat())
    }

    /// Public key as JWK, for verification.
    pub fn public_jwk(&self) -> Result<Json, KeyError> {
        let mut jwk = Jwk::from_encoding_key(&self.key, self.algorithm)?;
        jwk.common.key_id = Some(self.kid.clone());
        Ok(Json::encode(&jwk))
    }
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").field("kid", &self.kid).finish_non_exhaustive()
    }
}

/// Canonical form of what may have been signed: its bytes and its text.
struct SignedReading {
    payload: Vec<u8>,
    covered: String,
}

/// The whole card, the card without empty members, and only the members of 1.0.
fn readings(members: &Extra) -> Vec<SignedReading> {
    let whole = text_of(members);
    let card = Json::encode(members).value();
    let named = schema::filled(schema::known(card.clone()));
    let named_text = named.as_ref().map(Value::to_string).unwrap_or_default();
    let all = [(Some(card.clone()), whole.clone()), (schema::filled(card), whole), (named, named_text)];
    all.into_iter()
        .filter_map(|(value, covered)| Some(SignedReading { payload: canonical(value)?, covered }))
        .collect()
}

fn canonical(value: Option<Value>) -> Option<Vec<u8>> {
    serde_json_canonicalizer::to_vec(&value?).ok()
}

fn signing_input(protected: &str, payload: &[u8]) -> Vec<u8> {
    format!("{protected}.{}", URL_SAFE_NO_PAD.encode(payload)).into_bytes()
}

fn check(
    signature: &Value,
    readings: &[SignedReading],
    keys: &VerificationKeys,
) -> Result<(Option<String>, String), String> {
    let member = |name: &str| signature.get(name).and_then(Value::as_str);
    let (Some(protected), Some(made)) = (member("protected"), member("signature")) else {
        return Err("a signature lacks its protected header or its value".to_owned());
    };
    let header = URL_SAFE_NO_PAD.decode(protected).ok();
    let header: Option<Map<String, Value>> = header.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let Some(header) = header else { return Err("a signature's protected header cannot be read".to_owned()) };
    if header.contains_key("crit") {
        return Err("a signature demands an extension that is not known".to_owned());
    }
    let kid = header.get("kid").and_then(Value::as_str);
    let algorithm: Option<Algorithm> =
        header.get("alg").and_then(|name| serde_json::from_value(name.clone()).ok());
    let Some(algorithm) = algorithm else { return Err("a signature's algorithm is not known".to_owned()) };
    let mut fitting =
        keys.0.iter().filter(|key| key.answers_to(kid) && key.algorithms.contains(&algorithm)).peekable();
    if fitting.peek().is_none() {
        let name = kid.unwrap_or("without a name");
        return Err(format!("no configured key fits the signature made with key {name}"));
    }
    for key in fitting {
        for SignedReading { payload, covered } in readings {
            let input = signing_input(protected, payload);
            if verify_bytes(made, &input, &key.key, algorithm).is_ok_and(|good| good) {
                return Ok((kid.map(str::to_owned), covered.clone()));
            }
        }
    }
    Err("the signature does not match the card".to_owned())
}
