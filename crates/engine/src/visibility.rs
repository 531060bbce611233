//! What a project's callers can see, and when that may have changed.
//!
//! Whoever is connected is told when its list may be another one: when the skills of its own project have changed, or the
//! policies, which say who may see them. A change in one project is nobody's business in another.

use std::hash::{DefaultHasher, Hash, Hasher};

use rialto_model::ids::Scope;
use tokio::sync::watch;

use crate::engine::Engine;

/// How things look from inside a project. Two that are the same show the same to everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlook {
    skills: u64,
    policies: u64,
}

/// Hears that something may look different, for somebody.
#[derive(Clone, Debug)]
pub struct Changes {
    registry: watch::Receiver<u64>,
    policies: watch::Receiver<u64>,
}

/// Hears that things look different from inside a project.
pub struct Lookout {
    engine: Engine,
    scope: Scope,
    changes: Changes,
    seen: Outlook,
}

// === impl Engine ===

impl Engine {
    /// How things look now from inside a project.
    pub fn outlook(&self, scope: &Scope) -> Outlook {
        let mut hasher = DefaultHasher::new();
        for entry in self.registry().directory(scope).listed() {
            // A row that is written anew has another version, and each of its skills is listed under its name.
            (&entry.canonical, entry.agent.id.as_str(), entry.agent.version).hash(&mut hasher);
        }
        Outlook { skills: hasher.finish(), policies: self.policy().fingerprint() }
    }

    /// Hears of changes from now on, wherever they are.
    pub fn changes(&self) -> Changes {
        Changes { registry: self.registry().watch(), policies: self.inner().policies.watch() }
    }

    /// Hears of those that concern a project.
    pub fn lookout(&self, scope: &Scope) -> Lookout {
        let changes = self.changes();
        let seen = self.outlook(scope);
        Lookout { engine: self.clone(), scope: scope.clone(), changes, seen }
    }
}

// === impl Changes ===

impl Changes {
    /// Waits for the next change; answers `false` when there will be none.
    pub async fn next(&mut self) -> bool {
        tokio::select! {
            changed = self.registry.changed() => changed.is_ok(),
            changed = self.policies.changed() => changed.is_ok(),
        }
    }
}

// === impl Lookout ===

impl Lookout {
    /// Waits until things look different; answers `false` when they will not any more.
    pub async fn next(&mut self) -> bool {
        while self.changes.next().await {
            let now = self.engine.outlook(&self.scope);
            if now != self.seen {
                self.seen = now;
                return true;
            }
        }
        false
    }
}
