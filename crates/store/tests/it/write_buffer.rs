//! What is buffered beside the database: it can be read by everybody, it is flushed by whoever comes next, and files do not
//! stay behind.

use std::{fs, path::PathBuf};

use rialto_model::{
    audit_event::AuditPhase,
    ids::{Scope, TaskId},
    store::{AuditFilter, AuditStore, ChainVerification, StoreError, TaskFilter, TaskStore},
    task::{TaskHead, TaskState},
};
use rialto_store::SqliteStore;
use rialto_testkit::store_suite::{accepted, announced, at, entry, finished, head, progress};

use crate::file::Folder;

// === impl Folder ===

impl Folder {
    /// The files of all write buffers, the first of each pair first.
    fn buffer_files(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().path());
        let is_buffer = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("daybook-");
        let mut files: Vec<_> = files.filter(is_buffer).collect();
        files.sort();
        files
    }

    /// Another folder as a process leaves it that dies at this moment. A moment is when nothing changes between two looks:
    /// what is buffered may be on its way to another file.
    fn copy(&self) -> Self {
        let look = || -> Vec<(PathBuf, Option<Vec<u8>>)> {
            let paths = fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().path());
            paths.map(|path| (path.clone(), fs::read(path).ok())).collect()
        };
        let mut files = look();
        loop {
            let again = look();
            if again == files {
                break;
            }
            files = again;
        }
        let copy = Self::new();
        for (path, bytes) in files {
            fs::write(copy.path().join(path.file_name().unwrap()), bytes.unwrap()).unwrap();
        }
        copy
    }
}

async fn call(store: &SqliteStore, id: &str) -> TaskHead {
    let task = head(id);
    store.open_task(&task, vec![announced(AuditPhase::PreVerb, "default", id)]).await.unwrap();
    let mut end = entry(&task, vec![accepted(&format!("r-{id}")), finished()], at(1));
    end.audit.push(announced(AuditPhase::PostVerb, "default", id));
    let after = end.head.clone();
    store.append(end).await.unwrap();
    after
}

#[tokio::test]
async fn what_a_task_began_with_is_there_when_its_process_has_died() {
    let folder = Folder::new();
    let store = folder.open();
    let task = head("task_1");
    let first = vec![progress("zero")];
    let begun = entry(&task, first.clone(), at(1)).head;
    store
        .begin_task(&begun, &first, vec![announced(AuditPhase::PreVerb, "default", "task_1")])
        .await
        .unwrap();
    let left = folder.copy();
    let next = left.open();
    assert_eq!(next.task(&task.scope, "task_1").await.unwrap(), Some(begun));
    let recorded = next.events(&task.id, 0).await.unwrap();
    assert_eq!(
        recorded.into_iter().map(|line| (line.seq, line.at, line.event)).collect::<Vec<_>>(),
        [(1, at(1), progress("zero"))]
    );
    assert!(matches!(next.verify_audit().await.unwrap(), ChainVerification::Sound { records: 1, .. }));
}

#[tokio::test]
async fn what_a_dead_process_has_buffered_is_there_for_the_next_one() {
    let folder = Folder::new();
    let store = folder.open();
    let done = call(&store, "task_1").await;
    let open = head("task_2");
    store.open_task(&open, Vec::new()).await.unwrap();
    let left = folder.copy();

    let next = left.open();
    assert_eq!(next.task(&Scope::default(), "r-task_1").await.unwrap(), Some(done));
    assert_eq!(next.events(&TaskId::from("task_1"), 0).await.unwrap().len(), 2);
    assert_eq!(next.task(&Scope::default(), "task_2").await.unwrap(), Some(open));
    assert_eq!(next.audit_records(&Scope::default(), &AuditFilter::newest(10)).await.unwrap().len(), 2);
    assert!(left.buffer_files().is_empty());
}

