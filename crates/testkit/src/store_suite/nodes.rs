//! Promises about the nodes that share a store.

use jiff::SignedDuration;
use rialto_model::{
    ids::ProcessId,
    node::{Node, NodeBeat, NodeDrain, NodeState, NodeStatus},
    store::Store,
};

use super::{at, head};

fn node(name: &str, runner: ProcessId) -> Node {
    Node {
        name: name.to_owned(),
        runner,
        process: 42,
        address: format!("127.0.0.1:{}", runner.get()),
        version: "1.2.3".to_owned(),
        started_at: at(1),
        renewed_at: at(10),
    }
}

fn order() -> NodeDrain {
    NodeDrain { by: "ann".to_owned(), at: at(5) }
}

async fn beat(store: &dyn Store, node: &Node) -> NodeBeat {
    store.beat_node(node).await.unwrap()
}

async fn states(store: &dyn Store) -> Vec<(String, NodeState)> {
    let nodes = store.nodes(at(10)).await.unwrap();
    nodes.iter().map(|status| (status.node.name.clone(), status.state())).collect()
}

/// Nodes are listed by name, as they described themselves last, with the number of their open tasks.
pub async fn nodes_are_listed_with_their_tasks(store: &dyn Store) {
    let (a, b) = (ProcessId::from(1), ProcessId::from(2));
    for runner in [a, b] {
        store.acquire_lease(runner, at(1_000)).await.unwrap();
    }
    assert_eq!(beat(store, &node("b", b)).await, NodeBeat::Accepted { is_draining: false });
    beat(store, &node("a", a)).await;
    let later = Node { renewed_at: at(11), ..node("a", a) };
    beat(store, &later).await;
    let open = rialto_model::task::TaskHead { runner: a, ..head("task_1") };
    store.open_task(&open, Vec::new()).await.unwrap();
    let status = |node, open_tasks| NodeStatus { node, drain: None, is_alive: true, open_tasks };
    assert_eq!(store.nodes(at(12)).await.unwrap(), [status(later, 1), status(node("b", b), 0)]);
}

/// A live process keeps its name; one that is gone loses it to the process that takes it next.
pub async fn a_node_keeps_its_name_while_its_process_lives(store: &dyn Store) {
    let (old, new) = (ProcessId::from(1), ProcessId::from(2));
    store.acquire_lease(old, at(1_000)).await.unwrap();
    store.acquire_lease(new, at(1_000)).await.unwrap();
    beat(store, &node("a", old)).await;
    let refused = NodeBeat::NameInUse { address: "127.0.0.1:1".to_owned() };
    assert_eq!(beat(store, &node("a", new)).await, refused);
    store.release_lease(old).await.unwrap();
    assert_eq!(states(store).await, [("a".to_owned(), NodeState::Lost)]);
    assert_eq!(beat(store, &node("a", new)).await, NodeBeat::Accepted { is_draining: false });
    assert_eq!(states(store).await, [("a".to_owned(), NodeState::Serving)]);
}

/// An order to drain a node is told to its process, until it is undone.
pub async fn a_node_is_told_that_it_is_drained_until_that_is_undone(store: &dyn Store) {
    let runner = ProcessId::from(1);
    store.acquire_lease(runner, at(1_000)).await.unwrap();
    assert!(!store.drain_node("a", Some(&order())).await.unwrap(), "there is no such node yet");
    beat(store, &node("a", runner)).await;
    assert!(store.drain_node("a", Some(&order())).await.unwrap());
    assert_eq!(beat(store, &node("a", runner)).await, NodeBeat::Accepted { is_draining: true });
    assert_eq!(states(store).await, [("a".to_owned(), NodeState::Draining)]);
    assert_eq!(store.nodes(at(10)).await.unwrap()[0].drain, Some(order()));
    assert!(store.drain_node("a", None).await.unwrap());
    assert_eq!(beat(store, &node("a", runner)).await, NodeBeat::Accepted { is_draining: false });
}

/// An order to drain a node lasts while its process is replaced. A node that has ended is forgotten once it is undone.
pub async fn a_drained_node_stays_drained_when_its_process_is_replaced(store: &dyn Store) {
    let (old, new) = (ProcessId::from(1), ProcessId::from(2));
    store.acquire_lease(new, at(1_000)).await.unwrap();
    beat(store, &node("a", old)).await;
    store.drain_node("a", Some(&order())).await.unwrap();
    store.retire_node(old).await.unwrap();
    assert_eq!(states(store).await, [("a".to_owned(), NodeState::Stopped)]);
    assert_eq!(beat(store, &node("a", new)).await, NodeBeat::Accepted { is_draining: true });
    store.retire_node(new).await.unwrap();
    store.drain_node("a", None).await.unwrap();
    assert_eq!(states(store).await, []);
}

/// A node that was lost is listed for a day.
pub async fn a_lost_node_is_forgotten_after_a_day(store: &dyn Store) {
    let (lost, alive) = (ProcessId::from(1), ProcessId::from(2));
    store.acquire_lease(alive, at(1_000_000)).await.unwrap();
    beat(store, &node("lost", lost)).await;
    beat(store, &node("alive", alive)).await;
    assert_eq!(states(store).await.len(), 2);
    let day_later = at(11) + SignedDuration::from_hours(24);
    beat(store, &Node { renewed_at: day_later, ..node("alive", alive) }).await;
    let left = store.nodes(day_later).await.unwrap();
    assert_eq!(left.iter().map(|status| status.node.name.as_str()).collect::<Vec<_>>(), ["alive"]);
}
