//! The deliveries to one webhook.

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

use super::{LOOK, Office};
use crate::{cloud::CloudEvent, delivery::Outcome};

/// How many records are read at once.
const BATCH: usize = 64;

/// How long to wait at the end of the trail.
const PAUSE: Duration = Duration::from_millis(100);

/// How many events may at most come twice, as the time that it takes to deliver them.
const NOTE_EVERY: Duration = Duration::from_millis(200);

/// So many records that are of no interest are passed before that is written down.
const MANY: u64 = 1_000;

/// How long a stop waits for a delivery that is under way, so that it need not come twice.
const GRACE: Duration = Duration::from_secs(2);

/// How long before its end a lease is prolonged, beyond what a delivery takes.
const SPARE: Duration = Duration::from_secs(1);

/// The deliveries to one webhook.
pub(super) struct Round {
    office: Arc<Office>,
    id: String,
    hold: Option<Hold>,
    stop: CancellationToken,
}

/// The right to deliver, and how things stand.
struct Hold {
    webhook: Webhook,
    until: Timestamp,
    /// The store's generation when the row was read.
    generation: u64,
    /// What the store knows of how things stand, and since when.
    noted: DeliveryState,
    noted_at: Timestamp,
}

/// What to do after a step.
enum Next {
    Now,
    After(Duration),
    Over,
}

// === impl Round ===

impl Round {
    pub(super) const fn new(office: Arc<Office>, id: String, stop: CancellationToken) -> Self {
        Self { office, id, hold: None, stop }
    }

    pub(super) async fn run(mut self) {
        let stop = self.stop.clone();
        while !stop.is_cancelled() {
            match self.step_or_stop(&stop).await {
                Next::Over => return,
                Next::Now => {}
                Next::After(pause) => tokio::select! {
                    () = stop.cancelled() => {}
                    () = tokio::time::sleep(pause) => {}
                },
            }
        }
        self.let_go().await;
    }

    /// One step. When all is to stop, what is under way may still come to its end.
    async fn step_or_stop(&mut self, stop: &CancellationToken) -> Next {
        let mut step = pin!(self.step());
        tokio::select! {
            next = &mut step => next,
            () = stop.cancelled() => tokio::time::timeout(GRACE, step).await.unwrap_or(Next::Now),
        }
    }

    async fn step(&mut self) -> Next {
        let stepped = self.try_step().await;
        stepped.unwrap_or_else(|error| {
            tracing::error!(webhook.id = self.id, "webhook {} has to wait for the store: {error}", self.id);
            self.hold = None;
            Next::After(LOOK)
        })
    }

    async fn try_step(&mut self) -> Result<Next, StoreError> {
        if self.office.parts.draining.load(Ordering::Relaxed) {
            if self.hold.is_some() {
                self.let_go().await;
            }
            return Ok(Next::After(LOOK));
        }
        if let Some(wait) = self.take_hold().await? {
            return Ok(wait);
        }
        let Some(hold) = &self.hold else { return Ok(Next::After(LOOK)) };
        if let Some(rest) = hold.rest(self.now()) {
            return Ok(Next::After(rest.min(LOOK)));
        }
        let records = self.office.parts.store.audit_after(hold.webhook.standing.handled, BATCH).await?;
        let is_end = records.is_empty();
        for record in &records {
            if self.stop.is_cancelled() || !self.pass(record).await? {
                break;
            }
        }
        self.note().await?;
        Ok(if is_end { Next::After(PAUSE) } else { Next::Now })
    }

    /// Sees to it that we are the ones who deliver, and know what others have changed. Answers what to do if we are not.
    async fn take_hold(&mut self) -> Result<Option<Next>, StoreError> {
        let (parts, now) = (&self.office.parts, self.now());
        let generation = parts.store.generation();
        if self.hold.as_ref().is_some_and(|hold| hold.generation == generation && !self.is_short(hold, now)) {
            return Ok(None);
        }
        let until = later(now, parts.config.lease());
        let lease = DeliveryLease { holder: self.office.holder.clone(), now, until };
        let next = match parts.store.lease_webhook(&self.id, &lease).await? {
            LeaseOutcome::Gone => Some(Next::Over),
            LeaseOutcome::Others => {
                self.hold = None;
                Some(Next::After(LOOK))
            }
            LeaseOutcome::Ours(webhook) => {
                let passed = self.hold.as_ref().map_or(0, |hold| hold.webhook.standing.handled);
                let noted = webhook.standing.clone();
                let mut hold = Hold { webhook: *webhook, until, generation, noted, noted_at: now };
                hold.webhook.standing.handled = hold.webhook.standing.handled.max(passed);
                self.hold = Some(hold);
                None
            }
        };
        Ok(next)
    }

