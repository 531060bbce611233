//! Tells connected clients that their list of tools may have changed: the skills of their project, or the policies.
//!
//! This is for protocol versions before 2026-07-28, where the server speaks up by itself. Later clients ask to be
//! told, and each listens to the registry through its own request.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::future::join_all;
use parking_lot::Mutex;
use rialto_engine::{Engine, visibility::Outlook};
use rialto_model::ids::Scope;
use rmcp::{Peer, RoleServer};
use tokio_util::sync::CancellationToken;

/// How long one client may take to be told. One that takes longer misses it; it holds up nobody.
const PATIENCE: Duration = Duration::from_secs(5);

/// The clients to tell.
pub(crate) struct Listeners {
    engine: Engine,
    all: Mutex<Vec<Listener>>,
}

/// What a client was last shown by `tools/list`, or told of since; none while the agents that are listed from the start are still being loaded.
///
/// A change that a list has already is not announced behind it: some clients list and hang up at once, and fail when anything comes then.
pub(crate) type ListedOutlook = Arc<Mutex<Option<Outlook>>>;

/// A client, and what it has seen.
struct Listener {
    peer: Peer<RoleServer>,
    scope: Scope,
    seen: ListedOutlook,
}

// === impl Listeners ===

impl Listeners {
    pub(crate) fn new(engine: Engine) -> Arc<Self> {
        Arc::new(Self { engine, all: Mutex::default() })
    }

    /// From now on `peer`, whose caller is of that project, is told, until it is gone.
    pub(crate) fn add(&self, peer: Peer<RoleServer>, scope: &Scope, seen: ListedOutlook) {
        let mut all = self.all.lock();
        all.retain(|known| !known.peer.is_transport_closed());
        all.push(Listener { peer, scope: scope.clone(), seen });
    }

    /// Tells everybody about each change that concerns it, until it is stopped or there will be no more changes.
    pub(crate) async fn tell(self: Arc<Self>, stop: CancellationToken) {
        let mut changes = self.engine.changes();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                is_change = changes.next() => if !is_change { return },
            }
            let peers = self.concerned();
            let told =
                peers.iter().map(|peer| tokio::time::timeout(PATIENCE, peer.notify_tool_list_changed()));
            join_all(told).await;
        }
    }

    /// Those for whom things look different than when they last heard.
    fn concerned(&self) -> Vec<Peer<RoleServer>> {
        let mut all = self.all.lock();
        all.retain(|known| !known.peer.is_transport_closed());
        let mut looked: HashMap<Scope, Outlook> = HashMap::new();
        let mut concerned = Vec::new();
        for listener in all.iter() {
            let now = match looked.get(&listener.scope) {
                Some(now) => *now,
                None => self.engine.outlook(&listener.scope),
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
