//! Secrets in the store, and the file with the key that encrypts them.
//!
//! [`Vault`] reads, writes and re-encrypts secrets; the store holds nothing but their encrypted texts. [`private_files`] makes files and
//! folders that only their owner can read, as that of the key is.

pub mod private_files;
mod vault;

pub use self::vault::{SecretKeyLocation, SecretsError, Vault};
