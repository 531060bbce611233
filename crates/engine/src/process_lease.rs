//! Who works on which task.
//!
//! A process that works on tasks has a number, and each task has the number of its process. A process shows that it is at
//! work for as long as it is: where the store sees by itself when one dies, once; elsewhere again and again. So whoever
//! keeps watch ([`heir`](crate::heir)) knows whose tasks nobody works on any more.
//!
//! A server takes its number when it starts. A command may never have a task at all: it takes one with its first.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use rialto_model::{
    failure::Failure,
    ids::ProcessId,
    store::StoreError,
    task::{Task, TaskHead},
};
use tokio::sync::Mutex;

use crate::{
    engine::{Engine, EngineInner, store_failure},
    lease_keeper::LeaseKeeper,
};

/// Whether a process answers for its tasks, and under which number.
#[derive(Default)]
pub(crate) struct ProcessLease {
    runner: AtomicU64,
    /// Whether a number is taken when one is needed.
    is_wanted: AtomicBool,
    /// Whether it must say again and again that it is at work.
    beats: AtomicBool,
    /// Whether it takes over what others leave behind.
    keeps_watch: AtomicBool,
    /// Numbers under which it was taken for gone.
    lost: parking_lot::Mutex<Vec<ProcessId>>,
    renewals: parking_lot::Mutex<LeaseRenewals>,
    /// Held by whoever takes the number.
    taking: Mutex<()>,
}

/// Renewals of this process's lease, from which it is known whether other processes could renew theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LeaseRenewals {
    /// First renewal without a failure since.
    since: Option<Instant>,
    last: Option<Instant>,
    last_failure: Option<Instant>,
}

// === impl Renewals ===

impl LeaseRenewals {
    /// A renewal that comes late counts as one after a failure: the store did not answer in between.
    fn record(&mut self, is_renewed: bool, now: Instant, lease: Duration) {
        let is_late = self.last.is_some_and(|last| now.duration_since(last) > longest_gap(lease));
        if !is_renewed || is_late {
            (self.since, self.last_failure) = (None, Some(now));
        }
        if is_renewed {
            self.since = self.since.or(Some(now));
            self.last = Some(now);
        }
    }

    /// Decides whether an expired lease means that its process is gone: not if that process had no time to renew it.
    ///
    /// Where the death of a process is seen by a lock, only an outage of the store makes leases unreliable. Elsewhere an outage may have
    /// ended just before this process started.
    fn can_judge_expired_leases(&self, now: Instant, lease: Duration, sees_deaths: bool) -> bool {
        let is_current = self.last.is_some_and(|last| now.duration_since(last) <= longest_gap(lease));
        let mark = if sees_deaths { self.last_failure } else { self.since };
        is_current && mark.map_or(sees_deaths, |mark| now.duration_since(mark) > lease)
    }
}

/// Longest time between two renewals of a process whose store answers.
fn longest_gap(lease: Duration) -> Duration {
    lease * 2 / 3
}

// === impl Attendance ===

impl ProcessLease {
    pub(crate) fn runner(&self) -> ProcessId {
        ProcessId::from(self.runner.load(Ordering::Relaxed))
    }

    pub(crate) fn beats(&self) -> bool {
        self.beats.load(Ordering::Relaxed)
    }

    pub(crate) fn keep_watch(&self) {
        self.keeps_watch.store(true, Ordering::Relaxed);
    }

    /// This number was taken for gone.
    pub(crate) fn mark_lost(&self, runner: ProcessId) {
        self.lost.lock().push(runner);
    }

    /// Whether what a process of this number worked on may be others' now, although it is this one.
    pub(crate) fn is_lost(&self, runner: ProcessId) -> bool {
        runner != ProcessId::NOBODY && self.lost.lock().contains(&runner)
    }

    /// Its lease was renewed, or could not be renewed.
    pub(crate) fn record_renewal(&self, is_renewed: bool, lease: Duration) {
        self.renewals.lock().record(is_renewed, Instant::now(), lease);
    }

    fn set(&self, runner: ProcessId) {
        self.runner.store(runner.get(), Ordering::Relaxed);
    }
}

// === impl Inner ===

