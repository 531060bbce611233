//! Membership of this process among the nodes of its store: its name there, and whether an operator has ordered it to be drained.
//!
//! A node sends a heartbeat every second, and the answer says whether it is to be drained. A draining node answers requests, and starts nothing
//! by itself: no takeover, no schedule, no webhook. Its lease ([`process_lease`](crate::process_lease)) is separate: that is renewed
//! by a thread that calls cannot starve.

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
    store::Store,
};
use tokio_util::sync::CancellationToken;

use crate::{
    journal::TaskJournal, process_lease::ProcessLease, registry::Registry, store_failure::store_failure,
};

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

/// Nodes that share the store, and this process among them. A process that is no node starts work like one that is not drained.
pub struct NodeService {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) lease: Arc<ProcessLease>,
    journal: TaskJournal,
    identity: OnceLock<(NodeIdentity, Timestamp)>,
    is_draining: Arc<AtomicBool>,
    /// Set while another live process has the name.
    is_name_taken: AtomicBool,
}

// === impl NodeService ===

impl NodeService {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        registry: Arc<Registry>,
        lease: Arc<ProcessLease>,
        journal: TaskJournal,
    ) -> Self {
        Self {
            store,
            registry,
            lease,
            journal,
            identity: OnceLock::new(),
            is_draining: Arc::default(),
            is_name_taken: AtomicBool::default(),
        }
    }

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

    /// Makes this process a node under this name, and learns from the store if the node is to be drained. To be called once it has its
    /// lease ([`ProcessLease::register`]).
    pub async fn join(&self, identity: NodeIdentity) -> Result<(), Failure> {
        self.journal.set_node(&identity.name);
        // A process joins once.
        let _ = self.identity.set((identity, self.journal.now()));
        self.send_heartbeat().await
    }

    /// Sends heartbeats until `stop` is cancelled.
    pub async fn run_heartbeat(&self, stop: CancellationToken) {
        let mut is_failing = false;
        while !stop.is_cancelled() {
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(BEAT_INTERVAL) => {}
            }
            let sent = self.send_heartbeat().await;
            if let Err(failure) = &sent
                && !is_failing
            {
                tracing::warn!("the heartbeat of this node could not be written: {failure}");
            }
            is_failing = sent.is_err();
        }
    }

    /// Removes this process from the nodes.
    pub async fn leave(&self) {
        let runner = self.lease.runner();
        if self.identity.get().is_none() || runner == ProcessId::NOBODY {
            return;
        }
        if let Err(error) = self.store.retire_node(runner).await {
            tracing::warn!("this node could not be removed from the nodes: {error}");
        }
    }

    /// Name of this process as a node, if it is one.
    pub fn name(&self) -> Option<&str> {
        self.identity.get().map(|(identity, _)| &*identity.name)
    }

    /// Flag that is set while this node is drained: it is to start no work by itself then.
    pub fn draining_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_draining)
    }

    /// True if this node is drained.
    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Lists the nodes that share the store.
    pub async fn list(&self) -> Result<Vec<NodeStatus>, Failure> {
        self.store.nodes(self.journal.now()).await.map_err(store_failure)
    }

    /// Orders a node to be drained, or undoes that. Returns false if there is no such node.
    pub async fn set_drain(&self, name: &str, drain: Option<&NodeDrain>) -> Result<bool, Failure> {
        self.store.drain_node(name, drain).await.map_err(store_failure)
    }

    async fn send_heartbeat(&self) -> Result<(), Failure> {
        let runner = self.lease.runner();
        let Some((identity, started_at)) = self.identity.get() else { return Ok(()) };
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
            renewed_at: self.journal.now(),
        };
        match self.store.beat_node(&node).await.map_err(store_failure)? {
            NodeBeat::Accepted { is_draining } => {
                self.set_name_taken(&node.name, None);
                self.set_draining(is_draining);
            }
            NodeBeat::NameInUse { address } => self.set_name_taken(&node.name, Some(&address)),
        }
        Ok(())
    }
}
