use std::sync::atomic::AtomicU64;

use rialto_model::{
    call::EntryProtocol,
    event::{Event, EventAside, RemoteIds},
    ids::{AgentId, ProcessId, Scope, TaskId},
    json::Json,
    store::TaskAppend,
    task::{Task, TaskHead, TaskState},
};
use tempfile::TempDir;

use super::*;
use crate::{error::DatabaseLocation, sqlite::connect};

fn new_buffer(folder: &TempDir) -> WriteBuffer {
    WriteBuffer::new(folder.path(), Arc::new(GenerationCounter::Own(AtomicU64::new(1))), String::new())
}

fn head(id: &str) -> TaskHead {
    let now = "2026-08-01T12:00:00Z".parse().unwrap();
    TaskHead {
        id: TaskId::from(id),
        scope: Scope::default(),
        caller: "ann".into(),
        door: EntryProtocol::Cli,
        agent: AgentId::from("agt_1"),
        agent_url: "https://a.example".to_owned(),
        skill: None,
        session: "s".into(),
        args: Json::empty_object(),
        context: None,
        message: None,
        runner: ProcessId::NOBODY,
        state: TaskState::Submitted,
        version: 0,
        remote: RemoteIds::default(),
        created_at: now,
        updated_at: now,
    }
}

fn open(id: &str) -> JournalRecord {
    JournalRecord::open(&head(id), &[]).unwrap()
}

fn finish(id: &str) -> JournalRecord {
    let before = head(id);
    let (at, event) = (before.created_at, Event::Finished { message: None, aside: EventAside::default() });
    let mut task = Task::new(before);
    task.apply(&event, at);
    JournalRecord::append(&TaskAppend {
        head: task.head,
        expected: 0,
        events: vec![event],
        at,
        audit: Vec::new(),
    })
    .unwrap()
}

fn buffer(write_buffer: &WriteBuffer, record: JournalRecord) {
    assert!(matches!(write_buffer.record(record), BufferOutcome::Done(Ok(()))));
}

fn names(flushing: &FlushBatch) -> Vec<String> {
    flushing.tasks().iter().map(|pending| flushing.task(pending).to_owned()).collect()
}

fn tasks(flushing: Option<FlushBatch>) -> Vec<String> {
    flushing.map_or_else(Vec::new, |flushing| names(&flushing))
}

#[test]
fn a_task_that_will_soon_be_over_is_kept_for_the_next_batch() {
    let folder = tempfile::tempdir().unwrap();
    let write_buffer = new_buffer(&folder);
    for record in [open("task_1"), open("task_2"), finish("task_2")] {
        buffer(&write_buffer, record);
    }
    let flushing = write_buffer.start_flush(FlushScope::Finished).unwrap();
    assert_eq!(names(&flushing), ["task_2"]);
    write_buffer.finish_flush(flushing);
    buffer(&write_buffer, finish("task_1"));
    assert_eq!(tasks(write_buffer.start_flush(FlushScope::Finished)), ["task_1"]);
}

#[test]
fn a_reader_gets_everything() {
    let folder = tempfile::tempdir().unwrap();
    let write_buffer = new_buffer(&folder);
    buffer(&write_buffer, open("task_1"));
    assert_eq!(tasks(write_buffer.start_flush(FlushScope::Everything)), ["task_1"]);
    assert!(matches!(write_buffer.record(finish("task_1")), BufferOutcome::NeedsDatabase(_)));
}

#[test]
fn a_task_in_a_full_batch_can_still_be_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let write_buffer = new_buffer(&folder);
    buffer(&write_buffer, open("task_1"));
    write_buffer.batch.lock().bytes = MAX_BUFFERED_BYTES;
    assert!(matches!(write_buffer.record(open("task_2")), BufferOutcome::NeedsDatabase(_)));
    buffer(&write_buffer, finish("task_1"));
    assert_eq!(tasks(write_buffer.start_flush(FlushScope::Everything)), ["task_1"]);
}

