//! Something to be written to the journal, as bytes.
//!
//! Whoever asks for it puts it into bytes once. The same bytes stand in the daybook and are what the writer reads, so
//! between the two nothing is taken apart or copied text by text.

use jiff::Timestamp;
use rialto_model::{
    event::{Event, Remote},
    ids::{ContextId, SkillId},
    store::{Entry, StoreError},
    task::{TaskHead, TaskState},
    verb::VerbEvent,
};
use rusqlite::{
    ToSql,
    types::{ToSqlOutput, ValueRef},
};
use serde::Serialize;

use crate::fault::Fault;

/// Room that is left in front for whoever keeps notes in a file.
pub(super) const ROOM: usize = 16;

/// A text that is not there.
const NONE: u32 = u32::MAX;

/// What names, times and numbers take, most of the time. A note that is longer grows.
const NAMES: usize = 1280;

/// What a result takes, most of the time.
const RESULT: usize = 1536;

const OPEN: u8 = 1;
const APPEND: u8 = 2;
const AUDIT: u8 = 3;
const BEGIN: u8 = 4;

/// Something to be written to the journal.
pub(super) struct Note(Vec<u8>);

/// What a note says.
pub(super) enum View<'a> {
    /// There is a new task.
    Open(Opening<'a>),
    /// Something has happened to a task.
    Append(Addition<'a>),
    /// Something was announced that belongs to no task.
    Audit(Records<'a>),
}

/// What a note is about, in short.
#[derive(Clone, Copy)]
pub(super) enum About<'a> {
    /// A new task.
    Open(Brief<'a>),
    /// A task that should have so many events.
    Append(Brief<'a>, u64),
    /// No task.
    Audit,
}

/// A task, and how it stands after the note.
#[derive(Clone, Copy)]
pub(super) struct Brief<'a> {
    pub(super) task: &'a str,
    pub(super) version: u64,
    pub(super) is_open: bool,
}

/// A new task.
#[derive(Clone, Copy)]
pub(super) struct Opening<'a> {
    pub(super) brief: Brief<'a>,
    pub(super) org: Text<'a>,
    pub(super) project: Text<'a>,
    pub(super) caller: Text<'a>,
    pub(super) door: Text<'a>,
    pub(super) agent: Text<'a>,
    pub(super) agent_url: Text<'a>,
    pub(super) skill: Option<Text<'a>>,
    pub(super) session: Text<'a>,
    pub(super) args: Text<'a>,
    pub(super) context: Option<Text<'a>>,
    pub(super) message: Option<Text<'a>>,
    pub(super) runner: i64,
    pub(super) created_at: i64,
    pub(super) standing: Standing<'a>,
    /// What it begins with, if it begins with something: a JSON array.
    events: Option<Text<'a>>,
    /// What the bus announces with it.
    pub(super) audit: Records<'a>,
}

/// What events change of a task.
#[derive(Clone, Copy)]
pub(super) struct Standing<'a> {
    pub(super) state: Text<'a>,
    pub(super) remote_task: Option<Text<'a>>,
    pub(super) remote_context: Option<Text<'a>>,
    pub(super) updated_at: i64,
}

/// Events.
#[derive(Clone, Copy)]
pub(super) struct Addition<'a> {
    pub(super) brief: Brief<'a>,
    /// How many events there were before.
    pub(super) expected: u64,
    /// How the task stands after them.
    pub(super) standing: Standing<'a>,
    /// When they happened.
    pub(super) at: i64,
    /// A JSON array.
    pub(super) events: Text<'a>,
    /// What the bus announces with them.
    pub(super) audit: Records<'a>,
}

/// Announcements, one after the other.
#[derive(Clone, Copy)]
pub(super) struct Records<'a>(&'a [u8]);

/// One announcement.
pub(super) struct Record<'a> {
    pub(super) org: Text<'a>,
    pub(super) at: i64,
    /// JSON.
    pub(super) event: Text<'a>,
}

/// A text in a note. It was one when it was written, so it is not looked through again.
#[derive(Clone, Copy)]
pub(super) struct Text<'a>(&'a [u8]);

/// Takes bytes apart.
#[derive(Clone, Copy)]
struct Reader<'a>(&'a [u8]);

/// What the bytes of a note, with their room, are about; none if they are not a note.
pub(super) fn about(note: &[u8]) -> Option<About<'_>> {
    let mut reader = Reader(note.get(ROOM..)?);
    match reader.byte()? {
        OPEN | BEGIN => Some(About::Open(reader.brief()?)),
        APPEND => Some(About::Append(reader.brief()?, reader.number()?.cast_unsigned())),
        AUDIT => Some(About::Audit),
        _ => None,
    }
}

