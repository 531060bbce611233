//! Nodes: the servers that share one store, and what each of them knows of the others.
//!
//! A node has a name that an operator knows it by. Its row belongs to the process that has the name now, and is worth as much as the lease of
//! that process ([`Store::is_at_work`](crate::store::Store::is_at_work)). Draining a node is about the name: it lasts while the process
//! is replaced, until it is undone.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::ProcessId;

/// Length of the longest name of a node, in bytes.
pub const MAX_NODE_NAME_BYTES: usize = 64;

/// A server process that shares the store, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// The number under which it works on tasks.
    pub runner: ProcessId,
    /// Its process id on its machine.
    pub process: u32,
    /// Address that it listens on.
    pub address: String,
    /// Version of its program.
    pub version: String,
    /// Start of the process.
    pub started_at: Timestamp,
    /// Time of its last heartbeat.
    pub renewed_at: Timestamp,
}

/// Order of an operator that a node is not to be sent new work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeDrain {
    /// The operator.
    pub by: String,
    /// Time of the order.
    pub at: Timestamp,
}

/// A node and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// The node.
    pub node: Node,
    /// Order to drain it, if there is one.
    pub drain: Option<NodeDrain>,
    /// True if its process has a lease.
    pub is_alive: bool,
    /// Number of tasks that are not over and belong to its process.
    pub open_tasks: u64,
}

/// State of a node as an operator is shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NodeState {
    /// It takes requests and starts work.
    Serving,
    /// It takes requests, but is not ready for load balancers and starts no work in the background.
    Draining,
    /// It ended without a word: its lease is over, and other nodes take over its tasks.
    Lost,
    /// It ended, and is still to be drained when it starts again.
    Stopped,
}

/// Answer to a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeBeat {
    /// The name is this process's.
    Accepted {
        /// True if an operator has ordered the node to be drained.
        is_draining: bool,
    },
    /// Another live process has the name.
    NameInUse {
        /// Address that it listens on.
        address: String,
    },
}

// === impl NodeStatus ===

impl NodeStatus {
    /// Its state.
    pub const fn state(&self) -> NodeState {
        match (self.node.runner.get(), self.is_alive, &self.drain) {
            (0, ..) => NodeState::Stopped,
            (_, false, _) => NodeState::Lost,
            (_, true, Some(_)) => NodeState::Draining,
            (_, true, None) => NodeState::Serving,
        }
    }
}

// === impl NodeState ===

impl NodeState {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::Draining => "draining",
            Self::Lost => "lost",
            Self::Stopped => "stopped",
        }
    }
}

/// Returns whether `name` can be the name of a node: it stands in commands, logs and labels as it is.
pub fn is_node_name(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.len() <= MAX_NODE_NAME_BYTES
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_node_can_stand_in_a_command_and_in_a_label() {
        let long = "a".repeat(MAX_NODE_NAME_BYTES + 1);
        assert!(["a", "node-1.example.com_2", &long[1..]].into_iter().all(is_node_name));
        assert!(!["", "-a", "a b", "a/b", "ü", &long].into_iter().any(is_node_name));
    }

    #[test]
    fn the_state_of_a_node_is_that_of_its_process_before_that_of_its_name() {
        let node = Node {
            name: "a".to_owned(),
            runner: ProcessId::from(1),
            process: 7,
            address: "127.0.0.1:1".to_owned(),
            version: "1".to_owned(),
            started_at: Timestamp::UNIX_EPOCH,
            renewed_at: Timestamp::UNIX_EPOCH,
        };
        let drain = NodeDrain { by: "ann".to_owned(), at: Timestamp::UNIX_EPOCH };
        let state = |runner, is_alive, drain: Option<&NodeDrain>| {
            let node = Node { runner, ..node.clone() };
            NodeStatus { node, drain: drain.cloned(), is_alive, open_tasks: 0 }.state()
        };
        let runner = ProcessId::from(1);
        assert_eq!(state(runner, true, None), NodeState::Serving);
        assert_eq!(state(runner, true, Some(&drain)), NodeState::Draining);
        assert_eq!(state(runner, false, Some(&drain)), NodeState::Lost);
        assert_eq!(state(ProcessId::NOBODY, false, Some(&drain)), NodeState::Stopped);
    }
}
