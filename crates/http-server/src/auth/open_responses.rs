//! Open responses by their token, so that they end with it. A token of an issuer is known by its expiry.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use parking_lot::Mutex;
use rialto_model::{clock::Timestamp, ids::TokenId};
use tokio_util::sync::CancellationToken;

/// Tokens and sessions with open responses. One without any is removed at the next poll.
#[derive(Default)]
pub(crate) struct OpenResponses {
    by_token: Mutex<HashMap<TokenId, Arc<CancellationToken>>>,
    by_end: Mutex<BTreeMap<Timestamp, Arc<CancellationToken>>>,
}

// === impl OpenResponses ===

impl OpenResponses {
    /// Cancellation that fires when the token ends.
    pub(crate) fn watch(&self, id: &TokenId) -> Arc<CancellationToken> {
        Arc::clone(self.by_token.lock().entry(id.clone()).or_default())
    }

    /// Cancellation that fires at this time.
    pub(crate) fn watch_until(&self, end: Timestamp) -> Arc<CancellationToken> {
        Arc::clone(self.by_end.lock().entry(end).or_default())
    }

    /// Ends the responses of tokens that have ended.
    pub(crate) fn cancel_ended(&self, now: Timestamp, has_ended: impl Fn(&TokenId) -> bool) {
        self.by_token.lock().retain(|id, watched| is_open(watched, || has_ended(id)));
        self.by_end.lock().retain(|end, watched| is_open(watched, || *end <= now));
    }
}

/// True if a response is open and stays so. One whose token has ended is cancelled.
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
    fn open_responses_end_with_their_token_and_no_others_do() {
        let streams = OpenResponses::default();
        let (ann, again, bob) =
            (streams.watch(&"ann".into()), streams.watch(&"ann".into()), streams.watch(&"bob".into()));
        streams.cancel_ended(Timestamp::UNIX_EPOCH, |id| id.as_str() == "ann");
        assert!(ann.is_cancelled() && again.is_cancelled() && !bob.is_cancelled());
        drop(bob);
        streams.cancel_ended(Timestamp::UNIX_EPOCH, |_| false);
        assert!(streams.by_token.lock().is_empty(), "nothing is kept for what is closed");
    }

    #[test]
    fn open_responses_of_a_signed_token_end_when_it_expires() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let streams = OpenResponses::default();
        let (first, second) = (streams.watch_until(at(5)), streams.watch_until(at(6)));
        streams.cancel_ended(at(4), |_| false);
        assert!(!first.is_cancelled());
        streams.cancel_ended(at(5), |_| false);
        assert!(first.is_cancelled() && !second.is_cancelled());
        drop(second);
        streams.cancel_ended(at(5), |_| false);
        assert!(streams.by_end.lock().is_empty(), "nothing is kept for what is closed");
    }
}
