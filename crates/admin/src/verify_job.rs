//! Background verification of the audit log, with its progress.
//!
//! A server has one audit log, so a request during a verification joins it.

use std::{
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use rialto_model::{
    call::Caller,
    failure::{Failure, FailureKind},
    store::ChainVerification,
};
use rialto_policy::Action;
use tokio::sync::Notify;

use crate::{Administration, administration::store_failure};

/// Time that a request waits for the result of a short log.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// Verification of the audit log: its progress and its verdict.
#[derive(Debug)]
pub struct VerifyJob {
    /// Time of the start.
    pub started_at: Timestamp,
    /// Number of the last record at the start.
    pub end: u64,
    reached: Arc<AtomicU64>,
    verdict: OnceLock<Result<ChainVerification, Failure>>,
    is_over: Notify,
}

/// Last verification since the server started.
#[derive(Debug, Default)]
pub(crate) struct VerifyJobs(Mutex<Option<Arc<VerifyJob>>>);

// === impl VerifyJob ===

impl VerifyJob {
    /// Verification of a log that ends with this record.
    pub fn new(started_at: Timestamp, end: u64) -> Self {
        let (reached, verdict) = (Arc::default(), OnceLock::new());
        Self { started_at, end, reached, verdict, is_over: Notify::new() }
    }

    /// Number of the last verified record.
    pub fn reached(&self) -> u64 {
        self.reached.load(Ordering::Relaxed)
    }

    /// Verdict; none while it is running.
    pub fn verdict(&self) -> Option<&Result<ChainVerification, Failure>> {
        self.verdict.get()
    }

    fn finish(&self, verdict: Result<ChainVerification, Failure>) {
        // The verifying task finishes once.
        if self.verdict.set(verdict).is_ok() {
            self.is_over.notify_waiters();
        }
    }
}

// === impl VerifyJobs ===

impl VerifyJobs {
    fn latest(&self) -> Option<Arc<VerifyJob>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Joins the running verification, or else registers this new one.
    fn join(&self, fresh: Arc<VerifyJob>) -> (Arc<VerifyJob>, bool) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(known) if known.verdict().is_none() => (Arc::clone(known), false),
            _ => (Arc::clone(last.insert(fresh)), true),
        }
    }
}

/// Starts a verification, unless one is running, and waits briefly for its result.
pub async fn start(admin: &Administration, caller: &Caller) -> Result<(), Failure> {
    admin.authorize_admin(caller, Action::AdminAudit).await?;
    let end = admin.store().last_audit_number().await.map_err(store_failure)?;
    let fresh = VerifyJob::new(admin.engine().now(), end);
    let (job, is_new) = admin.verify_jobs().join(Arc::new(fresh));
    let over = job.is_over.notified();
    tokio::pin!(over);
    over.as_mut().enable();
    if is_new {
        tokio::spawn(verify(admin.clone(), Arc::clone(&job)));
    }
    if job.verdict().is_none() {
        // A longer verification is followed on its progress page.
        let _ = tokio::time::timeout(FIRST_WAIT, over).await;
    }
    Ok(())
}

async fn verify(admin: Administration, job: Arc<VerifyJob>) {
    let stop = admin.deps().stop.clone();
    let verdict = tokio::select! {
        verdict = admin.store().verify_audit_with_progress(Arc::clone(&job.reached)) => verdict.map_err(store_failure),
        () = stop.cancelled() => Err(Failure::new(FailureKind::Busy, "the server is stopping; verify the audit log again after the restart")),
    };
    job.finish(verdict);
}

/// Last verification since the server started, if there was one.
pub async fn latest(admin: &Administration, caller: &Caller) -> Result<Option<Arc<VerifyJob>>, Failure> {
    admin.authorize_admin(caller, Action::AdminAudit).await?;
    Ok(admin.verify_jobs().latest())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_request_joins_the_running_verification() {
        let all = VerifyJobs::default();
        let fresh = || Arc::new(VerifyJob::new(Timestamp::UNIX_EPOCH, 7));
        let (first, is_new) = all.join(fresh());
        assert!(is_new && first.verdict().is_none());
        let (same, is_new) = all.join(fresh());
        assert!(!is_new && Arc::ptr_eq(&first, &same));
        first.finish(Ok(ChainVerification::Sound { records: 7, last: 7, seal: String::new() }));
        let (next, is_new) = all.join(fresh());
        assert!(is_new && !Arc::ptr_eq(&first, &next), "a finished verification is not reused");
    }
}
