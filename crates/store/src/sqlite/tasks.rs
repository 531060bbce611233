//! The journal: tasks and their events.
//!
//! On the road of a call there are two jobs, [`TaskWrite::Open`] and [`TaskWrite::Append`]; most of them are noted in the
//! daybook first and posted together. Events refer to their task by its row number, because an index of two small numbers is cheap to add to.

use jiff::Timestamp;
use rialto_model::{
    call::CallerId,
    event::{Event, Recorded, Remote},
    ids::{AgentId, Scope, SkillId, TaskId},
    json::Json,
    store::{Entry, StoreError, TaskFilter},
    task::{TaskHead, TaskState},
    verb::VerbEvent,
};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, named_params, params};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::{
    audit::{self, AuditRow},
    column::{At, Word, scope, taken},
};
use crate::fault::{Fault, Snag};

/// The task with that id.
const OURS: &str = "SELECT tasks.*, args FROM tasks JOIN task_args ON task = tasks.row
    WHERE id = :id AND org = :org AND project = :project";

/// The newest with that remote id: it is looked for in every stretch of the index.
const THEIRS: &str = "
    WITH RECURSIVE stretch (n) AS (
        SELECT max(row) / 1024 FROM tasks UNION ALL SELECT n - 1 FROM stretch WHERE n > 0
    )
    SELECT tasks.*, args FROM stretch CROSS JOIN tasks INDEXED BY tasks_by_remote_id
        ON row / 1024 = n AND remote_task_id = :id
        JOIN task_args ON task = tasks.row
    WHERE org = :org AND project = :project
    ORDER BY id DESC LIMIT 1";

/// How many tasks go at most in one sweep, so that nobody waits long for it.
const SWEPT_AT_ONCE: u32 = 1_000;

/// Something to be written to the journal, its JSON already made.
#[derive(Serialize, Deserialize)]
pub(super) enum TaskWrite {
    /// A new task.
    Open {
        /// The task.
        head: TaskHead,
        /// What the bus announces with it.
        audit: Vec<AuditRow>,
    },
    /// More events.
    Append {
        /// How the task stands after them.
        after: After,
        /// How many events there were before.
        expected: u64,
        /// How many events there are.
        more: usize,
        /// The events as one JSON array, in order.
        events: Box<RawValue>,
        /// When they happened.
        at: Timestamp,
        /// What the bus announces with them.
        audit: Vec<AuditRow>,
    },
    /// Announcements that belong to no task.
    Audit(Vec<AuditRow>),
}

/// What events change of a task.
#[derive(Serialize, Deserialize)]
pub(super) struct After {
    /// Which task.
    pub(super) id: TaskId,
    /// Where it stands.
    pub(super) state: TaskState,
    /// What the far side calls it.
    pub(super) remote: Remote,
    /// When its last event was.
    pub(super) updated_at: Timestamp,
}

// === impl TaskWrite ===

impl TaskWrite {
    pub(super) fn open(head: TaskHead, audit: &[VerbEvent]) -> Result<Self, StoreError> {
        Ok(Self::Open { head, audit: AuditRow::all(audit)? })
    }

    pub(super) fn append(entry: Entry) -> Result<Self, StoreError> {
        let events = to_raw_value(&entry.events)
            .map_err(|error| Fault::new("an event cannot be written as text", error))?;
        let (more, audit) = (entry.events.len(), AuditRow::all(&entry.audit)?);
        let TaskHead { id, state, remote, updated_at, .. } = entry.head;
        let after = After { id, state, remote, updated_at };
        Ok(Self::Append { after, expected: entry.expected, more, events, at: entry.at, audit })
    }

    pub(super) fn audit(events: &[VerbEvent]) -> Result<Self, StoreError> {
        AuditRow::all(events).map(Self::Audit)
    }
}

pub(super) fn write(connection: &Connection, write: &TaskWrite) -> Result<(), Snag> {
    match write {
        TaskWrite::Open { head, audit } => {
            insert(connection, head)?;
            audit::append(connection, audit)
        }
        TaskWrite::Append { after, expected, more, events, at, audit } => {
            let row = advance(connection, after, *expected, *more)?;
            if *more > 0 {
                insert_events(connection, row, expected + *more as u64, *at, events.get())?;
            }
            audit::append(connection, audit)
        }
        TaskWrite::Audit(rows) => audit::append(connection, rows),
    }
}

/// Writes events that happened together; `seq` is the number of the last of them.
pub(super) fn insert_events(
    connection: &Connection,
    row: i64,
    seq: u64,
    at: Timestamp,
    events: &str,
) -> rusqlite::Result<()> {
    let mut insert = connection
        .prepare_cached("INSERT INTO task_events (task, seq, at, events) VALUES (?1, ?2, ?3, ?4)")?;
    insert.execute(params![row, seq, At(at), events]).map(drop)
}

/// The newest task there is; empty when there is none.
pub(super) fn newest(connection: &Connection) -> rusqlite::Result<String> {
    connection.query_row("SELECT coalesce(max(id), '') FROM tasks", [], |row| row.get(0))
}

