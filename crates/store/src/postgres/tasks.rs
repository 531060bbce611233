//! The journal, to read: tasks and their events.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use rialto_model::{
    audit_event::AuditEvent,
    call::CallerId,
    event::{Event, RecordedEvent, RemoteIds},
    ids::{AgentId, ContextId, OrgId, ProcessId, Scope, SkillId, TaskId},
    json::Json,
    store::{ConversationFilter, ConversationTasks, StoreError, TaskAppend, TaskFilter, TaskStore},
    task::{TaskHead, TaskState},
};
use tokio_postgres::Row;

use super::{
    PostgresStore,
    column::{Cells, limit, nearest, signed},
    connection::GenericClient,
    conversations,
    error::PostgresError,
    journal::JournalWrite,
    sql::{self, Value},
};

/// Maximum number of tasks removed by one sweep, so that no writer waits long for it.
const MAX_SWEPT_TASKS: i64 = 1_000;

/// The task with that id.
const SELECT_BY_ID: &str = "SELECT * FROM tasks WHERE id = $1 AND org = $2 AND project = $3";

/// The newest with that remote id.
const SELECT_BY_REMOTE_ID: &str = "
    SELECT * FROM tasks WHERE remote_task_id = $1 AND org = $2 AND project = $3 ORDER BY id DESC LIMIT 1";

#[async_trait]
impl TaskStore for PostgresStore {
    async fn open_task(&self, head: &TaskHead, audit: Vec<AuditEvent>) -> Result<(), StoreError> {
        self.begin_task(head, &[], audit).await
    }

    async fn begin_task(
        &self,
        head: &TaskHead,
        first: &[Event],
        audit: Vec<AuditEvent>,
    ) -> Result<(), StoreError> {
        let (head, at, events) = (head.clone(), head.updated_at, first.to_vec());
        self.journal
            .write(JournalWrite::Open(Box::new(TaskAppend { head, expected: 0, events, at, audit })))
            .await
    }

    async fn append(&self, entry: TaskAppend) -> Result<(), StoreError> {
        self.journal.write(JournalWrite::Append(Box::new(entry))).await
    }

    async fn task(&self, scope: &Scope, id: &str) -> Result<Option<TaskHead>, StoreError> {
        Ok(find(&self.client().await?, scope, id).await?)
    }

    async fn events(&self, task: &TaskId, after: u64) -> Result<Vec<RecordedEvent>, StoreError> {
        Ok(events(&self.client().await?, task, after).await?)
    }

    async fn tasks(&self, scope: &Scope, filter: &TaskFilter) -> Result<Vec<TaskHead>, StoreError> {
        Ok(list(&self.client().await?, scope, filter).await?)
    }

    async fn conversation_tasks(
        &self,
        scope: &Scope,
        filter: &ConversationFilter,
    ) -> Result<ConversationTasks, StoreError> {
        Ok(conversations::list(&self.client().await?, scope, filter).await?)
    }

    async fn load(&self, org: &OrgId) -> Result<BTreeMap<AgentId, u64>, StoreError> {
        Ok(load(&self.client().await?, org).await?)
    }
}

