//! Where what waits is kept, with its secrets, until it goes on.

use async_trait::async_trait;
use parking_lot::Mutex;
use rialto_model::{credential::Secret, maps::FastMap};

/// Keeps texts that nobody else may read.
#[async_trait]
pub trait Safe: Send + Sync {
    /// Keeps a text under a name.
    async fn put(&self, name: &str, secret: Secret) -> Result<(), SafeError>;

    /// The text of that name.
    async fn get(&self, name: &str) -> Result<Secret, SafeError>;

    /// Forgets it, if it is there.
    async fn forget(&self, name: &str) -> Result<(), SafeError>;
}

/// Why a text could not be kept or had; for the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SafeError(pub String);

/// Keeps them as long as the process lives.
#[derive(Default)]
pub(crate) struct MemorySealedCalls(Mutex<FastMap<String, Secret>>);

#[async_trait]
impl Safe for MemorySealedCalls {
    async fn put(&self, name: &str, secret: Secret) -> Result<(), SafeError> {
        self.0.lock().insert(name.to_owned(), secret);
        Ok(())
    }

    async fn get(&self, name: &str) -> Result<Secret, SafeError> {
        let found = self.0.lock().get(name).cloned();
        found.ok_or_else(|| SafeError("it was kept in the memory of a process that is gone".to_owned()))
    }

    async fn forget(&self, name: &str) -> Result<(), SafeError> {
        self.0.lock().remove(name);
        Ok(())
    }
}
