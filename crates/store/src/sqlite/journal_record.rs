//! Journal records: encoded journal writes.
//!
//! The caller encodes it once. The same bytes stand in the write buffer and are what the writer reads, so
//! between the two nothing is taken apart or copied text by text.

use jiff::Timestamp;
use rialto_model::{
    audit_event::AuditEvent,
    event::{Event, RemoteIds},
    ids::{ContextId, SkillId},
    store::{StoreError, TaskAppend},
    task::{TaskHead, TaskState},
};
use rusqlite::{
    ToSql,
    types::{ToSqlOutput, ValueRef},
};
use serde::Serialize;

use crate::error::DatabaseError;

/// Room that is left in front for the process that keeps records in a file.
pub(super) const HEADER_BYTES: usize = 16;

/// A text that is not there.
const NO_TEXT: u32 = u32::MAX;

/// Usual size of names, times and numbers. A longer record grows.
const NAMES_BYTES: usize = 1280;

/// Usual size of a result.
const RESULT_BYTES: usize = 1536;

const KIND_OPEN: u8 = 1;
const KIND_APPEND: u8 = 2;
const KIND_AUDIT: u8 = 3;
const KIND_BEGIN: u8 = 4;

/// Something to be written to the journal.
pub(super) struct JournalRecord(Vec<u8>);

/// Parsed content of a record.
pub(super) enum RecordView<'a> {
    /// There is a new task.
    Open(NewTaskRecord<'a>),
    /// Something has happened to a task.
    Append(EventsRecord<'a>),
    /// Something was announced that belongs to no task.
    Audit(EncodedAuditEvents<'a>),
}

/// Subject of a record.
#[derive(Clone, Copy)]
pub(super) enum RecordSubject<'a> {
    /// A new task.
    Open(TaskVersion<'a>),
    /// A task with its expected number of events.
    Append(TaskVersion<'a>, u64),
    /// No task.
    Audit,
}

/// A task, and how it stands after the record.
#[derive(Clone, Copy)]
pub(super) struct TaskVersion<'a> {
    pub(super) task: &'a str,
    pub(super) version: u64,
    pub(super) is_open: bool,
}

/// A new task.
#[derive(Clone, Copy)]
pub(super) struct NewTaskRecord<'a> {
    pub(super) brief: TaskVersion<'a>,
    pub(super) org: RecordText<'a>,
    pub(super) project: RecordText<'a>,
    pub(super) caller: RecordText<'a>,
    pub(super) door: RecordText<'a>,
    pub(super) agent: RecordText<'a>,
    pub(super) agent_url: RecordText<'a>,
    pub(super) skill: Option<RecordText<'a>>,
    pub(super) session: RecordText<'a>,
    pub(super) args: RecordText<'a>,
    pub(super) context: Option<RecordText<'a>>,
    pub(super) message: Option<RecordText<'a>>,
    pub(super) runner: i64,
    pub(super) created_at: i64,
    pub(super) standing: TaskProgress<'a>,
    /// First events, if there are any: a JSON array.
    events: Option<RecordText<'a>>,
    /// Audit events of the new task.
    pub(super) audit: EncodedAuditEvents<'a>,
}

/// Columns of a task that its events change.
#[derive(Clone, Copy)]
pub(super) struct TaskProgress<'a> {
    pub(super) state: RecordText<'a>,
    pub(super) remote_task: Option<RecordText<'a>>,
    pub(super) remote_context: Option<RecordText<'a>>,
    pub(super) updated_at: i64,
}

/// Events.
#[derive(Clone, Copy)]
pub(super) struct EventsRecord<'a> {
    pub(super) brief: TaskVersion<'a>,
    /// Number of events before these.
    pub(super) expected: u64,
    /// State of the task after them.
    pub(super) standing: TaskProgress<'a>,
    /// When they happened.
    pub(super) at: i64,
    /// A JSON array.
    pub(super) events: RecordText<'a>,
    /// Audit events of these events.
    pub(super) audit: EncodedAuditEvents<'a>,
}

/// Announcements, one after the other.
#[derive(Clone, Copy)]
pub(super) struct EncodedAuditEvents<'a>(&'a [u8]);

/// One announcement.
pub(super) struct EncodedAuditEvent<'a> {
    pub(super) org: RecordText<'a>,
    pub(super) at: i64,
    /// JSON.
    pub(super) event: RecordText<'a>,
}

/// A text in a record. It was one when it was written, so it is not looked through again.
#[derive(Clone, Copy)]
pub(super) struct RecordText<'a>(&'a [u8]);

/// Takes bytes apart.
#[derive(Clone, Copy)]
struct RecordReader<'a>(&'a [u8]);

