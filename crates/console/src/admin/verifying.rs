//! The audit trail, compared with its seals while nobody waits: whoever wants to know looks how far it is.
//!
//! There is one trail for everybody on a server, so whoever asks while it is compared already looks on.

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

use crate::{Console, console::store_failure};

/// A short trail is compared within this, and nobody need look a second time.
const SHORT: Duration = Duration::from_millis(500);

/// How far it is.
#[derive(Debug)]
pub struct Verification {
    /// When it began.
    pub begun: Timestamp,
    /// The number of the last record when it began.
    pub end: u64,
    reached: Arc<AtomicU64>,
    verdict: OnceLock<Result<ChainVerification, Failure>>,
    is_over: Notify,
}

/// The last one since the server started.
#[derive(Debug, Default)]
pub(crate) struct Verifications(Mutex<Option<Arc<Verification>>>);

// === impl Verification ===

impl Verification {
    /// One that is to begin, of a trail that ends with this record.
    pub(crate) fn new(begun: Timestamp, end: u64) -> Self {
        let (reached, verdict) = (Arc::default(), OnceLock::new());
        Self { begun, end, reached, verdict, is_over: Notify::new() }
    }

    /// The number of the last record that was compared.
    pub fn reached(&self) -> u64 {
        self.reached.load(Ordering::Relaxed)
    }

    /// What came of it; none while it goes on.
    pub fn verdict(&self) -> Option<&Result<ChainVerification, Failure>> {
        self.verdict.get()
    }

    fn end(&self, verdict: Result<ChainVerification, Failure>) {
        // Only whoever compares ends it, once.
        if self.verdict.set(verdict).is_ok() {
            self.is_over.notify_waiters();
        }
    }
}

// === impl Verifications ===

impl Verifications {
    fn last(&self) -> Option<Arc<Verification>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The one under way, or else this one, which is to begin.
    fn join(&self, fresh: Arc<Verification>) -> (Arc<Verification>, bool) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(known) if known.verdict().is_none() => (Arc::clone(known), false),
            _ => (Arc::clone(last.insert(fresh)), true),
        }
    }
}

/// Begins to compare the trail, unless that goes on already. It is waited for a moment.
pub async fn begin(console: &Console, caller: &Caller) -> Result<(), Failure> {
    console.admit(caller, Action::AdminAudit).await?;
    let end = console.store().last_audit_number().await.map_err(store_failure)?;
    let fresh = Verification::new(console.engine().now(), end);
    let (verification, is_new) = console.verifications().join(Arc::new(fresh));
    let over = verification.is_over.notified();
    tokio::pin!(over);
    over.as_mut().enable();
    if is_new {
        tokio::spawn(compare(console.clone(), Arc::clone(&verification)));
    }
    if verification.verdict().is_none() {
        // Whoever waits longer looks at how far it is.
        let _ = tokio::time::timeout(SHORT, over).await;
    }
    Ok(())
}

async fn compare(console: Console, verification: Arc<Verification>) {
    let stop = console.parts().stop.clone();
    let verdict = tokio::select! {
        verdict = console.store().verify_audit_with_progress(Arc::clone(&verification.reached)) => verdict.map_err(store_failure),
        () = stop.cancelled() => Err(Failure::new(FailureKind::Busy, "the server is stopping; verify the trail again when it is back")),
    };
    verification.end(verdict);
}

/// The last one since the server started, if there was one.
pub async fn last(console: &Console, caller: &Caller) -> Result<Option<Arc<Verification>>, Failure> {
    console.admit(caller, Action::AdminAudit).await?;
    Ok(console.verifications().last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_asks_while_it_goes_on_looks_on() {
        let all = Verifications::default();
        let fresh = || Arc::new(Verification::new(Timestamp::UNIX_EPOCH, 7));
        let (first, is_new) = all.join(fresh());
        assert!(is_new && first.verdict().is_none());
        let (same, is_new) = all.join(fresh());
        assert!(!is_new && Arc::ptr_eq(&first, &same));
        first.end(Ok(ChainVerification::Sound { records: 7, last: 7, seal: String::new() }));
        let (next, is_new) = all.join(fresh());
        assert!(is_new && !Arc::ptr_eq(&first, &next), "one that is over is not looked at again");
    }
}
