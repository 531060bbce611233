//! The journal: tasks and their events.
//!
//! Most of what is written here was buffered in the write buffer first and is flushed together.

use std::{collections::BTreeMap, iter};

use async_trait::async_trait;
use jiff::Timestamp;
use rialto_model::{
    audit_event::AuditEvent,
    call::CallerId,
    event::{Event, RecordedEvent, RemoteIds},
    ids::{AgentId, ContextId, OrgId, ProcessId, Scope, SkillId, TaskId},
    json::Json,
    store::{
        ConversationFilter, ConversationTasks, StoreError, TaskAppend, TaskFilter, TaskStore, hash_message,
    },
    task::{TaskHead, TaskState},
};
use rusqlite::{
    CachedStatement, Connection, OptionalExtension, Row, ToSql, named_params, params, types::ValueRef,
};

use super::{
    SqliteStore, audit, checksum,
    column::{At, Word, scope, taken},
    conversations, elided_args,
    journal_record::{EventsRecord, JournalRecord, NewTaskRecord, RecordText, RecordView, parse_record},
};
use crate::error::SqliteError;

/// The task with that id.
const SELECT_BY_ID: &str = "SELECT * FROM tasks WHERE id = :id AND org = :org AND project = :project";

/// The newest with that remote id: it is looked for in every stretch of the index.
const SELECT_BY_REMOTE_ID: &str = "
    WITH RECURSIVE stretch (n) AS (
        SELECT max(row) / 1024 FROM tasks UNION ALL SELECT n - 1 FROM stretch WHERE n > 0
    )
    SELECT tasks.* FROM stretch CROSS JOIN tasks INDEXED BY tasks_by_remote_id
        ON row / 1024 = n AND remote_task_id = :id
    WHERE org = :org AND project = :project
    ORDER BY id DESC LIMIT 1";

/// Maximum number of tasks removed by one sweep, so that no writer waits long for it.
const MAX_SWEPT_TASKS: usize = 1_000;

/// A task's events stand under its row number times this, and the number of the last of those written together.
const EVENT_KEY_STRIDE: i64 = 1 << 24;

/// Writes new tasks and events. Its statements are looked up once, however many are written.
pub(super) struct Inserts<'c> {
    connection: &'c Connection,
    task: CachedStatement<'c>,
    events: CachedStatement<'c>,
}

#[async_trait]
impl TaskStore for SqliteStore {
    async fn open_task(&self, head: &TaskHead, audit: Vec<AuditEvent>) -> Result<(), StoreError> {
        self.write_journal(JournalRecord::open(head, &audit)?).await
    }

    async fn begin_task(
        &self,
        head: &TaskHead,
        first: &[Event],
        audit: Vec<AuditEvent>,
    ) -> Result<(), StoreError> {
        self.write_journal(JournalRecord::begin(head, first, &audit)?).await
    }

    async fn append(&self, entry: TaskAppend) -> Result<(), StoreError> {
        self.write_journal(JournalRecord::append(&entry)?).await
    }

    async fn task(&self, scope: &Scope, id: &str) -> Result<Option<TaskHead>, StoreError> {
        let (scope, id) = (scope.clone(), id.to_owned());
        self.read_journal(move |connection| find(connection, &scope, &id)).await
    }

    async fn events(&self, task: &TaskId, after: u64) -> Result<Vec<RecordedEvent>, StoreError> {
        let task = task.clone();
        self.read_journal(move |connection| events(connection, &task, after)).await
    }

    async fn tasks(&self, scope: &Scope, filter: &TaskFilter) -> Result<Vec<TaskHead>, StoreError> {
        let (scope, filter) = (scope.clone(), filter.clone());
        self.read_journal(move |connection| list(connection, &scope, &filter)).await
    }

    async fn conversation_tasks(
        &self,
        scope: &Scope,
        filter: &ConversationFilter,
    ) -> Result<ConversationTasks, StoreError> {
        let (scope, filter) = (scope.clone(), filter.clone());
        self.read_journal(move |connection| conversations::list(connection, &scope, &filter)).await
    }

    async fn load(&self, org: &OrgId) -> Result<BTreeMap<AgentId, u64>, StoreError> {
        let org = org.clone();
        self.read_journal(move |connection| load(connection, &org)).await
    }
}

/// Writes what a record says.
pub(super) fn write(connection: &Connection, record: &JournalRecord) -> Result<(), SqliteError> {
    match parse_record(record.bytes())
        .ok_or_else(|| StoreError::Corrupt("a journal record that cannot be read".to_owned()))?
    {
        RecordView::Open(opening) => {
            let mut inserts = Inserts::new(connection)?;
            let row = inserts.task(&opening)?;
            opening.first().map_or(Ok(()), |first| inserts.events(row, &first))?;
            audit::append(connection, opening.audit)
        }
        RecordView::Append(addition) => {
            let row = advance(connection, &addition)?;
            Inserts::new(connection)?.events(row, &addition)?;
            audit::append(connection, addition.audit)
        }
        RecordView::Audit(records) => audit::append(connection, records),
    }
}