impl EngineInner {
    /// Whether another process works on a task of this one, because this one was taken for gone. While that cannot be told, what is
    /// written is refused if somebody else has written since.
    pub(crate) async fn was_taken_over(&self, head: &TaskHead) -> bool {
        if !self.attendance.is_lost(head.runner) {
            return false;
        }
        let known = self.store.task(&head.scope, head.id.as_str()).await;
        known.is_ok_and(|known| known.is_none_or(|known| known.runner != head.runner))
    }
}

// === impl Engine ===

impl Engine {
    /// From now on this process answers for its tasks, and takes messages. To be called before the first of them.
    pub async fn take_post(&self) -> Result<(), Failure> {
        let runner = ProcessId::fresh();
        self.beat(runner).await.map_err(store_failure)?;
        // Whoever is at work already learns that it is not alone, before we take any message.
        self.inner().store.touch().await.map_err(store_failure)?;
        let attendance = &self.inner().attendance;
        attendance.beats.store(true, Ordering::Relaxed);
        attendance.record_renewal(true, self.inner().store.lease());
        attendance.set(runner);
        Ok(())
    }

    /// This process answers for its tasks from its first one on. For those that take no messages.
    pub fn attend_when_needed(&self) {
        self.inner().attendance.is_wanted.store(true, Ordering::Relaxed);
    }

    /// The number of this process, which is taken if it is wanted and not there yet.
    pub(crate) async fn attend(&self) -> Result<ProcessId, Failure> {
        let attendance = &self.inner().attendance;
        if attendance.runner() != ProcessId::NOBODY || !attendance.is_wanted.load(Ordering::Relaxed) {
            return Ok(attendance.runner());
        }
        let _turn = attendance.taking.lock().await;
        if attendance.runner() == ProcessId::NOBODY {
            let runner = ProcessId::fresh();
            if !self.inner().store.lock_process(runner).await.map_err(store_failure)? {
                self.beat(runner).await.map_err(store_failure)?;
                attendance.beats.store(true, Ordering::Relaxed);
                self.beat_on();
            }
            attendance.set(runner);
        }
        Ok(attendance.runner())
    }

    /// Leaves the post: what is still open can be taken over at once.
    pub async fn leave_post(&self) {
        let runner = self.runner();
        if runner == ProcessId::NOBODY {
            return;
        }
        let attendance = &self.inner().attendance;
        attendance.is_wanted.store(false, Ordering::Relaxed);
        attendance.set(ProcessId::NOBODY);
        if let Err(error) = self.inner().store.release_lease(runner).await {
            tracing::warn!("this process could not sign off: {error}");
        }
    }

    /// Whether somebody works on a task, or will soon without being asked to.
    pub async fn is_cared_for(&self, task: &TaskHead) -> Result<bool, Failure> {
        let keeps_watch = self.inner().attendance.keeps_watch.load(Ordering::Relaxed);
        Ok(task.runner != ProcessId::NOBODY && (keeps_watch || self.is_at_work(task.runner).await?))
    }

    pub(crate) async fn is_at_work(&self, runner: ProcessId) -> Result<bool, Failure> {
        let inner = self.inner();
        inner.store.is_process_alive(runner, inner.journal.now()).await.map_err(store_failure)
    }

    /// A task that is gone on with here is this process's from now on.
    pub(crate) async fn claim(&self, task: &mut Task) -> Result<(), Failure> {
        let runner = self.attend().await?;
        if runner == ProcessId::NOBODY || task.head.runner == runner {
            return Ok(());
        }
        self.assign_runner(task).await
    }

    /// Makes a waiting task this process's if its own process is gone. Answers whether it was.
    ///
    /// This comes before the answer of its caller is recorded: a task that is not waiting any more and still belongs to a process
    /// that is gone would be taken over at that moment, and its agent be asked about it before it has received the answer.
    pub(crate) async fn adopt_orphan(&self, task: &mut Task) -> Result<bool, Failure> {
        let owner = task.head.runner;
        let runner = self.attend().await?;
        let is_others = runner != ProcessId::NOBODY && owner != ProcessId::NOBODY && owner != runner;
        if !is_others || !task.head.state.is_waiting() || self.is_at_work(owner).await? {
            return Ok(false);
        }
        self.assign_runner(task).await?;
        Ok(true)
    }

