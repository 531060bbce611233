//! Loop that resumes calls which were decided in other processes, and denies those that expire.
//!
//! It reads the approvals only when the store's generation says that something has changed, or when the next one expires.

use std::time::Duration;

use rialto_model::{
    approval::{Approval, ApprovalFilter, ApprovalTarget},
    clock::Timestamp,
    event::Event,
    failure::{Failure, FailureKind},
    ids::ProcessId,
    task::Task,
};
use tokio_util::sync::CancellationToken;

use super::{ApprovalService, resume::CallerWait, with_id};
use crate::{call_handle::CallHandle, store_failure::store_failure, token_validity::TokenValidity};

/// Interval of polls of the store's generation.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Pause before a decided call that cannot be resumed yet is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Time after a decision in which another process may resume the task, before it ends.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum number of approvals that are read.
const MAX_APPROVALS: usize = 1_000;

/// State of an approval after a check.
enum ApprovalProgress {
    /// Nothing is left to do.
    Done,
    /// It waits until this time.
    Until(Timestamp),
    /// Another process is to resume it, or it cannot be resumed yet.
    Later,
}

// === impl ApprovalService ===

impl ApprovalService {
    /// Resumes what was decided in other processes, and denies what expires, until `stop` is cancelled.
    pub async fn run_expiry_loop(&self, stop: CancellationToken) {
        let (mut seen, mut next) = (None, Some(self.runner.journal.now()));
        loop {
            let generation = self.runner.store.generation();
            let is_due =
                seen != Some(generation) || next.is_some_and(|next| next <= self.runner.journal.now());
            // Another node does that while this one is drained.
            if is_due && !self.nodes.is_draining() {
                seen = Some(generation);
                next = match self.check_all().await {
                    Ok(next) => next,
                    Err(failure) => {
                        tracing::error!("approvals could not be read: {failure}");
                        self.runner.journal.now().checked_add(ORPHAN_TIMEOUT / 10).ok()
                    }
                };
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        }
    }

    /// Resumes a decided call in this process, whichever process started it; none if another one does. Work of a backend is resumed
    /// where it runs.
    pub async fn resume_here(&self, approval: &Approval) -> Result<Option<CallHandle>, Failure> {
        if approval.waits == ApprovalTarget::Work || approval.is_settled {
            return Ok(None);
        }
        let Some(task) = self.task_of(approval).await? else { return Ok(None) };
        if !task.head.state.is_waiting() {
            return Ok(None);
        }
        self.resume(approval, task, CallerWait::nobody()).await
    }

    /// True if the decision has had its effect.
    pub async fn is_settled(&self, approval: &Approval) -> Result<bool, Failure> {
        let found = self.runner.store.approvals(&with_id(&approval.id)).await.map_err(store_failure)?;
        Ok(found.first().is_none_or(|approval| approval.is_settled))
    }

    /// Checks all unsettled approvals; returns the time of the next check at the latest.
    async fn check_all(&self) -> Result<Option<Timestamp>, Failure> {
        let filter = ApprovalFilter { unsettled: true, limit: MAX_APPROVALS, ..ApprovalFilter::default() };
        let open = self.runner.store.approvals(&filter).await.map_err(store_failure)?;
        let mut next: Option<Timestamp> = None;
        for approval in open {
            let id = approval.id.clone();
            let again = match self.check(approval).await {
                Ok(ApprovalProgress::Done) => continue,
                Ok(ApprovalProgress::Until(moment)) => moment,
                Ok(ApprovalProgress::Later) => self.soon(),
                Err(failure) => {
                    tracing::error!("approval {id} could not be checked: {failure}");
                    self.runner.journal.now().checked_add(ORPHAN_TIMEOUT / 10).unwrap_or(Timestamp::MAX)
                }
            };
            next = Some(next.map_or(again, |next| next.min(again)));
        }
        Ok(next)
    }

    async fn check(&self, approval: Approval) -> Result<ApprovalProgress, Failure> {
        let now = self.runner.journal.now();
        let approval = match &approval.decided {
            None if approval.expires_at > now => match self.validity_of(&approval).await? {
                TokenValidity::Ended => self.deny_revoked(&approval).await?,
                TokenValidity::Until(end) => {
                    return Ok(ApprovalProgress::Until(end.min(approval.expires_at)));
                }
                TokenValidity::Unlimited => return Ok(ApprovalProgress::Until(approval.expires_at)),
            },
            None => self.expire(&approval).await?,
            Some(_) => approval,
        };
        self.runner.policies.sync().await?;
        if self.settle_if_over(&approval).await? {
            return Ok(ApprovalProgress::Done);
        }
        let Some(task) = self.task_of(&approval).await? else { return Ok(ApprovalProgress::Later) };
        if !task.head.state.is_waiting() || self.runner.running.contains(&task.head.id) {
            return self.check_resumed(&approval, &task, now).await;
        }
        if !self.is_ours(&approval, &task).await? {
            // A process without a number cannot be known to be gone: it has had its time.
            if approval.runner == ProcessId::NOBODY || !self.runner.lease.is_alive(approval.runner).await? {
                return self
                    .end_orphan(&approval, task, "the process that worked on it has not come back", now)
                    .await;
            }
            return Ok(ApprovalProgress::Later);
        }
        if self.tasks.find_agent(&task).is_none() {
            return self
                .end_orphan(&approval, task, "its agent was removed while it waited for approval", now)
                .await;
        }
        // It continues in the background.
        let running = self.resume(&approval, task, CallerWait::nobody()).await?;
        Ok(if running.is_some() { ApprovalProgress::Done } else { ApprovalProgress::Later })
    }

    /// Checks a task that works again although its approval is not settled: the process that resumed it was interrupted, or is about to
    /// settle it.
    async fn check_resumed(
        &self,
        approval: &Approval,
        task: &Task,
        now: Timestamp,
    ) -> Result<ApprovalProgress, Failure> {
        let since = approval.decided.as_ref().map_or(now, |decided| decided.at);
        if !task.head.state.is_waiting() && since.checked_add(ORPHAN_TIMEOUT).is_ok_and(|late| late <= now) {
            self.settle(approval).await;
            return Ok(ApprovalProgress::Done);
        }
        Ok(ApprovalProgress::Later)
    }

    /// Ends a task that no process has resumed for a while. This process cannot, but another one may.
    async fn end_orphan(
        &self,
        approval: &Approval,
        mut task: Task,
        why: &str,
        now: Timestamp,
    ) -> Result<ApprovalProgress, Failure> {
        let since = approval.decided.as_ref().map_or(now, |decided| decided.at);
        if since.checked_add(ORPHAN_TIMEOUT).is_ok_and(|late| late > now) {
            return Ok(ApprovalProgress::Later);
        }
        let failure = Failure::new(FailureKind::PeerFailed, why);
        let recorded = self.runner.journal.record(&mut task, vec![Event::failed(failure)], None).await;
        recorded.map_err(store_failure)?;
        self.settle(approval).await;
        Ok(ApprovalProgress::Done)
    }

    /// True if this process resumes it: it works on the task, or no live process does. Work of a backend is where it was started, unless
    /// that process is gone: then another one has its tasks.
    async fn is_ours(&self, approval: &Approval, task: &Task) -> Result<bool, Failure> {
        let (ours, theirs) = (self.runner.lease.runner(), task.head.runner);
        match approval.waits {
            ApprovalTarget::Call if theirs == ours || theirs == ProcessId::NOBODY => Ok(true),
            ApprovalTarget::Call => Ok(!self.runner.lease.is_alive(theirs).await?),
            ApprovalTarget::Work => Ok(approval.runner == ours || theirs == ours),
        }
    }

    /// Validity of the token of the call that waits.
    async fn validity_of(&self, approval: &Approval) -> Result<TokenValidity, Failure> {
        match &approval.token {
            Some(token) => self.tokens.validity(token).await,
            None => Ok(TokenValidity::Unlimited),
        }
    }

    async fn task_of(&self, approval: &Approval) -> Result<Option<Task>, Failure> {
        let runner = &self.runner;
        let head = runner.store.task(&approval.scope, approval.task.as_str()).await.map_err(store_failure)?;
        match head {
            Some(head) => runner.journal.read(head).await.map(Some).map_err(store_failure),
            None => Ok(None),
        }
    }

    fn soon(&self) -> Timestamp {
        self.runner.journal.now().checked_add(RETRY_PAUSE).unwrap_or(Timestamp::MAX)
    }
}
