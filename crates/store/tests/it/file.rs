//! What a store in a file promises beyond the port: it lasts, it is shared, and it says what is wrong with it.

use std::{
    error::Error,
    ops::Deref,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rialto_model::{
    agent::Agent,
    audit_event::AuditPhase,
    call::CallerId,
    event::RemoteIds,
    ids::{ContextId, ProcessId, Scope},
    store::{
        AgentStore, AuditFilter, AuditStore, ChainVerification, LeaseStore, MessageStore, Store, StoreError,
        TaskFilter, TaskStore, hash_message,
    },
    task::TaskHead,
};
use rialto_store::{Config, Durability, SqliteStore};
use rialto_testkit::store_suite::{
    accepted, agent, announced, at, card, entry, finished, head, parse_card, progress,
};
use rusqlite::Connection;
use tempfile::TempDir;

/// A folder for a store, gone after the test.
pub(crate) struct Folder(TempDir);

/// A store with its folder.
pub(crate) struct Kept {
    store: SqliteStore,
    _folder: Folder,
}

// === impl Folder ===

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn open(&self) -> SqliteStore {
        self.try_open().unwrap()
    }

    pub(crate) fn into_store(self) -> Kept {
        Kept { store: self.open(), _folder: self }
    }

    /// The file as any other program sees it.
    pub(crate) fn raw(&self) -> Connection {
        Connection::open(self.file()).unwrap()
    }

    fn try_open(&self) -> Result<SqliteStore, StoreError> {
        SqliteStore::open(self.path(), &Config::default(), parse_card)
    }

    fn file(&self) -> PathBuf {
        self.path().join("rialto.db")
    }

    /// What a person is told who cannot open it.
    fn refusal(&self) -> String {
        let error = self.try_open().err().unwrap();
        error.source().unwrap().to_string()
    }
}

// === impl Kept ===

impl Deref for Kept {
    type Target = SqliteStore;

    fn deref(&self) -> &SqliteStore {
        &self.store
    }
}

#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let folder = Folder::new();
    let row = agent("weather");
    let announcement = announced(AuditPhase::PreVerb, "default", "task_1");
    let generation = {
        let store = folder.open();
        store.put_agent(&row, None).await.unwrap();
        store.open_task(&head("task_1"), vec![announcement.clone()]).await.unwrap();
        store.append(entry(&head("task_1"), vec![accepted("r-1"), finished()], at(1))).await.unwrap();
        store.generation()
    };
    let store = folder.open();
    assert_eq!(store.generation(), generation);
    assert_eq!(store.agents().await.unwrap(), [row]);
    assert_eq!(store.task(&Scope::default(), "r-1").await.unwrap().unwrap().version, 2);
    assert_eq!(store.events(&head("task_1").id, 0).await.unwrap().len(), 2);
    let trail = store.audit_records(&Scope::default(), &AuditFilter::newest(10)).await.unwrap();
    assert_eq!(trail[0].event, announcement);
    assert_eq!(trail.len(), 1);
}

#[tokio::test]
async fn a_second_process_sees_the_generation_move_and_the_rows_with_it() {
    let folder = Folder::new();
    let (here, there) = (folder.open(), folder.open());
    let made = here.put_agent(&agent("weather"), None).await.unwrap();
    assert_eq!(there.generation(), made);
    assert_eq!(there.agents().await.unwrap(), [agent("weather")]);
    let made = there.touch().await.unwrap();
    assert_eq!(here.generation(), made);
}

