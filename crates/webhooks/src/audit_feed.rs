//! Live feed of audit records.
//!
//! One reader follows the audit trail for all subscriptions of this process, and only while there is one. Records go into a bounded queue:
//! a slow subscriber misses some, receives their number, and can read them in the trail.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rialto_model::{
    audit_event::SkillInvocation,
    ids::OrgId,
    json::Json,
    store::{Store, StoreError, StoredAuditEvent},
};
use serde_json::json;
use tokio::sync::{
    Mutex,
    broadcast::{self, error::RecvError},
};

/// Maximum number of records in the queue.
const QUEUE_RECORDS: usize = 1024;

/// Number of records that are read at once.
const BATCH_RECORDS: usize = 256;

/// Maximum bytes of arguments in the feed; larger ones stay in the trail, so that the queue is bounded in bytes too.
const MAX_ARGS_BYTES: usize = 16 * 1024;

/// Pause at the end of the trail.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Feed of audit records, for any number of subscriptions. Clones share it.
#[derive(Clone)]
pub struct AuditFeed(Arc<FeedInner>);

/// Subscription to the records of an org.
pub struct FeedSubscription {
    feed: AuditFeed,
    org: OrgId,
    queue: broadcast::Receiver<Arc<StoredAuditEvent>>,
    /// Last record that the subscriber has received.
    seen: Option<u64>,
    /// True while older records are being read.
    is_behind: bool,
    /// Records up to this one are not read again.
    skip_before: u64,
    read: VecDeque<Arc<StoredAuditEvent>>,
}

/// Item of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedItem {
    /// New record.
    Record(Arc<StoredAuditEvent>),
    /// Number of records, of any org, that this subscription has missed.
    Missed(u64),
}

struct FeedInner {
    store: Arc<dyn Store>,
    queue: broadcast::Sender<Arc<StoredAuditEvent>>,
    /// True while a task reads the trail.
    is_reading: Mutex<bool>,
    missed: AtomicU64,
}

// === impl AuditFeed ===

impl AuditFeed {
    /// Creates a feed. Nothing is read before the first subscription.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self::with_queue(store, QUEUE_RECORDS)
    }

    /// Creates a feed with a queue of this capacity.
    pub fn with_queue(store: Arc<dyn Store>, capacity: usize) -> Self {
        let (queue, _) = broadcast::channel(capacity);
        Self(Arc::new(FeedInner { store, queue, is_reading: Mutex::new(false), missed: AtomicU64::new(0) }))
    }

    /// Subscribes to the records of an org: from now on, or after the record that was received last.
    pub async fn subscribe(&self, org: OrgId, seen: Option<u64>) -> Result<FeedSubscription, StoreError> {
        self.subscribe_recent(org, seen, u64::MAX).await
    }

    /// Subscribes with at most this number of earlier records; older ones count as missed.
    pub async fn subscribe_recent(
        &self,
        org: OrgId,
        seen: Option<u64>,
        max_records: u64,
    ) -> Result<FeedSubscription, StoreError> {
        let mut is_reading = self.0.is_reading.lock().await;
        let queue = self.0.queue.subscribe();
        let end = self.0.store.last_audit_number().await?;
        if !*is_reading {
            *is_reading = true;
            tokio::spawn(self.clone().read_trail(end));
        }
        drop(is_reading);
        // What was never on record was seen in another trail.
        let seen = seen.filter(|seen| *seen <= end);
        let (feed, is_behind, skip_before) = (self.clone(), seen.is_some(), end.saturating_sub(max_records));
        Ok(FeedSubscription { feed, org, queue, seen, is_behind, skip_before, read: VecDeque::new() })
    }

    /// Number of records missed by all subscriptions.
    pub fn missed(&self) -> u64 {
        self.0.missed.load(Ordering::Relaxed)
    }

    /// True if there is a subscription.
    pub fn is_watched(&self) -> bool {
        self.0.queue.receiver_count() > 0
    }

    /// Reads the trail after `at` for as long as there is a subscription.
    async fn read_trail(self, mut at: u64) {
        loop {
            let records = self.0.store.audit_after(at, BATCH_RECORDS).await.unwrap_or_else(|error| {
                tracing::error!("live watchers wait for the store: {error}");
                Vec::new()
            });
            let is_end = records.is_empty();
            for record in records {
                at = record.record;
                // No subscription may be left; that is checked below.
                let _ = self.0.queue.send(without_large_args(record));
            }
            if self.stop_if_unwatched().await {
                return;
            }
            if is_end {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
    }

    /// True if no subscription is left. The next one starts a new reader.
    async fn stop_if_unwatched(&self) -> bool {
        if self.is_watched() {
            return false;
        }
        let mut is_reading = self.0.is_reading.lock().await;
        *is_reading = self.is_watched();
        !*is_reading
    }
}

// === impl FeedSubscription ===

impl FeedSubscription {
    /// Next item; waits until there is one.
    pub async fn next(&mut self) -> Result<FeedItem, StoreError> {
        loop {
            if self.is_behind && self.read.is_empty() {
                self.read_backlog().await?;
            }
            let record = match self.read.pop_front() {
                Some(record) => record,
                None => match self.queue.recv().await {
                    Ok(record) => record,
                    // How many we have not seen shows with the next one; some may have been read in the trail.
                    Err(RecvError::Lagged(_)) if self.seen.is_some() => continue,
                    Err(RecvError::Lagged(missed)) => return Ok(self.report_missed(missed)),
                    // The sender lives as long as this subscription.
                    Err(RecvError::Closed) => std::future::pending().await,
                },
            };
            let seen = self.seen.unwrap_or(record.follows);
            if record.record <= seen {
                continue;
            }
            if record.follows > seen {
                let missed = record.follows - seen;
                self.seen = Some(record.follows);
                self.read.push_front(record);
                return Ok(self.report_missed(missed));
            }
            self.seen = Some(record.record);
            if &*record.event.verb.org_id == self.org.as_str() {
                return Ok(FeedItem::Record(record));
            }
        }
    }

    /// Reads older records in the trail. The queue existed before, so later records are in the queue.
    async fn read_backlog(&mut self) -> Result<(), StoreError> {
        let after = self.seen.unwrap_or_default().max(self.skip_before);
        let records = self.feed.0.store.audit_after(after, BATCH_RECORDS).await?;
        self.is_behind = !records.is_empty();
        self.read.extend(records.into_iter().map(without_large_args));
        Ok(())
    }

    fn report_missed(&self, records: u64) -> FeedItem {
        self.feed.0.missed.fetch_add(records, Ordering::Relaxed);
        FeedItem::Missed(records)
    }
}

/// Record without arguments that are too large.
fn without_large_args(mut record: StoredAuditEvent) -> Arc<StoredAuditEvent> {
    let size = record.event.verb.args.get().len();
    if size > MAX_ARGS_BYTES {
        let args = Json::encode(&json!({ "omittedBytes": size }));
        record.event.verb = Arc::new(SkillInvocation { args, ..SkillInvocation::clone(&record.event.verb) });
    }
    Arc::new(record)
}