    /// Does with one record what is to be done. Answers whether to go on with the next.
    async fn pass(&mut self, record: &StoredAuditEvent) -> Result<bool, StoreError> {
        let now = self.now();
        let parts = &self.office.parts;
        let margin = parts.config.timeout() + SPARE;
        let Some(hold) = &mut self.hold else { return Ok(false) };
        hold.miss_up_to(record.follows);
        let is_old = || later(record.event.emitted_at, parts.config.give_up()) < now;
        if !hold.webhook.wants(&record.event) {
            hold.webhook.standing.handled = record.record;
            return Ok(true);
        }
        if hold.webhook.standing.failures > 0 && is_old() {
            hold.give_up(record.record);
            return Ok(true);
        }
        if later(now, margin) > hold.until {
            return Ok(false);
        }
        let event = CloudEvent::of(record, &parts.source);
        let outcome = parts.delivery.bring(&hold.webhook, &event, now).await;
        let pause = |failures| parts.config.pause(failures).mul_f64(rand::random_range(0.5..=1.0));
        let goes_on = hold.hear(record.record, outcome, parts.clock.now(), pause);
        if later(hold.noted_at, NOTE_EVERY) < parts.clock.now() {
            self.note().await?;
        }
        Ok(goes_on && self.hold.is_some())
    }

    /// Writes down how things stand, if that is worth it.
    async fn note(&mut self) -> Result<(), StoreError> {
        let Some(hold) = &mut self.hold else { return Ok(()) };
        if !hold.is_news() {
            return Ok(());
        }
        let standing = &hold.webhook.standing;
        if self.office.parts.store.record_webhook_delivery(&self.id, &self.office.holder, standing).await? {
            (hold.noted, hold.noted_at) = (standing.clone(), self.office.parts.clock.now());
        } else {
            tracing::warn!(webhook.id = self.id, "webhook {} is delivered to by another process", self.id);
            self.hold = None;
        }
        Ok(())
    }

    /// Writes down where we are, and lets others deliver.
    /// Gives the lease back, so that another process can deliver at once.
    async fn let_go(&mut self) {
        let now = self.now();
        let lease = DeliveryLease { holder: self.office.holder.clone(), now, until: now };
        let noted = self.note().await;
        if self.hold.is_some() && noted.is_ok() {
            // If it does not work out, they wait until the lease is over.
            let _ = self.office.parts.store.lease_webhook(&self.id, &lease).await;
        }
        self.hold = None;
    }

    /// Whether there may not be time for another delivery.
    fn is_short(&self, hold: &Hold, now: Timestamp) -> bool {
        later(now, self.office.parts.config.timeout() + SPARE) > hold.until
    }

    fn now(&self) -> Timestamp {
        self.office.parts.clock.now()
    }
}

// === impl Hold ===

impl Hold {
    /// How long nothing is to be delivered.
    fn rest(&self, now: Timestamp) -> Option<Duration> {
        let standing = &self.webhook.standing;
        if standing.disabled.is_some() {
            return Some(LOOK);
        }
        let then = standing.next_attempt_at.filter(|then| *then > now)?;
        Duration::try_from(then.duration_since(now)).ok()
    }

    /// Counts what was swept away before it could be delivered.
    fn miss_up_to(&mut self, record: u64) {
        let standing = &mut self.webhook.standing;
        let missing = record.saturating_sub(standing.handled);
        if missing > 0 {
            standing.lost += missing;
            standing.handled = record;
            tracing::warn!(
                webhook.id = self.webhook.id,
                "webhook {} was too far behind: {missing} audit records were swept before it could be told",
                self.webhook.id
            );
        }
    }

    fn give_up(&mut self, record: u64) {
        let standing = &mut self.webhook.standing;
        standing.lost += 1;
        standing.handled = record;
        tracing::warn!(
            webhook.id = self.webhook.id,
            "webhook {} is not told of audit record {record} any more: it fails, and the record is old",
            self.webhook.id
        );
    }

    /// Takes down how a delivery went. Answers whether to go on with the next record.
    fn hear(
        &mut self,
        record: u64,
        outcome: Outcome,
        now: Timestamp,
        pause: impl Fn(u32) -> Duration,
    ) -> bool {
        let id = &self.webhook.id;
        let standing = &mut self.webhook.standing;
        match outcome {
            Outcome::Taken => {
                if standing.failures > 0 {
                    tracing::info!(webhook.id = id, "webhook {id} takes events again");
                }
                (standing.handled, standing.delivered) = (record, standing.delivered + 1);
                (standing.failures, standing.next_attempt_at, standing.last_error) = (0, None, None);
                true
            }
            Outcome::Unwanted => {
                tracing::warn!(
                    webhook.id = id,
                    "webhook {id} is disabled: its receiver answered 410 Gone; `rialto webhooks retry {id}` undoes that"
                );
                standing.disabled = Some("its receiver answered with HTTP status 410 Gone".to_owned());
                false
            }
            Outcome::Failed { why, wait } => {
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

    /// Whether the store should know.
    fn is_news(&self) -> bool {
        let standing = &self.webhook.standing;
        let passed = standing.handled.saturating_sub(self.noted.handled);
        let unmoved = DeliveryState { handled: self.noted.handled, ..standing.clone() };
        passed >= MANY || unmoved != self.noted
    }
}

fn later(moment: Timestamp, span: Duration) -> Timestamp {
    moment.checked_add(span).unwrap_or(Timestamp::MAX)
}