/// The task with that id, or else the newest with that remote id.
pub(super) async fn find(
    client: &impl GenericClient,
    scope: &Scope,
    id: &str,
) -> Result<Option<TaskHead>, PostgresError> {
    for select in [SELECT_BY_ID, SELECT_BY_REMOTE_ID] {
        let values: [Value<'_>; 3] = [&id, &scope.org.as_str(), &scope.project.as_str()];
        if let Some(row) = sql::maybe_row(client, select, &values).await? {
            return head(&row).map(Some);
        }
    }
    Ok(None)
}

/// Tasks of a scope, newest first.
pub(super) async fn list(
    client: &impl GenericClient,
    scope: &Scope,
    filter: &TaskFilter,
) -> Result<Vec<TaskHead>, PostgresError> {
    // Each combination is a statement of its own, so that each is planned by what it asks for.
    let narrowing = [
        (" AND caller = $", filter.caller.as_ref().map(CallerId::as_str)),
        (" AND agent = $", filter.agent.as_ref().map(AgentId::as_str)),
        (" AND state = $", filter.state.map(TaskState::as_str)),
        (" AND context = $", filter.context.as_ref().map(ContextId::as_str)),
        (" AND id < $", filter.before.as_ref().map(TaskId::as_str)),
    ];
    let (org, project, most) = (scope.org.as_str(), scope.project.as_str(), limit(filter.limit));
    let mut select = "SELECT * FROM tasks WHERE org = $1 AND project = $2".to_owned();
    let mut values: Vec<Value<'_>> = vec![&org, &project, &most];
    for (condition, value) in &narrowing {
        if let Some(value) = value {
            values.push(value);
            select += &format!("{condition}{}", values.len());
        }
    }
    if filter.open {
        select += " AND open";
    }
    select += " ORDER BY id DESC LIMIT $3";
    let rows = sql::rows(client, &select, &values).await?;
    rows.iter().map(head).collect()
}

/// Number of open tasks of each agent of an org.
pub(super) async fn load(
    client: &impl GenericClient,
    org: &OrgId,
) -> Result<BTreeMap<AgentId, u64>, PostgresError> {
    let select = "
        SELECT agent_id, count(*) AS tasks FROM a2a_task_instances WHERE active AND org = $1 GROUP BY agent_id";
    let rows = sql::rows(client, select, &[&org.as_str()]).await?;
    let counted = |row| Ok((AgentId::from(Cells(row).text("agent_id")?), Cells(row).number("tasks")?));
    rows.iter().map(counted).collect()
}

/// A task's events, from the one after `after`.
pub(super) async fn events(
    client: &impl GenericClient,
    task: &TaskId,
    after: u64,
) -> Result<Vec<RecordedEvent>, PostgresError> {
    let select = "SELECT last, at, events FROM task_events WHERE task = $1 AND last > $2 ORDER BY last";
    let rows = sql::rows(client, select, &[&task.as_str(), &signed(after)]).await?;
    let mut events = Vec::new();
    for row in &rows {
        let (last, at) = (Cells(row).number("last")?, Cells(row).at("at")?);
        let batch: Vec<Event> = serde_json::from_str(row.try_get("events")?)
            .map_err(|error| PostgresError::corrupt(format!("events up to {last} of {task}: {error}")))?;
        let first = (last + 1).saturating_sub(batch.len() as u64);
        let recorded = (first..).zip(batch).map(|(seq, event)| RecordedEvent { seq, at, event });
        events.extend(recorded.filter(|recorded| recorded.seq > after));
    }
    Ok(events)
}

/// Forgets tasks that ended before `moment`, the oldest first. Returns their number. Rows that another process is sweeping
/// is left to them.
pub(super) async fn sweep(client: &impl GenericClient, moment: Timestamp) -> Result<u64, PostgresError> {
    let delete = "
        WITH old AS (
            SELECT id FROM tasks WHERE NOT open AND updated_at < $1 ORDER BY updated_at LIMIT $2
            FOR UPDATE SKIP LOCKED
        ), gone AS (
            DELETE FROM tasks USING old WHERE tasks.id = old.id RETURNING tasks.id
        ), events AS (
            DELETE FROM task_events USING gone WHERE task_events.task = gone.id
        )
        SELECT count(*) AS gone FROM gone";
    let row = sql::row(client, delete, &[&nearest(moment), &MAX_SWEPT_TASKS]).await?;
    Cells(&row).number("gone")
}

pub(super) fn head(row: &Row) -> Result<TaskHead, PostgresError> {
    let row = Cells(row);
    let id = TaskId::from(row.text("id")?);
    let args = Json::parse(row.text("args")?)
        .map_err(|error| PostgresError::corrupt(format!("the arguments of {id}: {error}")))?;
    Ok(TaskHead {
        id,
        scope: row.scope()?,
        caller: CallerId::from(row.text("caller")?),
        door: row.word("door")?,
        agent: AgentId::from(row.text("agent")?),
        agent_url: row.text("agent_url")?,
        skill: row.get::<Option<String>>("skill")?.map(SkillId::from),
        session: row.text("session")?.into(),
        args,
        context: row.get::<Option<String>>("context")?.map(ContextId::from),
        message: row.get::<Option<String>>("message")?.map(Into::into),
        runner: ProcessId::from(row.get::<i64>("runner")?.cast_unsigned()),
        state: row.word("state")?,
        version: row.number("version")?,
        remote: RemoteIds { task_id: row.get("remote_task_id")?, context_id: row.get("remote_context_id")? },
        created_at: row.at("created_at")?,
        updated_at: row.at("updated_at")?,
    })
}
