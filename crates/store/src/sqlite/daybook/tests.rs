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

fn names(posting: &Posting) -> Vec<String> {
    posting.drafts().iter().map(|draft| posting.task(draft).to_owned()).collect()
}

fn tasks(posting: Option<Posting>) -> Vec<String> {
    posting.map_or_else(Vec::new, |posting| names(&posting))
}

#[test]
fn a_task_that_will_soon_be_over_is_kept_for_the_next_page() {
    let folder = tempfile::tempdir().unwrap();
    let daybook = daybook(&folder);
    for note in [open("task_1"), open("task_2"), finish("task_2")] {
        noted(&daybook, note);
    }
    let posting = daybook.turn(Turn::Finished).unwrap();
    assert_eq!(names(&posting), ["task_2"]);
    daybook.posted(posting);
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

#[test]
fn the_memory_of_a_page_serves_the_next_one_and_nothing_of_it_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let daybook = daybook(&folder);
    for round in 0..4 {
        let ids = [format!("task_{round}_1"), format!("task_{round}_2")];
        for id in &ids {
            noted(&daybook, open(id));
        }
        for id in ids.iter().rev() {
            noted(&daybook, finish(id));
        }
        let posting = daybook.turn(Turn::Finished).unwrap();
        assert_eq!(names(&posting), ids);
        assert_eq!(posting.notes().count(), 4);
        for draft in posting.drafts() {
            let notes: Vec<_> = posting.notes_of(draft).map(|note| about(note).unwrap()).collect();
            assert!(matches!(notes[..], [About::Open(_), About::Append(..)]));
            assert!(notes.iter().all(|note| note.task() == Some(posting.task(draft))));
        }
        daybook.posted(posting);
        assert!(daybook.turn(Turn::Everything).is_none());
    }
}

#[test]
fn notes_of_every_size_find_room_and_come_back_as_they_were() {
    let mut drafts = Drafts::default();
    for _ in 0..3 {
        let notes: Vec<Vec<u8>> = (0..40_u8).map(|n| vec![n; usize::from(n) * 9_000 + 1]).collect();
        for note in &notes {
            drafts.add(note, None);
        }
        let posting = drafts.into_posting(0);
        assert!(posting.notes().eq(notes.iter().map(Vec::as_slice)));
        drafts = posting.emptied(KEPT);
        assert!(drafts.is_empty());
    }
    assert_eq!(drafts.notes().count(), 0);
}

#[test]
fn what_is_kept_for_the_next_page_stands_there_in_order_however_long_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let dead = daybook(&folder);
    // The page after next has pieces of memory to use again, and a long note fits into none of them.
    for round in 0..2 {
        let id = format!("task_{round}");
        noted(&dead, open(&id));
        noted(&dead, finish(&id));
        let posting = dead.turn(Turn::Everything).unwrap();
        dead.posted(posting);
    }
    let mut long = head("task_2");
    long.args = Json::of(&"x".repeat(300_000));
    noted(&dead, Note::open(&long, &[]).unwrap());
    noted(&dead, open("task_3"));
    assert_eq!(tasks(dead.turn(Turn::Finished)), [""; 0]);
    drop(dead);

    let mut connection = connect::in_memory(&Place::memory()).unwrap();
    assert!(orphans::adopt(&mut connection, folder.path()).is_ok());
    let count = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM tasks WHERE id IN ('task_2', 'task_3')"), 2);
}
