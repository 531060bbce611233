//! Sees to what was decided elsewhere, and denies what nobody decides.
//!
//! Decisions come from other processes, and times run out while nobody asks. The store's generation tells that something has
//! changed; only then, or when the next one expires, is it looked at.

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

use super::{one, resume::CallerWait};
use crate::{
    call_handle::Running,
    engine::{Engine, store_failure},
    token_validity::TokenValidity,
};

/// How often it is looked whether something has changed.
const LOOK: Duration = Duration::from_millis(200);

/// How often something is looked at again that was decided and cannot go on yet.
const AGAIN: Duration = Duration::from_millis(500);

/// How long a decision may stand before a task that nobody goes on with is given up.
const STRAY: Duration = Duration::from_secs(60);

/// How many are looked at.
const AT_ONCE: usize = 1_000;

/// What became of one that was looked at.
enum ApprovalProgress {
    /// Nothing is left to be done.
    Done,
    /// It waits, until then.
    Until(Timestamp),
    /// Somebody else is to go on with it, or it is not its time yet.
    Later,
}

// === impl Engine ===

impl Engine {
    /// Keeps what waits with its secrets there.
    pub fn keep_held_in(&self, safe: std::sync::Arc<dyn super::Safe>) {
        self.inner().approving.keep_in(safe);
    }

