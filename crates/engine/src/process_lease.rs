//! Lease of this process, which says that it is alive and works on its tasks.
//!
//! A process that works on tasks has a number, and each task has the number of its process. Where the store sees by itself when a process
//! dies, the process writes its lease once; elsewhere it renews it with heartbeats. So [`takeover`](crate::takeover) finds the tasks
//! whose process is gone.
//!
//! A server takes its number when it starts. A command may never have a task: it takes a number with its first one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rialto_model::{
    clock::{Clock, Timestamp},
    failure::Failure,
    ids::ProcessId,
    store::{Store, StoreError},
    task::{Task, TaskHead},
};
use tokio::sync::Mutex;

use crate::{lease_keeper::LeaseKeeper, store_failure::store_failure};

/// Lease of this process and the number under which it works on tasks.
pub struct ProcessLease {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    runner: AtomicU64,
    /// Set when a number is taken with the first task.
    registers_when_needed: AtomicBool,
    /// Set when the lease must be renewed with heartbeats.
    needs_heartbeat: AtomicBool,
    /// Set when this process takes over tasks of others.
    takes_over: AtomicBool,
    /// Numbers whose lease other processes took for expired.
    lost: parking_lot::Mutex<Vec<ProcessId>>,
    renewals: parking_lot::Mutex<LeaseRenewals>,
    /// Held while the number is taken.
    registering: Mutex<()>,
}

/// Renewals of this process's lease, from which it is known whether other processes could renew theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LeaseRenewals {
    /// First renewal without a failure since.
    since: Option<Instant>,
    last: Option<Instant>,
    last_failure: Option<Instant>,
}

// === impl LeaseRenewals ===

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

// === impl ProcessLease ===

