//! Tasks that belong to conversations, and the processes that work on them.

use std::collections::HashSet;

use jiff::Timestamp;
use rialto_model::{
    call::CallerId,
    ids::{AgentId, ContextId, Runner, Scope, TaskId},
    store::{MAX_COUNTED_TASKS, MOST_NAMESAKES, TalkFilter, Talks, number_of_message},
    task::{TaskHead, TaskState},
};
use rusqlite::{Connection, Row, ToSql, params};

use super::{column::At, tasks::head};
use crate::fault::Snag;

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

/// The same among those from before messages had numbers.
const OLD_MESSAGE: &str = "
    SELECT * FROM tasks INDEXED BY tasks_by_old_message
    WHERE org = :org AND project = :project AND caller = :caller AND message = :message AND message_number IS NULL
    ORDER BY created_at DESC, id DESC LIMIT :most";

/// Which of the tasks are taken over whose process has not said that it is at work.
pub(super) struct Left<'a> {
    /// Whether a process may be at work without having said so.
    pub(super) is_shown: &'a dyn Fn(Runner) -> bool,
    /// At most so many.
    pub(super) limit: usize,
}

/// A caller's tasks, the last changed first.
pub(super) fn list(connection: &Connection, scope: &Scope, filter: &TalkFilter) -> Result<Talks, Snag> {
    let (org, project, caller) = (scope.org.as_str(), scope.project.as_str(), filter.caller.as_str());
    let context = filter.context.as_ref().map(ContextId::as_str);
    let agent = filter.agent.as_ref().map(AgentId::as_str);
    let (state, since) = (filter.state.map(TaskState::as_str), filter.since.map(At));
    // Tasks of a conversation and open ones are few, whatever a caller has; all others are in the order that is asked for.
    let is_open = filter.state.is_some_and(|state| !state.is_terminal());
    let index = match (context, is_open) {
        (Some(_), _) => "tasks_by_context",
        (None, true) => "tasks_open",
        (None, false) => "tasks_by_change",
    };
    let mut common = format!(
        "FROM tasks INDEXED BY {index}
         WHERE org = :org AND project = :project AND caller = :caller AND context IS NOT NULL"
    );
    if context.is_none() && is_open {
        common.push_str(" AND open = 1");
    }
    let mut values: Vec<(&str, &dyn ToSql)> =
        vec![(":org", &org), (":project", &project), (":caller", &caller)];
    if let Some(context) = &context {
        common.push_str(" AND context = :context");
        values.push((":context", context));
    }
    if let Some(agent) = &agent {
        common.push_str(" AND agent = :agent");
        values.push((":agent", agent));
    }
    if let Some(state) = &state {
        common.push_str(" AND state = :state");
        values.push((":state", state));
    }
    if let Some(since) = &since {
        common.push_str(" AND updated_at >= :since");
        values.push((":since", since));
    }
    let count = format!("SELECT count(*) FROM (SELECT 1 {common} LIMIT {MAX_COUNTED_TASKS})");
    let total = connection.prepare_cached(&count)?.query_row(values.as_slice(), |row| row.get(0))?;
    let behind = filter.behind.as_ref().map(|(at, id)| (At(*at), id.as_str()));
    if let Some((at, id)) = &behind {
        common.push_str(" AND (updated_at, id) < (:at, :id)");
        values.extend([(":at", at as &dyn ToSql), (":id", id)]);
    }
    values.push((":limit", &filter.limit));
    let sql = format!("SELECT * {common} ORDER BY updated_at DESC, id DESC LIMIT :limit");
    let mut select = connection.prepare_cached(&sql)?;
    let mut rows = select.query(values.as_slice())?;
    let mut heads = Vec::new();
    while let Some(row) = rows.next()? {
        heads.push(head(row)?);
    }
    Ok(Talks { heads, total })
}

