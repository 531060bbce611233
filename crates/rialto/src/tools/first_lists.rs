//! Configured MCP servers whose tools this process has yet to list.
//!
//! A server that has just started would answer calls of their tools with "not found", so readiness waits for them. The wait has a limit:
//! a server that starts slowly does not keep the others from being called.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rialto_model::{agent::Agent, backing::Backing, ids::AgentId};

/// Maximum time that readiness waits, counted from the start.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The servers that readiness waits for. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct FirstLists(Arc<Mutex<Pending>>);

#[derive(Default)]
struct Pending {
    servers: Vec<(AgentId, String)>,
    until: Option<Instant>,
}

// === impl FirstLists ===

impl FirstLists {
    /// Begins to wait for the MCP servers among these rows.
    pub(super) fn begin(&self, rows: &[Arc<Agent>]) {
        let servers = rows.iter().filter_map(|row| match &row.backing {
            Backing::Mcp(server) => Some((row.id.clone(), server.name.clone())),
            _ => None,
        });
        *self.0.lock() = Pending { servers: servers.collect(), until: Some(Instant::now() + MAX_WAIT) };
    }

    /// Records that a server's tools are listed, or cannot be.
    pub(super) fn finish(&self, id: &AgentId) {
        self.0.lock().servers.retain(|(pending, _)| pending != id);
    }

    /// Names of the servers that readiness still waits for.
    pub(crate) fn waiting_for(&self) -> Vec<String> {
        self.0.lock().names_at(Instant::now())
    }
}

// === impl Pending ===

impl Pending {
    fn names_at(&self, now: Instant) -> Vec<String> {
        if self.until.is_none_or(|until| until <= now) {
            return Vec::new();
        }
        self.servers.iter().map(|(_, name)| name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_is_waited_for_until_it_was_asked_and_none_beyond_the_limit() {
        let lists = FirstLists::default();
        assert_eq!(lists.waiting_for(), [""; 0]);
        let (now, quick) = (Instant::now(), AgentId::from("a1"));
        let servers = vec![(quick.clone(), "quick".to_owned()), (AgentId::from("a2"), "slow".to_owned())];
        *lists.0.lock() = Pending { servers, until: Some(now + MAX_WAIT) };
        let waiting_after = |wait| lists.0.lock().names_at(now + wait);
        assert_eq!(waiting_after(Duration::ZERO), ["quick", "slow"]);
        lists.finish(&quick);
        assert_eq!(waiting_after(MAX_WAIT - Duration::from_millis(1)), ["slow"]);
        assert_eq!(waiting_after(MAX_WAIT), [""; 0]);
    }
}
