//! Open responses by the token that they belong to, so that they end with it. A token that others have signed is known by when it ends.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use parking_lot::Mutex;
use rialto_model::{clock::Timestamp, ids::TokenId};
use tokio_util::sync::CancellationToken;

/// The tokens and sessions that responses are open for. One that no response holds any more is forgotten in the next round.
#[derive(Default)]
pub(crate) struct OpenStreams {
    by_token: Mutex<HashMap<TokenId, Arc<CancellationToken>>>,
    by_end: Mutex<BTreeMap<Timestamp, Arc<CancellationToken>>>,
}

// === impl OpenStreams ===

impl OpenStreams {
    /// Is cancelled when the token ends.
    pub(crate) fn watch(&self, id: &TokenId) -> Arc<CancellationToken> {
        Arc::clone(self.by_token.lock().entry(id.clone()).or_default())
    }

    /// Is cancelled at this moment.
    pub(crate) fn watch_until(&self, end: Timestamp) -> Arc<CancellationToken> {
        Arc::clone(self.by_end.lock().entry(end).or_default())
    }

    /// Ends what is open for tokens that have ended.
    pub(crate) fn end_where(&self, now: Timestamp, has_ended: impl Fn(&TokenId) -> bool) {
        self.by_token.lock().retain(|id, watched| is_open(watched, || has_ended(id)));
        self.by_end.lock().retain(|end, watched| is_open(watched, || *end <= now));
    }
}

/// Whether something is open and stays so. What has ended is cancelled.
fn is_open(watched: &Arc<CancellationToken>, has_ended: impl FnOnce() -> bool) -> bool {
    if Arc::strong_count(watched) == 1 {
        return false;
    }
    let ends = has_ended();
    if ends {
        watched.cancel();
    }
    !ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_for_a_token_ends_with_it_and_nothing_else_does() {
        let streams = OpenStreams::default();
        let (ann, again, bob) =
            (streams.watch(&"ann".into()), streams.watch(&"ann".into()), streams.watch(&"bob".into()));
        streams.end_where(Timestamp::UNIX_EPOCH, |id| id.as_str() == "ann");
        assert!(ann.is_cancelled() && again.is_cancelled() && !bob.is_cancelled());
        drop(bob);
        streams.end_where(Timestamp::UNIX_EPOCH, |_| false);
        assert!(streams.by_token.lock().is_empty(), "nothing is kept for what is closed");
    }

    #[test]
    fn what_is_open_for_a_signed_token_ends_at_its_moment() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let streams = OpenStreams::default();
        let (first, second) = (streams.watch_until(at(5)), streams.watch_until(at(6)));
        streams.end_where(at(4), |_| false);
        assert!(!first.is_cancelled());
        streams.end_where(at(5), |_| false);
        assert!(first.is_cancelled() && !second.is_cancelled());
        drop(second);
        streams.end_where(at(5), |_| false);
        assert!(streams.by_end.lock().is_empty(), "nothing is kept for what is closed");
    }
}
