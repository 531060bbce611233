//! Backups of a store in use, checks of what is stored, and damage that is noticed before a store is opened.

use std::{
    error::Error,
    fs,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use rialto_model::{
    audit_event::AuditPhase,
    ids::Scope,
    store::{AuditStore, ChainVerification, RetentionStore, Store, StoreError, TaskStore},
};
use rialto_store::{Config, SqliteStore, check::CheckReport, check_folder};
use rialto_testkit::store_suite::{accepted, announced, at, entry, finished, head, parse_card};

use crate::file::Folder;

async fn call(store: &SqliteStore, id: &str) {
    let task = head(id);
    store.open_task(&task, vec![announced(AuditPhase::PreVerb, "default", id)]).await.unwrap();
    store.append(entry(&task, vec![accepted(&format!("r-{id}")), finished()], at(1))).await.unwrap();
}

fn check(folder: &Path) -> CheckReport {
    check_folder(folder, parse_card, &|_| {}).unwrap()
}

fn open(folder: &Path, accept_damage: bool) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(folder, &Config { accept_damage, ..Config::default() }, parse_card)
}

fn refusal(folder: &Path) -> String {
    open(folder, false).err().map(|error| error.source().unwrap().to_string()).unwrap_or_default()
}

fn flip(path: &Path, at: u64) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x55], at).unwrap();
}

