//! Encrypted secrets, and seeds that all processes share.

use jiff::Timestamp;

use super::layer::store_trait;
use crate::{credential::Secret, store::StoreError};

/// A secret that was encrypted. What opens it is kept elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSecret {
    /// Its name; part of what is sealed, so no secret can be passed off as another.
    pub name: String,
    /// Id of the key that decrypts it.
    pub key: String,
    /// Ciphertext with its nonce.
    pub text: Vec<u8>,
    /// When it was set.
    pub set_at: Timestamp,
}

store_trait! {
    /// Encrypted secrets, and seeds that all processes share. Part of every [`Store`](super::Store).
    pub trait SecretStore {
        /// All secrets, sealed, by name.
        async fn secrets(&self) -> Result<Vec<SealedSecret>, StoreError>;

        /// Keeps these secrets, all of them or none, in place of those with the same names.
        async fn put_secrets(&self, secrets: Vec<SealedSecret>) -> Result<u64, StoreError>;

        /// Forgets a secret. Returns the new generation, or none when it was not there.
        async fn remove_secret(&self, name: &str) -> Result<Option<u64>, StoreError>;

        /// The random text that is kept under a name: `fresh`, if there is none yet. Everybody is answered the same for ever, and
        /// it moves no generation.
        async fn seed(&self, name: &str, fresh: &Secret) -> Result<Secret, StoreError>;
    }
}
