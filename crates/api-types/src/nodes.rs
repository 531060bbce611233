//! Nodes: the servers that share one store.

use rialto_model::{clock::Timestamp, node::NodeState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All nodes, by name.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "NodeList")]
pub struct NodeList<Row = NodeRow> {
    /// The nodes.
    pub nodes: Vec<Row>,
}

/// Server that shares the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeRow {
    /// Name of the node.
    pub name: String,
    /// State.
    pub state: NodeState,
    /// Number under which its process works on tasks; text, because not every client reads whole numbers of that size.
    pub runner: String,
    /// Process id on its machine.
    pub process: u32,
    /// Address that it listens on.
    pub address: String,
    /// Version of its program.
    pub version: String,
    /// Start of the process.
    pub started_at: Timestamp,
    /// Time of its last heartbeat.
    pub renewed_at: Timestamp,
    /// Number of its tasks that are not over.
    pub open_tasks: u64,
    /// Operator who ordered it to be drained.
    pub drained_by: Option<String>,
    /// Time of that order.
    pub drained_at: Option<Timestamp>,
}
