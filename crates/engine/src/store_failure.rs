//! Failures of the store, in the words that callers read.
//!
//! Each place says what is known there. Before a call leaves it is known that it was not made; of a task it is only known
//! that it could not be read. Nothing here is said of a call that has left: [`run`](crate::run) holds its results.

use std::time::Duration;

use futures::FutureExt;
use rialto_model::{
    failure::{Failure, FailureKind},
    json::Json,
    store::StoreError,
};
use serde_json::json;
use tokio::time::{Instant, timeout_at};

/// Seconds after which a caller may try again. Held results are recorded within a few seconds of the store's return.
const RETRY_AFTER_SECS: u64 = 1;

/// A caller's deadline counts for the store's work only beyond this: a call with a short timeout is made even so.
const MIN_STORE_TIME: Duration = Duration::from_secs(1);

/// A failure of the store at a place where nothing was begun.
#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
pub(crate) fn store_failure(error: StoreError) -> Failure {
    match error {
        StoreError::Conflict => {
            Failure::new(FailureKind::Conflict, "the task was changed by somebody else; look at it again")
        }
        StoreError::Unavailable(_) => {
            tracing::error!(error = &error as &dyn std::error::Error, "the store failed: {error}");
            unavailable(
                "the store is not available; try again in a moment, and see the server's log if it stays so",
            )
        }
        StoreError::Taken(_) | StoreError::Corrupt(_) | StoreError::Unwritable(_) => {
            tracing::error!(error = &error as &dyn std::error::Error, "the store failed: {error}");
            Failure::new(
                FailureKind::Internal,
                "the store did not do this; see the server's log for the reason",
            )
        }
    }
}

/// A failure of the store while a task was read.
pub(crate) fn read_failure(error: StoreError) -> Failure {
    let failure = store_failure(error);
    match failure.kind {
        FailureKind::StoreUnavailable => unavailable(
            "the task could not be read: the store is not available; ask for it again in a moment, its state is not lost",
        ),
        _ => failure,
    }
}

/// The same failure of a call that has not left: one of the store says that the call was not made.
pub(crate) fn not_made(failure: Failure) -> Failure {
    if failure.kind == FailureKind::StoreUnavailable {
        return unavailable(
            "the call could not be recorded, so it was not made: the store is not available; call again in a moment, and see the \
             server's log if it stays so",
        );
    }
    failure
}

/// Does work that a call needs before it leaves, until the caller's deadline. It is no async function: that would hold the work twice.
pub(crate) fn before<T>(
    deadline: Instant,
    work: impl Future<Output = Result<T, Failure>>,
) -> impl Future<Output = Result<T, Failure>> {
    timeout_at(deadline, work).map(|done| match done {
        Ok(done) => done.map_err(not_made),
        Err(_) => Err(not_made(unavailable("the store did not answer before the call's deadline"))),
    })
}

/// The moment up to which the store may work on a call that began at `begun`.
pub(crate) fn store_deadline(begun: Instant, wall_clock: Duration) -> Instant {
    begun + wall_clock.max(MIN_STORE_TIME)
}

/// A failure that says that the store is not available.
pub(crate) fn unavailable(message: &str) -> Failure {
    Failure::new(FailureKind::StoreUnavailable, message)
        .with_data(Json::encode(&json!({ "retryAfter": RETRY_AFTER_SECS })))
}
