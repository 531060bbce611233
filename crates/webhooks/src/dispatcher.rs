//! Dispatcher: delivers the audit trail to every webhook, in order, with retries.
//!
//! Each webhook has a worker, so a receiver that hangs delays no other. A worker reads the trail from the last handled record, so nothing
//! is queued and nothing is lost when a process dies; at worst the last few events are delivered twice, with the same id. Of several
//! processes only the one that holds the webhook's lease delivers.

mod webhook_worker;

use std::{
    collections::HashSet,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use rialto_model::{
    clock::Clock,
    ids::fresh,
    store::{Store, StoreError},
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::webhook_worker::WebhookWorker;
use crate::{config::Config, delivery::Delivery};

/// Interval at which webhooks that were added, enabled or released are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Dependencies of the dispatcher.
pub struct DispatcherDeps {
    /// Store with the audit trail and the webhooks.
    pub store: Arc<dyn Store>,
    /// Delivery of one event.
    pub delivery: Delivery,
    /// Clock.
    pub clock: Arc<dyn Clock>,
    /// Settings.
    pub config: Config,
    /// Source of events: this server.
    pub source: String,
    /// True while this node is drained: other nodes deliver then.
    pub draining: Arc<AtomicBool>,
}

/// Delivers to all webhooks.
pub struct WebhookDispatcher(Arc<DispatcherShared>);

struct DispatcherShared {
    deps: DispatcherDeps,
    /// Name of the lease holder, unique to this process.
    holder: String,
}

// === impl WebhookDispatcher ===

impl WebhookDispatcher {
    /// Creates a dispatcher that does not run yet.
    pub fn new(deps: DispatcherDeps) -> Self {
        Self(Arc::new(DispatcherShared { deps, holder: fresh() }))
    }

    /// Delivers until `stop`; then saves the progress of each webhook and returns.
    pub async fn run(self, stop: CancellationToken) {
        let store = &self.0.deps.store;
        let (mut workers, mut running) = (JoinSet::new(), HashSet::new());
        let mut known = None;
        while !stop.is_cancelled() {
            let generation = store.generation();
            if known != Some(generation) {
                match self.start_workers(&mut running, &mut workers, &stop).await {
                    Ok(()) => known = Some(generation),
                    Err(error) => tracing::error!("the webhooks could not be read: {error}"),
                }
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
            while workers.try_join_next().is_some() {}
        }
        while workers.join_next().await.is_some() {}
    }

    /// Starts a worker for each webhook that has none. A worker ends by itself when its webhook is removed, and ids are not reused.
    async fn start_workers(
        &self,
        running: &mut HashSet<String>,
        workers: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) -> Result<(), StoreError> {
        let ids: HashSet<String> =
            self.0.deps.store.webhooks().await?.into_iter().map(|hook| hook.id).collect();
        for id in ids.difference(running) {
            workers.spawn(WebhookWorker::new(Arc::clone(&self.0), id.clone(), stop.clone()).run());
        }
        *running = ids;
        Ok(())
    }
}
