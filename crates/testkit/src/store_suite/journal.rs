//! What a store promises about tasks, events and the audit trail.

use futures::future::join_all;
use rialto_model::{
    audit_event::AuditPhase,
    event::{Event, RemoteIds},
    ids::{AgentId, OrgId, ProjectId, Scope, TaskId},
    json::Json,
    message::{Artifact, Message, Part, Role},
    store::{AuditFilter, Store, StoreError, TaskAppend, TaskFilter},
    task::{TaskHead, TaskState},
};

use super::{accepted, announced, at, entry, finished, head, progress, run};

/// Every field.
pub async fn a_task_comes_back_as_it_was_opened(store: &dyn Store) {
    let plain = TaskHead { skill: None, ..head("task_1") };
    let remote = RemoteIds { task_id: Some("r-2".to_owned()), context_id: Some("c-2".to_owned()) };
    let continued = TaskHead { remote, ..head("task_2") };
    for task in [plain, continued] {
        store.open_task(&task, Vec::new()).await.unwrap();
        assert_eq!(store.task(&task.scope, task.id.as_str()).await.unwrap(), Some(task));
    }
}

/// Written in one go with what the bus announces, and gone on with like any other.
pub async fn a_task_comes_back_with_what_it_began_with(store: &dyn Store) {
    let task = head("task_1");
    let first = vec![progress("zero")];
    let begun = entry(&task, first.clone(), at(1)).head;
    let before = announced(AuditPhase::PreVerb, "default", "task_1");
    store.begin_task(&begun, &first, vec![before.clone()]).await.unwrap();
    store.append(entry(&begun, vec![accepted("r-1"), finished()], at(2))).await.unwrap();
    let recorded = store.events(&task.id, 0).await.unwrap();
    let lines: Vec<_> = recorded.iter().map(|line| (line.seq, line.at, line.event.clone())).collect();
    assert_eq!(lines, [(1, at(1), progress("zero")), (2, at(2), accepted("r-1")), (3, at(2), finished())]);
    let after = store.task(&task.scope, "task_1").await.unwrap().unwrap();
    assert_eq!((after.state, after.version, after.created_at), (TaskState::Completed, 3, task.created_at));
    let trail = store.audit_records(&Scope::default(), &AuditFilter::newest(10)).await.unwrap();
    assert_eq!(trail.into_iter().map(|record| record.event).collect::<Vec<_>>(), [before]);
    let again = store.begin_task(&begun, &first, Vec::new()).await;
    assert!(matches!(again, Err(StoreError::Taken(_))));
    assert_eq!(store.events(&task.id, 0).await.unwrap().len(), 3);
}

