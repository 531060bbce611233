//! Recording of a run's events, also while the store is not available.

use std::{collections::VecDeque, time::Duration};

use rialto_model::{
    event::Event,
    failure::{Failure, FailureKind},
    store::StoreError,
};
use tokio::time::Instant;

use super::{CallRun, RunUpdate, failure_in, with_ids};
use crate::{held_writes::HeldWrite, journal::log_lost, store_failure::store_failure};

/// Shortest time that a run waits for the store, also when the deadline of its caller is over.
const MIN_WRITE_TIMEOUT: Duration = Duration::from_millis(250);

/// Time that a run waits for the store before it holds what it writes and continues.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);

// === impl CallRun ===

impl CallRun {
    /// Records a batch, and closes the audit span with it when this run ends. Events that the store cannot take now are held.
    pub(super) async fn write(&mut self, batch: Vec<Event>, is_over: bool) -> Result<(), Failure> {
        if self.runner.lease.was_taken_over(&self.task.head).await {
            return self.adopt_conflicting_end().await;
        }
        self.runner.quota.add(&self.task.head.scope.org, batch.iter().map(Event::size).sum());
        let failure = if is_over { failure_in(&batch) } else { None };
        let timeout = self.write_timeout();
        let ending = is_over.then_some((&mut self.span, failure.as_ref()));
        match self.runner.journal.record_or_hold(&mut self.task, batch, ending, timeout).await {
            Ok(None) => Ok(()),
            Ok(Some(held)) => {
                self.held.push_back(held);
                self.has_ended = is_over;
                Ok(())
            }
            Err(StoreError::Conflict) => self.adopt_conflicting_end().await,
            Err(error) => Err(self.end_unwritable(error).await),
        }
    }

    /// Time that the store may take: not beyond the deadline of a waiting caller.
    pub(super) fn write_timeout(&self) -> Duration {
        if self.is_timed_out {
            return WRITE_TIMEOUT;
        }
        self.timeout_at.saturating_duration_since(Instant::now()).clamp(MIN_WRITE_TIMEOUT, WRITE_TIMEOUT)
    }

    /// Handles the outcome of the oldest held write.
    pub(super) async fn on_written(
        mut self: Box<Self>,
        outcome: Result<Vec<Event>, StoreError>,
    ) -> RunUpdate {
        self.held.pop_front();
        let written = match outcome {
            Ok(_) if self.has_ended && self.held.is_empty() => return self.finish(),
            Ok(events) => return RunUpdate::Events(self, events),
            Err(StoreError::Conflict) => {
                self.held.clear();
                self.adopt_conflicting_end().await
            }
            Err(error) => {
                self.held.clear();
                Err(self.end_unwritable(error).await)
            }
        };
        match written {
            Ok(()) => self.finish(),
            Err(failure) => self.end(Some(failure)),
        }
    }

    /// Handles a conflicting write, most often of a cancellation. If the task has ended by that, the journal counts.
    pub(super) async fn adopt_conflicting_end(&mut self) -> Result<(), Failure> {
        let journal = &self.runner.journal;
        let known = journal.reread(&self.task).await.map_err(|error| self.lost(error))?;
        if !known.head.state.is_terminal() {
            return Err(self.lost(StoreError::Conflict));
        }
        let remote = std::mem::replace(&mut self.task, known).head.remote;
        if self.task.head.remote.task_id.is_none() && remote.task_id.is_some() {
            // It was cancelled before the agent had named it. Now the agent can be asked to cancel.
            self.task.head.remote = remote;
            if let Err(failure) = self.runner.cancel_at_agent(&self.caller, &self.target, &self.task).await {
                self.warn_not_cancelled(&failure);
            }
        }
        let failure = self.task.failure.clone();
        let ending = Some((&mut self.span, failure.as_ref()));
        let closed = journal.record_or_hold(&mut self.task, Vec::new(), ending, WRITE_TIMEOUT).await;
        closed.map(|_| ()).map_err(|error| self.lost(error))
    }

    /// Ends a task whose events the store never takes, so that it does not stay open.
    pub(super) async fn end_unwritable(&mut self, error: StoreError) -> Failure {
        let message = "the agent has answered, but the store cannot keep what it said; see the server's log for the reason";
        let failure = Failure::new(FailureKind::Internal, message);
        log_lost(&self.task.head.id, &error);
        let journal = &self.runner.journal;
        match journal.reread(&self.task).await {
            Ok(known) => self.task = known,
            Err(error) => return self.lost(error),
        }
        self.span.reopen();
        let ending = Some((&mut self.span, Some(&failure)));
        let events = vec![Event::failed(failure.clone())];
        if let Err(error) = journal.record_or_hold(&mut self.task, events, ending, WRITE_TIMEOUT).await {
            log_lost(&self.task.head.id, &error);
        }
        with_ids(failure, &self.task)
    }

    pub(super) fn lost(&self, error: StoreError) -> Failure {
        log_lost(&self.task.head.id, &error);
        store_failure(error)
    }

    /// Failure at the caller's deadline while the store is not available: what is known, and where the result will be.
    pub(super) async fn held_result(&mut self, why: &str) -> Failure {
        let known = if self.has_result {
            "the agent has answered, but the store is not available: the result is held, and recorded when the store is back"
        } else {
            "the call was sent and the agent may have done it, but the store is not available: what the agent says is held, and \
             recorded when the store is back"
        };
        let message = format!("{why}: {known}; do not call again, {} its result then", self.fetch_hint());
        self.report_timeout(message).await
    }
}

/// Waits for the outcome of the oldest held write; for ever if there is none.
pub(super) async fn next_written(held: &mut VecDeque<HeldWrite>) -> Result<Vec<Event>, StoreError> {
    match held.front_mut() {
        Some(written) => written.await,
        None => futures::future::pending().await,
    }
}
