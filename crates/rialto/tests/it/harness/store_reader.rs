//! What the store has, read past the program.

use std::{collections::BTreeMap, path::Path};

use rialto_model::{
    ids::Scope,
    store::{TaskFilter, TaskStore},
    task::{Task, TaskHead, TaskState},
};
use rialto_store::SqliteStore;

/// More tasks than any test makes.
const ALL: usize = 100_000;

/// The tasks as the store has them. Each must be exactly the fold of its events, and none of those may be missing.
#[track_caller]
pub(crate) fn consistent_heads(data: &Path) -> BTreeMap<String, TaskHead> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let parse = |text: &str| rialto_a2a_codec::card::decode(text).map_err(|error| error.to_string());
    let store = SqliteStore::open(data, &rialto_store::Config::default(), parse).unwrap();
    runtime.block_on(async {
        let filter = TaskFilter { limit: ALL, ..TaskFilter::default() };
        let heads = store.tasks(&Scope::default(), &filter).await.unwrap();
        for head in &heads {
            let events = store.events(&head.id, 0).await.unwrap();
            let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
            assert_eq!(numbers, (1..=head.version).collect::<Vec<_>>(), "events of {}", head.id);
            let begun = TaskHead { state: TaskState::Submitted, version: 0, ..head.clone() };
            let mut task = Task::new(begun);
            for event in &events {
                assert!(task.apply(&event.event, event.at), "{event:?} cannot have happened");
            }
            assert_eq!((task.head.state, task.head.version), (head.state, head.version), "{}", head.id);
            assert_eq!(task.head.remote, head.remote, "{}", head.id);
        }
        heads.into_iter().map(|head| (head.id.to_string(), head)).collect()
    })
}
