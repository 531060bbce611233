//! Brings what the audit trail says to every webhook, in order, again and again until it is taken.
//!
//! Each webhook has a round of its own: a receiver that hangs keeps nobody else waiting. A round reads the trail from the
//! record that was handled last, so nothing is queued and nothing is lost when a process dies; at worst the last few
//! events come twice, under the same id. Of several processes only the one that holds the webhook's lease delivers.

mod round;

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

use self::round::Round;
use crate::{config::Config, delivery::Delivery};

/// How often to look for webhooks that were added, mended or given free.
const LOOK: Duration = Duration::from_millis(500);

/// What the couriers work with.
pub struct Parts {
    /// Where the trail and the webhooks are.
    pub store: Arc<dyn Store>,
    /// How events get to their receivers.
    pub delivery: Delivery,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// What can be set.
    pub config: Config,
    /// This server, as events name it.
    pub source: String,
    /// Set while this node is drained: other nodes deliver then.
    pub draining: Arc<AtomicBool>,
}

/// Deliver to all webhooks.
pub struct Couriers(Arc<Office>);

struct Office {
    parts: Parts,
    /// A name that no other process has.
    holder: String,
}

// === impl Couriers ===

impl Couriers {
    /// Couriers that have not begun.
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(Office { parts, holder: fresh() }))
    }

    /// Delivers until `stop`; then writes down how far each webhook is, and returns.
    pub async fn run(self, stop: CancellationToken) {
        let store = &self.0.parts.store;
        let (mut rounds, mut begun) = (JoinSet::new(), HashSet::new());
        let mut seen = None;
        while !stop.is_cancelled() {
            let generation = store.generation();
            if seen != Some(generation) {
                match self.begin(&mut begun, &mut rounds, &stop).await {
                    Ok(()) => seen = Some(generation),
                    Err(error) => tracing::error!("the webhooks could not be read: {error}"),
                }
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
            while rounds.try_join_next().is_some() {}
        }
        while rounds.join_next().await.is_some() {}
    }

    /// Begins a round for each webhook that has none. A round ends by itself when its webhook is gone, and no id comes
    /// back.
    async fn begin(
        &self,
        begun: &mut HashSet<String>,
        rounds: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) -> Result<(), StoreError> {
        let ids: HashSet<String> =
            self.0.parts.store.webhooks().await?.into_iter().map(|hook| hook.id).collect();
        for id in ids.difference(begun) {
            rounds.spawn(Round::new(Arc::clone(&self.0), id.clone(), stop.clone()).run());
        }
        *begun = ids;
        Ok(())
    }
}
