//! Nodes of a store that no other process shares.

use async_trait::async_trait;

use super::Nowhere;
use crate::{
    clock::Timestamp,
    ids::Runner,
    node::{Node, NodeBeat, NodeDrain, NodeStatus, NodeStore},
    store::StoreError,
};

#[async_trait]
impl NodeStore for Nowhere {
    async fn beat_node(&self, _: &Node) -> Result<NodeBeat, StoreError> {
        Ok(NodeBeat::Accepted { is_draining: false })
    }

    async fn nodes(&self, _: Timestamp) -> Result<Vec<NodeStatus>, StoreError> {
        Ok(Vec::new())
    }

    async fn drain_node(&self, _: &str, _: Option<&NodeDrain>) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn retire_node(&self, _: Runner) -> Result<(), StoreError> {
        Ok(())
    }
}