/// Parses the subject of a record with its header; none if the bytes are no record.
pub(super) fn parse_subject(record: &[u8]) -> Option<RecordSubject<'_>> {
    let mut reader = RecordReader(record.get(HEADER_BYTES..)?);
    match reader.byte()? {
        KIND_OPEN | KIND_BEGIN => Some(RecordSubject::Open(reader.brief()?)),
        KIND_APPEND => Some(RecordSubject::Append(reader.brief()?, reader.number()?.cast_unsigned())),
        KIND_AUDIT => Some(RecordSubject::Audit),
        _ => None,
    }
}

/// Parses a record with its header; none if the bytes are no record.
pub(super) fn parse_record(record: &[u8]) -> Option<RecordView<'_>> {
    let mut reader = RecordReader(record.get(HEADER_BYTES..)?);
    match reader.byte()? {
        kind @ (KIND_OPEN | KIND_BEGIN) => reader.opening(kind == KIND_BEGIN).map(RecordView::Open),
        KIND_APPEND => reader.addition().map(RecordView::Append),
        KIND_AUDIT => Some(RecordView::Audit(EncodedAuditEvents(reader.0))),
        _ => None,
    }
}

// === impl JournalRecord ===

impl JournalRecord {
    pub(super) fn open(head: &TaskHead, audit: &[AuditEvent]) -> Result<Self, StoreError> {
        // The arguments stand here and in the announcement; the rest is names.
        let mut record = Self::new(KIND_OPEN, 2 * head.args.get().len());
        record.head(head)?;
        record.audit_events(audit)
    }

    /// A new task that begins with these events.
    pub(super) fn begin(head: &TaskHead, first: &[Event], audit: &[AuditEvent]) -> Result<Self, StoreError> {
        // What is said is most often what the arguments are.
        let mut record = Self::new(KIND_BEGIN, 3 * head.args.get().len());
        record.head(head)?;
        record.json(first)?;
        record.audit_events(audit)
    }

    pub(super) fn append(entry: &TaskAppend) -> Result<Self, StoreError> {
        let mut record = Self::new(KIND_APPEND, RESULT_BYTES);
        let version = entry.expected + entry.events.len() as u64;
        record.brief(entry.head.id.as_str(), version, entry.head.state).number(entry.expected.cast_signed());
        let RemoteIds { task_id, context_id } = &entry.head.remote;
        record.standing(
            entry.head.state,
            task_id.as_deref(),
            context_id.as_deref(),
            entry.head.updated_at,
        )?;
        record.number(nanoseconds(entry.at)?).json(&entry.events)?;
        record.audit_events(&entry.audit)
    }

    pub(super) fn audit(events: &[AuditEvent]) -> Result<Self, StoreError> {
        Self::new(KIND_AUDIT, 0).audit_events(events)
    }

    /// Returns whether it is about something that was not there before: a task, or what belongs to none.
    pub(super) fn is_new(&self) -> bool {
        matches!(self.0.get(HEADER_BYTES), Some(&(KIND_OPEN | KIND_BEGIN | KIND_AUDIT)))
    }

    /// The bytes, with room in front.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Bytes, for the header to be filled in.
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
        self.text(&head.agent_url).optional_text(skill).text(&head.session).text(head.args.get());
        self.optional_text(head.context.as_ref().map(ContextId::as_str))
            .optional_text(head.message.as_deref());
        self.number(head.runner.get().cast_signed()).number(nanoseconds(head.created_at)?);
        let RemoteIds { task_id, context_id } = &head.remote;
        self.standing(head.state, task_id.as_deref(), context_id.as_deref(), head.updated_at)
    }

    /// The beginning of a record that has so much to say besides names.
    fn new(kind: u8, length: usize) -> Self {
        let mut bytes = Vec::with_capacity(NAMES_BYTES + length);
        bytes.extend_from_slice(&[0; HEADER_BYTES]);
        bytes.push(kind);
        Self(bytes)
    }

    fn text(&mut self, text: &str) -> &mut Self {
        // No request is larger than four gigabytes.
        self.0.extend_from_slice(&u32::try_from(text.len()).unwrap_or(NO_TEXT - 1).to_le_bytes());
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    fn optional_text(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(text),
            None => {
                self.0.extend_from_slice(&NO_TEXT.to_le_bytes());
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
        self.optional_text(remote_task).optional_text(remote_context).number(nanoseconds(at)?);
        Ok(())
    }

    /// JSON goes in as a text, without being one before.
    fn json<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), StoreError> {
        self.prefixed(|bytes| {
            serde_json::to_writer(bytes, value)
                .map_err(|error| DatabaseError::new("an event cannot be written as text", error).into())
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
        let length = u32::try_from(self.0.len() - at - 4).unwrap_or(NO_TEXT - 1);
        if let Some(place) = self.0.get_mut(at..at + 4) {
            place.copy_from_slice(&length.to_le_bytes());
        }
        Ok(())
    }

    fn audit_events(mut self, events: &[AuditEvent]) -> Result<Self, StoreError> {
        for event in events {
            self.text(&event.verb.org_id).number(nanoseconds(event.emitted_at)?);
            self.json(event)?;
        }
        Ok(self)
    }
}

// === impl RecordSubject ===

impl<'a> RecordSubject<'a> {
    /// The task it is about, if it is about one.
    pub(super) const fn task(&self) -> Option<&'a str> {
        match self {
            Self::Open(brief) | Self::Append(brief, _) => Some(brief.task),
            Self::Audit => None,
        }
    }
}

// === impl NewTaskRecord ===

impl<'a> NewTaskRecord<'a> {
    /// First events, as a record of an existing task.
    pub(super) fn first(&self) -> Option<EventsRecord<'a>> {
        let Self { brief, standing, .. } = *self;
        let (at, audit) = (standing.updated_at, EncodedAuditEvents(&[]));
        self.events.map(|events| EventsRecord { brief, expected: 0, standing, at, events, audit })
    }
}