impl ProcessLease {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            runner: AtomicU64::default(),
            registers_when_needed: AtomicBool::default(),
            needs_heartbeat: AtomicBool::default(),
            takes_over: AtomicBool::default(),
            lost: parking_lot::Mutex::default(),
            renewals: parking_lot::Mutex::default(),
            registering: Mutex::default(),
        }
    }

    /// Number of this process; [`ProcessId::NOBODY`] before it is registered.
    pub(crate) fn runner(&self) -> ProcessId {
        ProcessId::from(self.runner.load(Ordering::Relaxed))
    }

    /// Time for which a lease is valid after a renewal.
    pub(crate) fn duration(&self) -> Duration {
        self.store.lease()
    }

    pub(crate) fn needs_heartbeat(&self) -> bool {
        self.needs_heartbeat.load(Ordering::Relaxed)
    }

    /// Remembers that this process takes over tasks of others.
    pub(crate) fn set_takes_over(&self) {
        self.takes_over.store(true, Ordering::Relaxed);
    }

    /// True if other processes may have taken over what this one worked on under that number.
    fn is_lost(&self, runner: ProcessId) -> bool {
        runner != ProcessId::NOBODY && self.lost.lock().contains(&runner)
    }

    fn record_renewal(&self, is_renewed: bool) {
        self.renewals.lock().record(is_renewed, Instant::now(), self.store.lease());
    }

    fn set_runner(&self, runner: ProcessId) {
        self.runner.store(runner.get(), Ordering::Relaxed);
    }

    /// True if another process took over a task of this one, because it took this one for gone. While the store does not answer, a
    /// write is refused if another process has written since.
    pub(crate) async fn was_taken_over(&self, head: &TaskHead) -> bool {
        if !self.is_lost(head.runner) {
            return false;
        }
        let known = self.store.task(&head.scope, head.id.as_str()).await;
        known.is_ok_and(|known| known.is_none_or(|known| known.runner != head.runner))
    }

    /// Registers this process as one that works on tasks and takes messages. To be called before the first message.
    pub async fn register(&self) -> Result<(), Failure> {
        let runner = ProcessId::fresh();
        self.write(runner).await.map_err(store_failure)?;
        // Other processes must learn that they are not alone before this one takes any message.
        self.store.touch().await.map_err(store_failure)?;
        self.needs_heartbeat.store(true, Ordering::Relaxed);
        self.record_renewal(true);
        self.set_runner(runner);
        Ok(())
    }

    /// Has this process registered with its first task. For processes that take no messages.
    pub fn register_when_needed(&self) {
        self.registers_when_needed.store(true, Ordering::Relaxed);
    }

    /// Number of this process, which is registered if that is wanted and not done yet.
    pub(crate) async fn ensure_registered(self: &Arc<Self>) -> Result<ProcessId, Failure> {
        if self.runner() != ProcessId::NOBODY || !self.registers_when_needed.load(Ordering::Relaxed) {
            return Ok(self.runner());
        }
        let _registering = self.registering.lock().await;
        if self.runner() == ProcessId::NOBODY {
            let runner = ProcessId::fresh();
            if !self.store.lock_process(runner).await.map_err(store_failure)? {
                self.write(runner).await.map_err(store_failure)?;
                self.needs_heartbeat.store(true, Ordering::Relaxed);
                self.start_keeper();
            }
            self.set_runner(runner);
        }
        Ok(self.runner())
    }

    /// Ends the lease: open tasks of this process can be taken over at once.
    pub async fn release_lease(&self) {
        let runner = self.runner();
        if runner == ProcessId::NOBODY {
            return;
        }
        self.registers_when_needed.store(false, Ordering::Relaxed);
        self.set_runner(ProcessId::NOBODY);
        if let Err(error) = self.store.release_lease(runner).await {
            tracing::warn!("the lease of this process could not be ended: {error}");
        }
    }

    /// True if a live process works on a task, or one will soon take it over.
    pub async fn has_live_owner(&self, task: &TaskHead) -> Result<bool, Failure> {
        let takes_over = self.takes_over.load(Ordering::Relaxed);
        Ok(task.runner != ProcessId::NOBODY && (takes_over || self.is_alive(task.runner).await?))
    }

    /// True if the process of that number is alive.
    pub(crate) async fn is_alive(&self, runner: ProcessId) -> Result<bool, Failure> {
        self.store.is_process_alive(runner, self.clock.now()).await.map_err(store_failure)
    }

    /// Makes a task that continues here this process's.
    pub(crate) async fn claim(self: &Arc<Self>, task: &mut Task) -> Result<(), Failure> {
        let runner = self.ensure_registered().await?;
        if runner == ProcessId::NOBODY || task.head.runner == runner {
            return Ok(());
        }
        self.assign_runner(task).await
    }

    /// Makes a waiting task this process's if its own process is gone. Returns true if it was.
    ///
    /// This comes before the answer of its caller is recorded: a task that is not waiting any more and still belongs to a process
    /// that is gone would be taken over at that moment, and its agent be asked about it before it has received the answer.
    pub(crate) async fn adopt_orphan(self: &Arc<Self>, task: &mut Task) -> Result<bool, Failure> {
        let owner = task.head.runner;
        let runner = self.ensure_registered().await?;
        let is_foreign = runner != ProcessId::NOBODY && owner != ProcessId::NOBODY && owner != runner;
        if !is_foreign || !task.head.state.is_waiting() || self.is_alive(owner).await? {
            return Ok(false);
        }
        self.assign_runner(task).await?;
        Ok(true)
    }

    /// Makes a task this process's, whichever process it belongs to.
    pub(crate) async fn assign_runner(self: &Arc<Self>, task: &mut Task) -> Result<(), Failure> {
        let runner = self.ensure_registered().await?;
        self.store.assign_task(&task.head.id, runner).await.map_err(store_failure)?;
        task.head.runner = runner;
        Ok(())
    }

    /// Writes the lease of this process.
    async fn write(&self, runner: ProcessId) -> Result<(), StoreError> {
        self.store.acquire_lease(runner, self.expiry()).await
    }

    fn expiry(&self) -> Timestamp {
        let now = self.clock.now();
        now.checked_add(self.store.lease()).unwrap_or(now)
    }

    /// Renews the lease, or takes another number if other processes took this one for gone.
    pub(crate) async fn renew(&self) -> Result<(), StoreError> {
        let runner = self.runner();
        let renewed = match self.store.renew(runner, self.expiry()).await {
            Ok(true) => Ok(()),
            Ok(false) => self.replace_lost(runner).await,
            Err(error) => Err(error),
        };
        self.record_renewal(renewed.is_ok());
        renewed
    }

    /// Takes another number in place of one that other processes took for gone. They have its tasks now.
    async fn replace_lost(&self, lost: ProcessId) -> Result<(), StoreError> {
        if self.runner() != lost {
            return Ok(());
        }
        self.lost.lock().push(lost);
        let runner = ProcessId::fresh();
        self.write(runner).await?;
        self.set_runner(runner);
        tracing::warn!(
            "this process was silent for so long that others took over its tasks; it works on under another number"
        );
        Ok(())
    }

    /// Decides whether tasks may be taken over because a lease has expired: not right after an outage of the store, in which no process could renew.
    pub(crate) fn can_judge_leases(&self) -> bool {
        let renewals = *self.renewals.lock();
        renewals.can_judge_expired_leases(
            Instant::now(),
            self.store.lease(),
            self.store.detects_process_exit(),
        )
    }

    /// Renews the lease for as long as the engine exists.
    fn start_keeper(self: &Arc<Self>) {
        match LeaseKeeper::start(self) {
            Ok(keeper) => keeper.detach(),
            Err(error) => {
                tracing::error!("the lease of this process cannot be renewed: {error}");
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
