//! Maximum number of open streams of a caller: event streams, subscriptions, watchers of all protocols.
//!
//! A stream costs memory for as long as its client likes, so each caller has a maximum, and no caller can use up the room of others. A
//! handler takes a [`StreamSlot`] before any work begins, and holds it for as long as the stream lasts.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{body::Body, response::Response};
use parking_lot::Mutex;
use rialto_model::{
    call::{Caller, CallerId},
    failure::{Failure, FailureKind},
    ids::OrgId,
    json::Json,
    maps::FastMap,
};
use serde_json::json;

use crate::guarded_body::GuardedBody;

/// Seconds after which a caller with too many streams may try again.
const RETRY_AFTER_SECONDS: u64 = 5;

/// Open streams by caller. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct StreamLimits(Arc<OpenStreamCounts>);

/// Slot of an open stream, released when it is dropped.
#[derive(Debug)]
pub struct StreamSlot {
    streams: Arc<OpenStreamCounts>,
    owner: (OrgId, CallerId),
}

#[derive(Debug, Default)]
struct OpenStreamCounts {
    /// Zero is without a limit.
    max_per_caller: AtomicUsize,
    open: Mutex<FastMap<(OrgId, CallerId), usize>>,
}

// === impl StreamLimits ===

impl StreamLimits {
    /// Sets the maximum per caller; zero is unlimited.
    pub fn new(max_per_caller: usize) -> Self {
        let limits = Self::default();
        limits.set_max(max_per_caller);
        limits
    }

    /// Replaces the maximum. Open streams stay open.
    pub fn set_max(&self, max_per_caller: usize) {
        self.0.max_per_caller.store(max_per_caller, Ordering::Relaxed);
    }

    /// Takes a slot for `caller`, if it has one left.
    pub fn acquire(&self, caller: &Caller) -> Result<StreamSlot, Failure> {
        let max = self.0.max_per_caller.load(Ordering::Relaxed);
        let owner = (caller.scope.org.clone(), caller.id.clone());
        let mut open = self.0.open.lock();
        let count = open.entry(owner.clone()).or_insert(0);
        if max > 0 && *count >= max {
            let message = format!(
                "{} has {max} streams open, and that is the limit; close one of them, or raise [limits] \
                 concurrent_streams",
                caller.id
            );
            let data = Json::encode(&json!({ "retryAfter": RETRY_AFTER_SECONDS }));
            return Err(Failure::new(FailureKind::Busy, message).with_data(data));
        }
        *count += 1;
        Ok(StreamSlot { streams: Arc::clone(&self.0), owner })
    }
}

// === impl StreamSlot ===

impl StreamSlot {
    /// Holds the slot until the body of `response` is sent.
    pub fn attach(self, response: Response) -> Response {
        response.map(|body| Body::new(GuardedBody::new(body, self)))
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut open = self.streams.open.lock();
        if let Some(count) = open.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_its_own_streams_and_one_that_ends_makes_room() {
        let (limits, ann) = (StreamLimits::new(2), Caller::user("ann"));
        let mut own: Vec<_> = (0..2).map(|_| limits.acquire(&ann).unwrap()).collect();
        let refused = limits.acquire(&ann).unwrap_err();
        assert_eq!((refused.kind, refused.data.unwrap().get()), (FailureKind::Busy, r#"{"retryAfter":5}"#));
        assert!(refused.message.contains("ann") && refused.message.contains("concurrent_streams"));
        let bob = limits.acquire(&Caller::user("bob")).unwrap();
        own.pop();
        own.push(limits.acquire(&ann).unwrap());
        limits.set_max(3);
        own.push(limits.acquire(&ann).unwrap());
        drop((own, bob));
        assert!(limits.0.open.lock().is_empty(), "who has no stream takes no room");
    }

    #[test]
    fn a_slot_lasts_as_long_as_the_response_that_holds_it() {
        let (limits, ann) = (StreamLimits::new(1), Caller::user("ann"));
        let response = limits.acquire(&ann).unwrap().attach(Response::new(Body::from("told")));
        assert!(limits.acquire(&ann).is_err());
        drop(response);
        assert!(limits.acquire(&ann).is_ok());
    }

    #[test]
    fn without_a_limit_no_stream_is_refused() {
        let (limits, ann) = (StreamLimits::default(), Caller::user("ann"));
        let open: Vec<_> = (0..10_000).map(|_| limits.acquire(&ann)).collect();
        assert!(open.iter().all(Result::is_ok));
    }
}
