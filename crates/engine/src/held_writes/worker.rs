//! Worker that writes what is held, with backoff while the store is not available.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures::{StreamExt, stream};
use rialto_model::{
    event::Event,
    store::{Store, StoreError, TaskAppend},
};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{
    HeldQueueState,
    queue::{HeldAudit, HeldEntry, HeldItem, QueueKey},
    spill::{self, SpilledEntry},
};
use crate::store_deadline::no_answer;

/// Backoff between attempts, doubled after each that failed.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Maximum time of one attempt. Short, so that a store that is back is noticed though an attempt hangs on a dead connection.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(3);

/// Tasks that are tried at once while the store is away, and once it takes writes again.
const PROBES: usize = 2;
const WIDTH: usize = 32;

/// Audit records that are written in one go.
const AUDIT_BATCH: usize = 128;

/// Attempts that may fail while others succeed, before a write counts as one that the store does not take.
const MAX_REFUSALS: u32 = 20;

/// Outcome of a turn of one key.
struct TurnEnd {
    written: usize,
    /// The write that the store was not available for.
    failed: Option<HeldItem>,
}

/// What the store says about events that were held.
enum WriteOutcome {
    /// They are in the store.
    Recorded,
    /// They never will be.
    Refused(StoreError),
}

/// Writes everything that is held, and ends when nothing is.
pub(super) async fn drain(shared: Arc<HeldQueueState>) {
    let (mut pause, mut width, mut written) = (FIRST_PAUSE, PROBES, 0);
    loop {
        let keys = shared.queue.lock().take(width, Instant::now());
        if keys.is_empty() {
            note_return(&shared, &mut written).await;
            let next_due = shared.queue.lock().next_due();
            if let Some(due_at) = next_due {
                // A write that comes meanwhile must not wait for it.
                sleep_until(due_at.min(Instant::now() + FIRST_PAUSE)).await;
            } else if finish(&shared) {
                return;
            }
            continue;
        }
        let turns = keys.into_iter().map(|key| turn(&shared, key));
        let ends: Vec<TurnEnd> = stream::iter(turns).buffer_unordered(WIDTH).collect().await;
        let count: usize = ends.iter().map(|end| end.written).sum();
        written += count;
        let failed: Vec<HeldItem> = ends.into_iter().filter_map(|end| end.failed).collect();
        if failed.is_empty() {
            (pause, width) = (FIRST_PAUSE, WIDTH);
        } else if count > 0 {
            (pause, width) = (FIRST_PAUSE, WIDTH);
            refuse_often_failed(&shared, &failed);
            sleep(pause).await;
        } else {
            width = PROBES;
            spill_entries(&shared).await;
            sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }
}

/// Writes everything that is held to the file in the data folder.
pub(super) async fn flush(shared: &Arc<HeldQueueState>) {
    let (left, audit_bytes) = {
        let queue = shared.queue.lock();
        (queue.entries().count(), queue.audit_bytes())
    };
    if left > 0 && !spill_entries(shared).await {
        tracing::error!(
            "{left} results are lost with this process: the store is not available, and no file could be written"
        );
    }
    if audit_bytes > 0 {
        tracing::error!("audit records that wait for the store are lost with this process");
    }
}

/// Records what processes held that are gone.
pub(super) async fn recover(shared: &Arc<HeldQueueState>) -> Result<(), StoreError> {
    for file in shared.spill.find_abandoned().await {
        let mut recorded = 0_usize;
        for SpilledEntry(entry) in file.entries() {
            match record(shared, &entry).await? {
                WriteOutcome::Recorded => recorded += 1,
                WriteOutcome::Refused(error) => {
                    let task = &entry.head.id;
                    tracing::warn!(task.id = %task, "a held result of task {task} was not recorded: {error}");
                }
            }
        }
        tracing::info!("{recorded} results that a stopped process held are recorded");
        file.remove();
    }
    Ok(())
}

/// Writes what waits under one key, up to the first write that the store is not available for.
async fn turn(shared: &Arc<HeldQueueState>, key: QueueKey) -> TurnEnd {
    let mut written = 0;
    let max = if key == QueueKey::Audit { AUDIT_BATCH } else { 1 };
    let failed = loop {
        let items = shared.queue.lock().front(&key, max);
        let Some(first) = items.first() else { break None };
        let done = match first {
            HeldItem::Entry(held) => write_entry(shared, held).await,
            HeldItem::Audit(_) => write_audit(shared, &items).await,
            HeldItem::Unsent(unsent) => match unsent.settle(&*shared.store, &*shared.clock).await {
                Ok(Some(published)) => {
                    shared.publish(published);
                    Ok(())
                }
                // It is looked for again later.
                Ok(None) => break None,
                Err(error) => Err(error),
            },
        };
        match done {
            Ok(()) => {
                shared.queue.lock().pop(&key, items.len());
                written += items.len();
            }
            Err(_) => break Some(first.clone()),
        }
    };
    shared.queue.lock().release(key);
    TurnEnd { written, failed }
}

async fn write_entry(shared: &Arc<HeldQueueState>, held: &HeldEntry) -> Result<(), StoreError> {
    let outcome = match record(shared, &held.entry).await? {
        WriteOutcome::Recorded => Ok(held.entry.events.clone()),
        WriteOutcome::Refused(error) => Err(error),
    };
    held.report(outcome);
    Ok(())
}

/// Writes events to their task and publishes them. An error says that the store is not available.
async fn record(shared: &HeldQueueState, entry: &TaskAppend) -> Result<WriteOutcome, StoreError> {
    match in_time("append", shared.store.append(entry.clone())).await {
        Ok(()) => {}
        Err(StoreError::Conflict) if is_written(&*shared.store, entry).await? => {}
        Err(error @ StoreError::Unavailable(_)) => return Err(error),
        Err(error) => return Ok(WriteOutcome::Refused(error)),
    }
    if shared.listeners.are_there() {
        let events = Some(entry.events.clone());
        shared.listeners.tell(&entry.head.id, entry.expected, entry.at, events);
    }
    shared.publish(entry.audit.clone());
    Ok(WriteOutcome::Recorded)
}

/// Whether the store has exactly these events at their place: an attempt was done though nobody heard of it.
async fn is_written(store: &dyn Store, entry: &TaskAppend) -> Result<bool, StoreError> {
    if entry.events.is_empty() {
        return Ok(false);
    }
    let found = in_time("events", store.events(&entry.head.id, entry.expected)).await?;
    let places = entry.expected + 1..;
    let is_same = |(event, (seq, recorded)): (&Event, (u64, &rialto_model::event::RecordedEvent))| {
        recorded.seq == seq && is_same_event(event, &recorded.event)
    };
    Ok(found.len() >= entry.events.len() && entry.events.iter().zip(places.zip(&found)).all(is_same))
}

/// Whether two events say the same, however the store has written their JSON.
fn is_same_event(one: &Event, other: &Event) -> bool {
    let value = |event: &Event| serde_json::to_value(event).ok();
    one == other || value(one).is_some_and(|one| Some(one) == value(other))
}

async fn write_audit(shared: &Arc<HeldQueueState>, items: &[HeldItem]) -> Result<(), StoreError> {
    let audits: Vec<&Arc<HeldAudit>> = items
        .iter()
        .filter_map(|item| match item {
            HeldItem::Audit(audit) => Some(audit),
            HeldItem::Entry(_) | HeldItem::Unsent(_) => None,
        })
        .collect();
    let records: Vec<_> = audits.iter().flat_map(|audit| audit.records.clone()).collect();
    let count = records.len();
    match in_time("audit", shared.store.audit(records)).await {
        Ok(()) => {}
        Err(error @ StoreError::Unavailable(_)) => return Err(error),
        Err(error) => shared.lose(count, &error),
    }
    shared.publish(audits.iter().flat_map(|audit| audit.published.clone()).collect());
    Ok(())
}

async fn in_time<T>(
    operation: &'static str,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    match timeout(ATTEMPT_TIMEOUT, work).await {
        Ok(done) => done,
        Err(_) => Err(no_answer(operation, ATTEMPT_TIMEOUT)),
    }
}