// === impl Inserts ===

impl<'c> Inserts<'c> {
    pub(super) fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        let task = connection.prepare_cached(
            "INSERT INTO tasks (id, org, project, caller, door, agent, agent_url, skill, session, args, state, open,
                 version, remote_task_id, remote_context_id, created_at, updated_at, context, message, runner, message_number, checksum)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
                 ?21, ?22)",
        )?;
        let events = connection
            .prepare_cached("INSERT INTO task_events (key, at, events, checksum) VALUES (?1, ?2, ?3, ?4)")?;
        Ok(Self { connection, task, events })
    }

    /// Connection that it writes to.
    pub(super) const fn connection(&self) -> &'c Connection {
        self.connection
    }

    /// Writes a new task. Answers its row number.
    pub(super) fn task(&mut self, task: &NewTaskRecord<'_>) -> Result<i64, SqliteError> {
        let number = task.message.map(|message| {
            let [org, project, caller, message] = [&task.org, &task.project, &task.caller, &message];
            hash_message(org.bytes(), project.bytes(), caller.bytes(), message.bytes()).cast_signed()
        });
        let inserted = self.task.execute(params![
            task.brief.task,
            task.org,
            task.project,
            task.caller,
            task.door,
            task.agent,
            task.agent_url,
            task.skill,
            task.session,
            task.args,
            task.standing.state,
            task.brief.is_open,
            task.brief.version,
            task.standing.remote_task,
            task.standing.remote_context,
            task.created_at,
            task.standing.updated_at,
            task.context,
            task.message,
            task.runner,
            number,
            checksum_of_task(task),
        ]);
        match inserted {
            Ok(_) => Ok(self.connection.last_insert_rowid()),
            Err(error) if taken(&error, "tasks.id") => {
                Err(StoreError::Taken(format!("the task id {}", task.brief.task)).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Writes events that happened together to the task in `row`.
    pub(super) fn events(&mut self, row: i64, addition: &EventsRecord<'_>) -> Result<(), SqliteError> {
        if addition.brief.version == addition.expected {
            return Ok(());
        }
        let last = i64::try_from(addition.brief.version).unwrap_or(i64::MAX);
        if last >= EVENT_KEY_STRIDE {
            let message = format!("task {} has more events than can be kept", addition.brief.task);
            return Err(StoreError::Unwritable(message).into());
        }
        let key = row * EVENT_KEY_STRIDE + last;
        let values = [ValueRef::Integer(key), ValueRef::Integer(addition.at), addition.events.into()];
        self.events.execute(params![key, addition.at, addition.events, checksum::hash_values(values)])?;
        Ok(())
    }
}

fn checksum_of_task(task: &NewTaskRecord<'_>) -> i64 {
    let id = ValueRef::Text(task.brief.task.as_bytes());
    let names = [task.org, task.project, task.caller, task.door, task.agent, task.agent_url];
    let rest = [task.skill, Some(task.session), Some(task.args), task.context, task.message];
    checksum::hash_values(iter::once(id).chain(names.map(ValueRef::from)).chain(rest.map(text_or_null)))
}

fn text_or_null(text: Option<RecordText<'_>>) -> ValueRef<'_> {
    text.map_or(ValueRef::Null, ValueRef::from)
}

/// Finds batches of events of a task whose bytes are not as they were written. Answers the numbers of their last events.
pub(super) fn damaged_events(connection: &Connection, row: i64) -> rusqlite::Result<Vec<i64>> {
    let mut select =
        connection.prepare_cached("SELECT * FROM task_events WHERE key > ?1 AND key < ?2 ORDER BY key")?;
    let mut rows = select.query([row * EVENT_KEY_STRIDE, (row + 1) * EVENT_KEY_STRIDE])?;
    let mut damaged = Vec::new();
    while let Some(batch) = rows.next()? {
        if !checksum::is_intact(batch, &checksum::EVENT_COLUMNS)? {
            damaged.push(batch.get::<_, i64>("key")? - row * EVENT_KEY_STRIDE);
        }
    }
    Ok(damaged)
}

/// The newest task there is; empty when there is none.
pub(super) fn newest(connection: &Connection) -> rusqlite::Result<String> {
    connection.query_row("SELECT coalesce(max(id), '') FROM tasks", [], |row| row.get(0))
}

/// Moves a task on, if it has as many events as expected. Answers its row number.
///
/// `UPDATE … RETURNING` would do the same in one statement, but SQLite opens a temporary table for it each time.
fn advance(connection: &Connection, addition: &EventsRecord<'_>) -> Result<i64, SqliteError> {
    let mut select = connection.prepare_cached("SELECT row FROM tasks WHERE id = ?1 AND version = ?2")?;
    let row =
        select.query_row(params![addition.brief.task, addition.expected], |row| row.get(0)).optional()?;
    let row: i64 = row.ok_or(StoreError::Conflict)?;
    let mut update = connection.prepare_cached(
        "UPDATE tasks SET state = ?2, open = ?3, version = ?4, remote_task_id = ?5,
             remote_context_id = ?6, updated_at = ?7
         WHERE row = ?1",
    )?;
    let standing = &addition.standing;
    update.execute(params![
        row,
        standing.state,
        addition.brief.is_open,
        addition.brief.version,
        standing.remote_task,
        standing.remote_context,
        standing.updated_at,
    ])?;
    Ok(row)
}

/// The task with that id, or else the newest with that remote id.
pub(super) fn find(
    connection: &Connection,
    scope: &Scope,
    id: &str,
) -> Result<Option<TaskHead>, SqliteError> {
    for sql in [SELECT_BY_ID, SELECT_BY_REMOTE_ID] {
        let mut select = connection.prepare_cached(sql)?;
        let values =
            named_params! { ":id": id, ":org": scope.org.as_str(), ":project": scope.project.as_str() };
        if let Some(row) = select.query(values)?.next()? {
            return head(row).map(Some);
        }
    }
    Ok(None)
}

/// Tasks of a scope, newest first.
pub(super) fn list(
    connection: &Connection,
    scope: &Scope,
    filter: &TaskFilter,
) -> Result<Vec<TaskHead>, SqliteError> {
    let narrowing = [
        (" AND caller = :caller", ":caller", filter.caller.as_ref().map(CallerId::as_str)),
        (" AND agent = :agent", ":agent", filter.agent.as_ref().map(AgentId::as_str)),
        (" AND state = :state", ":state", filter.state.map(TaskState::as_str)),
        (" AND context = :context", ":context", filter.context.as_ref().map(ContextId::as_str)),
        (" AND id < :before", ":before", filter.before.as_ref().map(TaskId::as_str)),
    ];
    let (org, project) = (scope.org.as_str(), scope.project.as_str());
    // Left to itself, SQLite reads and sorts all tasks of the scope. Each of these is in the order that is asked for.
    let index = match (&filter.context, filter.open, &filter.caller) {
        (Some(_), ..) => "tasks_by_context",
        (None, true, _) => "tasks_open",
        (None, false, Some(_)) => "tasks_by_caller",
        (None, false, None) => "tasks_by_id",
    };
    let mut sql = format!("SELECT * FROM tasks INDEXED BY {index} WHERE org = :org AND project = :project");
    let mut values: Vec<(&str, &dyn ToSql)> =
        vec![(":org", &org), (":project", &project), (":limit", &filter.limit)];
    for (condition, name, value) in &narrowing {
        if let Some(value) = value {
            sql.push_str(condition);
            values.push((name, value));
        }
    }
    if filter.open {
        sql.push_str(" AND open = 1");
    }
    sql.push_str(" ORDER BY id DESC LIMIT :limit");
    let mut select = connection.prepare_cached(&sql)?;
    let mut rows = select.query(values.as_slice())?;
    let mut heads = Vec::new();
    while let Some(row) = rows.next()? {
        heads.push(head(row)?);
    }
    Ok(heads)
}

/// Number of open tasks of each agent of an org.
pub(super) fn load(connection: &Connection, org: &OrgId) -> Result<BTreeMap<AgentId, u64>, SqliteError> {
    let mut select = connection.prepare_cached(
        "SELECT agent_id, count(*) FROM a2a_task_instances WHERE active = 1 AND org = ?1 GROUP BY agent_id",
    )?;
    let counted = |row: &Row<'_>| Ok((AgentId::from(row.get::<_, String>(0)?), row.get(1)?));
    let load = select.query_map([org.as_str()], counted)?.collect::<rusqlite::Result<_>>()?;
    Ok(load)
}

/// A task's events, from the one after `after`.
pub(super) fn events(
    connection: &Connection,
    task: &TaskId,
    after: u64,
) -> Result<Vec<RecordedEvent>, SqliteError> {
    let mut select = connection.prepare_cached("SELECT row FROM tasks WHERE id = ?1")?;
    let row: Option<i64> = select.query_row([task.as_str()], |row| row.get(0)).optional()?;
    let Some(first) = row.map(|row| row * EVENT_KEY_STRIDE) else { return Ok(Vec::new()) };
    let mut select = connection
        .prepare_cached("SELECT key, at, events FROM task_events WHERE key > ?1 AND key < ?2 ORDER BY key")?;
    let past = i64::try_from(after).unwrap_or(EVENT_KEY_STRIDE).min(EVENT_KEY_STRIDE);
    let mut rows = select.query(params![first + past, first + EVENT_KEY_STRIDE])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let (last, at) = (row.get::<_, i64>("key")? - first, row.get::<_, At>("at")?.0);
        let text = elided_args::restore(row.get("events")?, || args(connection, first / EVENT_KEY_STRIDE))?;
        let batch: Vec<Event> = serde_json::from_str(&text)
            .map_err(|error| StoreError::Corrupt(format!("events up to {last} of {task}: {error}")))?;
        let first = (last.unsigned_abs() + 1).saturating_sub(batch.len() as u64);
        let recorded = (first..).zip(batch).map(|(seq, event)| RecordedEvent { seq, at, event });
        events.extend(recorded.filter(|recorded| recorded.seq > after));
    }
    Ok(events)
}

fn args(connection: &Connection, row: i64) -> Result<String, SqliteError> {
    let mut select = connection.prepare_cached("SELECT args FROM tasks WHERE row = ?1")?;
    Ok(select.query_row([row], |row| row.get(0))?)
}

/// Removes tasks that ended before `moment`, the oldest first. Returns their number.
pub(super) fn sweep(connection: &Connection, moment: Timestamp) -> Result<u64, SqliteError> {
    // Rows are in the order of their making, so nothing behind the first younger one can have ended that early.
    let mut select = connection.prepare_cached(
        "SELECT row, created_at >= ?1, open = 0 AND updated_at < ?1 FROM tasks ORDER BY row",
    )?;
    let (mut rows, mut old) = (select.query([At(moment)])?, Vec::new());
    while old.len() < MAX_SWEPT_TASKS
        && let Some(row) = rows.next()?
        && !row.get::<_, bool>(1)?
    {
        if row.get(2)? {
            old.push(row.get(0)?);
        }
    }
    remove(connection, &old)
}

/// Removes the oldest tasks that have ended, if the database holds more than `most` bytes. Returns their number.
pub(super) fn sweep_beyond(connection: &Connection, most: u64) -> Result<u64, SqliteError> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    let pages = pragma("page_count")?.saturating_sub(pragma("freelist_count")?);
    if pages.saturating_mul(pragma("page_size")?) <= most {
        return Ok(0);
    }
    let mut select =
        connection.prepare_cached("SELECT row FROM tasks WHERE open = 0 ORDER BY row LIMIT ?1")?;
    let old =
        select.query_map([MAX_SWEPT_TASKS], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
    remove(connection, &old)
}

fn remove(connection: &Connection, rows: &[i64]) -> Result<u64, SqliteError> {
    let mut events = connection.prepare_cached("DELETE FROM task_events WHERE key > ?1 AND key < ?2")?;
    let mut task = connection.prepare_cached("DELETE FROM tasks WHERE row = ?1")?;
    for row in rows {
        events.execute([row * EVENT_KEY_STRIDE, (row + 1) * EVENT_KEY_STRIDE])?;
        task.execute([row])?;
    }
    Ok(rows.len() as u64)
}

pub(super) fn head(row: &Row<'_>) -> Result<TaskHead, SqliteError> {
    let id = TaskId::from(row.get::<_, String>("id")?);
    let args = Json::parse(row.get::<_, String>("args")?)
        .map_err(|error| StoreError::Corrupt(format!("the arguments of {id}: {error}")))?;
    Ok(TaskHead {
        id,
        scope: scope(row)?,
        caller: CallerId::from(row.get::<_, String>("caller")?),
        door: row.get::<_, Word<_>>("door")?.0,
        agent: AgentId::from(row.get::<_, String>("agent")?),
        agent_url: row.get("agent_url")?,
        skill: row.get::<_, Option<String>>("skill")?.map(SkillId::from),
        session: row.get("session")?,
        args,
        context: row.get::<_, Option<String>>("context")?.map(ContextId::from),
        message: row.get::<_, Option<String>>("message")?.map(Into::into),
        runner: ProcessId::from(row.get::<_, u64>("runner")?),
        state: row.get::<_, Word<_>>("state")?.0,
        version: row.get("version")?,
        remote: RemoteIds { task_id: row.get("remote_task_id")?, context_id: row.get("remote_context_id")? },
        created_at: row.get::<_, At>("created_at")?.0,
        updated_at: row.get::<_, At>("updated_at")?.0,
    })
}
