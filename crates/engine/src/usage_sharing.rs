//! Counts of calls and openings of circuit breakers, shared with the other processes on the store.
//!
//! No call waits for the store here: each process counts for itself, and twice a second adds what it has counted to the store and reads the
//! totals back. So a limit of several processes can be exceeded by the calls that all of them let through in two intervals, and never by more.
//! Counts are in the store, so a restart does not begin anew.

use std::{sync::Arc, time::Duration};

use rialto_model::{
    clock::Clock,
    store::{Store, StoreError, UsageReport},
};
use tokio_util::sync::CancellationToken;

use crate::{breakers::Breakers, limits::CallLimits};

/// Interval of the exchange.
const SHARE_INTERVAL: Duration = Duration::from_millis(500);

/// Exchange of call counts and circuit breaker openings with the other processes on the store.
pub struct UsageSharing {
    store: Arc<dyn Store>,
    limits: Arc<CallLimits>,
    breakers: Arc<Breakers>,
    clock: Arc<dyn Clock>,
}

// === impl UsageSharing ===

impl UsageSharing {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        limits: Arc<CallLimits>,
        breakers: Arc<Breakers>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { store, limits, breakers, clock }
    }

    /// Exchanges counts and openings until `stop` is cancelled, and once more then.
    pub async fn run(&self, stop: CancellationToken) {
        let mut is_failing = false;
        loop {
            let is_last = stop.is_cancelled();
            let shared = self.exchange().await;
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
    pub async fn exchange(&self) -> Result<(), StoreError> {
        self.breakers.start_sharing();
        let now = self.clock.now();
        let taken = self.limits.take_counts(now);
        let report = UsageReport {
            counts: taken.iter().map(|(_, count)| count.clone()).collect(),
            openings: self.breakers.take_openings(),
            at: now,
        };
        match self.store.share_usage(&report).await {
            Ok(shared) => {
                self.limits.apply_totals(&taken, &shared.totals);
                self.breakers.apply_openings(shared.openings, now);
                Ok(())
            }
            Err(error) => {
                self.limits.return_counts(&taken);
                self.breakers.return_openings(report.openings);
                Err(error)
            }
        }
    }
}