/// Writes a new task. Answers its row number.
pub(super) fn insert(connection: &Connection, head: &TaskHead) -> Result<i64, Snag> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO tasks (id, org, project, caller, door, agent, agent_url, skill, session, state, open,
             version, remote_task_id, remote_context_id, created_at, updated_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
    )?;
    let inserted = insert.execute(params![
        head.id.as_str(),
        head.scope.org.as_str(),
        head.scope.project.as_str(),
        head.caller.as_str(),
        Word(head.door),
        head.agent.as_str(),
        head.agent_url,
        head.skill.as_ref().map(SkillId::as_str),
        head.session,
        head.state.as_str(),
        !head.state.is_terminal(),
        head.version,
        head.remote.task_id,
        head.remote.context_id,
        At(head.created_at),
        At(head.updated_at),
    ]);
    match inserted {
        Ok(_) => {
            let row = connection.last_insert_rowid();
            let mut beside =
                connection.prepare_cached("INSERT INTO task_args (task, args) VALUES (?1, ?2)")?;
            beside.execute(params![row, head.args.get()])?;
            Ok(row)
        }
        Err(error) if taken(&error, "tasks.id") => {
            Err(StoreError::Taken(format!("the task id {}", head.id)).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Moves the head on, if the task has as many events as expected. Answers the task's row number.
///
/// `UPDATE … RETURNING` would do the same in one statement, but SQLite opens a temporary table for it each time.
fn advance(connection: &Connection, after: &After, expected: u64, more: usize) -> Result<i64, Snag> {
    let mut select = connection.prepare_cached("SELECT row FROM tasks WHERE id = ?1 AND version = ?2")?;
    let row = select.query_row(params![after.id.as_str(), expected], |row| row.get(0)).optional()?;
    let row: i64 = row.ok_or(StoreError::Conflict)?;
    let mut update = connection.prepare_cached(
        "UPDATE tasks SET state = ?2, open = ?3, version = version + ?4, remote_task_id = ?5,
             remote_context_id = ?6, updated_at = ?7
         WHERE row = ?1",
    )?;
    update.execute(params![
        row,
        after.state.as_str(),
        !after.state.is_terminal(),
        more,
        after.remote.task_id,
        after.remote.context_id,
        At(after.updated_at),
    ])?;
    Ok(row)
}

/// The task with that id, or else the newest with that remote id.
pub(super) fn find(connection: &Connection, scope: &Scope, id: &str) -> Result<Option<TaskHead>, Snag> {
    for sql in [OURS, THEIRS] {
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
) -> Result<Vec<TaskHead>, Snag> {
    let narrowing = [
        (" AND caller = :caller", ":caller", filter.caller.as_ref().map(CallerId::as_str)),
        (" AND agent = :agent", ":agent", filter.agent.as_ref().map(AgentId::as_str)),
        (" AND state = :state", ":state", filter.state.map(TaskState::as_str)),
        (" AND id < :before", ":before", filter.before.as_ref().map(TaskId::as_str)),
    ];
    let (org, project) = (scope.org.as_str(), scope.project.as_str());
    // Left to itself, SQLite reads and sorts all tasks of the scope. Each of these is in the order that is asked for.
    let index = match (filter.open, &filter.caller) {
        (true, _) => "tasks_open",
        (false, Some(_)) => "tasks_by_caller",
        (false, None) => "tasks_by_id",
    };
    let mut sql = format!(
        "SELECT tasks.*, args FROM tasks INDEXED BY {index} CROSS JOIN task_args ON task = tasks.row
         WHERE org = :org AND project = :project"
    );
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

/// A task's events, from the one after `after`.
pub(super) fn events(connection: &Connection, task: &TaskId, after: u64) -> Result<Vec<Recorded>, Snag> {
    let mut select = connection.prepare_cached(
        "SELECT seq, at, events FROM task_events
         WHERE task = (SELECT row FROM tasks WHERE id = ?1) AND seq > ?2
         ORDER BY seq",
    )?;
    let mut rows = select.query(params![task.as_str(), after])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let (last, at): (u64, _) = (row.get("seq")?, row.get::<_, At>("at")?.0);
        let text: String = row.get("events")?;
        let batch: Vec<Event> = serde_json::from_str(&text)
            .map_err(|error| StoreError::Corrupt(format!("events up to {last} of {task}: {error}")))?;
        let first = (last + 1).saturating_sub(batch.len() as u64);
        let recorded = (first..).zip(batch).map(|(seq, event)| Recorded { seq, at, event });
        events.extend(recorded.filter(|recorded| recorded.seq > after));
    }
    Ok(events)
}

/// Forgets tasks that ended before `moment`, the oldest first. Answers how many went.
pub(super) fn sweep(connection: &Connection, moment: Timestamp) -> Result<u64, Snag> {
    // Rows are in the order of their making, so nothing behind the first younger one can have ended that early.
    let sql = "DELETE FROM tasks WHERE row IN (
        SELECT row FROM tasks
        WHERE open = 0 AND updated_at < ?1 AND row < coalesce(
            (SELECT row FROM tasks WHERE created_at >= ?1 ORDER BY row LIMIT 1), 9223372036854775807)
        ORDER BY row LIMIT ?2)";
    Ok(connection.prepare_cached(sql)?.execute(params![At(moment), SWEPT_AT_ONCE])? as u64)
}

fn head(row: &Row<'_>) -> Result<TaskHead, Snag> {
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
        state: row.get::<_, Word<_>>("state")?.0,
        version: row.get("version")?,
        remote: Remote { task_id: row.get("remote_task_id")?, context_id: row.get("remote_context_id")? },
        created_at: row.get::<_, At>("created_at")?.0,
        updated_at: row.get::<_, At>("updated_at")?.0,
    })
}