    /// Goes on with what was decided elsewhere, and denies what expires, until it is told to stop.
    pub async fn keep_approvals(&self, stop: CancellationToken) {
        let (mut seen, mut next) = (None, Some(self.now()));
        loop {
            let generation = self.inner().store.generation();
            let is_due = seen != Some(generation) || next.is_some_and(|next| next <= self.now());
            // Another node looks at it while this one is drained.
            if is_due && !self.is_draining() {
                seen = Some(generation);
                next = match self.look_at_approvals().await {
                    Ok(next) => next,
                    Err(failure) => {
                        tracing::error!("what waits for approval could not be looked at: {failure}");
                        self.now().checked_add(STRAY / 10).ok()
                    }
                };
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// Goes on with one that was decided, in this process, whoever has begun it; none when somebody else does. For work that is
    /// under way elsewhere there is nothing to be done here.
    pub async fn go_on_here(&self, approval: &Approval) -> Result<Option<Running>, Failure> {
        if approval.waits == ApprovalTarget::Work || approval.is_settled {
            return Ok(None);
        }
        let Some(task) = self.task_of(approval).await? else { return Ok(None) };
        if !task.head.state.is_waiting() {
            return Ok(None);
        }
        self.go_on(approval, task, CallerWait::nobody()).await
    }

    /// Whether what was decided has had its effect.
    pub async fn is_settled(&self, approval: &Approval) -> Result<bool, Failure> {
        let found = self.inner().store.approvals(&one(&approval.id)).await.map_err(store_failure)?;
        Ok(found.first().is_none_or(|approval| approval.is_settled))
    }

    /// Looks at everything that is not settled, and says when to look again at the latest.
    async fn look_at_approvals(&self) -> Result<Option<Timestamp>, Failure> {
        let filter = ApprovalFilter { unsettled: true, limit: AT_ONCE, ..ApprovalFilter::default() };
        let open = self.inner().store.approvals(&filter).await.map_err(store_failure)?;
        let mut next: Option<Timestamp> = None;
        for approval in open {
            let id = approval.id.clone();
            let again = match self.look_at(approval).await {
                Ok(ApprovalProgress::Done) => continue,
                Ok(ApprovalProgress::Until(moment)) => moment,
                Ok(ApprovalProgress::Later) => self.soon(),
                Err(failure) => {
                    tracing::error!("approval {id} could not be seen to: {failure}");
                    self.now().checked_add(STRAY / 10).unwrap_or(Timestamp::MAX)
                }
            };
            next = Some(next.map_or(again, |next| next.min(again)));
        }
        Ok(next)
    }

    async fn look_at(&self, approval: Approval) -> Result<ApprovalProgress, Failure> {
        let now = self.now();
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
        self.sync().await?;
        if self.inner().settle_if_over(&approval).await? {
            return Ok(ApprovalProgress::Done);
        }
        let Some(task) = self.task_of(&approval).await? else { return Ok(ApprovalProgress::Later) };
        if !task.head.state.is_waiting() || self.inner().running.lock().contains_key(&task.head.id) {
            return self.pass_by(&approval, &task, now).await;
        }
        if !self.is_ours(&approval, &task).await? {
            // A process that never said that it was there cannot be known to be gone: it has had its time.
            if approval.runner == ProcessId::NOBODY || !self.is_at_work(approval.runner).await? {
                return self.stray(&approval, task, "whoever worked on it has not come back", now).await;
            }
            return Ok(ApprovalProgress::Later);
        }
        if self.agent_of(&task).is_none() {
            return self
                .stray(&approval, task, "its agent was removed while it waited for approval", now)
                .await;
        }
        // It goes on by itself.
        let running = self.go_on(&approval, task, CallerWait::nobody()).await?;
        Ok(if running.is_some() { ApprovalProgress::Done } else { ApprovalProgress::Later })
    }

    /// A task that works again though nobody has settled what it waited for: whoever went on with it was cut short, or is about
    /// to settle it.
    async fn pass_by(
        &self,
        approval: &Approval,
        task: &Task,
        now: Timestamp,
    ) -> Result<ApprovalProgress, Failure> {
        let since = approval.decided.as_ref().map_or(now, |decided| decided.at);
        if !task.head.state.is_waiting() && since.checked_add(STRAY).is_ok_and(|late| late <= now) {
            self.inner().settle(approval).await;
            return Ok(ApprovalProgress::Done);
        }
        Ok(ApprovalProgress::Later)
    }

    /// What this process cannot go on with may be another process's own. If nobody does after a while, it ends.
    async fn stray(
        &self,
        approval: &Approval,
        mut task: Task,
        why: &str,
        now: Timestamp,
    ) -> Result<ApprovalProgress, Failure> {
        let since = approval.decided.as_ref().map_or(now, |decided| decided.at);
        if since.checked_add(STRAY).is_ok_and(|late| late > now) {
            return Ok(ApprovalProgress::Later);
        }
        let failure = Failure::new(FailureKind::PeerFailed, why);
        let recorded = self.inner().journal.record(&mut task, vec![Event::failed(failure)], None).await;
        recorded.map_err(store_failure)?;
        self.inner().settle(approval).await;
        Ok(ApprovalProgress::Done)
    }

    /// Whether this process goes on with it: it works on the task, or nobody in particular does. Work that is under way is
    /// where it was begun, unless that process is gone: then its tasks are somebody else's by now.
    async fn is_ours(&self, approval: &Approval, task: &Task) -> Result<bool, Failure> {
        let (ours, theirs) = (self.runner(), task.head.runner);
        match approval.waits {
            ApprovalTarget::Call if theirs == ours || theirs == ProcessId::NOBODY => Ok(true),
            ApprovalTarget::Call => Ok(!self.is_at_work(theirs).await?),
            ApprovalTarget::Work => Ok(approval.runner == ours || theirs == ours),
        }
    }

    /// Until when the token counts that an approval was asked for with.
    async fn validity_of(&self, approval: &Approval) -> Result<TokenValidity, Failure> {
        match &approval.token {
            Some(token) => self.token_validity(token).await,
            None => Ok(TokenValidity::Unlimited),
        }
    }

    async fn task_of(&self, approval: &Approval) -> Result<Option<Task>, Failure> {
        let inner = self.inner();
        let head = inner.store.task(&approval.scope, approval.task.as_str()).await.map_err(store_failure)?;
        match head {
            Some(head) => inner.journal.read(head).await.map(Some).map_err(store_failure),
            None => Ok(None),
        }
    }

    fn soon(&self) -> Timestamp {
        self.now().checked_add(AGAIN).unwrap_or(Timestamp::MAX)
    }
}
