//! Membership of this process among the nodes of its store: its name there, and whether an operator has ordered it to be drained.
//!
//! A node sends a heartbeat every second, and the answer says whether it is to be drained. A draining node answers requests, and starts nothing
//! by itself: no takeover, no schedule, no webhook. Its lease ([`attendance`](crate::attendance)) is another matter: that is renewed by a
//! thread that calls cannot starve.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rialto_model::{
    clock::Timestamp,
    failure::Failure,
    ids::ProcessId,
    node::{Node, NodeBeat, NodeDrain, NodeStatus},
};
use tokio_util::sync::CancellationToken;

use crate::engine::{Engine, store_failure};

/// Time between two heartbeats, and with it the longest time until an order to drain is noticed.
const BEAT_INTERVAL: Duration = Duration::from_secs(1);

/// Description of this process as a node.
#[derive(Clone, Debug)]
pub struct NodeIdentity {
    /// Its name.
    pub name: Arc<str>,
    /// Address that it listens on.
    pub address: String,
    /// Version of its program.
    pub version: &'static str,
}

/// State of this process as a node. A process that is none starts work like one that is not drained.
#[derive(Default)]
pub(crate) struct NodeMembership {
    identity: OnceLock<(NodeIdentity, Timestamp)>,
    is_draining: Arc<AtomicBool>,
    /// Whether another live process has the name.
    is_name_taken: AtomicBool,
}

// === impl NodeMembership ===

impl NodeMembership {
    fn set_draining(&self, is_draining: bool) {
        if self.is_draining.swap(is_draining, Ordering::Relaxed) == is_draining {
            return;
        }
        if is_draining {
            tracing::info!(
                "this node is drained: it answers requests, is not ready for load balancers, and starts no work in the background"
            );
        } else {
            tracing::info!("this node is drained no more");
        }
    }

    fn set_name_taken(&self, name: &str, holder: Option<&str>) {
        let is_taken = holder.is_some();
        if self.is_name_taken.swap(is_taken, Ordering::Relaxed) == is_taken {
            return;
        }
        match holder {
            Some(address) => tracing::warn!(
                node.name = name,
                "the node name \"{name}\" belongs to a live process at {address}; until that ends, this process is not among the nodes and \
                 cannot be drained: give each its own [server] node_name"
            ),
            None => tracing::info!(node.name = name, "the node name \"{name}\" is this process's now"),
        }
    }
}

// === impl Engine ===

impl Engine {
    /// Makes this process a node under this name, and learns whether the node is to be drained. To be called once it has its lease
    /// ([`Engine::take_post`]).
    pub async fn join_nodes(&self, identity: NodeIdentity) -> Result<(), Failure> {
        self.inner().journal.set_node(&identity.name);
        // A process joins once.
        let _ = self.inner().node.identity.set((identity, self.now()));
        self.beat_node().await
    }

    /// Sends heartbeats until it is told to stop.
    pub async fn keep_node(&self, stop: CancellationToken) {
        let mut is_failing = false;
        while !stop.is_cancelled() {
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(BEAT_INTERVAL) => {}
            }
            let sent = self.beat_node().await;
            if let Err(failure) = &sent
                && !is_failing
            {
                tracing::warn!("the heartbeat of this node could not be written: {failure}");
            }
            is_failing = sent.is_err();
        }
    }

    /// Says that this process is a node no more.
    pub async fn leave_nodes(&self) {
        let runner = self.runner();
        if self.inner().node.identity.get().is_none() || runner == ProcessId::NOBODY {
            return;
        }
        if let Err(error) = self.inner().store.retire_node(runner).await {
            tracing::warn!("this node could not sign off: {error}");
        }
    }

    /// Name of this process as a node, if it is one.
    pub fn node_name(&self) -> Option<&str> {
        self.inner().node.identity.get().map(|(identity, _)| &*identity.name)
    }

    /// Flag that is set while this node is drained: it is to start no work by itself then.
    pub fn draining_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.inner().node.is_draining)
    }

    /// Whether this node is drained.
    pub fn is_draining(&self) -> bool {
        self.inner().node.is_draining.load(Ordering::Relaxed)
    }

    /// The nodes that share the store.
    pub async fn nodes(&self) -> Result<Vec<NodeStatus>, Failure> {
        self.inner().store.nodes(self.now()).await.map_err(store_failure)
    }

    /// Orders a node to be drained, or undoes it. Answers whether there is such a node.
    pub async fn drain_node(&self, name: &str, drain: Option<&NodeDrain>) -> Result<bool, Failure> {
        self.inner().store.drain_node(name, drain).await.map_err(store_failure)
    }

    async fn beat_node(&self) -> Result<(), Failure> {
        let (membership, runner) = (&self.inner().node, self.runner());
        let Some((identity, started_at)) = membership.identity.get() else { return Ok(()) };
        if runner == ProcessId::NOBODY {
            return Ok(());
        }
        let node = Node {
            name: identity.name.to_string(),
            runner,
            process: std::process::id(),
            address: identity.address.clone(),
            version: identity.version.to_owned(),
            started_at: *started_at,
            renewed_at: self.now(),
        };
        match self.inner().store.beat_node(&node).await.map_err(store_failure)? {
            NodeBeat::Accepted { is_draining } => {
                membership.set_name_taken(&node.name, None);
                membership.set_draining(is_draining);
            }
            NodeBeat::NameInUse { address } => membership.set_name_taken(&node.name, Some(&address)),
        }
        Ok(())
    }
}
