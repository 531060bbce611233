//! Renews the lease of this process, on a thread that calls cannot starve.

use std::{io, thread};

use rialto_model::ids::ProcessId;
use tokio::{runtime, sync::oneshot, time};

use crate::engine::{Engine, FaintEngine};

/// A lease is renewed so many times while it lasts.
const RENEWALS: u32 = 3;

/// Renews until it is dropped, or until the engine is gone.
pub(crate) struct LeaseKeeper {
    stop: Option<oneshot::Sender<()>>,
}

// === impl LeaseKeeper ===

impl LeaseKeeper {
    /// Starts the thread. It has a runtime of its own: whatever keeps the others busy, this one has time.
    pub(crate) fn start(engine: &Engine) -> io::Result<Self> {
        let (engine, pause) = (engine.faint(), engine.inner().store.lease() / RENEWALS);
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, mut stopped) = oneshot::channel::<()>();
        thread::Builder::new().name("lease".to_owned()).spawn(move || {
            runtime.block_on(async {
                let mut is_silenced = false;
                while renew(&engine, &mut is_silenced).await {
                    tokio::select! {
                        // Without anybody who could stop it, it ends with the engine.
                        Ok(()) = &mut stopped, if !stopped.is_terminated() => return,
                        () = time::sleep(pause) => {}
                    }
                }
            });
        })?;
        Ok(Self { stop: Some(stop) })
    }

    /// Lets it go on for as long as the engine is there.
    pub(crate) fn forget(mut self) {
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

/// Renews once. Answers whether to go on.
async fn renew(engine: &FaintEngine, is_silenced: &mut bool) -> bool {
    let Some(engine) = engine.get() else { return false };
    let runner = engine.runner();
    if runner == ProcessId::NOBODY || !engine.inner().attendance.beats() {
        return true;
    }
    let renewed = match engine.renew(runner).await {
        Ok(true) => Ok(()),
        Ok(false) => engine.replace_lost_lease(runner).await,
        Err(error) => Err(error),
    };
    engine.inner().attendance.record_renewal(renewed.is_ok(), engine.inner().store.lease());
    match renewed {
        Ok(()) if std::mem::take(is_silenced) => {
            tracing::info!("this process can say again that it is at work");
        }
        Ok(()) => {}
        Err(error) if !*is_silenced => {
            *is_silenced = true;
            tracing::error!(
                "this process cannot say that it is at work, and others may take over its tasks: {error}"
            );
        }
        Err(_) => {}
    }
    true
}
