//! The receiving end of calls that other nodes took.

use std::time::Duration;

use futures::{StreamExt, stream::BoxStream};
use rialto_model::{
    event::Event,
    failure::{Failure, FailureKind},
    ids::ProcessId,
    relay::RelayedCall,
};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::PlacedPeer;
use crate::{
    engine::Engine,
    relayed_call::{RelayedItem, RelayedWork},
};

/// Wait between two looks for calls, while any program is placed.
const POLL: Duration = Duration::from_millis(50);

/// The same while none is.
const IDLE_POLL: Duration = Duration::from_secs(1);

/// Events that are written at once.
const MAX_BATCH_EVENTS: usize = 32;

/// Time between two looks at whether the call is still wanted.
const CALL_CHECK: Duration = Duration::from_millis(250);

/// Wait before a write that failed is tried again, and the time after which it is not any more.
const RETRY: Duration = Duration::from_millis(250);
const MAX_WRITE_TIME: Duration = Duration::from_secs(120);

type Items = BoxStream<'static, RelayedItem>;

// === impl PlacedPeer ===

impl PlacedPeer {
    /// Executes calls that other nodes took, until it is told to stop.
    pub async fn serve(self, stop: CancellationToken) {
        let mut is_failing = false;
        while !stop.is_cancelled() {
            let Ok(engine) = self.engine() else { return };
            let taken = match engine.runner() {
                ProcessId::NOBODY => Ok(Vec::new()),
                runner => engine.inner().store.take_relayed_calls(runner).await,
            };
            if let Err(error) = &taken
                && !is_failing
            {
                tracing::warn!("calls of other nodes could not be taken: {error}");
            }
            is_failing = taken.is_err();
            for call in taken.unwrap_or_default() {
                let (peer, engine) = (self.clone(), engine.clone());
                let tracker = engine.inner().tracker.clone();
                tracker.spawn(async move { peer.execute_relayed(&engine, call).await });
            }
            let is_placed = engine.registry().all().iter().any(|row| row.backing.placement().is_some());
            let pause = if is_placed { POLL } else { IDLE_POLL };
            drop(engine);
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn execute_relayed(&self, engine: &Engine, call: RelayedCall) {
        let items = match self.begin(engine, &call).await {
            Ok(items) => items,
            Err(failure) => futures::stream::iter([RelayedItem::Failed(failure)]).boxed(),
        };
        let end = futures::stream::iter([RelayedItem::End]);
        forward(engine, &call, items.chain(end).boxed()).await;
    }

    async fn begin(&self, engine: &Engine, call: &RelayedCall) -> Result<Items, Failure> {
        engine.sync().await?;
        let unreadable =
            |error| Failure::new(FailureKind::Internal, format!("the call cannot be read: {error}"));
        let events: BoxStream<'static, Event> = match serde_json::from_str(&call.body).map_err(unreadable)? {
            RelayedWork::Send(sent) => self.execute_here(engine, sent.into_call(engine)?, call.receiver)?,
            RelayedWork::Cancel(sent) => {
                let events = self.cancel_here(engine, sent.into_cancel(engine)?).await?;
                futures::stream::iter(events).boxed()
            }
        };
        Ok(events.map(|event| RelayedItem::Event(Box::new(event))).boxed())
    }
}

/// Writes the events of a call for the node that took it, for as long as that wants them.
async fn forward(engine: &Engine, call: &RelayedCall, items: Items) {
    let mut batches = items.ready_chunks(MAX_BATCH_EVENTS);
    let (mut check, mut known) = (interval(CALL_CHECK), 0);
    check.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            batch = batches.next() => {
                let Some(batch) = batch else { return };
                let bodies: Vec<String> = batch.iter().filter_map(|item| serde_json::to_string(item).ok()).collect();
                if !write(engine, call, known, &bodies).await {
                    return;
                }
                known += u64::try_from(bodies.len()).unwrap_or_default();
            }
            _ = check.tick() => if !is_wanted(engine, call, known).await {
                tracing::debug!("a call of another node is not wanted any more");
                return;
            },
        }
    }
}

/// Writes events; answers whether the call is still wanted.
async fn write(engine: &Engine, call: &RelayedCall, known: u64, bodies: &[String]) -> bool {
    let begun = Instant::now();
    loop {
        match engine.inner().store.put_relayed_events(&call.id, known, bodies).await {
            Ok(is_wanted) => return is_wanted,
            Err(error) if begun.elapsed() < MAX_WRITE_TIME => {
                tracing::debug!("events of a call of another node could not be written: {error}");
                tokio::time::sleep(RETRY).await;
            }
            Err(error) => {
                tracing::error!("events of a call of another node are lost: {error}");
                return false;
            }
        }
    }
}

/// Whether the call is still there, and the node that took it. While that cannot be told it is.
async fn is_wanted(engine: &Engine, call: &RelayedCall, known: u64) -> bool {
    let is_there = engine.inner().store.put_relayed_events(&call.id, known, &[]).await.unwrap_or(true);
    is_there && engine.is_at_work(call.sender).await.unwrap_or(true)
}
