//! Something to be written to the journal, as bytes.
//!
//! Whoever asks for it puts it into bytes once. The same bytes stand in the daybook and are what the writer reads, so
//! between the two nothing is taken apart or copied text by text.

use jiff::Timestamp;
use rialto_model::{
    event::Remote,
    ids::SkillId,
    store::{Entry, StoreError},
    task::{TaskHead, TaskState},
    verb::VerbEvent,
};
use serde::Serialize;

use crate::fault::Fault;

/// Room that is left in front for whoever keeps notes in a file.
pub(super) const ROOM: usize = 16;

/// A text that is not there.
const NONE: u32 = u32::MAX;

const OPEN: u8 = 1;
const APPEND: u8 = 2;
const AUDIT: u8 = 3;

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

/// What a note is about.
#[derive(Clone, Copy)]
pub(super) enum About<'a> {
    /// A new task.
    Open(&'a str),
    /// A task that should have so many events.
    Append(&'a str, u64),
    /// No task.
    Audit,
}

/// A new task.
#[derive(Clone, Copy)]
pub(super) struct Opening<'a> {
    pub(super) id: &'a str,
    pub(super) org: &'a str,
    pub(super) project: &'a str,
    pub(super) caller: &'a str,
    pub(super) door: &'a str,
    pub(super) agent: &'a str,
    pub(super) agent_url: &'a str,
    pub(super) skill: Option<&'a str>,
    pub(super) session: &'a str,
    pub(super) args: &'a str,
    pub(super) created_at: i64,
    pub(super) version: u64,
    pub(super) standing: Standing<'a>,
    /// What the bus announces with it.
    pub(super) audit: Records<'a>,
}

/// What events change of a task.
#[derive(Clone, Copy)]
pub(super) struct Standing<'a> {
    pub(super) state: &'a str,
    pub(super) is_open: bool,
    pub(super) remote_task: Option<&'a str>,
    pub(super) remote_context: Option<&'a str>,
    pub(super) updated_at: i64,
}

/// Events.
#[derive(Clone, Copy)]
pub(super) struct Addition<'a> {
    pub(super) task: &'a str,
    /// How many events there were before.
    pub(super) expected: u64,
    /// How many events these are.
    pub(super) more: u64,
    /// How the task stands after them.
    pub(super) standing: Standing<'a>,
    /// When they happened.
    pub(super) at: i64,
    /// A JSON array.
    pub(super) events: &'a str,
    /// What the bus announces with them.
    pub(super) audit: Records<'a>,
}

/// Announcements, one after the other.
#[derive(Clone, Copy)]
pub(super) struct Records<'a>(&'a [u8]);

/// One announcement.
pub(super) struct Record<'a> {
    pub(super) org: &'a str,
    pub(super) at: i64,
    /// JSON.
    pub(super) event: &'a str,
}

/// Takes bytes apart.
#[derive(Clone, Copy)]
struct Reader<'a>(&'a [u8]);

// === impl Note ===

impl Note {
    pub(super) fn open(head: &TaskHead, audit: &[VerbEvent]) -> Result<Self, StoreError> {
        let mut note = Self::new(OPEN);
        let skill = head.skill.as_ref().map(SkillId::as_str);
        note.text(head.id.as_str()).text(head.scope.org.as_str()).text(head.scope.project.as_str());
        note.text(head.caller.as_str()).text(head.door.as_str()).text(head.agent.as_str());
        note.text(&head.agent_url).maybe(skill).text(&head.session).text(head.args.get());
        note.number(nanoseconds(head.created_at)?).number(head.version.cast_signed());
        let Remote { task_id, context_id } = &head.remote;
        note.standing(head.state, task_id.as_deref(), context_id.as_deref(), head.updated_at)?;
        note.announce(audit)
    }