    /// Makes a task this process's, whichever process it belongs to.
    pub(crate) async fn assign_runner(&self, task: &mut Task) -> Result<(), Failure> {
        let runner = self.attend().await?;
        self.inner().store.assign_task(&task.head.id, runner).await.map_err(store_failure)?;
        task.head.runner = runner;
        Ok(())
    }

    pub(crate) fn runner(&self) -> ProcessId {
        self.inner().runner_here()
    }

    pub(crate) async fn beat(&self, runner: ProcessId) -> Result<(), StoreError> {
        let inner = self.inner();
        let until = inner.journal.now().checked_add(inner.store.lease());
        inner.store.acquire_lease(runner, until.unwrap_or_else(|_| inner.journal.now())).await
    }

    /// Says again that this process is at work. Answers whether it was not taken for gone.
    pub(crate) async fn renew(&self, runner: ProcessId) -> Result<bool, StoreError> {
        let inner = self.inner();
        let until = inner.journal.now().checked_add(inner.store.lease());
        inner.store.renew(runner, until.unwrap_or_else(|_| inner.journal.now())).await
    }

    /// Takes another number in place of one under which this process was taken for gone. What it worked on is others' now.
    pub(crate) async fn replace_lost_lease(&self, lost: ProcessId) -> Result<(), StoreError> {
        let attendance = &self.inner().attendance;
        if attendance.runner() != lost {
            return Ok(());
        }
        attendance.mark_lost(lost);
        let runner = ProcessId::fresh();
        self.beat(runner).await?;
        attendance.set(runner);
        tracing::warn!(
            "this process was silent for so long that others took over its tasks; it works on under another number"
        );
        Ok(())
    }

    /// Decides whether tasks may be taken over because a lease has expired: not right after an outage of the store, in which no process could renew.
    pub(crate) fn can_judge_leases(&self) -> bool {
        let store = &self.inner().store;
        let renewals = *self.inner().attendance.renewals.lock();
        renewals.can_judge_expired_leases(Instant::now(), store.lease(), store.detects_process_exit())
    }

    /// Says that this process is at work for as long as its engine is there.
    fn beat_on(&self) {
        match LeaseKeeper::start(self) {
            Ok(keeper) => keeper.forget(),
            Err(error) => {
                tracing::error!("this process cannot go on saying that it is at work: {error}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(9);

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn leases_are_judged_at_once_where_deaths_are_seen_and_later_elsewhere() {
        let (mut renewals, start) = (LeaseRenewals::default(), Instant::now());
        assert!(!renewals.can_judge_expired_leases(start, LEASE, true), "its own lease is not known");
        renewals.record(true, start, LEASE);
        assert!(renewals.can_judge_expired_leases(start, LEASE, true));
        assert!(!renewals.can_judge_expired_leases(start, LEASE, false));
        for renewal in [3, 6, 9] {
            renewals.record(true, start + seconds(renewal), LEASE);
        }
        assert!(renewals.can_judge_expired_leases(start + seconds(10), LEASE, false));
    }

    #[test]
    fn after_an_outage_others_have_a_lease_of_time_to_renew() {
        for (sees_deaths, outage) in
            [(true, vec![3, 6, 9, 12]), (false, vec![3, 6, 9, 12]), (true, vec![]), (false, vec![])]
        {
            let (mut renewals, start) = (LeaseRenewals::default(), Instant::now());
            renewals.record(true, start, LEASE);
            // The store fails, or it does not answer at all.
            outage.iter().for_each(|&at| renewals.record(false, start + seconds(at), LEASE));
            assert!(
                !renewals.can_judge_expired_leases(start + seconds(14), LEASE, sees_deaths),
                "{outage:?}"
            );
            for renewal in [15, 18, 21] {
                renewals.record(true, start + seconds(renewal), LEASE);
                let now = start + seconds(renewal);
                assert!(!renewals.can_judge_expired_leases(now, LEASE, sees_deaths), "{outage:?}, {renewal}");
            }
            renewals.record(true, start + seconds(24), LEASE);
            assert!(renewals.can_judge_expired_leases(start + seconds(25), LEASE, sees_deaths), "{outage:?}");
        }
    }
}
