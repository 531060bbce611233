//! Counts of calls and openings of circuit breakers, shared with the other processes on the store.
//!
//! No call waits for the store here: each process counts for itself, and twice a second adds what it has counted to the store and reads the
//! totals back. So a limit of several processes can be exceeded by the calls that all of them let through in two intervals, and never by more.
//! Counts are in the store, so a restart does not begin anew.

use std::time::Duration;

use rialto_model::store::{StoreError, UsageReport};
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;

/// How often counts are exchanged.
const SHARE_INTERVAL: Duration = Duration::from_millis(500);

// === impl Engine ===

impl Engine {
    /// Exchanges counts and openings until it is told to stop, and once more then.
    pub async fn keep_sharing_usage(&self, stop: CancellationToken) {
        let mut is_failing = false;
        loop {
            let is_last = stop.is_cancelled();
            let shared = self.share_usage().await;
            match &shared {
                Err(error) if !is_failing => {
                    tracing::warn!(
                        "limits and circuit breakers are not shared with other processes: {error}"
                    );
                }
                Ok(()) if is_failing => {
                    tracing::info!("limits and circuit breakers are shared with other processes again");
                }
                _ => {}
            }
            is_failing = shared.is_err();
            if is_last {
                return;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(SHARE_INTERVAL) => {}
            }
        }
    }

    /// Exchanges counts and openings once. If the store does not answer, the counts are sent again: then calls may be counted twice.
    pub async fn share_usage(&self) -> Result<(), StoreError> {
        let inner = self.inner();
        inner.breakers.start_sharing();
        let now = inner.journal.now();
        let taken = inner.limits.take_counts(now);
        let report = UsageReport {
            counts: taken.iter().map(|(_, count)| count.clone()).collect(),
            openings: inner.breakers.take_openings(),
            at: now,
        };
        match inner.store.share_usage(&report).await {
            Ok(shared) => {
                inner.limits.apply_totals(&taken, &shared.totals);
                inner.breakers.apply_openings(shared.openings, now);
                Ok(())
            }
            Err(error) => {
                inner.limits.return_counts(&taken);
                inner.breakers.return_openings(report.openings);
                Err(error)
            }
        }
    }
}
