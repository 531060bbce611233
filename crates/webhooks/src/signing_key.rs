//! Signing key of a webhook.
//!
//! The scheme is that of Standard Webhooks: HMAC-SHA256 over `<id>.<timestamp>.<body>`, so that ready-made libraries verify it, and neither
//! body nor timestamp can be exchanged.

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Prefix of a key in text form.
const KEY_PREFIX: &str = "whsec_";

/// Allowed length of a key in bytes, by the scheme.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Signing key. Its debug output is masked.
#[derive(Clone)]
pub struct SigningKey(Hmac<Sha256>);

/// Error for a text that is no key. It does not contain the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the key must be `whsec_` and 24 to 64 bytes in base64; `rialto webhooks add` makes one when none is named"
)]
pub struct InvalidKey;

// === impl SigningKey ===

impl SigningKey {
    /// Parses a key, with or without its prefix.
    pub fn parse(text: &str) -> Result<Self, InvalidKey> {
        let bytes = STANDARD.decode(text.strip_prefix(KEY_PREFIX).unwrap_or(text)).map_err(|_| InvalidKey)?;
        if !KEY_BYTES.contains(&bytes.len()) {
            return Err(InvalidKey);
        }
        Hmac::new_from_slice(&bytes).map(Self).map_err(|_| InvalidKey)
    }

    /// Text form of a key.
    pub fn encode(bytes: &[u8; 32]) -> String {
        format!("{KEY_PREFIX}{}", STANDARD.encode(bytes))
    }

    /// The value of `webhook-signature`.
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let mut mac = self.0.clone();
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[key]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_the_one_other_libraries_make() {
        // The example of the scheme's own documentation.
        let key = SigningKey::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = key.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_key_that_is_too_short_or_no_base64_is_refused() {
        for text in ["", "whsec_", "whsec_c2hvcnQ=", "hunter2", &format!("whsec_{}", "A".repeat(88))] {
            assert_eq!(SigningKey::parse(text).err(), Some(InvalidKey), "{text}");
        }
        assert!(SigningKey::parse(&SigningKey::encode(&[7; 32])).is_ok());
    }

    #[test]
    fn debug_output_of_a_key_is_masked() {
        assert_eq!(format!("{:?}", SigningKey::parse(&SigningKey::encode(&[7; 32])).unwrap()), "[key]");
    }
}
