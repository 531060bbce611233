//! Store of sealed calls, with their secrets, until they are resumed.

use async_trait::async_trait;
use parking_lot::Mutex;
use rialto_model::{credential::Secret, maps::FastMap};

/// Encrypted store of sealed calls.
#[async_trait]
pub trait SealedCallStore: Send + Sync {
    /// Stores a text under a name.
    async fn put(&self, name: &str, secret: Secret) -> Result<(), SealedCallError>;

    /// The text of that name.
    async fn get(&self, name: &str) -> Result<Secret, SealedCallError>;

    /// Removes it, if it is there.
    async fn forget(&self, name: &str) -> Result<(), SealedCallError>;
}

/// Reason why a sealed call could not be stored or read; for the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SealedCallError(pub String);

/// Store of sealed calls in memory, for as long as the process lives.
#[derive(Default)]
pub(crate) struct MemorySealedCalls(Mutex<FastMap<String, Secret>>);

#[async_trait]
impl SealedCallStore for MemorySealedCalls {
    async fn put(&self, name: &str, secret: Secret) -> Result<(), SealedCallError> {
        self.0.lock().insert(name.to_owned(), secret);
        Ok(())
    }

    async fn get(&self, name: &str) -> Result<Secret, SealedCallError> {
        let found = self.0.lock().get(name).cloned();
        found.ok_or_else(|| SealedCallError("it was kept in the memory of a process that is gone".to_owned()))
    }

    async fn forget(&self, name: &str) -> Result<(), SealedCallError> {
        self.0.lock().remove(name);
        Ok(())
    }
}
