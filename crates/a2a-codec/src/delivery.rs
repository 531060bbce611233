//! Signed push notifications: a token (JWT) that is sent with a body and holds its SHA-256, as A2A 0.1 made them.
//!
//! A receiver verifies it with the sender's public keys, compares the hash with that of the received bytes, rejects old ones (`iat`),
//! and accepts each `jti` once.

use rialto_model::json::Json;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::card::signature::{KeyError, Signer};

/// Header of the token where `Authorization` is used by the receiver's own scheme.
pub const HEADER: &str = "x-a2a-signature";

/// Token for a body. `id` must be unique.
pub fn token(signer: &Signer, id: &str, at_seconds: i64, body: &[u8]) -> Result<String, KeyError> {
    let hash: String = Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect();
    signer.token(&Json::encode(&json!({ "iat": at_seconds, "jti": id, "request_body_sha256": hash })))
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    use jsonwebtoken::{Algorithm, DecodingKey, crypto::verify};
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_token_names_its_body_and_is_checked_with_the_public_key() {
        let signer = Signer::from_pem("ours", include_bytes!("../testdata/es256.pem")).unwrap();
        let token = token(&signer, "id-1", 1_700_000_000, b"{\"a\":1}").unwrap();
        let (input, signature) = token.rsplit_once('.').unwrap();
        let key = DecodingKey::from_ec_pem(include_bytes!("../testdata/es256.pub.pem")).unwrap();
        assert!(verify(signature, input.as_bytes(), &key, Algorithm::ES256).unwrap());
        let part = |n: usize| -> Value {
            let part = input.split('.').nth(n).unwrap();
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
        };
        assert_eq!(part(0), json!({ "alg": "ES256", "kid": "ours", "typ": "JWT" }));
        let hash = "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862";
        assert_eq!(part(1), json!({ "iat": 1_700_000_000, "jti": "id-1", "request_body_sha256": hash }));
    }
}
