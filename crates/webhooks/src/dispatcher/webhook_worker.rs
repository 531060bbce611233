//! Worker that delivers to one webhook.

use std::{
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use jiff::Timestamp;
use rialto_model::{
    store::{StoreError, StoredAuditEvent},
    webhook::{DeliveryLease, DeliveryState, LeaseOutcome, Webhook},
};
use tokio_util::sync::CancellationToken;

use super::{DispatcherShared, POLL_INTERVAL};
use crate::{cloud_event::CloudEvent, delivery::DeliveryOutcome};

/// Number of records that are read at once.
const BATCH_RECORDS: usize = 64;

/// Pause at the end of the trail.
const IDLE_INTERVAL: Duration = Duration::from_millis(100);

/// Interval at which progress is saved, and so the time of deliveries that may be repeated.
const SAVE_INTERVAL: Duration = Duration::from_millis(200);

/// Number of records without interest after which progress is saved.
const MAX_UNSAVED_RECORDS: u64 = 1_000;

/// Time that a stop waits for a delivery in progress, so that it is not repeated.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// Time before its end at which a lease is renewed, beyond the timeout of a delivery.
const RENEWAL_MARGIN: Duration = Duration::from_secs(1);

/// Worker that delivers to one webhook.
pub(super) struct WebhookWorker {
    shared: Arc<DispatcherShared>,
    id: String,
    lease: Option<HeldLease>,
    stop: CancellationToken,
}

/// Lease of the webhook, and its state.
struct HeldLease {
    webhook: Webhook,
    until: Timestamp,
    /// Generation of the store when the row was read.
    generation: u64,
    /// State as it was last saved, and when.
    saved: DeliveryState,
    saved_at: Timestamp,
}

/// Action after a step.
enum NextStep {
    Now,
    After(Duration),
    Stop,
}

// === impl WebhookWorker ===

impl WebhookWorker {
    pub(super) const fn new(shared: Arc<DispatcherShared>, id: String, stop: CancellationToken) -> Self {
        Self { shared, id, lease: None, stop }
    }

    pub(super) async fn run(mut self) {
        let stop = self.stop.clone();
        while !stop.is_cancelled() {
            match self.step_or_stop(&stop).await {
                NextStep::Stop => return,
                NextStep::Now => {}
                NextStep::After(pause) => tokio::select! {
                    () = stop.cancelled() => {}
                    () = tokio::time::sleep(pause) => {}
                },
            }
        }
        self.release_lease().await;
    }

    /// Runs one step. On a stop, a step in progress may still finish.
    async fn step_or_stop(&mut self, stop: &CancellationToken) -> NextStep {
        let mut step = pin!(self.step());
        tokio::select! {
            next = &mut step => next,
            () = stop.cancelled() => tokio::time::timeout(STOP_GRACE, step).await.unwrap_or(NextStep::Now),
        }
    }

    async fn step(&mut self) -> NextStep {
        let stepped = self.try_step().await;
        stepped.unwrap_or_else(|error| {
            tracing::error!(webhook.id = self.id, "webhook {} has to wait for the store: {error}", self.id);
            self.lease = None;
            NextStep::After(POLL_INTERVAL)
        })
    }

    async fn try_step(&mut self) -> Result<NextStep, StoreError> {
        if self.shared.deps.draining.load(Ordering::Relaxed) {
            if self.lease.is_some() {
                self.release_lease().await;
            }
            return Ok(NextStep::After(POLL_INTERVAL));
        }
        if let Some(wait) = self.ensure_lease().await? {
            return Ok(wait);
        }
        let Some(lease) = &self.lease else { return Ok(NextStep::After(POLL_INTERVAL)) };
        if let Some(pause) = lease.pause_left(self.now()) {
            return Ok(NextStep::After(pause.min(POLL_INTERVAL)));
        }
        let records =
            self.shared.deps.store.audit_after(lease.webhook.standing.handled, BATCH_RECORDS).await?;
        let is_end = records.is_empty();
        for record in &records {
            if self.stop.is_cancelled() || !self.process_record(record).await? {
                break;
            }
        }
        self.save_progress().await?;
        Ok(if is_end { NextStep::After(IDLE_INTERVAL) } else { NextStep::Now })
    }

    /// Takes or renews the lease, and rereads the webhook after changes. Returns an action if the lease is not ours.
    async fn ensure_lease(&mut self) -> Result<Option<NextStep>, StoreError> {
        let (deps, now) = (&self.shared.deps, self.now());
        let generation = deps.store.generation();
        if self
            .lease
            .as_ref()
            .is_some_and(|lease| lease.generation == generation && !self.expires_soon(lease, now))
        {
            return Ok(None);
        }
        let until = later(now, deps.config.lease());
        let request = DeliveryLease { holder: self.shared.holder.clone(), now, until };
        let next = match deps.store.lease_webhook(&self.id, &request).await? {
            LeaseOutcome::Gone => Some(NextStep::Stop),
            LeaseOutcome::Others => {
                self.lease = None;
                Some(NextStep::After(POLL_INTERVAL))
            }
            LeaseOutcome::Ours(webhook) => {
                let passed = self.lease.as_ref().map_or(0, |lease| lease.webhook.standing.handled);
                let saved = webhook.standing.clone();
                let mut lease = HeldLease { webhook: *webhook, until, generation, saved, saved_at: now };
                lease.webhook.standing.handled = lease.webhook.standing.handled.max(passed);
                self.lease = Some(lease);
                None
            }
        };
        Ok(next)
    }

    /// Processes one record. True if the next one may follow.
    async fn process_record(&mut self, record: &StoredAuditEvent) -> Result<bool, StoreError> {
        let now = self.now();
        let deps = &self.shared.deps;
        let margin = deps.config.timeout() + RENEWAL_MARGIN;
        let Some(lease) = &mut self.lease else { return Ok(false) };
        lease.count_lost_up_to(record.follows);
        let is_old = || later(record.event.emitted_at, deps.config.max_event_age()) < now;
        if !lease.webhook.wants(&record.event) {
            lease.webhook.standing.handled = record.record;
            return Ok(true);
        }
        if lease.webhook.standing.failures > 0 && is_old() {
            lease.drop_record(record.record);
            return Ok(true);
        }
        if later(now, margin) > lease.until {
            return Ok(false);
        }
        let event = CloudEvent::from_record(record, &deps.source);
        let outcome = deps.delivery.deliver(&lease.webhook, &event, now).await;
        let pause = |failures| deps.config.retry_pause(failures).mul_f64(rand::random_range(0.5..=1.0));
        let continues = lease.apply_outcome(record.record, outcome, deps.clock.now(), pause);
        if later(lease.saved_at, SAVE_INTERVAL) < deps.clock.now() {
            self.save_progress().await?;
        }
        Ok(continues && self.lease.is_some())
    }

    /// Saves progress, if there is enough of it.
    async fn save_progress(&mut self) -> Result<(), StoreError> {
        let Some(lease) = &mut self.lease else { return Ok(()) };
        if !lease.has_unsaved_progress() {
            return Ok(());
        }
        let standing = &lease.webhook.standing;
        if self.shared.deps.store.record_webhook_delivery(&self.id, &self.shared.holder, standing).await? {
            (lease.saved, lease.saved_at) = (standing.clone(), self.shared.deps.clock.now());
        } else {
            tracing::warn!(webhook.id = self.id, "webhook {} is delivered to by another process", self.id);
            self.lease = None;
        }
        Ok(())
    }

    /// Saves progress and releases the lease, so that another process can deliver at once.
    async fn release_lease(&mut self) {
        let now = self.now();
        let request = DeliveryLease { holder: self.shared.holder.clone(), now, until: now };
        let saved = self.save_progress().await;
        if self.lease.is_some() && saved.is_ok() {
            // If it fails, others wait until the lease ends.
            let _ = self.shared.deps.store.lease_webhook(&self.id, &request).await;
        }
        self.lease = None;
    }

    /// True if the lease may end before another delivery does.
    fn expires_soon(&self, lease: &HeldLease, now: Timestamp) -> bool {
        later(now, self.shared.deps.config.timeout() + RENEWAL_MARGIN) > lease.until
    }

    fn now(&self) -> Timestamp {
        self.shared.deps.clock.now()
    }
}

// === impl HeldLease ===

impl HeldLease {
    /// Time left until the next attempt.
    fn pause_left(&self, now: Timestamp) -> Option<Duration> {
        let standing = &self.webhook.standing;
        if standing.disabled.is_some() {
            return Some(POLL_INTERVAL);
        }
        let then = standing.next_attempt_at.filter(|then| *then > now)?;
        Duration::try_from(then.duration_since(now)).ok()
    }

    /// Counts records that retention removed before they were delivered.
    fn count_lost_up_to(&mut self, record: u64) {
        let standing = &mut self.webhook.standing;
        let missing = record.saturating_sub(standing.handled);
        if missing > 0 {
            standing.lost += missing;
            standing.handled = record;
            tracing::warn!(
                webhook.id = self.webhook.id,
                "webhook {} was too far behind: {missing} audit records were removed before they were delivered",
                self.webhook.id
            );
        }
    }

    fn drop_record(&mut self, record: u64) {
        let standing = &mut self.webhook.standing;
        standing.lost += 1;
        standing.handled = record;
        tracing::warn!(
            webhook.id = self.webhook.id,
            "webhook {} drops audit record {record}: deliveries fail, and the record is too old",
            self.webhook.id
        );
    }

    /// Records the outcome of a delivery. True if the next record may follow.
    fn apply_outcome(
        &mut self,
        record: u64,
        outcome: DeliveryOutcome,
        now: Timestamp,
        pause: impl Fn(u32) -> Duration,
    ) -> bool {
        let id = &self.webhook.id;
        let standing = &mut self.webhook.standing;
        match outcome {
            DeliveryOutcome::Accepted => {
                if standing.failures > 0 {
                    tracing::info!(webhook.id = id, "webhook {id} takes events again");
                }
                (standing.handled, standing.delivered) = (record, standing.delivered + 1);
                (standing.failures, standing.next_attempt_at, standing.last_error) = (0, None, None);
                true
            }
            DeliveryOutcome::Gone => {
                tracing::warn!(
                    webhook.id = id,
                    "webhook {id} is disabled: its receiver answered 410 Gone; `rialto webhooks retry {id}` undoes that"
                );
                standing.disabled = Some("its receiver answered with HTTP status 410 Gone".to_owned());
                false
            }
            DeliveryOutcome::Failed { why, wait } => {
                standing.failures = standing.failures.saturating_add(1);
                if standing.failures == 1 {
                    tracing::warn!(webhook.id = id, "webhook {id} failed and is tried again: {why}");
                }
                let pause = pause(standing.failures).max(wait.unwrap_or_default());
                (standing.next_attempt_at, standing.last_error) = (Some(later(now, pause)), Some(why));
                false
            }
        }
    }

    /// True if there is progress to save.
    fn has_unsaved_progress(&self) -> bool {
        let standing = &self.webhook.standing;
        let passed = standing.handled.saturating_sub(self.saved.handled);
        let unmoved = DeliveryState { handled: self.saved.handled, ..standing.clone() };
        passed >= MAX_UNSAVED_RECORDS || unmoved != self.saved
    }
}

fn later(moment: Timestamp, span: Duration) -> Timestamp {
    moment.checked_add(span).unwrap_or(Timestamp::MAX)
}
