//! Recording of a run's events, also while the store is away.

use std::{collections::VecDeque, time::Duration};

use rialto_model::{
    event::Event,
    failure::{Failure, FailureKind},
    store::StoreError,
};
use tokio::time::Instant;

use super::{CallRun, RunUpdate, failure_in, with_ids};
use crate::{engine::store_failure, held_writes::HeldWrite, journal::log_lost};

/// How long a run waits for the store at least, also when the deadline of its caller is over.
const MIN_WRITE_PATIENCE: Duration = Duration::from_millis(250);

/// How long a run waits for the store before it holds what it writes and goes on.
const WRITE_PATIENCE: Duration = Duration::from_secs(1);

// === impl Run ===

impl CallRun {
    /// Records a batch, and closes the announcement with it when this leg is over. What the store cannot take now is held.
    pub(super) async fn write(&mut self, batch: Vec<Event>, is_over: bool) -> Result<(), Failure> {
        if self.inner.was_taken_over(&self.task.head).await {
            return self.overtaken().await;
        }
        self.inner.quota.add(&self.task.head.scope.org, batch.iter().map(Event::size).sum());
        let failure = if is_over { failure_in(&batch) } else { None };
        let patience = self.write_patience();
        let ending = is_over.then_some((&mut self.announcement, failure.as_ref()));
        match self.inner.journal.record_or_hold(&mut self.task, batch, ending, patience).await {
            Ok(None) => Ok(()),
            Ok(Some(held)) => {
                self.held.push_back(held);
                self.is_ended = is_over;
                Ok(())
            }
            Err(StoreError::Conflict) => self.overtaken().await,
            Err(error) => Err(self.end_unwritable(error).await),
        }
    }

    /// How long the store may take while somebody waits: not beyond the caller's deadline.
    pub(super) fn write_patience(&self) -> Duration {
        if self.is_late {
            return WRITE_PATIENCE;
        }
        self.late_at.saturating_duration_since(Instant::now()).clamp(MIN_WRITE_PATIENCE, WRITE_PATIENCE)
    }

    /// The oldest of the held writes has an outcome.
    pub(super) async fn on_written(
        mut self: Box<Self>,
        outcome: Result<Vec<Event>, StoreError>,
    ) -> RunUpdate {
        self.held.pop_front();
        let written = match outcome {
            Ok(_) if self.is_ended && self.held.is_empty() => return self.finish(),
            Ok(events) => return RunUpdate::Events(self, events),
            Err(StoreError::Conflict) => {
                self.held.clear();
                self.overtaken().await
            }
            Err(error) => {
                self.held.clear();
                Err(self.end_unwritable(error).await)
            }
        };
        match written {
            Ok(()) => self.finish(),
            Err(failure) => self.over(Some(failure)),
        }
    }

    /// Somebody else wrote first, most often whoever called it off. If it is over by that, what is in the journal counts.
    pub(super) async fn overtaken(&mut self) -> Result<(), Failure> {
        let journal = &self.inner.journal;
        let known = journal.reread(&self.task).await.map_err(|error| self.lost(error))?;
        if !known.head.state.is_terminal() {
            return Err(self.lost(StoreError::Conflict));
        }
        let remote = std::mem::replace(&mut self.task, known).head.remote;
        if self.task.head.remote.task_id.is_none() && remote.task_id.is_some() {
            // It was called off before the agent had a name for it. Now the agent can be told.
            self.task.head.remote = remote;
            if let Err(failure) = self.inner.call_off(&self.caller, &self.target, &self.task).await {
                self.warn_not_called_off(&failure);
            }
        }
        let failure = self.task.failure.clone();
        let ending = Some((&mut self.announcement, failure.as_ref()));
        let closed = journal.record_or_hold(&mut self.task, Vec::new(), ending, WRITE_PATIENCE).await;
        closed.map(|_| ()).map_err(|error| self.lost(error))
    }

    /// The store never takes what the agent said. The task ends with that, so that it does not stay open.
    pub(super) async fn end_unwritable(&mut self, error: StoreError) -> Failure {
        let message = "the agent has answered, but the store cannot keep what it said; see the server's log for the reason";
        let failure = Failure::new(FailureKind::Internal, message);
        log_lost(&self.task.head.id, &error);
        let journal = &self.inner.journal;
        match journal.reread(&self.task).await {
            Ok(known) => self.task = known,
            Err(error) => return self.lost(error),
        }
        self.announcement.reopen();
        let ending = Some((&mut self.announcement, Some(&failure)));
        let events = vec![Event::failed(failure.clone())];
        if let Err(error) = journal.record_or_hold(&mut self.task, events, ending, WRITE_PATIENCE).await {
            log_lost(&self.task.head.id, &error);
        }
        with_ids(failure, &self.task)
    }

    pub(super) fn lost(&self, error: StoreError) -> Failure {
        log_lost(&self.task.head.id, &error);
        store_failure(error)
    }

    /// The caller's deadline is over while the store is away: what is known, and where the result will be.
    pub(super) async fn held_result(&mut self, why: &str) -> Failure {
        let known = if self.is_answered {
            "the agent has answered, but the store is not available: the result is held, and recorded when the store is back"
        } else {
            "the call was sent and the agent may have done it, but the store is not available: what the agent says is held, and \
             recorded when the store is back"
        };
        let message = format!("{why}: {known}; do not call again, {} its result then", self.fetcher());
        self.late(message).await
    }
}

/// Outcome of the oldest held write; never without one.
pub(super) async fn next_written(held: &mut VecDeque<HeldWrite>) -> Result<Vec<Event>, StoreError> {
    match held.front_mut() {
        Some(written) => written.await,
        None => futures::future::pending().await,
    }
}
