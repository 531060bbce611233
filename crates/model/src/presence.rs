//! Presence of the caller of a call: until when it waits, and whether it has stopped waiting.
//!
//! A call outlives its caller's waiting, but what is scarce and held only for the caller must not. The backend that holds such a thing
//! registers a callback, which runs once when the caller stops waiting.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

/// Presence of a caller. Cloning shares it.
#[derive(Clone, Default)]
pub struct CallerPresence(Arc<PresenceState>);

type Callback = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct PresenceState {
    deadline: Option<Instant>,
    callbacks: Mutex<Callbacks>,
}

enum Callbacks {
    Waiting(Vec<Callback>),
    Left,
}

// === impl CallerPresence ===

impl CallerPresence {
    /// Presence of a caller that waits until `deadline` at most.
    pub fn until(deadline: Instant) -> Self {
        Self(Arc::new(PresenceState { deadline: Some(deadline), callbacks: Mutex::default() }))
    }

    /// Time until which the caller waits, if it is known.
    pub fn deadline(&self) -> Option<Instant> {
        self.0.deadline
    }

    /// Runs `callback` when the caller stops waiting; at once if it already has.
    pub fn on_leave(&self, callback: impl FnOnce() + Send + 'static) {
        let mut callbacks = self.0.callbacks.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *callbacks {
            Callbacks::Waiting(waiting) => waiting.push(Box::new(callback)),
            Callbacks::Left => {
                drop(callbacks);
                callback();
            }
        }
    }

    /// Notes that the caller has stopped waiting.
    pub fn leave(&self) {
        let mut callbacks = self.0.callbacks.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *callbacks, Callbacks::Left);
        drop(callbacks);
        if let Callbacks::Waiting(waiting) = before {
            waiting.into_iter().for_each(|callback| callback());
        }
    }
}

impl fmt::Debug for CallerPresence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerPresence").field("deadline", &self.0.deadline).finish_non_exhaustive()
    }
}

// === impl Callbacks ===

impl Default for Callbacks {
    fn default() -> Self {
        Self::Waiting(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn callbacks_run_once_when_the_caller_leaves_and_at_once_after_that() {
        let (presence, count) = (CallerPresence::default(), Arc::new(AtomicUsize::new(0)));
        let add = |count: &Arc<AtomicUsize>| {
            let count = Arc::clone(count);
            move || {
                count.fetch_add(1, Ordering::Relaxed);
            }
        };
        presence.on_leave(add(&count));
        assert_eq!(count.load(Ordering::Relaxed), 0);
        presence.clone().leave();
        presence.leave();
        assert_eq!(count.load(Ordering::Relaxed), 1);
        presence.on_leave(add(&count));
        assert_eq!(count.load(Ordering::Relaxed), 2);
    }
}
