//! Visibility of skills in a project, and notification of its changes.
//!
//! A connected client is notified when its list may have changed: when the skills of its own project have changed, or the
//! policies, which say who may see them. A change in one project does not concern another.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use rialto_model::ids::Scope;
use tokio::sync::watch;

use crate::{policies::PolicyService, registry::Registry};

/// Fingerprint of what the callers of a project can see. Equal fingerprints mean equal lists for each caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visibility {
    skills: u64,
    policies: u64,
}

/// Receiver of changes of the registry and the policies, of all projects.
#[derive(Clone, Debug)]
pub struct VisibilityChanges {
    registry: watch::Receiver<u64>,
    policies: watch::Receiver<u64>,
}

/// Receiver of the changes that the callers of one project can see.
pub struct VisibilityWatcher {
    service: Arc<VisibilityService>,
    scope: Scope,
    changes: VisibilityChanges,
    seen: Visibility,
}

/// Fingerprints of what callers can see, and watchers of their changes.
pub struct VisibilityService {
    registry: Arc<Registry>,
    policies: Arc<PolicyService>,
}

// === impl VisibilityService ===

impl VisibilityService {
    pub(crate) const fn new(registry: Arc<Registry>, policies: Arc<PolicyService>) -> Self {
        Self { registry, policies }
    }

    /// Computes what the callers of a project can see now.
    pub fn compute(&self, scope: &Scope) -> Visibility {
        let mut hasher = DefaultHasher::new();
        for entry in self.registry.directory(scope).listed() {
            // A row that is written anew has another version, and each of its skills is listed under its name.
            (&entry.canonical, entry.agent.id.as_str(), entry.agent.version).hash(&mut hasher);
        }
        Visibility { skills: hasher.finish(), policies: self.policies.load().fingerprint() }
    }

    /// Subscribes to the changes of all projects.
    pub fn subscribe(&self) -> VisibilityChanges {
        VisibilityChanges { registry: self.registry.watch(), policies: self.policies.watch() }
    }

    /// Watches one project.
    pub fn watch(self: &Arc<Self>, scope: &Scope) -> VisibilityWatcher {
        let changes = self.subscribe();
        let seen = self.compute(scope);
        VisibilityWatcher { service: Arc::clone(self), scope: scope.clone(), changes, seen }
    }
}

// === impl VisibilityChanges ===

impl VisibilityChanges {
    /// Waits for the next change; returns `false` when there will be none.
    pub async fn next(&mut self) -> bool {
        tokio::select! {
            changed = self.registry.changed() => changed.is_ok(),
            changed = self.policies.changed() => changed.is_ok(),
        }
    }
}

// === impl VisibilityWatcher ===

impl VisibilityWatcher {
    /// Waits until the callers see something else; returns `false` when there will be no change any more.
    pub async fn next(&mut self) -> bool {
        while self.changes.next().await {
            let now = self.service.compute(&self.scope);
            if now != self.seen {
                self.seen = now;
                return true;
            }
        }
        false
    }
}
