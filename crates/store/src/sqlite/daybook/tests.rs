use std::sync::atomic::AtomicU64;

use rialto_model::{
    call::Door,
    event::{Aside, Event, Remote},
    ids::{AgentId, Runner, Scope, TaskId},
    json::Json,
    store::Entry,
    task::{Task, TaskHead, TaskState},
};
use tempfile::TempDir;

use super::*;
use crate::{fault::Place, sqlite::connect};

fn daybook(folder: &TempDir) -> Daybook {
    Daybook::new(folder.path(), Arc::new(Generation::Own(AtomicU64::new(1))), String::new())
}

fn head(id: &str) -> TaskHead {
    let now = "2026-08-01T12:00:00Z".parse().unwrap();
    TaskHead {
        id: TaskId::from(id),
        scope: Scope::default(),
        caller: "ann".into(),
        door: Door::Cli,
        agent: AgentId::from("agt_1"),
        agent_url: "https://a.example".to_owned(),
        skill: None,
        session: "s".into(),
        args: Json::empty_object(),
        context: None,
        message: None,
        runner: Runner::NOBODY,
        state: TaskState::Submitted,
        version: 0,
        remote: Remote::default(),
        created_at: now,
        updated_at: now,
    }
}

fn open(id: &str) -> Note {
    Note::open(&head(id), &[]).unwrap()
}

fn finish(id: &str) -> Note {
    let before = head(id);
    let (at, event) = (before.created_at, Event::Finished { message: None, aside: Aside::default() });
    let mut task = Task::new(before);
    task.apply(&event, at);
    Note::append(&Entry { head: task.head, expected: 0, events: vec![event], at, audit: Vec::new() }).unwrap()
}

fn noted(daybook: &Daybook, note: Note) {
    assert!(matches!(daybook.note(note), Noted::Done(Ok(()))));
}

fn tasks(posting: Option<Posting>) -> Vec<String> {
    posting.map_or_else(Vec::new, |posting| posting.drafts.into_iter().map(|draft| draft.task).collect())
}

#[test]
fn a_task_that_will_soon_be_over_is_kept_for_the_next_page() {
    let folder = tempfile::tempdir().unwrap();
    let daybook = daybook(&folder);
    for note in [open("task_1"), open("task_2"), finish("task_2")] {
        noted(&daybook, note);
    }
    assert_eq!(tasks(daybook.turn(Turn::Finished)), ["task_2"]);
    daybook.posted();
    noted(&daybook, finish("task_1"));
    assert_eq!(tasks(daybook.turn(Turn::Finished)), ["task_1"]);
}

#[test]
fn a_reader_gets_everything() {
    let folder = tempfile::tempdir().unwrap();
    let daybook = daybook(&folder);
    noted(&daybook, open("task_1"));
    assert_eq!(tasks(daybook.turn(Turn::Everything)), ["task_1"]);
    assert!(matches!(daybook.note(finish("task_1")), Noted::NotHere(_)));
}

#[test]
fn a_task_on_a_full_page_can_still_be_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let daybook = daybook(&folder);
    noted(&daybook, open("task_1"));
    daybook.page.lock().bytes = TOO_MANY;
    assert!(matches!(daybook.note(open("task_2")), Noted::NotHere(_)));
    noted(&daybook, finish("task_1"));
    assert_eq!(tasks(daybook.turn(Turn::Everything)), ["task_1"]);
}

#[test]
fn a_task_that_is_open_when_the_store_is_closed_can_still_be_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let daybook = daybook(&folder);
    noted(&daybook, open("task_1"));
    daybook.close();
    noted(&daybook, finish("task_1"));
    assert!(matches!(daybook.note(open("task_2")), Noted::NotHere(_)));
}

#[test]
fn what_is_kept_for_the_next_page_is_there_once_whenever_the_process_dies() {
    let folder = tempfile::tempdir().unwrap();
    let dead = daybook(&folder);
    for note in [open("task_1"), open("task_2"), finish("task_2")] {
        noted(&dead, note);
    }
    // It dies after the page was turned and before the old one was posted.
    assert_eq!(tasks(dead.turn(Turn::Finished)), ["task_2"]);
    noted(&dead, finish("task_1"));
    drop(dead);

    let mut connection = connect::in_memory(&Place::memory()).unwrap();
    assert!(orphans::adopt(&mut connection, folder.path()).is_ok());
    let mut select = connection.prepare("SELECT id || ' ' || state FROM tasks ORDER BY id").unwrap();
    let found: Vec<String> =
        select.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(found, ["task_1 completed", "task_2 completed"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
