//! The key a webhook's events are signed with.
//!
//! The scheme is that of Standard Webhooks: HMAC-SHA256 over `<id>.<timestamp>.<body>`, so that the ready-made libraries
//! of receivers verify it, and neither a body nor a moment can be exchanged.

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What a key begins with when it is written down.
const PREFIX: &str = "whsec_";

/// How many bytes a key has, as the scheme wants it.
const LENGTH: std::ops::RangeInclusive<usize> = 24..=64;

/// A key. It is never shown.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

/// Why a text is no key. It does not say what the text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the key must be `whsec_` and 24 to 64 bytes in base64; `rialto webhooks add` makes one when none is named"
)]
pub struct NotAKey;

// === impl Key ===

impl Key {
    /// Reads a key as it is written down, with or without its prefix.
    pub fn parse(text: &str) -> Result<Self, NotAKey> {
        let bytes = STANDARD.decode(text.strip_prefix(PREFIX).unwrap_or(text)).map_err(|_| NotAKey)?;
        if !LENGTH.contains(&bytes.len()) {
            return Err(NotAKey);
        }
        Hmac::new_from_slice(&bytes).map(Self).map_err(|_| NotAKey)
    }

    /// How a key of these bytes is written down.
    pub fn text(bytes: &[u8; 32]) -> String {
        format!("{PREFIX}{}", STANDARD.encode(bytes))
    }

    /// The value of `webhook-signature`.
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let mut mac = self.0.clone();
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl std::fmt::Debug for Key {
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
        let key = Key::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = key.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_key_that_is_too_short_or_no_base64_is_refused() {
        for text in ["", "whsec_", "whsec_c2hvcnQ=", "hunter2", &format!("whsec_{}", "A".repeat(88))] {
            assert_eq!(Key::parse(text).err(), Some(NotAKey), "{text}");
        }
        assert!(Key::parse(&Key::text(&[7; 32])).is_ok());
    }

    #[test]
    fn a_key_is_never_shown() {
        assert_eq!(format!("{:?}", Key::parse(&Key::text(&[7; 32])).unwrap()), "[key]");
    }
}
