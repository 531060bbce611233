//! Claims of messages among the nodes that share one database.

use std::collections::HashMap;

use async_trait::async_trait;
use jiff::Timestamp;
use rialto_model::{
    call::CallerId,
    ids::{ProcessId, Scope, TaskId},
    store::{MAX_TASKS_PER_MESSAGE, MessageClaim, MessageStore, StoreError},
    task::TaskHead,
};

use super::{
    PostgresStore,
    column::{Cells, limit, nearest},
    connection::GenericClient,
    error::PostgresError,
    sql::{self, Value},
    tasks::head,
};

/// Makes claims, and answers the keys of those that nobody has made before.
pub(super) const CLAIM: &str = "
    INSERT INTO message_claims (key, task, runner, at)
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[])
    ON CONFLICT (key) DO NOTHING RETURNING key AS id";

#[async_trait]
impl MessageStore for PostgresStore {
    async fn tasks_by_message(
        &self,
        scope: &Scope,
        caller: &CallerId,
        message: &str,
    ) -> Result<Vec<TaskHead>, StoreError> {
        Ok(find_by_message(&self.client().await?, scope, caller, message).await?)
    }

    async fn claim_message(&self, claim: &MessageClaim) -> Result<Option<MessageClaim>, StoreError> {
        self.journal.claim(claim.clone()).await
    }

    async fn release_message(&self, claim: &MessageClaim) -> Result<(), StoreError> {
        Ok(release(&self.client().await?, claim).await?)
    }

    async fn message_numbers(&self, _: ProcessId, _: usize) -> Result<Option<Vec<u64>>, StoreError> {
        // Other processes may share the database at any time.
        Ok(None)
    }
}

/// The claims that other tasks have made in place of these, by their keys.
pub(super) async fn find_others(
    client: &impl GenericClient,
    wanted: &[&MessageClaim],
) -> Result<HashMap<String, MessageClaim>, PostgresError> {
    if wanted.is_empty() {
        return Ok(HashMap::new());
    }
    let select = "
        SELECT made.* FROM message_claims AS made
        JOIN unnest($1::text[], $2::text[]) AS wanted (key, task) ON made.key = wanted.key AND made.task <> wanted.task";
    let keys: Vec<&str> = wanted.iter().map(|claim| claim.key.as_str()).collect();
    let tasks: Vec<&str> = wanted.iter().map(|claim| claim.task.as_str()).collect();
    let rows = sql::rows(client, select, &[&keys, &tasks]).await?;
    let read = |row: Cells<'_>| {
        let key = row.text("key")?;
        let (task, runner) = (TaskId::from(row.text("task")?), row.get::<i64>("runner")?);
        let claim = MessageClaim {
            key: key.clone(),
            task,
            runner: ProcessId::from(runner.cast_unsigned()),
            at: row.at("at")?,
        };
        Ok((key, claim))
    };
    rows.iter().map(Cells).map(read).collect()
}

/// Removes a claim, if it is still that task's.
pub(super) async fn release(client: &impl GenericClient, claim: &MessageClaim) -> Result<(), PostgresError> {
    let delete = "DELETE FROM message_claims WHERE key = $1 AND task = $2";
    sql::execute(client, delete, &[&claim.key, &claim.task.as_str()]).await?;
    Ok(())
}

/// Removes claims from before a moment.
pub(super) async fn sweep(client: &impl GenericClient, moment: Timestamp) -> Result<(), PostgresError> {
    sql::execute(client, "DELETE FROM message_claims WHERE at < $1", &[&nearest(moment)]).await?;
    Ok(())
}

/// The tasks that messages of that name began, the newest first.
pub(super) async fn find_by_message(
    client: &impl GenericClient,
    scope: &Scope,
    caller: &CallerId,
    message: &str,
) -> Result<Vec<TaskHead>, PostgresError> {
    let select = "
        SELECT * FROM tasks WHERE org = $1 AND project = $2 AND caller = $3 AND message = $4
        ORDER BY created_at DESC, id DESC LIMIT $5";
    let most = limit(MAX_TASKS_PER_MESSAGE);
    let values: [Value<'_>; 5] =
        [&scope.org.as_str(), &scope.project.as_str(), &caller.as_str(), &message, &most];
    sql::rows(client, select, &values).await?.iter().map(head).collect()
}
