//! Nodes: the servers that share this store, and the order to drain one of them.
//!
//! They belong to the server, so only callers of the org `default` see and drain them. The order is stored under the name of the node,
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

use crate::{Administration, operation::AdminOperation};

/// All nodes, by name.
pub async fn list(admin: &Administration, caller: &Caller) -> Result<Vec<NodeRow>, Failure> {
    admin.authorize_admin(caller, Action::AdminAgents).await?;
    check_org(admin, caller)?;
    Ok(admin.engine().nodes().list().await?.into_iter().map(summary).collect())
}

/// Starts or stops draining a node. Returns the node.
pub async fn set_draining(
    admin: &Administration,
    caller: &Caller,
    name: &str,
    is_draining: bool,
) -> Result<NodeRow, Failure> {
    let operation = AdminOperation::new(if is_draining { "node.drain" } else { "node.undrain" }, name);
    let work = async {
        check_org(admin, caller)?;
        let before = find(admin, name).await?;
        operation.before(drain_state(&before));
        let by = if admin.is_local() { admin.host().operator_name() } else { caller.id.to_string() };
        let drain = is_draining.then(|| NodeDrain { by, at: admin.engine().now() });
        if !admin.engine().nodes().set_drain(name, drain.as_ref()).await? {
            return Err(missing(admin, name).await);
        }
        // A node that has ended is no longer listed once its order is removed.
        let after = find(admin, name).await.unwrap_or(NodeStatus { drain: None, ..before });
        operation.after(drain_state(&after));
        Ok(summary(after))
    };
    admin.administer(caller, Action::AdminAgents, &operation, work).await
}

fn check_org(admin: &Administration, caller: &Caller) -> Result<(), Failure> {
    if admin.is_local() || caller.scope.org == Scope::default().org {
        return Ok(());
    }
    let message = "nodes serve all orgs; use a token of the org `default`";
    Err(Failure::new(FailureKind::Denied, message))
}

async fn find(admin: &Administration, name: &str) -> Result<NodeStatus, Failure> {
    let nodes = admin.engine().nodes().list().await?;
    match nodes.into_iter().find(|status| status.node.name == name) {
        Some(status) => Ok(status),
        None => Err(missing(admin, name).await),
    }
}

async fn missing(admin: &Administration, name: &str) -> Failure {
    let nodes = match admin.engine().nodes().list().await {
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
