//! Promises about calls that one node passes on to another.

use rialto_model::{
    ids::ProcessId,
    relay::{RelayProgress, RelayedCall},
    store::Store,
};

use super::at;

fn call(id: &str, receiver: ProcessId) -> RelayedCall {
    RelayedCall { id: id.to_owned(), sender: ProcessId::from(1), receiver, body: "{}".to_owned(), at: at(1) }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// A call is taken once, by the process that it was passed on to.
pub async fn a_relayed_call_is_taken_once_by_its_receiver(store: &dyn Store) {
    let (receiver, other) = (ProcessId::from(2), ProcessId::from(3));
    store.put_relayed_call(&call("c1", receiver)).await.unwrap();
    assert_eq!(store.take_relayed_calls(other).await.unwrap(), []);
    let waiting = Some(RelayProgress { is_taken: false, events: Vec::new() });
    assert_eq!(store.relay_progress("c1", 0).await.unwrap(), waiting);
    assert_eq!(store.take_relayed_calls(receiver).await.unwrap(), [call("c1", receiver)]);
    assert_eq!(store.take_relayed_calls(receiver).await.unwrap(), []);
    assert_eq!(store.remove_relayed_call("c1").await.unwrap(), Some(true));
    assert_eq!(store.remove_relayed_call("c1").await.unwrap(), None);
}

/// Events are read in order, each once, also when they were written twice.
pub async fn events_of_a_relayed_call_are_read_in_order(store: &dyn Store) {
    store.put_relayed_call(&call("c1", ProcessId::from(2))).await.unwrap();
    assert!(store.put_relayed_events("c1", 0, &texts(&["a", "b"])).await.unwrap());
    assert!(store.put_relayed_events("c1", 0, &texts(&["a", "b"])).await.unwrap());
    assert!(store.put_relayed_events("c1", 2, &texts(&["c"])).await.unwrap());
    assert!(store.put_relayed_events("c1", 3, &[]).await.unwrap());
    let read = |progress: Option<RelayProgress>| progress.map(|progress| progress.events);
    assert_eq!(read(store.relay_progress("c1", 0).await.unwrap()), Some(texts(&["a", "b", "c"])));
    assert_eq!(read(store.relay_progress("c1", 2).await.unwrap()), Some(texts(&["c"])));
}

/// A call that was removed has no events, and takes none.
pub async fn no_event_is_added_to_a_relayed_call_that_was_removed(store: &dyn Store) {
    store.put_relayed_call(&call("c1", ProcessId::from(2))).await.unwrap();
    store.put_relayed_events("c1", 0, &texts(&["a"])).await.unwrap();
    assert_eq!(store.remove_relayed_call("c1").await.unwrap(), Some(false));
    assert!(!store.put_relayed_events("c1", 1, &texts(&["d"])).await.unwrap());
    assert!(!store.put_relayed_events("c1", 1, &[]).await.unwrap());
    assert_eq!(store.relay_progress("c1", 0).await.unwrap(), None);
}

/// A program stays with its holder while that is a candidate.
pub async fn a_program_stays_with_its_holder_while_that_is_a_candidate(store: &dyn Store) {
    let (a, b) = (ProcessId::from(1), ProcessId::from(2));
    assert_eq!(store.hold_program("p", &[a, b]).await.unwrap(), a);
    assert_eq!(store.hold_program("p", &[b, a]).await.unwrap(), a);
    assert_eq!(store.hold_program("q", &[b, a]).await.unwrap(), b);
    assert_eq!(store.hold_program("p", &[b]).await.unwrap(), b);
    let mut holders = store.program_holders().await.unwrap();
    holders.sort();
    assert_eq!(holders, [("p".to_owned(), b), ("q".to_owned(), b)]);
}
