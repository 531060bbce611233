//! Messages that began tasks before this process remembers any.
//!
//! Each new message would have to be looked for in the store, because it may have come before: to another process, or so long
//! ago that it is no longer remembered. But nearly every message is new. So the store is asked once for a number of each
//! message it knows, and only a message whose number is among them is looked for. That holds as long as no other process
//! takes messages too: one that begins to moves the store's generation first, and from then on every message is looked for
//! until it is gone.

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
pub(crate) struct Earlier {
    sieve: ArcSwapOption<Sieve>,
    /// Held by whoever asks the store; when it may be asked again.
    asking: Mutex<Option<Instant>>,
}

/// What does not fall through may be among the messages that were put in.
struct Sieve {
    /// How many changes from elsewhere had been seen when the store was asked.
    surprises: u64,
    bits: Box<[AtomicU64]>,
    count: AtomicUsize,
}

// === impl Engine ===

impl Engine {
    /// Whether a message with that number, which is not remembered, may be in the store.
    pub(crate) async fn may_be_earlier(&self, number: u64) -> Result<bool, Failure> {
        let earlier = &self.inner().earlier;
        let surprises = self.registry().surprises();
        if let Some(sieve) = &*earlier.sieve.load()
            && sieve.surprises == surprises
            && sieve.count.load(Ordering::Relaxed) <= MOST
        {
            return Ok(sieve.holds(number));
        }
        let Ok(mut asking) = earlier.asking.try_lock() else {
            // Somebody asks already; this one message is looked for meanwhile.
            return Ok(true);
        };
        if asking.is_some_and(|again| again > Instant::now()) {
            return Ok(true);
        }
        *asking = Some(Instant::now() + PAUSE);
        let known = self.inner().store.messages(self.runner(), MOST / 2).await.map_err(store_failure)?;
        let Some(known) = known else { return Ok(true) };
        let sieve = Sieve::new(surprises);
        known.iter().for_each(|number| sieve.add(*number));
        let holds = sieve.holds(number);
        earlier.sieve.store(Some(Arc::new(sieve)));
        Ok(holds)
    }
}

// === impl Earlier ===

impl Earlier {
    /// A message that is in the store is remembered no more.
    pub(crate) fn add(&self, number: u64) {
        if let Some(sieve) = &*self.sieve.load() {
            sieve.add(number);
        }
    }
}

// === impl Sieve ===

impl Sieve {
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
        let sieve = Sieve::new(0);
        let number =
            |message: u32| number_of_message(b"default", b"main", b"ann", message.to_string().as_bytes());
        (0..100_000).for_each(|message| sieve.add(number(message)));
        assert!((0..100_000).all(|message| sieve.holds(number(message))));
        let held = (100_000..200_000).filter(|message| sieve.holds(number(*message))).count();
        assert!(held < 1_000, "{held} of 100,000 are taken for others");
    }
}
