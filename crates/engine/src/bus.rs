//! Audit event bus: hooks receive an event before and after every call.

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rialto_model::audit_event::{AuditEvent, Hook};

/// Bus that calls the hooks in the order they subscribed.
#[derive(Default)]
pub(crate) struct Bus {
    hooks: ArcSwap<Vec<Arc<dyn Hook>>>,
}

/// Hook that records the events it receives, for tests.
#[derive(Clone, Default)]
pub struct RecordingHook(Arc<Mutex<Vec<AuditEvent>>>);

// === impl Bus ===

impl Bus {
    /// Adds a hook that receives every event from now on.
    pub(crate) fn subscribe(&self, hook: Arc<dyn Hook>) {
        let with = |hooks: &Arc<Vec<Arc<dyn Hook>>>| hooks.iter().chain([&hook]).cloned().collect::<Vec<_>>();
        self.hooks.rcu(with);
        drop(hook);
    }

    /// Passes an event to the hooks; they may deny it.
    pub(crate) fn emit(&self, event: &mut AuditEvent) {
        for hook in self.hooks.load().iter() {
            hook.hear(event);
        }
    }
}

impl std::fmt::Debug for Bus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bus").field("hooks", &self.hooks.load().len()).finish()
    }
}

// === impl RecordingHook ===

impl RecordingHook {
    /// The events received so far.
    pub fn events(&self) -> Vec<AuditEvent> {
        self.0.lock().clone()
    }
}

impl Hook for RecordingHook {
    fn hear(&self, event: &mut AuditEvent) {
        self.0.lock().push(event.clone());
    }
}
