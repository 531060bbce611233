//! Slots of one agent: how many exchanges with it run at the same time.
//!
//! An exchange holds a slot until the agent has answered. When its caller has stopped waiting, the exchange is detached and continues,
//! but its slot is for callers that wait: one of them that finds no slot takes it over after a grace period. So an agent that left a
//! number of calls unanswered and then recovered is served again. Detached exchanges without a slot are bounded too.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use rialto_model::{
    failure::{Failure, FailureKind},
    json::Json,
    presence::CallerPresence,
};
use serde_json::json;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep_until},
};

/// Time that an exchange without a waiting caller keeps its slot at least.
const UNATTENDED_GRACE: Duration = Duration::from_secs(1);

/// Longest time between two searches for slots to take over.
const SEARCH_INTERVAL: Duration = Duration::from_millis(250);

/// Slots of one agent.
pub(crate) struct SlotPool {
    in_flight: Arc<Semaphore>,
    /// Detached exchanges without a slot.
    detached: Arc<Semaphore>,
    /// Slots whose callers have stopped waiting, the oldest first.
    unattended: Mutex<VecDeque<(Instant, Weak<SlotPermit>)>>,
    max_in_flight: usize,
}

/// Permission to have one exchange with an agent.
pub(crate) struct ExchangeSlot(Arc<SlotPermit>);

/// Permit of a slot, or of a detached exchange without one.
struct SlotPermit(Mutex<OwnedSemaphorePermit>);

// === impl SlotPool ===

impl SlotPool {
    pub(crate) fn new(max_in_flight: usize, max_detached: usize) -> Arc<Self> {
        Arc::new(Self {
            in_flight: Arc::new(Semaphore::new(max_in_flight)),
            detached: Arc::new(Semaphore::new(max_detached)),
            unattended: Mutex::default(),
            max_in_flight,
        })
    }

    /// Waits for a slot, at most for `wait`.
    pub(crate) async fn acquire(&self, wait: Duration) -> Result<ExchangeSlot, Failure> {
        if let Ok(permit) = Arc::clone(&self.in_flight).try_acquire_owned() {
            return Ok(ExchangeSlot::new(permit));
        }
        let deadline = Instant::now() + wait;
        let mut acquired = pin!(Arc::clone(&self.in_flight).acquire_owned());
        loop {
            let now = Instant::now();
            let next = self.take_over(now).unwrap_or(deadline).min(now + SEARCH_INTERVAL).min(deadline);
            tokio::select! {
                biased;
                Ok(permit) = &mut acquired => return Ok(ExchangeSlot::new(permit)),
                () = sleep_until(next) => if next >= deadline { return Err(busy()) },
            }
        }
    }

    /// Frees the slot that has been unattended for longest, if that was long enough. Returns when the next one may be freed.
    fn take_over(&self, now: Instant) -> Option<Instant> {
        let mut unattended = self.unattended.lock();
        while let Some((since, permit)) = unattended.front() {
            let Some(permit) = permit.upgrade() else {
                unattended.pop_front();
                continue;
            };
            let due = *since + UNATTENDED_GRACE;
            if now < due {
                return Some(due);
            }
            let Ok(detached) = Arc::clone(&self.detached).try_acquire_owned() else { return None };
            unattended.pop_front();
            *permit.0.lock() = detached;
            return unattended.front().map(|(since, _)| *since + UNATTENDED_GRACE);
        }
        None
    }

    fn add_unattended(&self, permit: Weak<SlotPermit>) {
        let mut unattended = self.unattended.lock();
        if unattended.len() > self.max_in_flight {
            unattended.retain(|(_, permit)| permit.strong_count() > 0);
        }
        unattended.push_back((Instant::now(), permit));
    }
}

// === impl ExchangeSlot ===

impl ExchangeSlot {
    fn new(permit: OwnedSemaphorePermit) -> Self {
        Self(Arc::new(SlotPermit(Mutex::new(permit))))
    }

    /// Lets others take the slot over once the caller has stopped waiting.
    pub(crate) fn release_with(&self, pool: &Arc<SlotPool>, presence: &CallerPresence) {
        let (pool, permit) = (Arc::downgrade(pool), Arc::downgrade(&self.0));
        presence.on_leave(move || {
            if let Some(pool) = pool.upgrade().filter(|_| permit.strong_count() > 0) {
                pool.add_unattended(permit);
            }
        });
    }
}

fn busy() -> Failure {
    let message = "too many calls to this agent are running; try again later or raise max_in_flight";
    Failure::new(FailureKind::Busy, message).with_data(Json::encode(&json!({ "retryAfter": 1 })))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn a_slot_that_nobody_waits_for_is_taken_over_after_a_moment_and_others_are_not() {
        let pool = SlotPool::new(2, 8);
        let (left, stays) = (CallerPresence::default(), CallerPresence::default());
        let held = [pool.acquire(WAIT).await.unwrap(), pool.acquire(WAIT).await.unwrap()];
        held[0].release_with(&pool, &left);
        held[1].release_with(&pool, &stays);
        assert!(pool.acquire(WAIT).await.is_err(), "both callers wait");
        left.leave();
        let begun = Instant::now();
        let third = pool.acquire(WAIT).await.unwrap();
        assert!(begun.elapsed() >= UNATTENDED_GRACE && begun.elapsed() < 2 * UNATTENDED_GRACE);
        assert!(pool.acquire(WAIT).await.is_err(), "only one caller has left");
        drop(held);
        assert_eq!(pool.detached.available_permits(), 8);
        drop(third);
        assert_eq!(pool.in_flight.available_permits(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn exchanges_that_go_on_without_a_slot_are_bounded() {
        let pool = SlotPool::new(1, 1);
        let gone = CallerPresence::default();
        gone.leave();
        let mut held = Vec::new();
        for _ in 0..2 {
            let slot = pool.acquire(WAIT).await.unwrap();
            slot.release_with(&pool, &gone);
            held.push(slot);
        }
        assert!(pool.acquire(WAIT).await.is_err(), "one goes on without a slot, and one holds it");
        held.remove(0);
        assert!(pool.acquire(WAIT).await.is_ok());
    }
}
