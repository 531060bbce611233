//! Tasks that belong to conversations, and the processes that work on them.

use jiff::Timestamp;
use rialto_model::{
    call::CallerId,
    ids::{AgentId, ContextId, Runner, Scope, TaskId},
    store::{MAX_COUNTED_TASKS, MOST_NAMESAKES, TalkFilter, Talks},
    task::{TaskHead, TaskState},
};
use tokio_postgres::types::Type;

use super::{
    column::{Cells, limit, nanoseconds, nearest},
    connection::GenericClient,
    snag::Snag,
    sql::{self, Value},
    tasks::head,
};

/// A caller's tasks, the last changed first.
pub(super) async fn list(
    client: &impl GenericClient,
    scope: &Scope,
    filter: &TalkFilter,
) -> Result<Talks, Snag> {
    let common = "
        FROM tasks WHERE org = $1 AND project = $2 AND caller = $3 AND context IS NOT NULL
            AND ($4::text IS NULL OR context = $4) AND ($5::text IS NULL OR state = $5)
            AND ($6::bigint IS NULL OR updated_at >= $6) AND ($7::text IS NULL OR agent = $7)";
    let context = filter.context.as_ref().map(ContextId::as_str);
    let (state, since) = (filter.state.map(TaskState::as_str), filter.since.map(nearest));
    let (org, project, caller) = (scope.org.as_str(), scope.project.as_str(), filter.caller.as_str());
    let agent = filter.agent.as_ref().map(AgentId::as_str);
    let narrowed: [Value<'_>; 7] = [&org, &project, &caller, &context, &state, &since, &agent];
    let counting =
        format!("SELECT count(*) AS total FROM (SELECT 1 {common} LIMIT {MAX_COUNTED_TASKS}) AS counted");
    let count = sql::row(client, &counting, &narrowed).await?;
    let behind_at = filter.behind.as_ref().map(|(at, _)| nearest(*at));
    let behind_id = filter.behind.as_ref().map(|(_, id)| TaskId::as_str(id));
    let page = format!(
        "SELECT * {common} AND ($8::bigint IS NULL OR (updated_at, id) < ($8, $9::text))
         ORDER BY updated_at DESC, id DESC LIMIT $10"
    );
    let most = limit(filter.limit);
    let more: [Value<'_>; 3] = [&behind_at, &behind_id, &most];
    let rows = sql::rows(client, &page, &[&narrowed[..], &more].concat()).await?;
    let heads = rows.iter().map(head).collect::<Result<_, _>>()?;
    Ok(Talks { heads, total: Cells(&count).number("total")? })
}

/// The tasks that messages of that name began, the newest first.
pub(super) async fn of_message(
    client: &impl GenericClient,
    scope: &Scope,
    caller: &CallerId,
    message: &str,
) -> Result<Vec<TaskHead>, Snag> {
    let select = "
        SELECT * FROM tasks WHERE org = $1 AND project = $2 AND caller = $3 AND message = $4
        ORDER BY created_at DESC, id DESC LIMIT $5";
    let most = limit(MOST_NAMESAKES);
    let values: [Value<'_>; 5] =
        [&scope.org.as_str(), &scope.project.as_str(), &caller.as_str(), &message, &most];
    sql::rows(client, select, &values).await?.iter().map(head).collect()
}

/// A process is at work.
pub(super) async fn beat(client: &impl GenericClient, runner: Runner, until: Timestamp) -> Result<(), Snag> {
    let upsert = "
        INSERT INTO runners (id, until) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET until = excluded.until";
    sql::execute(client, upsert, &[&runner.get().cast_signed(), &nanoseconds(until)?]).await.map(drop)
}

/// A process is still at work. Answers whether nobody has taken it for gone. On a connection that is used for nothing else.
pub(super) async fn renew(
    client: &tokio_postgres::Client,
    runner: Runner,
    until: Timestamp,
) -> Result<bool, Snag> {
    let update = "UPDATE runners SET until = $2 WHERE id = $1";
    let (runner, until) = (runner.get().cast_signed(), nanoseconds(until)?);
    Ok(client.execute_typed(update, &[(&runner, Type::INT8), (&until, Type::INT8)]).await? == 1)
}

/// Whether a process has said that it is at work, and is not late to say so again.
pub(super) async fn is_at_work(
    client: &impl GenericClient,
    runner: Runner,
    now: Timestamp,
) -> Result<bool, Snag> {
    let select = "SELECT id FROM runners WHERE id = $1 AND until >= $2";
    let found = sql::maybe_row(client, select, &[&runner.get().cast_signed(), &nanoseconds(now)?]).await?;
    Ok(found.is_some())
}

/// A task is that process's.
pub(super) async fn claim(client: &impl GenericClient, task: &TaskId, runner: Runner) -> Result<(), Snag> {
    let update = "UPDATE tasks SET runner = $2 WHERE id = $1";
    sql::execute(client, update, &[&task.as_str(), &runner.get().cast_signed()]).await.map(drop)
}

/// A process works no more.
pub(super) async fn retire(client: &impl GenericClient, runner: Runner) -> Result<(), Snag> {
    let delete = "DELETE FROM runners WHERE id = $1";
    sql::execute(client, delete, &[&runner.get().cast_signed()]).await.map(drop)
}

/// Takes over what processes that are gone have left open, the oldest first. What somebody else is just taking is left to
/// them.
pub(super) async fn take_over(
    client: &impl GenericClient,
    runner: Runner,
    now: Timestamp,
    most: usize,
) -> Result<Vec<TaskHead>, Snag> {
    sql::execute(client, "DELETE FROM runners WHERE until < $1", &[&nanoseconds(now)?]).await?;
    let take = "
        WITH left_open AS (
            SELECT id FROM tasks
            WHERE open AND runner <> 0 AND runner <> $1 AND NOT EXISTS (SELECT FROM runners WHERE runners.id = tasks.runner)
            ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED
        ), taken AS (
            UPDATE tasks SET runner = $1 FROM left_open WHERE tasks.id = left_open.id RETURNING tasks.*
        )
        SELECT * FROM taken ORDER BY id";
    let rows = sql::rows(client, take, &[&runner.get().cast_signed(), &limit(most)]).await?;
    rows.iter().map(head).collect()
}
