//! Renews the lease of this process, on a thread that calls cannot starve.

use std::{
    io,
    sync::{Arc, Weak},
    thread,
};

use rialto_model::ids::ProcessId;
use tokio::{runtime, sync::oneshot, time};

use crate::process_lease::ProcessLease;

/// Number of renewals while a lease is valid.
const RENEWALS_PER_LEASE: u32 = 3;

/// Thread that renews the lease until it is dropped, or until the engine is gone.
pub(crate) struct LeaseKeeper {
    stop: Option<oneshot::Sender<()>>,
}

// === impl LeaseKeeper ===

impl LeaseKeeper {
    /// Starts the thread. It has a runtime of its own: whatever keeps the others busy, this one has time.
    pub(crate) fn start(lease: &Arc<ProcessLease>) -> io::Result<Self> {
        let (lease, pause) = (Arc::downgrade(lease), lease.duration() / RENEWALS_PER_LEASE);
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, mut stopped) = oneshot::channel::<()>();
        thread::Builder::new().name("lease".to_owned()).spawn(move || {
            runtime.block_on(async {
                let mut is_failing = false;
                while renew(&lease, &mut is_failing).await {
                    tokio::select! {
                        // A detached keeper ends with the engine.
                        Ok(()) = &mut stopped, if !stopped.is_terminated() => return,
                        () = time::sleep(pause) => {}
                    }
                }
            });
        })?;
        Ok(Self { stop: Some(stop) })
    }

    /// Lets it run for as long as the engine exists.
    pub(crate) fn detach(mut self) {
        drop(self.stop.take());
    }
}

impl Drop for LeaseKeeper {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // It may have ended before.
            let _ = stop.send(());
        }
    }
}

/// Renews once. Returns false when the engine is gone.
async fn renew(lease: &Weak<ProcessLease>, is_failing: &mut bool) -> bool {
    let Some(lease) = lease.upgrade() else { return false };
    if lease.runner() == ProcessId::NOBODY || !lease.needs_heartbeat() {
        return true;
    }
    match lease.renew().await {
        Ok(()) if std::mem::take(is_failing) => {
            tracing::info!("the lease of this process is renewed again");
        }
        Ok(()) => {}
        Err(error) if !*is_failing => {
            *is_failing = true;
            tracing::error!(
                "the lease of this process cannot be renewed, and others may take over its tasks: {error}"
            );
        }
        Err(_) => {}
    }
    true
}