/// A message that says its task's arguments once more, wherever in it they stand, comes back to the letter.
pub async fn a_message_that_says_the_arguments_comes_back_as_it_was_said(store: &dyn Store) {
    let args = Json::parse(format!(r#"{{"data":{{"ü":"@1[{}"}},"n":1.00}}"#, "x".repeat(100))).unwrap();
    let other = Json::parse(r#"{"data":"something else"}"#).unwrap();
    let said = [
        vec![Part::data(args.clone())],
        vec![Part::text("@12[\"data\":"), Part::data(args.clone()), Part::data(args.clone())],
        vec![Part::data(other), Part::data(args.clone())],
    ];
    for (number, parts) in said.into_iter().enumerate() {
        let task = TaskHead { args: args.clone(), ..head(&format!("task_{number}")) };
        let first =
            vec![Event::Answered { message: Message::new("m-1", Role::User, parts), content_hash: None }];
        let begun = entry(&task, first.clone(), at(1)).head;
        store.begin_task(&begun, &first, Vec::new()).await.unwrap();
        store.append(entry(&begun, vec![finished()], at(2))).await.unwrap();
        let recorded = store.events(&task.id, 0).await.unwrap();
        let lines: Vec<_> = recorded.into_iter().map(|line| line.event).collect();
        assert_eq!(lines, [first[0].clone(), finished()]);
        assert_eq!(store.task(&task.scope, task.id.as_str()).await.unwrap().unwrap().args, args);
    }
}

/// A task that is there is not written over.
pub async fn a_task_id_is_taken_once(store: &dyn Store) {
    let task = head("task_1");
    store.open_task(&task, Vec::new()).await.unwrap();
    let other = TaskHead { caller: "bob".into(), ..task.clone() };
    let refusal = store.open_task(&other, vec![announced(AuditPhase::PreVerb, "default", "task_1")]).await;
    assert!(matches!(refusal, Err(StoreError::Taken(_))));
    assert_eq!(store.task(&task.scope, "task_1").await.unwrap(), Some(task));
    assert!(store.audit_records(&Scope::default(), &AuditFilter::newest(10)).await.unwrap().is_empty());
}

/// State, version, remote names and time.
pub async fn an_append_moves_the_head(store: &dyn Store) {
    let after = run(store, &head("task_1"), vec![accepted("r-1"), finished()]).await;
    assert_eq!((after.state, after.version), (TaskState::Completed, 2));
    assert_eq!(store.task(&after.scope, "task_1").await.unwrap(), Some(after));
}

/// Numbered from one, without a gap, over several appends.
pub async fn events_come_back_in_the_order_they_were_appended(store: &dyn Store) {
    let first = vec![accepted("r-1"), progress("one"), progress("two")];
    let after = run(store, &head("task_1"), first.clone()).await;
    let second = vec![progress("three"), finished()];
    store.append(entry(&after, second.clone(), at(2))).await.unwrap();
    let recorded = store.events(&after.id, 0).await.unwrap();
    let lines: Vec<_> = recorded.iter().map(|line| (line.seq, line.at)).collect();
    assert_eq!(lines, [(1, at(1)), (2, at(1)), (3, at(1)), (4, at(2)), (5, at(2))]);
    let events: Vec<_> = recorded.into_iter().map(|line| line.event).collect();
    assert_eq!(events, [first, second].concat());
}

/// Whoever has seen some is given the others.
pub async fn events_can_be_read_from_the_middle(store: &dyn Store) {
    let task = head("task_1");
    run(store, &task, vec![progress("one"), progress("two"), finished()]).await;
    let rest = store.events(&task.id, 2).await.unwrap();
    assert_eq!(rest.iter().map(|line| line.seq).collect::<Vec<_>>(), [3]);
    assert!(store.events(&task.id, 3).await.unwrap().is_empty());
    assert!(store.events(&TaskId::from("task_nobody"), 0).await.unwrap().is_empty());
}

/// Neither head nor events nor audit trail.
pub async fn an_append_that_expects_another_version_changes_nothing(store: &dyn Store) {
    let after = run(store, &head("task_1"), vec![progress("one")]).await;
    for expected in [0, 2] {
        let stale = TaskAppend {
            expected,
            audit: vec![announced(AuditPhase::PostVerb, "default", "task_1")],
            ..entry(&after, vec![finished()], at(2))
        };
        assert!(matches!(store.append(stale).await, Err(StoreError::Conflict)));
    }
    assert_eq!(store.task(&after.scope, "task_1").await.unwrap(), Some(after.clone()));
    assert_eq!(store.events(&after.id, 0).await.unwrap().len(), 1);
    assert!(store.audit_records(&after.scope, &AuditFilter::newest(10)).await.unwrap().is_empty());
}

/// A task is opened before anything happens to it.
pub async fn an_append_to_no_task_is_a_conflict(store: &dyn Store) {
    let refusal = store.append(entry(&head("task_1"), vec![finished()], at(1))).await;
    assert!(matches!(refusal, Err(StoreError::Conflict)));
}

/// And the loser has written nothing.
pub async fn of_two_appends_that_expect_the_same_version_one_wins(store: &dyn Store) {
    let task = head("task_1");
    store.open_task(&task, Vec::new()).await.unwrap();
    let rivals = ["left", "right"].map(|side| store.append(entry(&task, vec![progress(side)], at(1))));
    let outcomes = join_all(rivals).await;
    let won = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    let lost = outcomes.iter().filter(|outcome| matches!(outcome, Err(StoreError::Conflict))).count();
    assert_eq!((won, lost), (1, 1));
    assert_eq!(store.events(&task.id, 0).await.unwrap().len(), 1);
}

/// Each on its own task, each with its own events.
pub async fn sixty_four_appends_at_once_all_land(store: &dyn Store) {
    let names: Vec<String> = (0..64).map(|n| format!("task_{n:02}")).collect();
    let done = names.iter().map(|name| async move {
        let task = head(name);
        let after = run(store, &task, vec![accepted(&format!("r-{name}"))]).await;
        store.append(entry(&after, vec![progress(name), finished()], at(2))).await.unwrap();
    });
    join_all(done).await;
    for name in &names {
        let events = store.events(&TaskId::from(name.as_str()), 0).await.unwrap();
        let events: Vec<_> = events.into_iter().map(|line| line.event).collect();
        assert_eq!(events, [accepted(&format!("r-{name}")), progress(name), finished()]);
    }
}

/// Those that are asked for at the same moment may share a commit, but not a fate.
pub async fn a_refused_write_does_not_spoil_its_neighbours(store: &dyn Store) {
    let names: Vec<String> = (0..30).map(|n| format!("task_{:02}", n - n % 3)).collect();
    let outcomes = join_all(names.iter().map(|name| async move {
        let task = head(name);
        store.open_task(&task, vec![announced(AuditPhase::PreVerb, "default", name)]).await
    }))
    .await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 10);
    let filter = TaskFilter { limit: 100, ..TaskFilter::default() };
    assert_eq!(store.tasks(&Scope::default(), &filter).await.unwrap().len(), 10);
    assert_eq!(store.audit_records(&Scope::default(), &AuditFilter::newest(100)).await.unwrap().len(), 10);
}

/// Two agents may use the same id: the newest task is meant.
pub async fn a_task_is_found_by_its_remote_id(store: &dyn Store) {
    for name in ["task_1", "task_3", "task_2"] {
        run(store, &head(name), vec![accepted("r-1")]).await;
    }
    let found = store.task(&Scope::default(), "r-1").await.unwrap();
    assert_eq!(found.map(|head| head.id), Some(TaskId::from("task_3")));
    assert_eq!(store.task(&Scope::default(), "r-2").await.unwrap(), None);
}

/// A remote side cannot take a task over by naming its own like ours.
pub async fn our_own_id_goes_before_a_remote_one(store: &dyn Store) {
    run(store, &head("task_1"), vec![accepted("r-1")]).await;
    run(store, &head("task_2"), vec![accepted("task_1")]).await;
    let found = store.task(&Scope::default(), "task_1").await.unwrap();
    assert_eq!(found.map(|head| head.id), Some(TaskId::from("task_1")));
}

/// Neither by id, nor by remote id, nor in a list.
pub async fn another_scope_sees_nothing(store: &dyn Store) {
    run(store, &head("task_1"), vec![accepted("r-1")]).await;
    let other_org = Scope { org: OrgId::from("other"), ..Scope::default() };
    let other_project = Scope { project: ProjectId::from("other"), ..Scope::default() };
    let filter = TaskFilter { limit: 10, ..TaskFilter::default() };
    for scope in [other_org, other_project] {
        assert_eq!(store.task(&scope, "task_1").await.unwrap(), None);
        assert_eq!(store.task(&scope, "r-1").await.unwrap(), None);
        assert!(store.tasks(&scope, &filter).await.unwrap().is_empty());
    }
}

/// The last id of a page is where the next one begins.
pub async fn tasks_come_newest_first_and_page_by_page(store: &dyn Store) {
    for n in [3, 1, 5, 2, 4] {
        store.open_task(&head(&format!("task_{n}")), Vec::new()).await.unwrap();
    }
    let mut pages = Vec::new();
    let mut before = None;
    loop {
        let filter = TaskFilter { before, limit: 2, ..TaskFilter::default() };
        let page = ids(store, &filter).await;
        let Some(last) = page.last() else { break };
        before = Some(TaskId::from(last.as_str()));
        pages.push(page);
    }
    assert_eq!(pages, [vec!["task_5", "task_4"], vec!["task_3", "task_2"], vec!["task_1"]]);
}

/// By caller, agent, state, and whether they are still open; also by several at once.
pub async fn tasks_can_be_narrowed(store: &dyn Store) {
    let bob = TaskHead { caller: "bob".into(), ..head("task_2") };
    let other = AgentId::from("agt_other");
    run(store, &head("task_1"), vec![finished()]).await;
    run(store, &bob, vec![progress("on it")]).await;
    store.open_task(&TaskHead { agent: other.clone(), ..head("task_3") }, Vec::new()).await.unwrap();

    let all = TaskFilter { limit: 10, ..TaskFilter::default() };
    let of_bob = TaskFilter { caller: Some("bob".into()), ..all.clone() };
    assert_eq!(ids(store, &of_bob).await, ["task_2"]);
    assert_eq!(ids(store, &TaskFilter { agent: Some(other), ..all.clone() }).await, ["task_3"]);
    let completed = TaskFilter { state: Some(TaskState::Completed), ..all.clone() };
    assert_eq!(ids(store, &completed).await, ["task_1"]);
    let open = TaskFilter { open: true, ..all };
    assert_eq!(ids(store, &open).await, ["task_3", "task_2"]);
    assert_eq!(ids(store, &TaskFilter { caller: Some("ann".into()), ..open }).await, ["task_3"]);
}

/// Arguments and results are the text they came as.
pub async fn payloads_keep_every_digit(store: &dyn Store) {
    let text = r#"{"z":1.000,"a":12345678901234567890.10,"ü":"\u00fc \ud83d\ude00"}"#;
    let json = Json::parse(text).unwrap();
    let artifact = Artifact::new("a-1", vec![Part::data(json.clone())]);
    let made = Event::Artifact {
        artifact,
        append: false,
        last: true,
        aside: rialto_model::event::EventAside::default(),
    };
    let task = TaskHead { args: json, ..head("task_1") };
    run(store, &task, vec![made.clone()]).await;
    let found = store.task(&task.scope, "task_1").await.unwrap();
    assert_eq!(found.unwrap().args.get(), text);
    assert_eq!(store.events(&task.id, 0).await.unwrap()[0].event, made);
}

async fn ids(store: &dyn Store, filter: &TaskFilter) -> Vec<String> {
    let heads = store.tasks(&Scope::default(), filter).await.unwrap();
    heads.into_iter().map(|head| head.id.as_str().to_owned()).collect()
}