#[tokio::test]
async fn nothing_is_flushed_twice() {
    let folder = Folder::new();
    let store = folder.open();
    call(&store, "task_1").await;
    let noted: Vec<_> =
        folder.buffer_files().into_iter().map(|path| (fs::read(&path).unwrap(), path)).collect();
    // This has it flushed.
    store.audit_records(&Scope::default(), &AuditFilter::newest(10)).await.unwrap();
    let left = folder.copy();
    for (bytes, path) in noted {
        // As if it had died between the commit and the clearing of the page.
        fs::write(left.path().join(path.file_name().unwrap()), bytes).unwrap();
    }

    let next = left.open();
    assert_eq!(next.audit_records(&Scope::default(), &AuditFilter::newest(10)).await.unwrap().len(), 2);
    assert_eq!(next.events(&TaskId::from("task_1"), 0).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_record_that_was_cut_off_is_not_there_and_those_before_it_are() {
    let folder = Folder::new();
    let store = folder.open();
    for id in ["task_1", "task_2"] {
        store.open_task(&head(id), Vec::new()).await.unwrap();
    }
    let left = folder.copy();
    let last_of = |path: &PathBuf| fs::read(path).unwrap().iter().rposition(|byte| *byte != 0);
    let (written, last) =
        left.buffer_files().into_iter().find_map(|path| last_of(&path).map(|last| (path, last))).unwrap();
    let bytes = fs::read(&written).unwrap();
    fs::write(&written, &bytes[..last]).unwrap();

    let tasks = left.open().tasks(&Scope::default(), &all()).await.unwrap();
    assert_eq!(tasks.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), ["task_1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_reads_what_was_acknowledged_here() {
    let folder = Folder::new();
    let (here, there) = (folder.open(), folder.open());
    for n in 0..20 {
        let done = call(&here, &format!("task_{n:02}")).await;
        assert_eq!(there.task(&Scope::default(), done.id.as_str()).await.unwrap(), Some(done));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_reads_what_is_not_over_yet() {
    let folder = Folder::new();
    let (here, there) = (folder.open(), folder.open());
    for n in 0..4 {
        let (over, open) = (call(&here, &format!("task_{n:02}_a")).await, head(&format!("task_{n:02}_b")));
        here.open_task(&open, Vec::new()).await.unwrap();
        for task in [over, open] {
            assert_eq!(there.task(&Scope::default(), task.id.as_str()).await.unwrap(), Some(task));
        }
    }
}

#[tokio::test]
async fn a_task_continues_after_it_was_flushed() {
    let folder = Folder::new();
    let store = folder.open();
    let task = head("task_1");
    store.open_task(&task, Vec::new()).await.unwrap();
    let first = entry(&task, vec![progress("one")], at(1));
    let after = first.head.clone();
    store.append(first).await.unwrap();
    assert_eq!(store.task(&task.scope, "task_1").await.unwrap(), Some(after.clone()));
    store.append(entry(&after, vec![finished()], at(2))).await.unwrap();
    let stale = store.append(entry(&after, vec![finished()], at(3))).await;
    assert!(matches!(stale, Err(StoreError::Conflict)));
    let done = store.task(&task.scope, "task_1").await.unwrap().unwrap();
    assert_eq!((done.state, done.version), (TaskState::Completed, 2));
}

#[tokio::test]
async fn an_id_stays_taken_after_it_was_flushed() {
    let folder = Folder::new();
    let store = folder.open();
    store.open_task(&head("task_1"), Vec::new()).await.unwrap();
    assert!(store.task(&Scope::default(), "task_1").await.unwrap().is_some());
    let refusal = store.open_task(&head("task_1"), Vec::new()).await;
    assert!(matches!(refusal, Err(StoreError::Taken(_))));
}

#[tokio::test]
async fn a_store_that_is_dropped_or_closed_leaves_no_records() {
    let folder = Folder::new();
    let store = folder.open();
    call(&store, "task_1").await;
    drop(store);
    let tasks: i64 = folder.raw().query_row("SELECT count(*) FROM tasks", [], |row| row.get(0)).unwrap();
    assert_eq!(tasks, 1);

    let store = folder.open();
    call(&store, "task_2").await;
    store.close().await;
    let refusal = store.open_task(&head("task_3"), Vec::new()).await;
    assert!(matches!(refusal, Err(StoreError::Unavailable(_))));
    assert!(folder.buffer_files().is_empty());
    let count = |sql| folder.raw().query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM tasks"), 2);
    assert_eq!(count("SELECT count(*) FROM meta WHERE key LIKE 'daybook-%'"), 0);
}

#[tokio::test]
async fn a_task_that_the_database_refuses_does_not_keep_the_others_out() {
    let folder = Folder::new();
    let store = folder.open();
    let poison = "CREATE TRIGGER poison BEFORE INSERT ON task_events WHEN NEW.events LIKE '%poison%'
                  BEGIN SELECT RAISE(ABORT, 'poisoned'); END";
    folder.raw().execute_batch(poison).unwrap();
    for (id, word) in [("task_1", "well"), ("task_2", "poison"), ("task_3", "well")] {
        let task = head(id);
        store.open_task(&task, Vec::new()).await.unwrap();
        store.append(entry(&task, vec![progress(word)], at(1))).await.unwrap();
    }
    let tasks = store.tasks(&Scope::default(), &all()).await.unwrap();
    assert_eq!(tasks.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), ["task_3", "task_1"]);
}

fn all() -> TaskFilter {
    TaskFilter { limit: 100, ..TaskFilter::default() }
}
