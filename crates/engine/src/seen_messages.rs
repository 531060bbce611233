//! Bloom filters of the messages in the store, so that a new message need not be looked up there.
//!
//! A message may be a duplicate of one that another process received, or that this one no longer remembers. But nearly every message
//! is new, and a lookup costs more the more tasks there are. So the store is asked once for a number of each message it has, and only a message
//! whose number may be among them is looked up. That holds while no other process receives messages: one that starts to moves the store's
//! generation first, and from then on every message is looked up until that process is gone.
//!
//! One filter has room for a million messages. When it is full, another one is added, up to [`MAX_FILTERS`]; so lookups stay rare however
//! many tasks are kept.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use rialto_model::failure::Failure;
use tokio::{sync::Mutex, time::Instant};

use crate::engine::{Engine, store_failure};

/// Messages for which one filter has room.
const MESSAGES_PER_FILTER: usize = 1 << 20;

/// Bits of a filter for each message: two bytes.
const BITS_PER_MESSAGE: usize = 16;

/// Bits that one message sets. With six of sixteen, one new message in a thousand is taken for a known one when the filter is full.
const BITS_SET: u64 = 6;

/// Maximum number of filters: 32 MiB. With more messages than they have room for, the store is asked again which ones it still has.
const MAX_FILTERS: usize = 16;

const MAX_MESSAGES: usize = MAX_FILTERS * MESSAGES_PER_FILTER;

const BITS_PER_FILTER: usize = MESSAGES_PER_FILTER * BITS_PER_MESSAGE;

/// How long every message is looked for before the store is asked again whether that is needed.
const PAUSE: Duration = Duration::from_secs(30);

/// The messages that may be in the store.
#[derive(Default)]
pub(crate) struct SeenMessages {
    filters: ArcSwapOption<BloomFilters>,
    /// Held while the store is asked; the moment from which it may be asked again.
    asking: Mutex<Option<Instant>>,
}

/// Bloom filters that are filled one after the other.
struct BloomFilters {
    /// Changes from elsewhere that had been seen when the store was asked.
    surprises: u64,
    filters: [OnceLock<BloomFilter>; MAX_FILTERS],
    count: AtomicUsize,
}

/// Set of numbers that answers "certainly not" or "maybe".
struct BloomFilter(Box<[AtomicU64]>);

// === impl Engine ===

impl Engine {
    /// Whether no other process shares the store, as far as it has been asked.
    pub(crate) fn is_alone(&self) -> bool {
        let surprises = self.registry().surprises();
        self.inner()
            .seen_messages
            .filters
            .load()
            .as_ref()
            .is_some_and(|filters| filters.surprises == surprises)
    }

    /// Whether a message with that number, which is not remembered, may be in the store.
    pub(crate) async fn may_be_seen(&self, number: u64) -> Result<bool, Failure> {
        let seen = &self.inner().seen_messages;
        let surprises = self.registry().surprises();
        if let Some(filters) = &*seen.filters.load()
            && filters.surprises == surprises
            && filters.has_room()
        {
            return Ok(filters.hold(number));
        }
        let Ok(mut asking) = seen.asking.try_lock() else {
            // Somebody asks already; this one message is looked for meanwhile.
            return Ok(true);
        };
        if asking.is_some_and(|again| again > Instant::now()) {
            return Ok(true);
        }
        *asking = Some(Instant::now() + PAUSE);
        let known = self
            .inner()
            .store
            .message_numbers(self.runner(), MAX_MESSAGES / 2)
            .await
            .map_err(store_failure)?;
        let Some(known) = known else { return Ok(true) };
        let filters = BloomFilters::new(surprises);
        known.iter().for_each(|number| filters.add(*number));
        let is_held = filters.hold(number);
        seen.filters.store(Some(Arc::new(filters)));
        Ok(is_held)
    }
}

// === impl SeenMessages ===

impl SeenMessages {
    /// A message that is in the store is remembered no more.
    pub(crate) fn add(&self, number: u64) {
        if let Some(filters) = &*self.filters.load() {
            filters.add(number);
        }
    }
}

// === impl BloomFilters ===

impl BloomFilters {
    fn new(surprises: u64) -> Self {
        Self { surprises, filters: Default::default(), count: AtomicUsize::new(0) }
    }

    /// Adds a number to the last filter, or to a new one if that is full.
    fn add(&self, number: u64) {
        let filter = self.count.fetch_add(1, Ordering::Relaxed) / MESSAGES_PER_FILTER;
        if let Some(filter) = self.filters.get(filter) {
            filter.get_or_init(BloomFilter::new).add(number);
        }
    }

    fn hold(&self, number: u64) -> bool {
        self.filters.iter().filter_map(OnceLock::get).any(|filter| filter.holds(number))
    }

    fn has_room(&self) -> bool {
        self.count.load(Ordering::Relaxed) < MAX_MESSAGES
    }
}

// === impl BloomFilter ===

impl BloomFilter {
    fn new() -> Self {
        Self(std::iter::repeat_with(AtomicU64::default).take(BITS_PER_FILTER / 64).collect())
    }

    fn add(&self, number: u64) {
        for (word, bit) in bits_of(number) {
            if let Some(word) = self.0.get(word) {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
    }

    fn holds(&self, number: u64) -> bool {
        bits_of(number)
            .all(|(word, bit)| self.0.get(word).is_none_or(|word| word.load(Ordering::Relaxed) & bit != 0))
    }
}

/// The bits of a number, by word and mask: double hashing with its two halves.
fn bits_of(number: u64) -> impl Iterator<Item = (usize, u64)> {
    let (first, step) = (number & u64::from(u32::MAX), number >> 32 | 1);
    (0..BITS_SET).map(move |nth| {
        let bit = (first + nth * step) as usize % BITS_PER_FILTER;
        (bit / 64, 1 << (bit % 64))
    })
}

#[cfg(test)]
mod tests {
    use rialto_model::store::hash_message;

    use super::*;

    fn number(message: usize) -> u64 {
        hash_message(b"default", b"main", b"ann", message.to_string().as_bytes())
    }

    #[test]
    fn known_messages_are_held_and_most_new_ones_are_not() {
        let filters = BloomFilters::new(0);
        (0..MESSAGES_PER_FILTER).for_each(|message| filters.add(number(message)));
        assert!((0..MESSAGES_PER_FILTER).all(|message| filters.hold(number(message))));
        let new = MESSAGES_PER_FILTER..MESSAGES_PER_FILTER + 100_000;
        let taken = new.filter(|message| filters.hold(number(*message))).count();
        assert!(taken < 300, "{taken} of 100,000 are taken for known ones");
    }

    #[test]
    fn another_filter_is_added_when_the_last_one_is_full() {
        let filters = BloomFilters::new(0);
        filters.add(1);
        filters.count.store(MESSAGES_PER_FILTER, Ordering::Relaxed);
        filters.add(2);
        assert_eq!(filters.filters.iter().filter_map(OnceLock::get).count(), 2);
        assert!(filters.hold(1) && filters.hold(2) && !filters.hold(3) && filters.has_room());
        filters.count.store(MAX_MESSAGES, Ordering::Relaxed);
        filters.add(3);
        assert!(!filters.has_room(), "the store is asked again");
    }
}