/// What the bytes of a note, with their room, say; none if they are not a note.
pub(super) fn view(note: &[u8]) -> Option<View<'_>> {
    let mut reader = Reader(note.get(ROOM..)?);
    match reader.byte()? {
        kind @ (OPEN | BEGIN) => reader.opening(kind == BEGIN).map(View::Open),
        APPEND => reader.addition().map(View::Append),
        AUDIT => Some(View::Audit(Records(reader.0))),
        _ => None,
    }
}

// === impl Note ===

impl Note {
    pub(super) fn open(head: &TaskHead, audit: &[VerbEvent]) -> Result<Self, StoreError> {
        // The arguments stand here and in the announcement; the rest is names.
        let mut note = Self::new(OPEN, 2 * head.args.get().len());
        note.head(head)?;
        note.announce(audit)
    }

    /// A new task that begins with these events.
    pub(super) fn begin(head: &TaskHead, first: &[Event], audit: &[VerbEvent]) -> Result<Self, StoreError> {
        // What is said is most often what the arguments are.
        let mut note = Self::new(BEGIN, 3 * head.args.get().len());
        note.head(head)?;
        note.json(first)?;
        note.announce(audit)
    }

    pub(super) fn append(entry: &Entry) -> Result<Self, StoreError> {
        let mut note = Self::new(APPEND, RESULT);
        let version = entry.expected + entry.events.len() as u64;
        note.brief(entry.head.id.as_str(), version, entry.head.state).number(entry.expected.cast_signed());
        let Remote { task_id, context_id } = &entry.head.remote;
        note.standing(entry.head.state, task_id.as_deref(), context_id.as_deref(), entry.head.updated_at)?;
        note.number(nanoseconds(entry.at)?).json(&entry.events)?;
        note.announce(&entry.audit)
    }

    pub(super) fn audit(events: &[VerbEvent]) -> Result<Self, StoreError> {
        Self::new(AUDIT, 0).announce(events)
    }

    /// Whether it is about something that was not there before: a task, or what belongs to none.
    pub(super) fn is_new(&self) -> bool {
        matches!(self.0.get(ROOM), Some(&(OPEN | BEGIN | AUDIT)))
    }

    /// The bytes, with room in front.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The same, to fill the room in.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }

    /// All that is known of a task.
    fn head(&mut self, head: &TaskHead) -> Result<(), StoreError> {
        let skill = head.skill.as_ref().map(SkillId::as_str);
        self.brief(head.id.as_str(), head.version, head.state)
            .text(head.scope.org.as_str())
            .text(head.scope.project.as_str());
        self.text(head.caller.as_str()).text(head.door.as_str()).text(head.agent.as_str());
        self.text(&head.agent_url).maybe(skill).text(&head.session).text(head.args.get());
        self.maybe(head.context.as_ref().map(ContextId::as_str)).maybe(head.message.as_deref());
        self.number(head.runner.get().cast_signed()).number(nanoseconds(head.created_at)?);
        let Remote { task_id, context_id } = &head.remote;
        self.standing(head.state, task_id.as_deref(), context_id.as_deref(), head.updated_at)
    }

    /// The beginning of a note that has so much to say besides names.
    fn new(kind: u8, length: usize) -> Self {
        let mut bytes = Vec::with_capacity(NAMES + length);
        bytes.extend_from_slice(&[0; ROOM]);
        bytes.push(kind);
        Self(bytes)
    }

    fn text(&mut self, text: &str) -> &mut Self {
        // Nothing that came through a door is larger than four gigabytes.
        self.0.extend_from_slice(&u32::try_from(text.len()).unwrap_or(NONE - 1).to_le_bytes());
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    fn maybe(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(text),
            None => {
                self.0.extend_from_slice(&NONE.to_le_bytes());
                self
            }
        }
    }

    fn number(&mut self, number: i64) -> &mut Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn brief(&mut self, task: &str, version: u64, state: TaskState) -> &mut Self {
        self.text(task).number(version.cast_signed()).number((!state.is_terminal()).into())
    }

    fn standing(
        &mut self,
        state: TaskState,
        remote_task: Option<&str>,
        remote_context: Option<&str>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.text(state.as_str());
        self.maybe(remote_task).maybe(remote_context).number(nanoseconds(at)?);
        Ok(())
    }

