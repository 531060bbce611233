//! Sends `notifications/tools/list_changed` to connected clients when the skills of their project or the policies change.
//!
//! Only for protocol versions before 2026-07-28, where servers send notifications unasked. Later clients subscribe, and each of their
//! requests follows the registry itself.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::future::join_all;
use parking_lot::Mutex;
use rialto_engine::{Engine, visibility::Visibility};
use rialto_model::ids::Scope;
use rmcp::{Peer, RoleServer};
use tokio_util::sync::CancellationToken;

/// Timeout of one notification. A client that takes longer misses it; the others are not delayed.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(5);

/// Connected clients that get notifications.
pub(crate) struct ListChangedNotifier {
    engine: Engine,
    all: Mutex<Vec<ListChangedClient>>,
}

/// Tools visible to a client in its last `tools/list` or notification; none while the agents that are listed from the start are still
/// being loaded.
///
/// A change that a list already has is not announced after it: some clients list and disconnect at once, and fail on a late
/// notification.
pub(crate) type ListedVisibility = Arc<Mutex<Option<Visibility>>>;

/// Client and the tools that it has seen.
struct ListChangedClient {
    peer: Peer<RoleServer>,
    scope: Scope,
    seen: ListedVisibility,
}

// === impl ListChangedNotifier ===

impl ListChangedNotifier {
    pub(crate) fn new(engine: Engine) -> Arc<Self> {
        Arc::new(Self { engine, all: Mutex::default() })
    }

    /// Registers `peer`, whose caller is in that project, until it disconnects.
    pub(crate) fn add(&self, peer: Peer<RoleServer>, scope: &Scope, seen: ListedVisibility) {
        let mut all = self.all.lock();
        all.retain(|known| !known.peer.is_transport_closed());
        all.push(ListChangedClient { peer, scope: scope.clone(), seen });
    }

    /// Sends notifications about each change, until stopped or the engine closes.
    pub(crate) async fn tell(self: Arc<Self>, stop: CancellationToken) {
        let mut changes = self.engine.visibility().subscribe();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                is_change = changes.next() => if !is_change { return },
            }
            let peers = self.concerned();
            let told = peers
                .iter()
                .map(|peer| tokio::time::timeout(NOTIFY_TIMEOUT, peer.notify_tool_list_changed()));
            join_all(told).await;
        }
    }

    /// Clients whose visible tools have changed since the last notification.
    fn concerned(&self) -> Vec<Peer<RoleServer>> {
        let mut all = self.all.lock();
        all.retain(|known| !known.peer.is_transport_closed());
        let mut looked: HashMap<Scope, Visibility> = HashMap::new();
        let mut concerned = Vec::new();
        for listener in all.iter() {
            let now = match looked.get(&listener.scope) {
                Some(now) => *now,
                None => self.engine.visibility().compute(&listener.scope),
            };
            looked.insert(listener.scope.clone(), now);
            let mut seen = listener.seen.lock();
            if seen.is_some_and(|seen| seen != now) {
                *seen = Some(now);
                concerned.push(listener.peer.clone());
            }
        }
        concerned
    }
}
