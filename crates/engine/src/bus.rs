//! The verb bus: subscribers hear of every invocation, before and after.

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rialto_model::audit_event::{AuditEvent, Hook};

/// Tells subscribers, in the order they subscribed.
#[derive(Default)]
pub struct Bus {
    hooks: ArcSwap<Vec<Arc<dyn Hook>>>,
}

/// A subscriber that remembers what it heard, for tests and for people who look.
#[derive(Clone, Default)]
pub struct Overheard(Arc<Mutex<Vec<AuditEvent>>>);

// === impl Bus ===

impl Bus {
    /// From now on `hook` hears every event.
    pub fn subscribe(&self, hook: Arc<dyn Hook>) {
        let with = |hooks: &Arc<Vec<Arc<dyn Hook>>>| hooks.iter().chain([&hook]).cloned().collect::<Vec<_>>();
        self.hooks.rcu(with);
        drop(hook);
    }

    /// Tells everybody. What they decide stands in the event afterwards.
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

// === impl Overheard ===

impl Overheard {
    /// What was said so far.
    pub fn events(&self) -> Vec<AuditEvent> {
        self.0.lock().clone()
    }
}

impl Hook for Overheard {
    fn hear(&self, event: &mut AuditEvent) {
        self.0.lock().push(event.clone());
    }
}
