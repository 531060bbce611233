//! Seals secrets before they are stored, and opens them again.
//!
//! AES-256 in Galois/Counter Mode with a random nonce before each text. The name of a secret is authenticated with it, so
//! an attacker with write access to the database cannot pass one secret off as another. The key is not kept here: a copy of the
//! database alone opens nothing.

use std::fmt;

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey},
    rand,
};
use jiff::Timestamp;
use rialto_model::{credential::Secret, store::SealedSecret};
use sha2::{Digest, Sha256};

/// Length of a key in bytes.
const KEY_BYTES: usize = 32;

/// A key that secrets are sealed with.
pub struct Key {
    id: String,
    /// In hex, which is also how it is written down.
    text: Secret,
    cipher: RandomizedNonceKey,
}

/// Why a secret was not sealed or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    /// It is not a key.
    #[error("a key is {} hexadecimal digits", 2 * KEY_BYTES)]
    NotAKey,
    /// It was sealed with another key.
    #[error("it was sealed with another key")]
    OtherKey,
    /// It is not what was sealed.
    #[error("it is not what was sealed under this name")]
    Broken,
    /// There is no randomness to be had.
    #[error("the system gives no random numbers")]
    NoRandomness,
}

// === impl Key ===

impl Key {
    /// A new one.
    pub fn fresh() -> Result<Self, VaultError> {
        let mut bytes = [0_u8; KEY_BYTES];
        rand::fill(&mut bytes).map_err(|_| VaultError::NoRandomness)?;
        Self::of(&bytes)
    }

    /// The one that is written like this.
    pub fn parse(text: &Secret) -> Result<Self, VaultError> {
        let digits = text.expose().trim().as_bytes();
        let (pairs, rest) = digits.as_chunks::<2>();
        if pairs.len() != KEY_BYTES || !rest.is_empty() {
            return Err(VaultError::NotAKey);
        }
        let mut bytes = [0_u8; KEY_BYTES];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            let digit = |letter: u8| char::from(letter).to_digit(16).ok_or(VaultError::NotAKey);
            *byte = u8::try_from(digit(*high)? * 16 + digit(*low)?).map_err(|_| VaultError::NotAKey)?;
        }
        Self::of(&bytes)
    }

    fn of(bytes: &[u8; KEY_BYTES]) -> Result<Self, VaultError> {
        let cipher = RandomizedNonceKey::new(&AES_256_GCM, bytes).map_err(|_| VaultError::NotAKey)?;
        // A hash of the key says nothing about it, and tells two of them apart.
        let id = hex(&Sha256::digest([b"rialto secret key".as_slice(), bytes].concat())[..8]);
        Ok(Self { id, text: Secret::from(hex(bytes)), cipher })
    }

    /// Tells keys apart.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The key itself, to be written down.
    pub const fn text(&self) -> &Secret {
        &self.text
    }

    /// Seals a secret under a name.
    pub fn seal(&self, name: &str, secret: &Secret, now: Timestamp) -> Result<SealedSecret, VaultError> {
        let mut text = secret.expose().as_bytes().to_vec();
        let nonce = self
            .cipher
            .seal_in_place_append_tag(Aad::from(name.as_bytes()), &mut text)
            .map_err(|_| VaultError::NoRandomness)?;
        text.splice(..0, nonce.as_ref().iter().copied());
        Ok(SealedSecret { name: name.to_owned(), key: self.id.clone(), text, set_at: now })
    }

    /// Opens a secret.
    pub fn open(&self, sealed: &SealedSecret) -> Result<Secret, VaultError> {
        if sealed.key != self.id {
            return Err(VaultError::OtherKey);
        }
        let (nonce, text) = sealed.text.split_at_checked(NONCE_LEN).ok_or(VaultError::Broken)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| VaultError::Broken)?;
        let mut text = text.to_vec();
        let aad = Aad::from(sealed.name.as_bytes());
        let opened = self.cipher.open_in_place(nonce, aad, &mut text).map_err(|_| VaultError::Broken)?.len();
        text.truncate(opened);
        String::from_utf8(text).map(Secret::from).map_err(|_| VaultError::Broken)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.id)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(key: &Key, name: &str) -> SealedSecret {
        key.seal(name, &Secret::from("hunter2"), Timestamp::UNIX_EPOCH).unwrap()
    }

    #[test]
    fn what_was_sealed_can_be_opened_and_does_not_show() {
        let key = Key::fresh().unwrap();
        let (one, two) = (sealed(&key, "desk"), sealed(&key, "desk"));
        assert_eq!(key.open(&one).unwrap().expose(), "hunter2");
        assert!(!one.text.windows(7).any(|part| part == b"hunter2"));
        assert_ne!(one.text, two.text, "no nonce is used twice");
    }

    #[test]
    fn a_key_is_the_same_after_it_was_written_down() {
        let key = Key::fresh().unwrap();
        let again = Key::parse(&Secret::from(format!("{}\n", key.text().expose()))).unwrap();
        assert_eq!(again.open(&sealed(&key, "desk")).unwrap().expose(), "hunter2");
        assert!(!format!("{key:?}").contains(key.text().expose()));
        for wrong in ["", "abc", &"g".repeat(64), &"a".repeat(63), &"a".repeat(66)] {
            assert_eq!(Key::parse(&Secret::from(wrong)).unwrap_err(), VaultError::NotAKey, "{wrong}");
        }
    }

    #[test]
    fn nothing_else_can_be_passed_off_as_a_secret() {
        let key = Key::fresh().unwrap();
        let renamed = SealedSecret { name: "other".into(), ..sealed(&key, "desk") };
        assert_eq!(key.open(&renamed).unwrap_err(), VaultError::Broken);
        let mut bent = sealed(&key, "desk");
        bent.text[NONCE_LEN] ^= 1;
        assert_eq!(key.open(&bent).unwrap_err(), VaultError::Broken);
        let short = SealedSecret { text: vec![1, 2], ..sealed(&key, "desk") };
        assert_eq!(key.open(&short).unwrap_err(), VaultError::Broken);
        let other = sealed(&Key::fresh().unwrap(), "desk");
        assert_eq!(key.open(&other).unwrap_err(), VaultError::OtherKey);
        let forged = SealedSecret { key: key.id().to_owned(), ..other };
        assert_eq!(key.open(&forged).unwrap_err(), VaultError::Broken);
    }
}