    /// JSON goes in as a text, without being one before.
    fn json<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), StoreError> {
        self.prefixed(|bytes| {
            serde_json::to_writer(bytes, value)
                .map_err(|error| Fault::new("an event cannot be written as text", error).into())
        })
    }

    /// A text that is written in place, and its length before it.
    fn prefixed(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let at = self.0.len();
        self.0.extend_from_slice(&[0; 4]);
        write(&mut self.0)?;
        let length = u32::try_from(self.0.len() - at - 4).unwrap_or(NONE - 1);
        if let Some(place) = self.0.get_mut(at..at + 4) {
            place.copy_from_slice(&length.to_le_bytes());
        }
        Ok(())
    }

    fn announce(mut self, events: &[VerbEvent]) -> Result<Self, StoreError> {
        for event in events {
            self.text(&event.verb.org_id).number(nanoseconds(event.emitted_at)?);
            self.json(event)?;
        }
        Ok(self)
    }
}

// === impl About ===

impl<'a> About<'a> {
    /// The task it is about, if it is about one.
    pub(super) const fn task(&self) -> Option<&'a str> {
        match self {
            Self::Open(brief) | Self::Append(brief, _) => Some(brief.task),
            Self::Audit => None,
        }
    }
}

// === impl Opening ===

impl<'a> Opening<'a> {
    /// What it begins with, as if it had happened to a task that was there.
    pub(super) fn first(&self) -> Option<Addition<'a>> {
        let Self { brief, standing, .. } = *self;
        let (at, audit) = (standing.updated_at, Records(&[]));
        self.events.map(|events| Addition { brief, expected: 0, standing, at, events, audit })
    }
}

// === impl Records ===

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let mut reader = Reader(self.0);
        let record = Record { org: reader.text()?, at: reader.number()?, event: reader.text()? };
        self.0 = reader.0;
        Some(record)
    }
}

// === impl Text ===

impl<'a> From<&'a [u8]> for Text<'a> {
    /// Of bytes that are a text.
    fn from(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

impl<'a> From<Text<'a>> for ValueRef<'a> {
    fn from(text: Text<'a>) -> Self {
        Self::Text(text.0)
    }
}

impl<'a> Text<'a> {
    pub(super) const fn bytes(&self) -> &'a [u8] {
        self.0
    }
}

impl ToSql for Text<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

// === impl Reader ===

impl<'a> Reader<'a> {
    fn opening(&mut self, has_events: bool) -> Option<Opening<'a>> {
        Some(Opening {
            brief: self.brief()?,
            org: self.text()?,
            project: self.text()?,
            caller: self.text()?,
            door: self.text()?,
            agent: self.text()?,
            agent_url: self.text()?,
            skill: self.maybe()?,
            session: self.text()?,
            args: self.text()?,
            context: self.maybe()?,
            message: self.maybe()?,
            runner: self.number()?,
            created_at: self.number()?,
            standing: self.standing()?,
            events: if has_events { Some(self.text()?) } else { None },
            audit: Records(self.0),
        })
    }

    fn addition(&mut self) -> Option<Addition<'a>> {
        Some(Addition {
            brief: self.brief()?,
            expected: self.number()?.cast_unsigned(),
            standing: self.standing()?,
            at: self.number()?,
            events: self.text()?,
            audit: Records(self.0),
        })
    }

    fn brief(&mut self) -> Option<Brief<'a>> {
        Some(Brief {
            task: std::str::from_utf8(self.text()?.0).ok()?,
            version: self.number()?.cast_unsigned(),
            is_open: self.number()? != 0,
        })
    }

    fn standing(&mut self) -> Option<Standing<'a>> {
        Some(Standing {
            state: self.text()?,
            remote_task: self.maybe()?,
            remote_context: self.maybe()?,
            updated_at: self.number()?,
        })
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<Text<'a>> {
        self.maybe()?
    }

    fn maybe(&mut self) -> Option<Option<Text<'a>>> {
        let length = u32::from_le_bytes(self.take(4)?.try_into().ok()?);
        if length == NONE {
            return Some(None);
        }
        self.take(usize::try_from(length).ok()?).map(|bytes| Some(Text(bytes)))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

fn nanoseconds(at: Timestamp) -> Result<i64, StoreError> {
    let nanoseconds = i64::try_from(at.as_nanosecond());
    Ok(nanoseconds.map_err(|error| Fault::new("a time is too far away to be written down", error))?)
}
