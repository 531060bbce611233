//! Open responses by the token that they belong to, so that they end with it.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use rialto_model::ids::TokenId;
use tokio_util::sync::CancellationToken;

/// The tokens and sessions that responses are open for. One that no response holds any more is forgotten in the next round.
#[derive(Default)]
pub(crate) struct OpenStreams(Mutex<HashMap<TokenId, Arc<CancellationToken>>>);

// === impl OpenStreams ===

impl OpenStreams {
    /// Is cancelled when the token ends.
    pub(crate) fn watch(&self, id: &TokenId) -> Arc<CancellationToken> {
        Arc::clone(self.0.lock().entry(id.clone()).or_default())
    }

    /// Ends what is open for tokens that have ended.
    pub(crate) fn end_where(&self, has_ended: impl Fn(&TokenId) -> bool) {
        self.0.lock().retain(|id, watched| {
            if Arc::strong_count(watched) == 1 {
                return false;
            }
            let ends = has_ended(id);
            if ends {
                watched.cancel();
            }
            !ends
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_for_a_token_ends_with_it_and_nothing_else_does() {
        let streams = OpenStreams::default();
        let (ann, again, bob) =
            (streams.watch(&"ann".into()), streams.watch(&"ann".into()), streams.watch(&"bob".into()));
        streams.end_where(|id| id.as_str() == "ann");
        assert!(ann.is_cancelled() && again.is_cancelled() && !bob.is_cancelled());
        drop(bob);
        streams.end_where(|_| false);
        assert!(streams.0.lock().is_empty(), "nothing is kept for what is closed");
    }
}
