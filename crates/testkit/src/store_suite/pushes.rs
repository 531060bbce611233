//! Those who are told of a task.

use rialto_model::{
    card::Dialect,
    credential::Secret,
    ids::{Scope, TaskId},
    json::{Extra, Json},
    push::{PushDeliveryState, PushLogin, PushSubscription},
    store::{Store, SweepLimits},
    webhook::DeliveryLease,
};

use super::{at, finished, head, progress, run};

fn push(task: &str, id: &str) -> PushSubscription {
    let mut extra = Extra::new();
    extra.push("x-note", Json::parse("1.50").unwrap());
    PushSubscription {
        task: TaskId::from(task),
        id: id.to_owned(),
        scope: Scope::default(),
        caller: "ann".into(),
        created_with: None,
        url: "https://hooks.example/a".to_owned(),
        token: Some(Secret::from("shown")),
        login: Some(PushLogin { schemes: vec!["Bearer".to_owned()], credentials: Some(Secret::from("key")) }),
        dialect: Dialect::V10,
        extra,
        created_at: at(0),
        standing: PushDeliveryState::default(),
    }
}

fn lease(holder: &str, now: i64) -> DeliveryLease {
    DeliveryLease { holder: holder.to_owned(), now: at(now), until: at(now + 10) }
}

/// What is asked for comes back as it was put, can be replaced, and removed once.
pub async fn a_push_comes_back_as_it_was_put(store: &dyn Store) {
    store.open_task(&head("task_1"), Vec::new()).await.unwrap();
    let full = PushSubscription { created_with: Some("tok_1".into()), ..push("task_1", "a") };
    let bare = PushSubscription { token: None, login: None, ..push("task_1", "b") };
    store.put_push(&full).await.unwrap();
    store.put_push(&bare).await.unwrap();
    let task = TaskId::from("task_1");
    assert_eq!(store.pushes(&task).await.unwrap(), [full.clone(), bare.clone()]);
    let moved = PushSubscription {
        url: "https://hooks.example/b".to_owned(),
        created_with: Some("tok_2".into()),
        ..full
    };
    store.put_push(&moved).await.unwrap();
    assert_eq!(store.pushes(&task).await.unwrap(), [moved, bare]);
    assert!(store.remove_push(&task, "a").await.unwrap());
    assert!(!store.remove_push(&task, "a").await.unwrap());
    assert_eq!(store.pushes(&task).await.unwrap().len(), 1);
}

/// Who has something to be told is told by one process at a time, as far as its holder writes down.
pub async fn a_push_is_due_while_its_task_is_ahead_of_it(store: &dyn Store) {
    let quiet = store.open_task(&head("task_1"), Vec::new()).await;
    quiet.unwrap();
    run(store, &head("task_2"), vec![progress("one"), finished()]).await;
    store.put_push(&push("task_1", "a")).await.unwrap();
    store.put_push(&push("task_2", "a")).await.unwrap();

    let due = store.due_pushes(&lease("us", 0), 9).await.unwrap();
    assert_eq!(due, [push("task_2", "a")]);
    assert!(store.due_pushes(&lease("others", 1), 9).await.unwrap().is_empty(), "it is ours for a while");
    let mut told = due.into_iter().next().unwrap();
    told.standing.told = 1;
    assert!(!store.record_push_delivery(&told, "others").await.unwrap());
    assert!(store.record_push_delivery(&told, "us").await.unwrap());
    assert_eq!(store.due_pushes(&lease("others", 2), 9).await.unwrap(), [told.clone()]);
    told.standing.told = 2;
    assert!(store.record_push_delivery(&told, "others").await.unwrap());
    assert!(store.due_pushes(&lease("us", 3), 9).await.unwrap().is_empty(), "all of it was told");
}

/// One that fails waits, and one that was given up is listed, and swept with its task.
pub async fn a_push_that_fails_waits_and_is_given_up(store: &dyn Store) {
    run(store, &head("task_1"), vec![finished()]).await;
    store.put_push(&push("task_1", "a")).await.unwrap();
    let mut failed = store.due_pushes(&lease("us", 0), 9).await.unwrap().remove(0);
    failed.standing = PushDeliveryState {
        failures: 1,
        next_attempt_at: Some(at(5)),
        last_error: Some("it answered with HTTP status 500".to_owned()),
        ..failed.standing
    };
    assert!(store.record_push_delivery(&failed, "us").await.unwrap());
    assert!(store.due_pushes(&lease("us", 4), 9).await.unwrap().is_empty());
    assert_eq!(store.due_pushes(&lease("us", 5), 9).await.unwrap(), [failed.clone()]);
    failed.standing.is_dead = true;
    assert!(store.record_push_delivery(&failed, "us").await.unwrap());
    assert!(store.due_pushes(&lease("us", 60), 9).await.unwrap().is_empty());
    assert_eq!(store.dead_pushes(&Scope::default(), 9).await.unwrap(), [failed]);
    store.sweep(SweepLimits { tasks_before: Some(at(100)), ..SweepLimits::default() }).await.unwrap();
    assert!(store.dead_pushes(&Scope::default(), 9).await.unwrap().is_empty());
}

/// Those that were set with an access token go with it, and no others do.
pub async fn pushes_are_removed_with_their_token(store: &dyn Store) {
    store.open_task(&head("task_1"), Vec::new()).await.unwrap();
    let set =
        |id: &str, token: &str| PushSubscription { created_with: Some(token.into()), ..push("task_1", id) };
    for config in [set("a", "tok_1"), set("b", "tok_2"), set("c", "tok_1"), push("task_1", "d")] {
        store.put_push(&config).await.unwrap();
    }
    assert_eq!(store.push_tokens().await.unwrap(), ["tok_1".into(), "tok_2".into()]);
    assert_eq!(store.remove_pushes_with_token(&"tok_1".into()).await.unwrap(), 2);
    assert_eq!(store.remove_pushes_with_token(&"tok_1".into()).await.unwrap(), 0, "they are removed once");
    let left = store.pushes(&TaskId::from("task_1")).await.unwrap();
    assert_eq!(left, [set("b", "tok_2"), push("task_1", "d")]);
    assert_eq!(store.push_tokens().await.unwrap(), ["tok_2".into()]);
}
