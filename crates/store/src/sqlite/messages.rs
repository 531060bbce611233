//! Lookup of tasks by message, and claims of messages among processes, for deduplication.

use async_trait::async_trait;
use jiff::Timestamp;
use rialto_model::{
    call::CallerId,
    ids::{ProcessId, Scope, TaskId},
    store::{MAX_TASKS_PER_MESSAGE, MessageClaim, MessageStore, StoreError, hash_message},
    task::TaskHead,
};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use super::{SqliteStore, column::At, tasks::head};
use crate::error::SqliteError;

/// The first task that a message began: it is looked for in every stretch of the index.
const MESSAGE: &str = "
    WITH RECURSIVE stretch (n, last) AS (
        SELECT min(row) / 2048, max(row) / 2048 FROM tasks
        UNION ALL SELECT n + 1, last FROM stretch WHERE n < last
    )
    SELECT tasks.* FROM stretch CROSS JOIN tasks INDEXED BY tasks_by_message
        ON row / 2048 = n AND message_number = :number
    WHERE org = :org AND project = :project AND caller = :caller AND message = :message
    ORDER BY created_at DESC, id DESC LIMIT :most";

/// Lookup among tasks from before messages had numbers.
const OLD_MESSAGE: &str = "
    SELECT * FROM tasks INDEXED BY tasks_by_old_message
    WHERE org = :org AND project = :project AND caller = :caller AND message = :message AND message_number IS NULL
    ORDER BY created_at DESC, id DESC LIMIT :most";

#[async_trait]
impl MessageStore for SqliteStore {
    async fn tasks_by_message(
        &self,
        scope: &Scope,
        caller: &CallerId,
        message: &str,
    ) -> Result<Vec<TaskHead>, StoreError> {
        let (scope, caller, message) = (scope.clone(), caller.clone(), message.to_owned());
        self.read(move |connection| find_by_message(connection, &scope, &caller, &message)).await
    }

    async fn claim_message(&self, claim: &MessageClaim) -> Result<Option<MessageClaim>, StoreError> {
        let claim = claim.clone();
        self.transact(move |transaction| insert_claim(transaction, &claim)).await
    }

    async fn release_message(&self, claim: &MessageClaim) -> Result<(), StoreError> {
        let claim = claim.clone();
        self.transact(move |transaction| delete_claim(transaction, &claim)).await
    }

    async fn message_numbers(&self, runner: ProcessId, limit: usize) -> Result<Option<Vec<u64>>, StoreError> {
        self.read_journal(move |connection| message_numbers(connection, runner, limit)).await
    }
}

/// The tasks that messages of that name began, the newest first.
pub(super) fn find_by_message(
    connection: &Connection,
    scope: &Scope,
    caller: &CallerId,
    message: &str,
) -> Result<Vec<TaskHead>, SqliteError> {
    let (org, project, caller) = (scope.org.as_str(), scope.project.as_str(), caller.as_str());
    let number = hash_message(org.as_bytes(), project.as_bytes(), caller.as_bytes(), message.as_bytes());
    let values: [(&str, &dyn ToSql); 6] = [
        (":org", &org),
        (":project", &project),
        (":caller", &caller),
        (":message", &message),
        (":most", &MAX_TASKS_PER_MESSAGE),
        (":number", &number.cast_signed()),
    ];
    let mut heads = Vec::new();
    // Those from before messages had numbers are the older ones.
    for (sql, values) in [(MESSAGE, &values[..]), (OLD_MESSAGE, &values[..5])] {
        let mut select = connection.prepare_cached(sql)?;
        let mut rows = select.query(values)?;
        while let Some(row) = rows.next()? {
            heads.push(head(row)?);
        }
    }
    Ok(heads)
}

/// A number for each message that began a task; none when there are more than `limit`, or another process is at work.
pub(super) fn message_numbers(
    connection: &Connection,
    runner: ProcessId,
    limit: usize,
) -> Result<Option<Vec<u64>>, SqliteError> {
    let mut others = connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM runners WHERE id <> ?1)")?;
    if others.query_row([runner.get().cast_signed()], |row| row.get(0))? {
        return Ok(None);
    }
    let mut select = connection.prepare_cached(
        "SELECT message_number FROM tasks INDEXED BY tasks_by_message WHERE message_number IS NOT NULL LIMIT ?1",
    )?;
    let number = |row: &Row<'_>| row.get(0).map(i64::cast_unsigned);
    let mut numbers: Vec<u64> = select.query_map([limit + 1], number)?.collect::<rusqlite::Result<_>>()?;
    let mut select = connection.prepare_cached(
        "SELECT org, project, caller, message FROM tasks INDEXED BY tasks_by_old_message
         WHERE message IS NOT NULL AND message_number IS NULL LIMIT ?1",
    )?;
    let mut rows = select.query([limit + 1])?;
    while let Some(row) = rows.next()? {
        let text = |column| row.get_ref(column)?.as_bytes().map_err(rusqlite::Error::from);
        numbers.push(hash_message(text(0)?, text(1)?, text(2)?, text(3)?));
    }
    Ok(Some(numbers).filter(|numbers| numbers.len() <= limit))
}

/// Makes a claim, or finds the one that another task has.
fn insert_claim(connection: &Connection, claim: &MessageClaim) -> Result<Option<MessageClaim>, SqliteError> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO message_claims (key, task, runner, at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (key) DO NOTHING",
    )?;
    let values = params![claim.key, claim.task.as_str(), claim.runner.get().cast_signed(), At(claim.at)];
    if insert.execute(values)? == 1 {
        return Ok(None);
    }
    let mut select = connection
        .prepare_cached("SELECT task, runner, at FROM message_claims WHERE key = ?1 AND task <> ?2")?;
    let other = select.query_row(params![claim.key, claim.task.as_str()], |row| {
        Ok(MessageClaim {
            key: claim.key.clone(),
            task: TaskId::from(row.get::<_, String>(0)?),
            runner: ProcessId::from(row.get::<_, i64>(1)?.cast_unsigned()),
            at: row.get::<_, At>(2)?.0,
        })
    });
    Ok(other.optional()?)
}

/// Removes a claim, if it is still that task's.
fn delete_claim(connection: &Connection, claim: &MessageClaim) -> Result<(), SqliteError> {
    let mut delete = connection.prepare_cached("DELETE FROM message_claims WHERE key = ?1 AND task = ?2")?;
    delete.execute(params![claim.key, claim.task.as_str()])?;
    Ok(())
}

/// Removes claims from before a moment.
pub(super) fn sweep(connection: &Connection, moment: Timestamp) -> Result<(), SqliteError> {
    let mut delete = connection.prepare_cached("DELETE FROM message_claims WHERE at < ?1")?;
    delete.execute([At(moment)])?;
    Ok(())
}