/// Copies all files of a folder, as a process leaves them that dies now.
fn copied(folder: &Path) -> Folder {
    let copy = Folder::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

#[tokio::test]
async fn a_copy_of_a_busy_store_has_every_task_acknowledged_before_it_began() {
    let (folder, target) = (Folder::new(), Folder::new());
    let (store, stop) = (Arc::new(folder.open()), Arc::new(AtomicBool::new(false)));
    let done = Arc::new(AtomicU64::new(0));
    let writers: Vec<_> = (0..4)
        .map(|lane| {
            let (store, stop, done) = (Arc::clone(&store), Arc::clone(&stop), Arc::clone(&done));
            tokio::spawn(async move {
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    call(&store, &format!("task-{number:09}-{lane}")).await;
                    number += 1;
                    done.fetch_add(1, Ordering::Relaxed);
                }
                number
            })
        })
        .collect();
    while done.load(Ordering::Relaxed) < 500 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    // A second process takes the copy, as the command line does.
    let other = folder.open();
    call(&other, "task-zzz").await;
    let before = done.load(Ordering::Relaxed);
    let reported = Arc::new(AtomicU64::new(0));
    let sink = Arc::clone(&reported);
    let path = target.path().join("rialto.db");
    other.copy_to(&path, move |progress| sink.store(progress.copied, Ordering::Relaxed)).await.unwrap();
    stop.store(true, Ordering::Relaxed);
    let mut total = 0;
    for writer in writers {
        total += writer.await.unwrap();
    }
    assert!(reported.load(Ordering::Relaxed) > 0 && total > before, "it was busy meanwhile");
    let files: Vec<_> =
        fs::read_dir(target.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(files, ["rialto.db"]);
    let report = check(target.path());
    assert_eq!((report.findings(), report.count()), (&[][..], 0));
    assert!(report.tasks > before, "{} of {before}", report.tasks);
    let copy = open(target.path(), false).unwrap();
    assert!(copy.task(&Scope::default(), "task-zzz").await.unwrap().is_some());
    assert!(
        matches!(copy.verify_audit().await.unwrap(), ChainVerification::Sound { records, .. } if records > before)
    );
}

#[tokio::test]
async fn a_store_in_memory_is_not_backed_up() {
    let folder = Folder::new();
    let store = SqliteStore::in_memory(parse_card).unwrap();
    store.copy_to(&folder.path().join("rialto.db"), |_| {}).await.unwrap_err();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A folder with calls in it, whose process died with a log beside the database.
async fn died() -> Folder {
    let folder = Folder::new();
    let store = folder.open();
    for number in 0..50 {
        call(&store, &format!("task-{number:03}")).await;
        // Reading has it written to the database: one commit for each.
        store.task(&Scope::default(), "task-000").await.unwrap();
    }
    let copy = copied(folder.path());
    store.close().await;
    copy
}

#[tokio::test]
async fn a_damaged_log_is_refused_at_the_start_and_can_be_accepted() {
    let folder = died().await;
    let log = folder.path().join("rialto.db-wal");
    let report = check(folder.path());
    assert_eq!((report.count(), report.tasks), (0, 50), "{:?}", report.findings());
    assert!(log.exists(), "a check changes nothing");
    flip(&log, fs::metadata(&log).unwrap().len() / 2);
    let said = refusal(folder.path());
    assert!(said.contains("-wal is damaged") && said.contains("rialto check"), "{said}");
    assert!(said.contains("rialto restore") && said.contains("--accept-damage"), "{said}");
    let report = check(folder.path());
    assert_eq!(report.findings()[0].check, "files", "{:?}", report.findings());
    let store = open(folder.path(), true).unwrap();
    assert!(store.task(&Scope::default(), "task-000").await.is_ok());
}

#[tokio::test]
async fn damaged_pages_are_refused_at_the_start() {
    let folder = Folder::new();
    let store = folder.open();
    for number in 0..50 {
        call(&store, &format!("task-{number:03}")).await;
    }
    store.close().await;
    drop(store);
    let database = folder.path().join("rialto.db");
    let length = fs::metadata(&database).unwrap().len();
    // The headers of pages in the middle.
    for page in 3..length / 16384 {
        for at in 0..8 {
            flip(&database, page * 16384 + at);
        }
    }
    assert!(refusal(folder.path()).contains("is damaged"), "{}", refusal(folder.path()));
    assert!(check(folder.path()).count() > 0);
}

#[tokio::test]
async fn a_damaged_write_buffer_of_a_dead_process_is_refused_and_a_torn_end_is_not() {
    let folder = Folder::new();
    let store = folder.open();
    for number in 0..20 {
        call(&store, &format!("task-{number:03}")).await;
    }
    let raw = folder.raw();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Nothing can be flushed now, so these stay in the buffer.
    for number in 100..140 {
        let task = head(&format!("task-{number:03}"));
        store.open_task(&task, Vec::new()).await.unwrap();
    }
    let copy = copied(folder.path());
    raw.execute_batch("ROLLBACK").unwrap();
    let buffer = |folder: &Folder| -> PathBuf {
        let paths = fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path());
        let holds = |path: &PathBuf| {
            path.to_string_lossy().contains("daybook-")
                && fs::read(path).unwrap().windows(8).any(|bytes| bytes == b"task-120")
        };
        paths.into_iter().find(holds).unwrap()
    };
    let path = buffer(&copy);
    let bytes = fs::read(&path).unwrap();
    let place = |text: &[u8]| bytes.windows(8).position(|found| found == text).unwrap() as u64;
    let torn = copied(copy.path());
    flip(&torn.path().join(path.file_name().unwrap()), place(b"task-139"));
    drop(open(torn.path(), false).unwrap());
    flip(&path, place(b"task-120"));
    let said = refusal(copy.path());
    assert!(said.contains("write buffer") && said.contains("--accept-damage"), "{said}");
    let report = check(copy.path());
    assert!(report.findings().iter().any(|finding| finding.check == "files"), "{:?}", report.findings());
    let store = open(copy.path(), true).unwrap();
    assert!(store.task(&Scope::default(), "task-110").await.unwrap().is_some());
}

#[tokio::test]
async fn a_check_lists_events_without_tasks_unreadable_rows_and_broken_seals() {
    let folder = Folder::new();
    let store = folder.open();
    for number in 0..5 {
        call(&store, &format!("task-{number:03}")).await;
    }
    store.close().await;
    let raw = folder.raw();
    raw.execute_batch(
        "UPDATE tasks SET args = '{' WHERE id = 'task-000';
         UPDATE tasks SET version = 9 WHERE id = 'task-001';
         UPDATE task_events SET events = '[' WHERE key / 16777216 = (SELECT row FROM tasks WHERE id = 'task-002');
         DELETE FROM tasks WHERE id = 'task-003';
         UPDATE audit SET event = replace(event, 'task-004', 'task-XXX')",
    )
    .unwrap();
    drop(raw);
    let report = check(folder.path());
    let found: Vec<_> = report.findings().iter().map(|finding| finding.check).collect();
    assert_eq!(found, ["events", "tasks", "events", "events", "events", "audit"], "{:#?}", report.findings());
    assert!(report.findings()[2].message.contains("task-001 has"), "{:?}", report.findings()[2]);
    let empty = Folder::new();
    assert!(check_folder(empty.path(), parse_card, &|_| {}).is_err());
}

#[tokio::test]
async fn a_check_finds_a_flipped_byte_that_leaves_a_valid_value() {
    let folder = Folder::new();
    let store = folder.open();
    for number in 0..20 {
        call(&store, &format!("task-{number:03}")).await;
    }
    store.close().await;
    drop(store);
    assert_eq!(check(folder.path()).count(), 0);
    let bytes = fs::read(folder.path().join("rialto.db")).unwrap();
    // Arguments, addresses, sessions and results of tasks, and what the audit trail says of them.
    for text in ["Oslo", "weather.example", "forecast-task", "ctx-1"] {
        let places: Vec<usize> = bytes
            .windows(text.len())
            .enumerate()
            .filter(|(_, found)| *found == text.as_bytes())
            .map(|(at, _)| at)
            .collect();
        assert!(places.len() >= 20, "{text} is there {} times", places.len());
        for at in places.into_iter().step_by(7) {
            let copy = copied(folder.path());
            let file = fs::OpenOptions::new().write(true).open(copy.path().join("rialto.db")).unwrap();
            file.write_all_at(&[bytes[at] ^ 1], at as u64).unwrap();
            assert!(check(copy.path()).count() > 0, "{text} was changed at byte {at}");
        }
    }
}

#[tokio::test]
async fn a_deleted_data_folder_is_noticed_and_nothing_is_acknowledged_any_more() {
    let folder = Folder::new();
    let store = folder.open();
    call(&store, "task-000").await;
    assert_eq!(store.problem().await, None);
    fs::remove_dir_all(folder.path()).unwrap();
    let problem = store.problem().await.unwrap();
    assert_eq!(problem, rialto_model::store::StoreProblem::Deleted);
    assert!(problem.message().contains("rialto restore"), "{}", problem.message());
    let refused = store.open_task(&head("task-001"), Vec::new()).await.unwrap_err();
    assert!(refused.source().unwrap().to_string().contains("deleted"), "{refused:?}");
    store.touch().await.unwrap_err();
    fs::create_dir_all(folder.path()).unwrap();
}

#[tokio::test]
async fn tasks_beyond_the_size_limit_are_removed_oldest_first_and_open_ones_stay() {
    let folder = Folder::new();
    let store = folder.open();
    store.open_task(&head("task-00000"), Vec::new()).await.unwrap();
    for number in 1..3000 {
        call(&store, &format!("task-{number:05}")).await;
    }
    let limit =
        |max_bytes| rialto_model::store::SweepLimits { max_bytes: Some(max_bytes), ..Default::default() };
    assert_eq!(store.sweep(limit(1 << 40)).await.unwrap().tasks, 0);
    assert_eq!(store.sweep(limit(100_000)).await.unwrap().tasks, 1000);
    let found = |id: &'static str| {
        let store = &store;
        async move { store.task(&Scope::default(), id).await.unwrap().is_some() }
    };
    assert_eq!(
        [found("task-00000").await, found("task-01000").await, found("task-01001").await],
        [true, false, true]
    );
    assert!(check(folder.path()).findings().is_empty());
}

