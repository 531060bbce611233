//! Conversations, messages that come twice, and tasks whose process is gone.

use rialto_model::{
    call::CallerId,
    ids::{ContextId, ProcessId, Scope, TaskId},
    store::{ConversationFilter, MessageClaim, Store, SweepLimits, TaskFilter, hash_message},
    task::{TaskHead, TaskState},
};

use super::{at, entry, finished, head, progress, run};

fn talk(id: &str, context: &str) -> TaskHead {
    TaskHead { context: Some(ContextId::from(context)), message: Some(format!("m-{id}").into()), ..head(id) }
}

fn of_ann() -> ConversationFilter {
    ConversationFilter {
        caller: CallerId::from("ann"),
        context: None,
        agent: None,
        state: None,
        since: None,
        behind: None,
        limit: 50,
    }
}

fn ids(heads: &[TaskHead]) -> Vec<&str> {
    heads.iter().map(|head| head.id.as_str()).collect()
}

/// Tasks of conversations come in the order of their last change, page by page, with how many there are.
pub async fn conversations_come_by_their_last_change(store: &dyn Store) {
    let scope = Scope::default();
    for (id, context) in [("task_1", "a"), ("task_2", "b"), ("task_3", "a")] {
        store.open_task(&talk(id, context), Vec::new()).await.unwrap();
    }
    store.open_task(&head("task_4"), Vec::new()).await.unwrap();
    store.open_task(&TaskHead { caller: "bob".into(), ..talk("task_5", "a") }, Vec::new()).await.unwrap();
    let later = entry(&talk("task_1", "a"), vec![progress("one")], at(5));
    store.append(later).await.unwrap();

    let first = store.conversation_tasks(&scope, &ConversationFilter { limit: 2, ..of_ann() }).await.unwrap();
    assert_eq!((ids(&first.heads), first.total), (vec!["task_1", "task_3"], 3));
    let last = first.heads.last().map(|head| (head.updated_at, head.id.clone()));
    let second = store
        .conversation_tasks(&scope, &ConversationFilter { limit: 2, behind: last, ..of_ann() })
        .await
        .unwrap();
    assert_eq!((ids(&second.heads), second.total), (vec!["task_2"], 3));
}

/// They can be narrowed to a conversation, an agent, a state and a time.
pub async fn conversations_can_be_narrowed(store: &dyn Store) {
    let scope = Scope::default();
    run(store, &talk("task_1", "a"), vec![finished()]).await;
    let other = TaskHead { agent: "another".into(), ..talk("task_2", "b") };
    store.open_task(&other, Vec::new()).await.unwrap();
    let narrowed = async |filter: ConversationFilter| {
        let page = store.conversation_tasks(&scope, &filter).await.unwrap();
        assert_eq!(page.total, page.heads.len() as u64);
        page.heads.into_iter().map(|head| head.id).collect::<Vec<TaskId>>()
    };
    let (one, two) = (vec![TaskId::from("task_1")], vec![TaskId::from("task_2")]);
    assert_eq!(narrowed(ConversationFilter { context: Some("b".into()), ..of_ann() }).await, two);
    assert_eq!(narrowed(ConversationFilter { agent: Some("another".into()), ..of_ann() }).await, two);
    assert_eq!(narrowed(ConversationFilter { state: Some(TaskState::Completed), ..of_ann() }).await, one);
    assert_eq!(narrowed(ConversationFilter { since: Some(at(1)), ..of_ann() }).await, one);
    assert_eq!(narrowed(ConversationFilter { since: Some(at(2)), ..of_ann() }).await, vec![]);
    let newest = TaskFilter { context: Some("a".into()), limit: 9, ..TaskFilter::default() };
    assert_eq!(ids(&store.tasks(&scope, &newest).await.unwrap()), ["task_1"]);
}

