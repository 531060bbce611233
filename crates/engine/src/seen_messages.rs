//! Bloom filter of the messages in the store, so that a new message need not be looked up there.
//!
//! A message may be a duplicate of one that another process received, or that this one no longer remembers. But nearly every message
//! is new. So the store is asked once for a number of each message it has, and only a message whose number may be among them is looked
//! up. That holds while no other process receives messages: one that starts to moves the store's generation first, and from
//! then on every message is looked up until that process is gone.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use rialto_model::failure::Failure;
use tokio::{sync::Mutex, time::Instant};

use crate::engine::{Engine, store_failure};

/// So many messages are told apart well enough. With more the store is asked again which ones there still are.
const MOST: usize = 1 << 20;

/// How many bits tell them apart: eight for each, in whole words.
const WORDS: usize = MOST * 8 / 64;

/// How long every message is looked for before the store is asked again whether that is needed.
const PAUSE: Duration = Duration::from_secs(30);

/// Which messages may be in the store.
#[derive(Default)]
pub(crate) struct SeenMessages {
    filter: ArcSwapOption<BloomFilter>,
    /// Held by whoever asks the store; when it may be asked again.
    asking: Mutex<Option<Instant>>,
}

/// Set of numbers that answers "certainly not" or "maybe".
struct BloomFilter {
    /// How many changes from elsewhere had been seen when the store was asked.
    surprises: u64,
    bits: Box<[AtomicU64]>,
    count: AtomicUsize,
}

// === impl Engine ===

impl Engine {
    /// Whether no other process shares the store, as far as it has been asked.
    pub(crate) fn is_alone(&self) -> bool {
        let surprises = self.registry().surprises();
        self.inner().seen_messages.filter.load().as_ref().is_some_and(|filter| filter.surprises == surprises)
    }

    /// Whether a message with that number, which is not remembered, may be in the store.
    pub(crate) async fn may_be_seen(&self, number: u64) -> Result<bool, Failure> {
        let seen = &self.inner().seen_messages;
        let surprises = self.registry().surprises();
        if let Some(filter) = &*seen.filter.load()
            && filter.surprises == surprises
            && filter.count.load(Ordering::Relaxed) <= MOST
        {
            return Ok(filter.holds(number));
        }
        let Ok(mut asking) = seen.asking.try_lock() else {
            // Somebody asks already; this one message is looked for meanwhile.
            return Ok(true);
        };
        if asking.is_some_and(|again| again > Instant::now()) {
            return Ok(true);
        }
        *asking = Some(Instant::now() + PAUSE);
        let known = self.inner().store.messages(self.runner(), MOST / 2).await.map_err(store_failure)?;
        let Some(known) = known else { return Ok(true) };
        let filter = BloomFilter::new(surprises);
        known.iter().for_each(|number| filter.add(*number));
        let holds = filter.holds(number);
        seen.filter.store(Some(Arc::new(filter)));
        Ok(holds)
    }
}

// === impl SeenMessages ===

impl SeenMessages {
    /// A message that is in the store is remembered no more.
    pub(crate) fn add(&self, number: u64) {
        if let Some(filter) = &*self.filter.load() {
            filter.add(number);
        }
    }
}

// === impl BloomFilter ===

impl BloomFilter {
    fn new(surprises: u64) -> Self {
        let bits = std::iter::repeat_with(AtomicU64::default).take(WORDS).collect();
        Self { surprises, bits, count: AtomicUsize::new(0) }
    }

    fn add(&self, number: u64) {
        for (word, bit) in places(number) {
            if let Some(word) = self.bits.get(word) {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    fn holds(&self, number: u64) -> bool {
        places(number)
            .into_iter()
            .all(|(word, bit)| self.bits.get(word).is_none_or(|word| word.load(Ordering::Relaxed) & bit != 0))
    }
}

/// The two bits of a number.
fn places(number: u64) -> [(usize, u64); 2] {
    [number, number.rotate_left(32)].map(|half| {
        let place = (half & u64::from(u32::MAX)) as usize % (WORDS * 64);
        (place / 64, 1 << (place % 64))
    })
}

#[cfg(test)]
mod tests {
    use rialto_model::store::number_of_message;

    use super::*;

    #[test]
    fn what_was_put_in_is_held_and_most_else_falls_through() {
        let filter = BloomFilter::new(0);
        let number =
            |message: u32| number_of_message(b"default", b"main", b"ann", message.to_string().as_bytes());
        (0..100_000).for_each(|message| filter.add(number(message)));
        assert!((0..100_000).all(|message| filter.holds(number(message))));
        let held = (100_000..200_000).filter(|message| filter.holds(number(*message))).count();
        assert!(held < 1_000, "{held} of 100,000 are taken for others");
    }
}
