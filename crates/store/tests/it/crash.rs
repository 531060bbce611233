//! A process that is killed while it writes leaves whole rows behind, and all that it had acknowledged.
//!
//! The test starts its own binary again with a folder in the environment; there, [`writes_until_it_is_killed`] does
//! what its name says.

use std::{
    collections::HashSet,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

use rialto_model::{
    audit_event::AuditPhase,
    ids::{Scope, TaskId},
    store::{AuditStore, ChainVerification, RetentionStore, SweepLimits, TaskStore},
};
use rialto_store::{Config, SqliteStore};
use rialto_testkit::store_suite::{accepted, announced, at, entry, finished, head, parse_card, progress};

use crate::file::Folder;

const FOLDER: &str = "RIALTO_STORE_CRASH_FOLDER";

const CALLERS: usize = 64;

#[tokio::test]
async fn kill_minus_nine_loses_nothing_that_was_acknowledged_and_tears_no_row() {
    let folder = Folder::new();
    let (opened, finished) = kill_after(3000, folder.path());

    let store = folder.open();
    for id in &opened {
        assert!(store.task(&Scope::default(), id).await.unwrap().is_some(), "{id} was acknowledged");
    }
    for id in &finished {
        assert_eq!(store.events(&TaskId::from(id.as_str()), 0).await.unwrap().len(), 3, "of {id}");
    }
    assert!(matches!(store.verify_audit().await.unwrap(), ChainVerification::Sound { .. }));
    let raw = folder.raw();
    let health: String = raw.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(health, "ok");
    let count = |sql| raw.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let torn = "SELECT count(*) FROM tasks WHERE version <>
        (SELECT coalesce(sum(json_array_length(events)), 0) FROM task_events WHERE key / 16777216 = row)";
    assert_eq!(count(torn), 0);
    assert_eq!(count("SELECT count(*) FROM audit"), count("SELECT count(*) FROM tasks"));
}

#[tokio::test]
async fn what_a_neighbour_had_acknowledged_when_it_was_killed_is_on_record_after_a_sweep() {
    let folder = Folder::new();
    let store = folder.open();
    let (opened, _) = kill_after(3000, folder.path());
    store.sweep(SweepLimits::default()).await.unwrap();
    let records = store.audit_after(0, usize::MAX >> 1).await.unwrap();
    let on_record: HashSet<&str> = records.iter().map(|record| &*record.event.verb.task_id).collect();
    let missing: Vec<_> = opened.iter().filter(|id| !on_record.contains(id.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Does nothing unless the test above has started it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let store = SqliteStore::open(Path::new(&folder), &Config::default(), parse_card).unwrap();
    let store = Arc::new(store);
    let callers: Vec<_> = (0..CALLERS).map(|_| tokio::spawn(keep_calling(Arc::clone(&store)))).collect();
    for caller in callers {
        caller.await.unwrap();
    }
}

async fn keep_calling(store: Arc<SqliteStore>) {
    loop {
        let task = head(TaskId::fresh().as_str());
        let id = &task.id;
        store.open_task(&task, vec![announced(AuditPhase::PreVerb, "default", id.as_str())]).await.unwrap();
        say(&format!("opened {id}"));
        let events = vec![accepted(&format!("r-{id}")), progress("on it"), finished()];
        store.append(entry(&task, events, at(1))).await.unwrap();
        say(&format!("finished {id}"));
    }
}

/// One write per line, so that a kill cannot cut one that has been seen.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Kills the writer after so many acknowledgements. Answers which tasks it had opened and which it had finished.
fn kill_after(lines: usize, folder: &Path) -> (HashSet<String>, HashSet<String>) {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::writes_until_it_is_killed", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(writer.stdout.take().unwrap()).lines().map_while(Result::ok);
    let (mut opened, mut finished) = (HashSet::new(), HashSet::new());
    let mut hear = |line: String| match line.split_once(' ') {
        Some(("opened", id)) => opened.insert(id.to_owned()),
        Some(("finished", id)) => finished.insert(id.to_owned()),
        _ => false,
    };
    said.by_ref().filter(|line| line.contains("task_")).take(lines).for_each(|line| {
        hear(line);
    });
    writer.kill().unwrap();
    writer.wait().unwrap();
    // What it had said by then counts; a last line without its end does not.
    said.filter(|line| line.len() >= "opened task_".len() + 32).for_each(|line| {
        hear(line);
    });
    assert!(finished.len() > lines / 4, "only {} were finished", finished.len());
    (opened, finished)
}
