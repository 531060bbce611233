//! Tells connected clients that the list of tools has changed.
//!
//! This is for protocol versions before 2026-07-28, where the server speaks up by itself. Later clients ask to be
//! told, and each listens to the registry through its own request.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use parking_lot::Mutex;
use rmcp::{Peer, RoleServer};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How long one client may take to be told. One that takes longer misses it; it holds up nobody.
const PATIENCE: Duration = Duration::from_secs(5);

/// The clients to tell.
#[derive(Default)]
pub(crate) struct Listeners {
    peers: Mutex<Vec<Peer<RoleServer>>>,
}

// === impl Listeners ===

impl Listeners {
    /// From now on `peer` is told, until it is gone.
    pub(crate) fn add(&self, peer: Peer<RoleServer>) {
        let mut peers = self.peers.lock();
        peers.retain(|known| !known.is_transport_closed());
        peers.push(peer);
    }

    /// Tells everybody about each change, until it is stopped or there will be no more changes.
    pub(crate) async fn tell(self: Arc<Self>, mut changes: watch::Receiver<u64>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                changed = changes.changed() => if changed.is_err() { return },
            }
            let peers = {
                let mut peers = self.peers.lock();
                peers.retain(|known| !known.is_transport_closed());
                peers.clone()
            };
            let told =
                peers.iter().map(|peer| tokio::time::timeout(PATIENCE, peer.notify_tool_list_changed()));
            join_all(told).await;
        }
    }
}
