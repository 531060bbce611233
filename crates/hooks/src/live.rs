//! Tells whoever watches what comes on record, as it comes.
//!
//! One reader follows the audit trail for all who watch in this process, and only while there is one. What it reads goes
//! into a queue that holds so many records and no more: whoever is slower than that misses some, is told how many, and can
//! read them in the trail.

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

/// How many records the queue holds.
const QUEUE: usize = 1024;

/// How many records are read at once.
const BATCH: usize = 256;

/// Arguments that are larger stay in the trail: the queue is bounded in bytes too.
const LARGE: usize = 16 * 1024;

/// How long to wait at the end of the trail.
const PAUSE: Duration = Duration::from_millis(100);

/// What comes on record, for any number of watchers. Cloning shares it.
#[derive(Clone)]
pub struct Live(Arc<Inner>);

/// One watcher.
pub struct Watch {
    live: Live,
    org: OrgId,
    queue: broadcast::Receiver<Arc<StoredAuditEvent>>,
    /// The record that was seen last, by whoever goes on from there.
    seen: Option<u64>,
    /// Whether older records are still being read.
    is_behind: bool,
    /// Records up to this one are not read again.
    forgotten: u64,
    read: VecDeque<Arc<StoredAuditEvent>>,
}

/// What a watcher learns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// Something came on record.
    Record(Arc<StoredAuditEvent>),
    /// So many records, of whichever org, will not be seen here.
    Missed(u64),
}

struct Inner {
    store: Arc<dyn Store>,
    queue: broadcast::Sender<Arc<StoredAuditEvent>>,
    /// Whether somebody reads the trail.
    is_followed: Mutex<bool>,
    missed: AtomicU64,
}

// === impl Live ===

impl Live {
    /// Nothing is read before somebody watches.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self::with_room(store, QUEUE)
    }

    /// The same with a queue of so many records.
    pub fn with_room(store: Arc<dyn Store>, room: usize) -> Self {
        let (queue, _) = broadcast::channel(room);
        Self(Arc::new(Inner { store, queue, is_followed: Mutex::new(false), missed: AtomicU64::new(0) }))
    }

    /// Watches what comes on record for an org: from now on, or from behind the record that was seen last.
    pub async fn watch(&self, org: OrgId, seen: Option<u64>) -> Result<Watch, StoreError> {
        self.watch_lately(org, seen, u64::MAX).await
    }

    /// The same for somebody who may have only so many of the latest records read again: what is older counts as missed.
    pub async fn watch_lately(&self, org: OrgId, seen: Option<u64>, most: u64) -> Result<Watch, StoreError> {
        let mut is_followed = self.0.is_followed.lock().await;
        let queue = self.0.queue.subscribe();
        let end = self.0.store.last_audit_number().await?;
        if !*is_followed {
            *is_followed = true;
            tokio::spawn(self.clone().follow(end));
        }
        drop(is_followed);
        // What was never on record was seen in another trail.
        let seen = seen.filter(|seen| *seen <= end);
        let (live, is_behind, forgotten) = (self.clone(), seen.is_some(), end.saturating_sub(most));
        Ok(Watch { live, org, queue, seen, is_behind, forgotten, read: VecDeque::new() })
    }

    /// How many records were missed by watchers, all together.
    pub fn missed(&self) -> u64 {
        self.0.missed.load(Ordering::Relaxed)
    }

    /// Whether anybody watches.
    pub fn is_watched(&self) -> bool {
        self.0.queue.receiver_count() > 0
    }

    /// Reads the trail from behind `at` for as long as somebody watches.
    async fn follow(self, mut at: u64) {
        loop {
            let records = self.0.store.audit_after(at, BATCH).await.unwrap_or_else(|error| {
                tracing::error!("whoever watches has to wait for the store: {error}");
                Vec::new()
            });
            let is_end = records.is_empty();
            for record in records {
                at = record.record;
                // Nobody may be left to hear it; that is looked at below.
                let _ = self.0.queue.send(light(record));
            }
            if self.is_over().await {
                return;
            }
            if is_end {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Whether nobody watches any more. Whoever comes next then begins to read again.
    async fn is_over(&self) -> bool {
        if self.is_watched() {
            return false;
        }
        let mut is_followed = self.0.is_followed.lock().await;
        *is_followed = self.is_watched();
        !*is_followed
    }
}

// === impl Watch ===

impl Watch {
    /// What is new. It waits until there is something.
    pub async fn next(&mut self) -> Result<News, StoreError> {
        loop {
            if self.is_behind && self.read.is_empty() {
                self.catch_up().await?;
            }
            let record = match self.read.pop_front() {
                Some(record) => record,
                None => match self.queue.recv().await {
                    Ok(record) => record,
                    // How many we have not seen shows with the next one; some may have been read in the trail.
                    Err(RecvError::Lagged(_)) if self.seen.is_some() => continue,
                    Err(RecvError::Lagged(missed)) => return Ok(self.missed(missed)),
                    // It is there as long as we are.
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
                return Ok(self.missed(missed));
            }
            self.seen = Some(record.record);
            if &*record.event.verb.org_id == self.org.as_str() {
                return Ok(News::Record(record));
            }
        }
    }

    /// Reads on in the trail. The queue was there before, so what comes behind its end comes through the queue.
    async fn catch_up(&mut self) -> Result<(), StoreError> {
        let after = self.seen.unwrap_or_default().max(self.forgotten);
        let records = self.live.0.store.audit_after(after, BATCH).await?;
        self.is_behind = !records.is_empty();
        self.read.extend(records.into_iter().map(light));
        Ok(())
    }

    fn missed(&self, records: u64) -> News {
        self.live.0.missed.fetch_add(records, Ordering::Relaxed);
        News::Missed(records)
    }
}

/// The record, without arguments that are too large to be carried around.
fn light(mut record: StoredAuditEvent) -> Arc<StoredAuditEvent> {
    let size = record.event.verb.args.get().len();
    if size > LARGE {
        let args = Json::encode(&json!({ "omittedBytes": size }));
        record.event.verb = Arc::new(SkillInvocation { args, ..SkillInvocation::clone(&record.event.verb) });
    }
    Arc::new(record)
}