// === impl AuditRecords ===

impl<'a> Iterator for EncodedAuditEvents<'a> {
    type Item = EncodedAuditEvent<'a>;

    fn next(&mut self) -> Option<EncodedAuditEvent<'a>> {
        let mut reader = RecordReader(self.0);
        let record = EncodedAuditEvent { org: reader.text()?, at: reader.number()?, event: reader.text()? };
        self.0 = reader.0;
        Some(record)
    }
}

// === impl RecordText ===

impl<'a> From<&'a [u8]> for RecordText<'a> {
    /// Of bytes that are a text.
    fn from(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

impl<'a> From<RecordText<'a>> for ValueRef<'a> {
    fn from(text: RecordText<'a>) -> Self {
        Self::Text(text.0)
    }
}

impl<'a> RecordText<'a> {
    pub(super) const fn bytes(&self) -> &'a [u8] {
        self.0
    }
}

impl ToSql for RecordText<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

// === impl RecordReader ===

impl<'a> RecordReader<'a> {
    fn opening(&mut self, has_events: bool) -> Option<NewTaskRecord<'a>> {
        Some(NewTaskRecord {
            brief: self.brief()?,
            org: self.text()?,
            project: self.text()?,
            caller: self.text()?,
            door: self.text()?,
            agent: self.text()?,
            agent_url: self.text()?,
            skill: self.optional_text()?,
            session: self.text()?,
            args: self.text()?,
            context: self.optional_text()?,
            message: self.optional_text()?,
            runner: self.number()?,
            created_at: self.number()?,
            standing: self.standing()?,
            events: if has_events { Some(self.text()?) } else { None },
            audit: EncodedAuditEvents(self.0),
        })
    }

    fn addition(&mut self) -> Option<EventsRecord<'a>> {
        Some(EventsRecord {
            brief: self.brief()?,
            expected: self.number()?.cast_unsigned(),
            standing: self.standing()?,
            at: self.number()?,
            events: self.text()?,
            audit: EncodedAuditEvents(self.0),
        })
    }

    fn brief(&mut self) -> Option<TaskVersion<'a>> {
        Some(TaskVersion {
            task: std::str::from_utf8(self.text()?.0).ok()?,
            version: self.number()?.cast_unsigned(),
            is_open: self.number()? != 0,
        })
    }

    fn standing(&mut self) -> Option<TaskProgress<'a>> {
        Some(TaskProgress {
            state: self.text()?,
            remote_task: self.optional_text()?,
            remote_context: self.optional_text()?,
            updated_at: self.number()?,
        })
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<RecordText<'a>> {
        self.optional_text()?
    }

    fn optional_text(&mut self) -> Option<Option<RecordText<'a>>> {
        let length = u32::from_le_bytes(self.take(4)?.try_into().ok()?);
        if length == NO_TEXT {
            return Some(None);
        }
        self.take(usize::try_from(length).ok()?).map(|bytes| Some(RecordText(bytes)))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

fn nanoseconds(at: Timestamp) -> Result<i64, StoreError> {
    let nanoseconds = i64::try_from(at.as_nanosecond());
    Ok(nanoseconds.map_err(|error| DatabaseError::new("a time is too far away to be written down", error))?)
}
