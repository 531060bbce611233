//! Nodes: the servers that share this store, and the order to drain one of them.
//!
//! They are the server's own, so callers of the org `default` alone see and drain them. The order is kept in the store under the name of the node,
//! which notices it with its next heartbeat.

use rialto_api_types::nodes::NodeRow;
use rialto_model::{
    call::Caller,
    failure::{Failure, FailureKind},
    ids::Scope,
    node::{NodeDrain, NodeStatus},
};
use rialto_policy::Action;
use serde_json::{Value, json};

use crate::{Console, operation::Operation};

/// All nodes, by name.
pub async fn list(console: &Console, caller: &Caller) -> Result<Vec<NodeRow>, Failure> {
    console.admit(caller, Action::AdminAgents).await?;
    check_org(console, caller)?;
    Ok(console.engine().nodes().await?.into_iter().map(summary).collect())
}

/// Orders a node to be drained, or undoes it. Answers the node.
pub async fn set_draining(
    console: &Console,
    caller: &Caller,
    name: &str,
    is_draining: bool,
) -> Result<NodeRow, Failure> {
    let operation = Operation::new(if is_draining { "node.drain" } else { "node.undrain" }, name);
    let work = async {
        check_org(console, caller)?;
        let before = find(console, name).await?;
        operation.before(drain_state(&before));
        let by = if console.at_machine() { console.office().operator() } else { caller.id.to_string() };
        let drain = is_draining.then(|| NodeDrain { by, at: console.engine().now() });
        if !console.engine().drain_node(name, drain.as_ref()).await? {
            return Err(missing(console, name).await);
        }
        // One that had ended already is not listed any more once the order is undone.
        let after = find(console, name).await.unwrap_or(NodeStatus { drain: None, ..before });
        operation.after(drain_state(&after));
        Ok(summary(after))
    };
    console.administer(caller, Action::AdminAgents, &operation, work).await
}

fn check_org(console: &Console, caller: &Caller) -> Result<(), Failure> {
    if console.at_machine() || caller.scope.org == Scope::default().org {
        return Ok(());
    }
    let message = "nodes serve all orgs; use a token of the org `default`";
    Err(Failure::new(FailureKind::Denied, message))
}

async fn find(console: &Console, name: &str) -> Result<NodeStatus, Failure> {
    let nodes = console.engine().nodes().await?;
    match nodes.into_iter().find(|status| status.node.name == name) {
        Some(status) => Ok(status),
        None => Err(missing(console, name).await),
    }
}

async fn missing(console: &Console, name: &str) -> Failure {
    let nodes = match console.engine().nodes().await {
        Ok(nodes) => nodes,
        Err(failure) => return failure,
    };
    let names: Vec<_> = nodes.iter().map(|status| status.node.name.as_str()).collect();
    let known = if names.is_empty() {
        "no server runs".to_owned()
    } else {
        format!("there are {}", names.join(", "))
    };
    Failure::new(FailureKind::NotFound, format!("there is no node \"{name}\"; {known}"))
}

fn drain_state(status: &NodeStatus) -> Value {
    json!({
        "node": status.node.name,
        "draining": status.drain.is_some(),
        "drainedBy": status.drain.as_ref().map(|drain| &drain.by),
    })
}

fn summary(status: NodeStatus) -> NodeRow {
    let state = status.state();
    let (drained_by, drained_at) = status.drain.map(|drain| (drain.by, drain.at)).unzip();
    let node = status.node;
    NodeRow {
        name: node.name,
        state,
        runner: node.runner.get().to_string(),
        process: node.process,
        address: node.address,
        version: node.version,
        started_at: node.started_at,
        renewed_at: node.renewed_at,
        open_tasks: status.open_tasks,
        drained_by,
        drained_at,
    }
}