#[tokio::test]
async fn two_processes_write_at_the_same_time() {
    let folder = Folder::new();
    let (left, right) = (folder.open(), folder.open());
    let start = left.generation();
    tokio::join!(keep_writing(&left, "left"), keep_writing(&right, "right"));
    let filter = TaskFilter { limit: 1000, ..TaskFilter::default() };
    let tasks = left.tasks(&Scope::default(), &filter).await.unwrap();
    assert_eq!(tasks.len(), 200);
    assert!(tasks.iter().all(|task| task.version == 2));
    assert_eq!(left.agents().await.unwrap(), right.agents().await.unwrap());
    assert_eq!(left.generation(), start + 200);
    assert_eq!(right.generation(), start + 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_file_may_be_opened_by_many_at_once() {
    let folder = Folder::new();
    thread::scope(|scope| {
        let openings: Vec<_> = (0..8).map(|_| scope.spawn(|| folder.open())).collect();
        for opening in openings {
            opening.join().unwrap();
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_another_program_holds_is_waited_for() {
    let folder = Folder::new();
    let store = folder.open();
    let other = folder.raw();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let release = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        other.execute_batch("COMMIT").unwrap();
    });
    store.open_task(&head("task_1"), Vec::new()).await.unwrap();
    release.join().unwrap();
}

#[tokio::test]
async fn a_write_that_breaks_half_way_is_undone_and_its_neighbours_stay() {
    let folder = Folder::new();
    let at_once = Config { durability: Durability::Full, ..Config::default() };
    let store = SqliteStore::open(folder.path(), &at_once, parse_card).unwrap();
    let poison = "CREATE TRIGGER poison BEFORE INSERT ON task_events WHEN NEW.events LIKE '%poison%'
                  BEGIN SELECT RAISE(ABORT, 'poisoned'); END";
    folder.raw().execute_batch(poison).unwrap();
    let words = ["a", "b", "poison", "c", "d"];
    let tasks = words.map(|word| head(&format!("task_{word}")));
    for task in &tasks {
        store.open_task(task, Vec::new()).await.unwrap();
    }
    let appends = tasks.iter().zip(words).map(|(task, word)| {
        store.append(entry(task, vec![accepted("r-1"), progress(word), finished()], at(1)))
    });
    let outcomes = futures::future::join_all(appends).await;
    for (task, outcome) in tasks.iter().zip(outcomes) {
        let is_poisoned = task.id.as_str() == "task_poison";
        assert_eq!(matches!(outcome, Err(StoreError::Unavailable(_))), is_poisoned, "{outcome:?}");
        let after = store.task(&task.scope, task.id.as_str()).await.unwrap().unwrap();
        let events = store.events(&task.id, 0).await.unwrap();
        assert_eq!((after.version, events.len()), if is_poisoned { (0, 0) } else { (3, 3) });
    }
}

#[tokio::test]
async fn a_remote_id_is_found_however_many_tasks_there_are() {
    let folder = Folder::new();
    let store = folder.open();
    let tasks = (0..2500).map(|n| {
        let remote = RemoteIds { task_id: Some(format!("r-{n}")), context_id: None };
        TaskHead { remote, ..head(&format!("task_{n:04}")) }
    });
    let tasks: Vec<TaskHead> = tasks.collect();
    let outcomes =
        futures::future::join_all(tasks.iter().map(|task| store.open_task(task, Vec::new()))).await;
    assert!(outcomes.iter().all(Result::is_ok));
    for n in [0, 1022, 1023, 1024, 2499] {
        let found = store.task(&Scope::default(), &format!("r-{n}")).await.unwrap();
        assert_eq!(found.as_ref(), Some(&tasks[n]));
    }
}

#[tokio::test]
async fn a_card_that_no_longer_parses_does_not_hide_the_others() {
    let folder = Folder::new();
    let store = folder.open();
    for slug in ["broken", "sound"] {
        store.put_agent(&agent(slug), None).await.unwrap();
    }
    folder.raw().execute("UPDATE agent_cards SET card = '{}' WHERE slug = 'broken'", []).unwrap();
    assert_eq!(store.agents().await.unwrap(), [agent("sound")]);
}

#[tokio::test]
async fn an_event_that_cannot_be_read_is_named() {
    let folder = Folder::new();
    let store = folder.open();
    store.open_task(&head("task_1"), Vec::new()).await.unwrap();
    store.append(entry(&head("task_1"), vec![finished()], at(1))).await.unwrap();
    assert_eq!(store.events(&head("task_1").id, 0).await.unwrap().len(), 1);
    folder.raw().execute("UPDATE task_events SET events = '\"exploded\"'", []).unwrap();
    let error = store.events(&head("task_1").id, 0).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Corrupt(what) if what.starts_with("events up to 1 of task_1")),
        "{error}"
    );
}

#[tokio::test]
async fn a_change_of_the_audit_trail_is_found_and_where() {
    let folder = Folder::new();
    let store = folder.open();
    let written: Vec<_> =
        (0..5).map(|n| announced(AuditPhase::PreVerb, "default", &format!("task_{n}"))).collect();
    store.audit(written).await.unwrap();
    let sound = store.verify_audit().await.unwrap();
    assert!(matches!(sound, ChainVerification::Sound { records: 5, .. }));
    for (change, undo, record) in [
        (
            "UPDATE audit SET event = replace(event, 'task_2', 'task_x') WHERE row = 3",
            "UPDATE audit SET event = replace(event, 'task_x', 'task_2') WHERE row = 3",
            3,
        ),
        ("UPDATE audit SET org = 'other' WHERE row = 5", "UPDATE audit SET org = 'default' WHERE row = 5", 5),
        ("UPDATE audit SET at = at + 1 WHERE row = 1", "UPDATE audit SET at = at - 1 WHERE row = 1", 1),
        ("UPDATE audit SET row = 99 WHERE row = 2", "UPDATE audit SET row = 2 WHERE row = 99", 2),
        ("UPDATE audit SET row = 99 WHERE row = 5", "UPDATE audit SET row = 5 WHERE row = 99", 5),
    ] {
        folder.raw().execute(change, []).unwrap();
        let verdict = store.verify_audit().await.unwrap();
        assert!(
            matches!(&verdict, ChainVerification::Broken { record: at, .. } if *at == record),
            "{change}: {verdict:?}"
        );
        folder.raw().execute(undo, []).unwrap();
    }
    assert_eq!(store.verify_audit().await.unwrap(), sound);
    folder.raw().execute("DELETE FROM audit WHERE row = 5", []).unwrap();
    let verdict = store.verify_audit().await.unwrap();
    assert!(matches!(&verdict, ChainVerification::Broken { record: 5, .. }), "{verdict:?}");
}

#[tokio::test]
async fn a_copy_of_the_generation_that_fell_behind_is_mended_on_opening() {
    let folder = Folder::new();
    let made = folder.open().put_agent(&agent("weather"), None).await.unwrap();
    std::fs::write(folder.path().join("generation"), 1_u64.to_le_bytes()).unwrap();
    assert_eq!(folder.open().generation(), made);
}

#[tokio::test]
async fn a_closed_store_has_put_everything_into_its_one_file() {
    let folder = Folder::new();
    let store = folder.open();
    store.put_agent(&agent("weather"), None).await.unwrap();
    store.agents().await.unwrap();
    store.close().await;
    assert!(!folder.path().join("rialto.db-wal").exists());
    let error = store.open_task(&head("task_1"), Vec::new()).await.unwrap_err();
    assert_eq!(error.source().unwrap().to_string(), "the store has been closed");
}

#[tokio::test]
async fn only_so_many_replaced_cards_are_kept() {
    let folder = Folder::new();
    let store = folder.open();
    let row = agent("weather");
    store.put_agent(&row, None).await.unwrap();
    for version in 2..=130 {
        let new = Agent { card: card("weather", &format!("number {version}")), version, ..row.clone() };
        store.put_agent(&new, Some(version - 1)).await.unwrap();
    }
    let history = store.card_history(&row.id).await.unwrap();
    assert_eq!(history.len(), 100);
    assert_eq!(history[0].card, card("weather", "number 129").raw);
}

#[tokio::test]
async fn full_durability_flushes_every_commit() {
    let folder = Folder::new();
    let config = Config { durability: Durability::Full, ..Config::default() };
    let store = SqliteStore::open(folder.path(), &config, parse_card).unwrap();
    store.open_task(&head("task_1"), Vec::new()).await.unwrap();
    assert!(store.task(&Scope::default(), "task_1").await.unwrap().is_some());
}

#[tokio::test]
async fn messages_are_found_in_every_stretch_and_among_those_from_before_they_had_numbers() {
    let (folder, ann) = (Folder::new(), CallerId::from("ann"));
    let talk = |id: &str| {
        let context = Some(ContextId::from("c"));
        TaskHead { context, message: Some(format!("m-{id}").into()), ..head(id) }
    };
    let tasks = ["task_1", "task_2", "task_3"].map(talk);
    let store = folder.open();
    for task in &tasks {
        store.open_task(task, Vec::new()).await.unwrap();
    }
    drop(store);
    folder
        .raw()
        .execute_batch(
            "UPDATE tasks SET message_number = NULL WHERE id = 'task_1';
             UPDATE tasks SET row = row + 50000 WHERE id = 'task_3'",
        )
        .unwrap();
    let store = folder.open();
    for task in &tasks {
        let message = task.message.as_deref().unwrap();
        let found = store.tasks_by_message(&Scope::default(), &ann, message).await.unwrap();
        assert_eq!(found, std::slice::from_ref(task));
    }
    assert!(store.tasks_by_message(&Scope::default(), &ann, "m-task_4").await.unwrap().is_empty());
    let mut told = store.message_numbers(ProcessId::from(1), 9).await.unwrap().unwrap();
    let mut expected = ["m-task_1", "m-task_2", "m-task_3"]
        .map(|message| hash_message(b"default", b"main", b"ann", message.as_bytes()));
    told.sort_unstable();
    expected.sort_unstable();
    assert_eq!(told, expected);
}

#[test]
fn a_file_that_is_no_database_is_said_to_be_none() {
    let folder = Folder::new();
    std::fs::write(folder.file(), "a shopping list, and quite a long one at that".repeat(100)).unwrap();
    let expected = format!("{} is not a database; move it away and start again", folder.file().display());
    assert_eq!(folder.refusal(), expected);
}

#[test]
fn a_file_of_a_newer_program_is_left_alone() {
    let folder = Folder::new();
    drop(folder.open());
    folder
        .raw()
        .execute_batch(
            "PRAGMA user_version = 99; UPDATE meta SET value = '9.9.9' WHERE key = 'migrated_by';
             UPDATE meta SET value = 99 WHERE key = 'schema_floor'",
        )
        .unwrap();
    let refusal = folder.refusal();
    assert!(refusal.contains("was last written by rialto 9.9.9"), "{refusal}");
    assert!(refusal.ends_with("; update this program"), "{refusal}");
}

#[test]
fn a_file_of_a_newer_program_that_changed_nothing_this_one_uses_is_opened() {
    let folder = Folder::new();
    drop(folder.open());
    let later = "PRAGMA user_version = 99; ALTER TABLE tasks ADD COLUMN later TEXT;
        INSERT OR REPLACE INTO meta (key, value) VALUES ('schema_floor', 16)";
    folder.raw().execute_batch(later).unwrap();
    drop(folder.open());
    folder.raw().execute_batch("UPDATE meta SET value = 99 WHERE key = 'schema_floor'").unwrap();
    assert!(folder.refusal().ends_with("; update this program"));
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = Folder::new();
    let file = folder.path().join("taken");
    std::fs::write(&file, "").unwrap();
    let error = SqliteStore::open(&file, &Config::default(), parse_card).err().unwrap();
    let told = error.source().unwrap().to_string();
    assert_eq!(told, format!("the folder {} cannot be made; choose another one", file.display()));
}

#[tokio::test]
async fn a_new_task_is_written_to_the_write_buffer_unless_that_is_turned_off() {
    for write_buffer in [true, false] {
        let folder = Folder::new();
        let config = Config { write_buffer, ..Config::default() };
        let store = SqliteStore::open(folder.path(), &config, parse_card).unwrap();
        store.open_task(&head("task_1"), Vec::new()).await.unwrap();
        let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let has_buffer = files.into_iter().any(|name| name.to_string_lossy().starts_with("daybook-"));
        assert_eq!(has_buffer, write_buffer);
        let read = store.task(&Scope::default(), "task_1").await.unwrap();
        assert_eq!(read.unwrap().id, head("task_1").id);
    }
}

async fn keep_writing(store: &SqliteStore, side: &str) {
    for n in 0..100 {
        let task = head(&format!("task_{side}_{n}"));
        store.open_task(&task, Vec::new()).await.unwrap();
        store.put_agent(&agent(&format!("{side}_{n}")), None).await.unwrap();
        store.append(entry(&task, vec![accepted("r-1"), finished()], at(1))).await.unwrap();
    }
}

/// A process that died lets go of its lock, and nobody waits for the moment by which it would have been heard of.
#[tokio::test]
async fn tasks_of_a_process_that_died_are_taken_over_at_once() {
    let folder = Folder::new();
    let (dead, heir) = (ProcessId::from(1), ProcessId::from(3));
    let store = folder.open();
    store.acquire_lease(dead, at(1_000)).await.unwrap();
    store.open_task(&TaskHead { runner: dead, ..head("task_1") }, Vec::new()).await.unwrap();
    let other = folder.open();
    other.acquire_lease(heir, at(1_000)).await.unwrap();
    assert!(other.take_over_tasks(heir, at(1), 9).await.unwrap().is_empty(), "it lives");
    drop(store);
    let taken = other.take_over_tasks(heir, at(1), 9).await.unwrap();
    assert_eq!(taken.iter().map(|head| head.id.as_str()).collect::<Vec<_>>(), ["task_1"]);
    assert!(other.take_over_tasks(heir, at(1), 9).await.unwrap().is_empty());
}

/// A process may show by its lock alone that it is at work: it is left alone while it lives, and not a moment longer.
#[tokio::test]
async fn a_process_that_shows_itself_by_its_lock_alone_is_left_alone_while_it_lives() {
    let folder = Folder::new();
    let (command, heir) = (ProcessId::from(1), ProcessId::from(3));
    let (store, other) = (folder.open(), folder.open());
    assert!(store.lock_process(command).await.unwrap());
    store.open_task(&TaskHead { runner: command, ..head("task_1") }, Vec::new()).await.unwrap();
    assert!(other.lock_process(heir).await.unwrap());
    assert!(store.task(&Scope::default(), "task_1").await.unwrap().is_some(), "it is posted");
    assert!(other.take_over_tasks(heir, at(9_000), 9).await.unwrap().is_empty(), "it lives");
    assert!(other.is_process_alive(command, at(9_000)).await.unwrap());
    drop(store);
    assert!(!other.is_process_alive(command, at(1)).await.unwrap());
    let taken = other.take_over_tasks(heir, at(1), 9).await.unwrap();
    assert_eq!(taken, [TaskHead { runner: heir, ..head("task_1") }]);
}