    pub(super) fn append(entry: &Entry) -> Result<Self, StoreError> {
        let mut note = Self::new(APPEND);
        note.text(entry.head.id.as_str()).number(entry.expected.cast_signed());
        note.number(i64::try_from(entry.events.len()).unwrap_or(i64::MAX));
        let Remote { task_id, context_id } = &entry.head.remote;
        note.standing(entry.head.state, task_id.as_deref(), context_id.as_deref(), entry.head.updated_at)?;
        note.number(nanoseconds(entry.at)?).json(&entry.events)?;
        note.announce(&entry.audit)
    }

    pub(super) fn audit(events: &[VerbEvent]) -> Result<Self, StoreError> {
        Self::new(AUDIT).announce(events)
    }

    /// A note that was kept, with its room.
    pub(super) fn kept(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// A note that says nothing.
    pub(super) const fn blank() -> Self {
        Self(Vec::new())
    }

    /// The bytes, with room in front.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The room in front.
    pub(super) fn room(&mut self) -> &mut [u8] {
        let end = self.0.len().min(ROOM);
        &mut self.0[..end]
    }

    /// What it is about; none if it is not a note.
    pub(super) fn about(&self) -> Option<About<'_>> {
        let mut reader = Reader(self.0.get(ROOM..)?);
        match reader.byte()? {
            OPEN => Some(About::Open(reader.text()?)),
            APPEND => Some(About::Append(reader.text()?, reader.number()?.cast_unsigned())),
            AUDIT => Some(About::Audit),
            _ => None,
        }
    }

    /// What it says; none if it is not a note.
    pub(super) fn view(&self) -> Option<View<'_>> {
        let mut reader = Reader(self.0.get(ROOM..)?);
        match reader.byte()? {
            OPEN => reader.opening().map(View::Open),
            APPEND => reader.addition().map(View::Append),
            AUDIT => Some(View::Audit(Records(reader.0))),
            _ => None,
        }
    }

    fn new(kind: u8) -> Self {
        let mut bytes = Vec::with_capacity(4096);
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

    fn standing(
        &mut self,
        state: TaskState,
        remote_task: Option<&str>,
        remote_context: Option<&str>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.text(state.as_str()).number((!state.is_terminal()).into());
        self.maybe(remote_task).maybe(remote_context).number(nanoseconds(at)?);
        Ok(())
    }

    /// JSON goes in as a text, without being one before.
    fn json<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), StoreError> {
        let at = self.0.len();
        self.0.extend_from_slice(&[0; 4]);
        serde_json::to_writer(&mut self.0, value)
            .map_err(|error| Fault::new("an event cannot be written as text", error))?;
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

// === impl Reader ===

impl<'a> Reader<'a> {
    fn opening(&mut self) -> Option<Opening<'a>> {
        Some(Opening {
            id: self.text()?,
            org: self.text()?,
            project: self.text()?,
            caller: self.text()?,
            door: self.text()?,
            agent: self.text()?,
            agent_url: self.text()?,
            skill: self.maybe()?,
            session: self.text()?,
            args: self.text()?,
            created_at: self.number()?,
            version: self.number()?.cast_unsigned(),
            standing: self.standing()?,
            audit: Records(self.0),
        })
    }

    fn addition(&mut self) -> Option<Addition<'a>> {
        Some(Addition {
            task: self.text()?,
            expected: self.number()?.cast_unsigned(),
            more: self.number()?.cast_unsigned(),
            standing: self.standing()?,
            at: self.number()?,
            events: self.text()?,
            audit: Records(self.0),
        })
    }

    fn standing(&mut self) -> Option<Standing<'a>> {
        Some(Standing {
            state: self.text()?,
            is_open: self.number()? != 0,
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

    fn text(&mut self) -> Option<&'a str> {
        self.maybe()?
    }

    fn maybe(&mut self) -> Option<Option<&'a str>> {
        let length = u32::from_le_bytes(self.take(4)?.try_into().ok()?);
        if length == NONE {
            return Some(None);
        }
        let bytes = self.take(usize::try_from(length).ok()?)?;
        std::str::from_utf8(bytes).ok().map(Some)
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