/// Tasks are found by the message that began them, but only by the one who sent it; the newest first.
pub async fn a_task_is_found_by_its_message(store: &dyn Store) {
    let scope = Scope::default();
    let task = talk("task_1", "a");
    store.open_task(&task, Vec::new()).await.unwrap();
    // What was acknowledged can be read after a look that waits for it.
    assert!(store.task(&scope, "task_1").await.unwrap().is_some());
    let by = async |caller: &str, message: &str| {
        let heads = store.tasks_by_message(&scope, &CallerId::from(caller), message).await.unwrap();
        heads.into_iter().map(|head| head.id.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(by("ann", "m-task_1").await, ["task_1"]);
    assert!(by("bob", "m-task_1").await.is_empty());
    assert!(by("ann", "m-task_2").await.is_empty());
    let namesake = TaskHead { message: task.message, created_at: at(1), ..talk("task_0", "b") };
    store.open_task(&namesake, Vec::new()).await.unwrap();
    assert!(store.task(&scope, "task_0").await.unwrap().is_some());
    assert_eq!(by("ann", "m-task_1").await, ["task_0", "task_1"]);
}

/// A process that is alone learns the numbers of all messages, unless they are too many; one that is not learns none. A store
/// that cannot tell never tells.
pub async fn messages_are_told_to_a_process_that_is_alone(store: &dyn Store) {
    let (one, other) = (ProcessId::from(1), ProcessId::from(2));
    store.acquire_lease(one, at(30)).await.unwrap();
    store.open_task(&talk("task_1", "a"), Vec::new()).await.unwrap();
    store.open_task(&head("task_2"), Vec::new()).await.unwrap();
    let number = hash_message(b"default", b"main", b"ann", b"m-task_1");
    let told = store.message_numbers(one, 9).await.unwrap();
    assert!(told.is_none() || told == Some(vec![number]), "{told:?}");
    assert_eq!(store.message_numbers(one, 0).await.unwrap(), None, "there are more");
    store.acquire_lease(other, at(30)).await.unwrap();
    assert_eq!(store.message_numbers(one, 9).await.unwrap(), None, "it is not alone");
}

/// Open tasks of a process that is gone are taken over once.
pub async fn tasks_of_a_process_that_is_gone_are_taken_over(store: &dyn Store) {
    let (dead, heir) = (ProcessId::from(1), ProcessId::from(3));
    store.acquire_lease(dead, at(10)).await.unwrap();
    store.acquire_lease(heir, at(30)).await.unwrap();
    store.open_task(&run_by("task_1", dead), Vec::new()).await.unwrap();
    run(store, &run_by("task_2", dead), vec![finished()]).await;
    store.open_task(&run_by("task_3", dead), Vec::new()).await.unwrap();
    // What was acknowledged can be taken over after a look that waits for it.
    assert!(store.task(&Scope::default(), "task_3").await.unwrap().is_some());

    assert!(store.take_over_tasks(heir, at(10), 9).await.unwrap().is_empty(), "it is not late yet");
    assert_eq!(store.take_over_tasks(heir, at(11), 1).await.unwrap(), [run_by("task_1", heir)]);
    assert_eq!(store.take_over_tasks(heir, at(11), 9).await.unwrap(), [run_by("task_3", heir)]);
    assert!(store.take_over_tasks(heir, at(11), 9).await.unwrap().is_empty());
}

/// Tasks of a process that lives, or that nobody watches, are left alone, until it retires.
pub async fn tasks_of_a_process_at_work_are_left_alone(store: &dyn Store) {
    let (alive, heir) = (ProcessId::from(2), ProcessId::from(3));
    store.acquire_lease(alive, at(30)).await.unwrap();
    store.open_task(&run_by("task_1", alive), Vec::new()).await.unwrap();
    store.open_task(&run_by("task_2", ProcessId::NOBODY), Vec::new()).await.unwrap();
    assert!(store.task(&Scope::default(), "task_2").await.unwrap().is_some());
    assert!(store.take_over_tasks(heir, at(11), 9).await.unwrap().is_empty());
    store.release_lease(alive).await.unwrap();
    assert_eq!(store.take_over_tasks(heir, at(11), 9).await.unwrap(), [run_by("task_1", heir)]);
}

fn run_by(id: &str, runner: ProcessId) -> TaskHead {
    TaskHead { runner, ..talk(id, "a") }
}

/// A task that another process goes on with is that process's.
pub async fn a_task_can_be_claimed(store: &dyn Store) {
    let (one, other) = (ProcessId::from(1), ProcessId::from(2));
    store.acquire_lease(one, at(10)).await.unwrap();
    store.acquire_lease(other, at(30)).await.unwrap();
    store.open_task(&run_by("task_1", one), Vec::new()).await.unwrap();
    assert!(store.task(&Scope::default(), "task_1").await.unwrap().is_some());
    store.assign_task(&TaskId::from("task_1"), other).await.unwrap();
    assert_eq!(store.task(&Scope::default(), "task_1").await.unwrap(), Some(run_by("task_1", other)));
    assert!(store.take_over_tasks(ProcessId::from(3), at(11), 9).await.unwrap().is_empty());
}

/// A process is at work until it retires, or is late to say so again.
pub async fn a_process_is_at_work_until_it_is_late_or_retires(store: &dyn Store) {
    let (one, nobody) = (ProcessId::from(1), ProcessId::from(2));
    store.acquire_lease(one, at(10)).await.unwrap();
    assert!(store.is_process_alive(one, at(10)).await.unwrap());
    assert!(!store.is_process_alive(nobody, at(10)).await.unwrap());
    store.release_lease(one).await.unwrap();
    assert!(!store.is_process_alive(one, at(10)).await.unwrap());
}

/// Of all tasks that claim a message at once, one has it until it gives it up.
pub async fn a_message_is_claimed_by_one_task(store: &dyn Store) {
    let claim = |task: &str| MessageClaim {
        key: "key".to_owned(),
        task: TaskId::from(task),
        runner: ProcessId::from(7),
        at: at(10),
    };
    let claims: Vec<_> = (0..20).map(|n| claim(&format!("task_{n}"))).collect();
    let made = futures::future::join_all(claims.iter().map(|claim| store.claim_message(claim))).await;
    let made: Vec<Option<MessageClaim>> = made.into_iter().map(Result::unwrap).collect();
    let (winner, others): (Vec<_>, Vec<_>) = claims.iter().zip(&made).partition(|(_, other)| other.is_none());
    assert_eq!(winner.len(), 1);
    let winner = winner[0].0;
    assert!(others.iter().all(|(_, other)| other.as_ref() == Some(winner)));
    assert_eq!(store.claim_message(winner).await.unwrap(), None, "its own claim is no obstacle");
    let other = claim("another");
    assert_eq!(
        store.claim_message(&MessageClaim { key: "other".to_owned(), ..other.clone() }).await.unwrap(),
        None
    );
    store.release_message(&other).await.unwrap();
    assert_eq!(store.claim_message(&other).await.unwrap().as_ref(), Some(winner), "nobody else gives it up");
    store.release_message(winner).await.unwrap();
    assert_eq!(store.claim_message(&other).await.unwrap(), None);
    store.sweep(SweepLimits { tasks_before: Some(at(11)), ..SweepLimits::default() }).await.unwrap();
    assert_eq!(store.claim_message(winner).await.unwrap(), None, "old claims are swept");
}