#[tokio::test]
async fn old_tasks_are_removed_faster_than_calls_make_them() {
    let folder = Folder::new();
    let store = folder.open();
    store.close().await;
    drop(store);
    let raw = folder.raw();
    raw.execute_batch(
        "INSERT INTO tasks (id, org, project, caller, door, agent, agent_url, session, args, state, open, version,
             created_at, updated_at, context, runner)
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
         SELECT printf('old-%08d', i), 'default', 'default', 'ann', 'mcp', 'a', 'http://a', 's', '{}', 'completed', 0, 0,
             i, i, 'c', 0 FROM n",
    )
    .unwrap();
    drop(raw);
    let store = folder.open();
    let (begun, mut removed) = (std::time::Instant::now(), 0);
    let sweep = rialto_model::store::SweepLimits { tasks_before: Some(at(0)), ..Default::default() };
    loop {
        let swept = store.sweep(sweep).await.unwrap();
        if swept.tasks == 0 {
            break;
        }
        removed += swept.tasks;
    }
    assert_eq!(removed, 30_000);
    let rate = 30_000.0 / begun.elapsed().as_secs_f64();
    eprintln!("{rate:.0} tasks/s");
    assert!(rate > 2_000.0, "{rate:.0} tasks/s in a debug build on a busy machine");
}
