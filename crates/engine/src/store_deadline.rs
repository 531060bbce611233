//! A store that answers within a deadline, or not at all.
//!
//! A database that hangs must not hang its callers: an operation that takes longer counts as unavailable. Whether it was done
//! is not known then, so whoever writes must find out before it says so.

use std::{sync::Arc, time::Duration};

use rialto_model::store::{Layered, Store, StoreError, StoreLayer};
use tokio::time::timeout;

/// Operations that read or change a large part of the store. Nobody waits for them in a call.
const WITHOUT_DEADLINE: [&str; 6] =
    ["verify_audit", "verify_audit_with_progress", "sweep", "audit_records", "costs", "audit_after"];

/// A deadline for each operation of a store.
#[derive(Clone)]
pub struct StoreDeadline {
    store: Arc<dyn Store>,
    timeout: Duration,
}

/// The store did not answer in time.
#[derive(Debug, thiserror::Error)]
#[error(
    "{operation} took longer than {} s; see whether the database is overloaded, or raise [calls] store_timeout_secs",
    .timeout.as_secs_f32()
)]
struct NoAnswer {
    operation: &'static str,
    timeout: Duration,
}

// === impl StoreDeadline ===

impl StoreDeadline {
    /// The same store, whose operations end after `timeout`; none is without a deadline.
    pub fn wrap(store: Arc<dyn Store>, timeout: Option<Duration>) -> Arc<dyn Store> {
        match timeout {
            Some(timeout) => Arc::new(Layered(Self { store, timeout })),
            None => store,
        }
    }
}

impl StoreLayer for StoreDeadline {
    fn store(&self) -> &dyn Store {
        &*self.store
    }

    async fn wrap<'a, T: Send + 'a>(
        &'a self,
        operation: &'static str,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'a,
    ) -> Result<T, StoreError> {
        if WITHOUT_DEADLINE.contains(&operation) {
            return work.await;
        }
        match timeout(self.timeout, work).await {
            Ok(done) => done,
            Err(_) => Err(no_answer(operation, self.timeout)),
        }
    }
}

/// The error of an operation that took longer than it may.
pub(crate) fn no_answer(operation: &'static str, timeout: Duration) -> StoreError {
    StoreError::Unavailable(Box::new(NoAnswer { operation, timeout }))
}
