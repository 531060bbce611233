//! Recording of a run, also while the store is not available.

use std::time::Duration;

use rialto_model::{flow::FlowStep, store::StoreError};

use super::RunDriver;

/// Backoff while the store is not available.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(1);

// === impl RunDriver ===

impl RunDriver {
    /// Records the run and these steps. While the store is not available it is tried again: what steps have done cannot be had
    /// a second time.
    pub(super) async fn record(&mut self, is_new: bool, steps: &[FlowStep]) -> Result<bool, StoreError> {
        let (mut pause, mut is_unsure) = (FIRST_PAUSE, false);
        loop {
            let recorded = if is_new {
                self.store.begin_run(&self.run, &self.id, steps).await
            } else {
                self.store.change_run(self.change(steps.to_vec())).await
            };
            match recorded {
                // It exists: perhaps an earlier attempt succeeded without a response.
                Ok(false) if is_new && is_unsure => {
                    match self.store.change_run(self.change(steps.to_vec())).await {
                        Err(StoreError::Unavailable(_)) => {}
                        recorded => return recorded,
                    }
                }
                Err(StoreError::Unavailable(error)) => {
                    if !is_unsure {
                        let run = &self.run.id;
                        tracing::warn!(task.id = %run, "run {run} waits for the store to be available: {error}");
                    }
                    is_unsure = true;
                }
                recorded => return recorded,
            }
            if self.context.engine.running().is_stopping() {
                return Err(StoreError::Unavailable("this process ends before the store is back".into()));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }
}