/// The tasks that messages of that name began, the newest first.
pub(super) fn of_message(
    connection: &Connection,
    scope: &Scope,
    caller: &CallerId,
    message: &str,
) -> Result<Vec<TaskHead>, Snag> {
    let (org, project, caller) = (scope.org.as_str(), scope.project.as_str(), caller.as_str());
    let number = number_of_message(org.as_bytes(), project.as_bytes(), caller.as_bytes(), message.as_bytes());
    let values: [(&str, &dyn ToSql); 6] = [
        (":org", &org),
        (":project", &project),
        (":caller", &caller),
        (":message", &message),
        (":most", &MOST_NAMESAKES),
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
pub(super) fn messages(
    connection: &Connection,
    runner: Runner,
    limit: usize,
) -> Result<Option<Vec<u64>>, Snag> {
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
        numbers.push(number_of_message(text(0)?, text(1)?, text(2)?, text(3)?));
    }
    Ok(Some(numbers).filter(|numbers| numbers.len() <= limit))
}

/// A process is at work. Those that have long been gone, and left nothing, are forgotten on the way.
pub(super) fn beat(connection: &Connection, runner: Runner, until: Timestamp) -> Result<(), Snag> {
    let mut upsert = connection.prepare_cached(
        "INSERT INTO runners (id, until) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET until = excluded.until",
    )?;
    upsert.execute(params![runner.get().cast_signed(), At(until)])?;
    Ok(())
}

/// A process is still at work. Answers whether nobody has taken it for gone.
pub(super) fn renew(connection: &Connection, runner: Runner, until: Timestamp) -> Result<bool, Snag> {
    let mut update = connection.prepare_cached("UPDATE runners SET until = ?2 WHERE id = ?1")?;
    Ok(update.execute(params![runner.get().cast_signed(), At(until)])? == 1)
}

/// A process works no more.
pub(super) fn retire(connection: &Connection, runner: Runner) -> Result<(), Snag> {
    connection.prepare_cached("DELETE FROM runners WHERE id = ?1")?.execute([runner.get().cast_signed()])?;
    Ok(())
}

/// Whether a process has said that it is at work, and is not late to say so again.
pub(super) fn is_at_work(connection: &Connection, runner: Runner, now: Timestamp) -> Result<bool, Snag> {
    let mut found =
        connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM runners WHERE id = ?1 AND until >= ?2)")?;
    Ok(found.query_row(params![runner.get().cast_signed(), At(now)], |row| row.get(0))?)
}

/// A task is that process's.
pub(super) fn claim(connection: &Connection, task: &TaskId, runner: Runner) -> Result<(), Snag> {
    let mut update = connection.prepare_cached("UPDATE tasks SET runner = ?2 WHERE id = ?1")?;
    update.execute(params![task.as_str(), runner.get().cast_signed()])?;
    Ok(())
}

/// Forgets the processes that are late to say again that they are at work, and says which they were.
pub(super) fn forget_late(connection: &Connection, now: Timestamp) -> Result<Vec<Runner>, Snag> {
    let mut delete = connection.prepare_cached("DELETE FROM runners WHERE until < ?1 RETURNING id")?;
    let late = delete.query_map([At(now)], |row| row.get(0).map(i64::cast_unsigned).map(Runner::from))?;
    Ok(late.collect::<rusqlite::Result<_>>()?)
}

/// Takes over what processes that are gone have left open, the oldest first.
pub(super) fn take_over(
    connection: &Connection,
    runner: Runner,
    left: &Left<'_>,
) -> Result<Vec<TaskHead>, Snag> {
    let mut select = connection.prepare_cached(
        "SELECT * FROM tasks INDEXED BY tasks_open
         WHERE open = 1 AND runner <> 0 AND runner <> ?1 AND runner NOT IN (SELECT id FROM runners) ORDER BY id",
    )?;
    let number = runner.get().cast_signed();
    let mut rows = select.query([number])?;
    let mut update = connection.prepare_cached("UPDATE tasks SET runner = ?2 WHERE row = ?1")?;
    let (mut taken, mut passed_by) = (Vec::new(), HashSet::new());
    while taken.len() < left.limit
        && let Some(row) = rows.next()?
    {
        let head = head(row)?;
        if passed_by.contains(&head.runner.get()) || (left.is_shown)(head.runner) {
            passed_by.insert(head.runner.get());
            continue;
        }
        update.execute(params![row.get::<_, i64>("row")?, number])?;
        taken.push(TaskHead { runner, ..head });
    }
    Ok(taken)
}