/// Gives up writes that fail again and again while the store takes others.
fn refuse_often_failed(shared: &HeldQueueState, failed: &[HeldItem]) {
    for item in failed {
        let HeldItem::Entry(held) = item else { continue };
        if held.refusals.fetch_add(1, Ordering::Relaxed) < MAX_REFUSALS {
            continue;
        }
        let task = &held.entry.head.id;
        tracing::error!(task.id = %task, "the store does not take a result of task {task}, though it takes others");
        held.report(Err(StoreError::Unwritable(
            "it failed again and again while others succeeded".to_owned(),
        )));
        shared.queue.lock().pop(&QueueKey::Task(task.clone()), 1);
    }
}

/// Writes results to the file that are not there yet. Answers whether all of them are.
async fn spill_entries(shared: &Arc<HeldQueueState>) -> bool {
    let entries: Vec<Arc<HeldEntry>> = {
        let queue = shared.queue.lock();
        queue.entries().filter(|held| !held.is_spilled.load(Ordering::Relaxed)).cloned().collect()
    };
    if entries.is_empty() {
        return true;
    }
    let records: Vec<u8> = entries.iter().flat_map(|held| spill::encode(&held.entry)).collect();
    let is_kept = shared.spill.append(records).await;
    if is_kept {
        for held in entries {
            held.is_spilled.store(true, Ordering::Relaxed);
        }
    }
    is_kept
}

/// Ends the work if nothing is held, and says whether it does.
fn finish(shared: &HeldQueueState) -> bool {
    let mut queue = shared.queue.lock();
    let is_over = queue.finish();
    if is_over {
        shared.is_holding.store(false, Ordering::Release);
    }
    is_over
}

/// Removes the file when the store has taken all writes, and says so.
async fn note_return(shared: &Arc<HeldQueueState>, written: &mut usize) {
    let Some(since) = shared.queue.lock().note_return() else { return };
    shared.spill.clear().await;
    for held in shared.queue.lock().entries() {
        // What came meanwhile is to be written to a new file.
        held.is_spilled.store(false, Ordering::Relaxed);
    }
    let count = std::mem::take(written);
    tracing::info!("the store is back: {count} held writes are recorded after {:.1?}", since.elapsed());
}

// === impl Shared ===

impl HeldQueueState {
    fn publish(&self, records: Vec<rialto_model::audit_event::AuditEvent>) {
        for mut record in records {
            self.bus.emit(&mut record);
        }
    }
}