#[test]
fn a_task_that_is_open_when_the_store_is_closed_can_still_be_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let write_buffer = new_buffer(&folder);
    buffer(&write_buffer, open("task_1"));
    write_buffer.close();
    buffer(&write_buffer, finish("task_1"));
    assert!(matches!(write_buffer.record(open("task_2")), BufferOutcome::NeedsDatabase(_)));
}

#[test]
fn a_task_kept_for_the_next_batch_is_there_once_whenever_the_process_dies() {
    let folder = tempfile::tempdir().unwrap();
    let dead = new_buffer(&folder);
    for record in [open("task_1"), open("task_2"), finish("task_2")] {
        buffer(&dead, record);
    }
    // It dies after the batch was turned and before the old one was flushed.
    assert_eq!(tasks(dead.start_flush(FlushScope::Finished)), ["task_2"]);
    buffer(&dead, finish("task_1"));
    drop(dead);

    let mut connection = connect::in_memory(&DatabaseLocation::memory()).unwrap();
    assert!(recovery::recover_buffers(&mut connection, folder.path()).is_ok());
    let mut select = connection.prepare("SELECT id || ' ' || state FROM tasks ORDER BY id").unwrap();
    let found: Vec<String> =
        select.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(found, ["task_1 completed", "task_2 completed"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_memory_of_a_batch_serves_the_next_one_and_nothing_of_it_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let write_buffer = new_buffer(&folder);
    for round in 0..4 {
        let ids = [format!("task_{round}_1"), format!("task_{round}_2")];
        for id in &ids {
            buffer(&write_buffer, open(id));
        }
        for id in ids.iter().rev() {
            buffer(&write_buffer, finish(id));
        }
        let flushing = write_buffer.start_flush(FlushScope::Finished).unwrap();
        assert_eq!(names(&flushing), ids);
        assert_eq!(flushing.records().count(), 4);
        for pending in flushing.tasks() {
            let records: Vec<_> =
                flushing.records_of(pending).map(|record| parse_subject(record).unwrap()).collect();
            assert!(matches!(records[..], [RecordSubject::Open(_), RecordSubject::Append(..)]));
            assert!(records.iter().all(|record| record.task() == Some(flushing.task(pending))));
        }
        write_buffer.finish_flush(flushing);
        assert!(write_buffer.start_flush(FlushScope::Everything).is_none());
    }
}

#[test]
fn records_of_every_size_find_room_and_come_back_as_they_were() {
    let mut tasks = PendingTasks::default();
    for _ in 0..3 {
        let records: Vec<Vec<u8>> = (0..40_u8).map(|n| vec![n; usize::from(n) * 9_000 + 1]).collect();
        for record in &records {
            tasks.add(record, None);
        }
        let flushing = tasks.into_flush_batch(0);
        assert!(flushing.records().eq(records.iter().map(Vec::as_slice)));
        tasks = flushing.into_spare(MAX_SPARE_BYTES);
        assert!(tasks.is_empty());
    }
    assert_eq!(tasks.records().count(), 0);
}

#[test]
fn tasks_kept_for_the_next_batch_keep_their_order_whatever_their_size() {
    let folder = tempfile::tempdir().unwrap();
    let dead = new_buffer(&folder);
    // The batch after next has pieces of memory to use again, and a long record fits into none of them.
    for round in 0..2 {
        let id = format!("task_{round}");
        buffer(&dead, open(&id));
        buffer(&dead, finish(&id));
        let flushing = dead.start_flush(FlushScope::Everything).unwrap();
        dead.finish_flush(flushing);
    }
    let mut long = head("task_2");
    long.args = Json::encode(&"x".repeat(300_000));
    buffer(&dead, JournalRecord::open(&long, &[]).unwrap());
    buffer(&dead, open("task_3"));
    assert_eq!(tasks(dead.start_flush(FlushScope::Finished)), [""; 0]);
    drop(dead);

    let mut connection = connect::in_memory(&DatabaseLocation::memory()).unwrap();
    assert!(recovery::recover_buffers(&mut connection, folder.path()).is_ok());
    let count = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM tasks WHERE id IN ('task_2', 'task_3')"), 2);
}
