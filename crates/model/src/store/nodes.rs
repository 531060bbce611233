//! Nodes that share the store.

use jiff::Timestamp;

use super::layer::store_trait;
use crate::{
    ids::ProcessId,
    node::{Node, NodeBeat, NodeDrain, NodeStatus},
    store::StoreError,
};

store_trait! {
    /// Nodes that share the store. Part of every [`Store`](super::Store).
    pub trait NodeStore {
        /// Says that a node serves, under its name. The name is its process's from now on, unless another process has it that is at work. Nodes that
        /// were lost a day ago are forgotten.
        async fn beat_node(&self, node: &Node) -> Result<NodeBeat, StoreError>;

        /// All nodes, by name.
        async fn nodes(&self, now: Timestamp) -> Result<Vec<NodeStatus>, StoreError>;

        /// Orders a node to be drained, or undoes it. Returns whether there is such a node.
        async fn drain_node(&self, name: &str, drain: Option<&NodeDrain>) -> Result<bool, StoreError>;

        /// Says that a process serves no more. Its node is forgotten, unless it is to be drained when it starts again.
        async fn retire_node(&self, runner: ProcessId) -> Result<(), StoreError>;
    }
}
