//! Runs and their steps.

use jiff::Timestamp;
use rialto_model::{
    call::CallerId,
    flow::{FlowRun, FlowStep, RunChange, RunFilter, RunRecord, RunState},
    ids::{Scope, TaskId, TokenId},
    json::Json,
};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, named_params, params};

use super::{
    super::column::{At, Word, scope},
    maybe_json, maybe_read, read_json,
};
use crate::error::SqliteError;

/// Maximum number of rows removed at once.
const MAX_SWEPT_RUNS: u64 = 1_000;

/// Writes a new one down, unless it is there.
pub(super) fn begin(
    connection: &Connection,
    run: &FlowRun,
    driver: &str,
    steps: &[FlowStep],
) -> Result<bool, SqliteError> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO flow_runs (id, org, project, caller, token, hops, name, version, definition, input, depth, state, output,
             failure, wakes_at, driver, created_at, updated_at)
         VALUES (:id, :org, :project, :caller, :token, :hops, :name, :version, :definition, :input, :depth, :state, :output,
             :failure, :wakes_at, :driver, :created_at, :updated_at)
         ON CONFLICT (id) DO NOTHING",
    )?;
    let inserted = insert.execute(named_params! {
        ":id": run.id.as_str(),
        ":org": run.scope.org.as_str(),
        ":project": run.scope.project.as_str(),
        ":caller": run.caller.as_str(),
        ":token": run.token.as_ref().map(TokenId::as_str),
        ":hops": run.hops,
        ":name": run.name,
        ":version": run.version,
        ":definition": run.definition,
        ":input": run.input.get(),
        ":depth": run.depth,
        ":state": Word(run.state),
        ":output": run.output.as_ref().map(Json::get),
        ":failure": maybe_json(run.failure.as_ref())?,
        ":wakes_at": run.wakes_at.map(At),
        ":driver": driver,
        ":created_at": At(run.created_at),
        ":updated_at": At(run.updated_at),
    })?;
    if inserted > 0 {
        write_steps(connection, &run.id, steps)?;
    }
    Ok(inserted > 0)
}

/// Gives one to a driver, unless it is over.
pub(super) fn take(
    connection: &Connection,
    id: &TaskId,
    driver: &str,
) -> Result<Option<RunRecord>, SqliteError> {
    let mut update = connection.prepare_cached(
        "UPDATE flow_runs SET driver = ?2, wakes_at = NULL WHERE id = ?1 AND state IN ('running', 'waiting')",
    )?;
    update.execute([id.as_str(), driver])?;
    find(connection, id)
}

/// One with its steps.
pub(super) fn find(connection: &Connection, id: &TaskId) -> Result<Option<RunRecord>, SqliteError> {
    let mut select = connection.prepare_cached("SELECT * FROM flow_runs WHERE id = ?1")?;
    let Some(run) = select.query_row([id.as_str()], run).optional()? else { return Ok(None) };
    let mut select = connection.prepare_cached("SELECT * FROM flow_steps WHERE run = ?1 ORDER BY row")?;
    let steps = select.query_map([id.as_str()], step)?.collect::<rusqlite::Result<_>>()?;
    Ok(Some(RunRecord { run, steps }))
}

/// Runs of a project, newest first.
pub(super) fn list(
    connection: &Connection,
    of: &Scope,
    filter: &RunFilter,
) -> Result<Vec<FlowRun>, SqliteError> {
    let mut select = connection.prepare_cached(
        "SELECT * FROM flow_runs
         WHERE org = ?1 AND project = ?2 AND (?3 IS NULL OR caller = ?3) AND (?4 IS NULL OR name = ?4)
             AND (?5 IS NULL OR state = ?5) AND (?6 IS NULL OR id < ?6)
         ORDER BY id DESC LIMIT ?7",
    )?;
    let (caller, before) =
        (filter.caller.as_ref().map(CallerId::as_str), filter.before.as_ref().map(TaskId::as_str));
    let (org, project, state) = (of.org.as_str(), of.project.as_str(), filter.state.map(RunState::as_str));
    let values: [&dyn ToSql; 7] = [&org, &project, &caller, &filter.name, &state, &before, &filter.limit];
    Ok(select.query_map(values, run)?.collect::<rusqlite::Result<_>>()?)
}

/// Stores changes of a run, if the driver still has it.
pub(super) fn change(connection: &Connection, change: &RunChange) -> Result<bool, SqliteError> {
    let mut update = connection.prepare_cached(
        "UPDATE flow_runs SET token = :token, state = :state, output = :output, failure = :failure, wakes_at = :wakes_at,
             updated_at = :at
         WHERE id = :id AND driver = :driver AND state IN ('running', 'waiting')",
    )?;
    let changed = update.execute(named_params! {
        ":id": change.run.as_str(),
        ":driver": change.driver,
        ":token": change.token.as_ref().map(TokenId::as_str),
        ":state": Word(change.state),
        ":output": change.output.as_ref().map(Json::get),
        ":failure": maybe_json(change.failure.as_ref())?,
        ":wakes_at": change.wakes_at.map(At),
        ":at": At(change.at),
    })?;
    if changed > 0 {
        write_steps(connection, &change.run, &change.steps)?;
    }
    Ok(changed > 0)
}

/// Calls one off that is not over, and says how it stood.
pub(super) fn cancel(
    connection: &Connection,
    id: &TaskId,
    at: Timestamp,
) -> Result<Option<RunRecord>, SqliteError> {
    let Some(found) = find(connection, id)?.filter(|found| !found.run.state.is_over()) else {
        return Ok(None);
    };
    let mut update = connection.prepare_cached(
        "UPDATE flow_runs SET state = 'canceled', driver = '', wakes_at = NULL, updated_at = ?2 WHERE id = ?1",
    )?;
    update.execute(params![id.as_str(), At(at)])?;
    let mut update = connection.prepare_cached(
        "UPDATE flow_steps SET state = 'canceled', ended_at = ?2
         WHERE run = ?1 AND state IN ('running', 'waiting', 'retrying')",
    )?;
    update.execute(params![id.as_str(), At(at)])?;
    Ok(Some(found))
}

/// Waiting runs that are due; their next time is `again`.
pub(super) fn wake(
    connection: &Connection,
    now: Timestamp,
    again: Timestamp,
    limit: usize,
) -> Result<Vec<FlowRun>, SqliteError> {
    let mut select = connection.prepare_cached(
        "SELECT * FROM flow_runs WHERE wakes_at <= ?1 AND state = 'waiting' ORDER BY wakes_at LIMIT ?2",
    )?;
    let woken: Vec<FlowRun> =
        select.query_map(params![At(now), limit], run)?.collect::<rusqlite::Result<_>>()?;
    let mut update = connection.prepare_cached("UPDATE flow_runs SET wakes_at = ?2 WHERE id = ?1")?;
    for run in &woken {
        update.execute(params![run.id.as_str(), At(again)])?;
    }
    Ok(woken)
}

/// Forgets those that were over before this moment, whose tasks are forgotten.
pub(in super::super) fn sweep(connection: &Connection, moment: Timestamp) -> Result<(), SqliteError> {
    let mut select = connection.prepare_cached(
        "SELECT id FROM flow_runs
         WHERE updated_at < ?1 AND state NOT IN ('running', 'waiting')
             AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.id = flow_runs.id)
         ORDER BY id LIMIT ?2",
    )?;
    let old: Vec<String> = select
        .query_map(params![At(moment), MAX_SWEPT_RUNS], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for id in old {
        connection.prepare_cached("DELETE FROM flow_steps WHERE run = ?1")?.execute([&id])?;
        connection.prepare_cached("DELETE FROM flow_runs WHERE id = ?1")?.execute([&id])?;
    }
    Ok(())
}

fn write_steps(connection: &Connection, run: &TaskId, steps: &[FlowStep]) -> Result<(), SqliteError> {
    let mut upsert = connection.prepare_cached(
        "INSERT INTO flow_steps (run, node, item, attempt, task, state, input, output, failure, question, begun_at,
             ended_at)
         VALUES (:run, :node, :item, :attempt, :task, :state, :input, :output, :failure, :question, :begun_at,
             :ended_at)
         ON CONFLICT (run, node, item, attempt) DO UPDATE SET task = excluded.task, state = excluded.state,
             input = excluded.input, output = excluded.output, failure = excluded.failure,
             question = excluded.question, ended_at = excluded.ended_at",
    )?;
    for step in steps {
        upsert.execute(named_params! {
            ":run": run.as_str(),
            ":node": step.node,
            ":item": step.item.map_or(-1, i64::from),
            ":attempt": step.attempt,
            ":task": step.task.as_ref().map(TaskId::as_str),
            ":state": Word(step.state),
            ":input": step.input.as_ref().map(Json::get),
            ":output": step.output.as_ref().map(Json::get),
            ":failure": maybe_json(step.failure.as_ref())?,
            ":question": maybe_json(step.question.as_ref())?,
            ":begun_at": At(step.begun_at),
            ":ended_at": step.ended_at.map(At),
        })?;
    }
    Ok(())
}

fn run(row: &Row<'_>) -> rusqlite::Result<FlowRun> {
    Ok(FlowRun {
        id: TaskId::from(row.get::<_, String>("id")?),
        scope: scope(row)?,
        caller: CallerId::from(row.get::<_, String>("caller")?),
        token: row.get::<_, Option<String>>("token")?.map(TokenId::from),
        hops: row.get("hops")?,
        name: row.get("name")?,
        version: row.get("version")?,
        definition: row.get("definition")?,
        input: read_json(&row.get::<_, String>("input")?)?,
        depth: row.get("depth")?,
        state: row.get::<_, Word<_>>("state")?.0,
        output: maybe_read(row, "output")?,
        failure: maybe_read(row, "failure")?,
        wakes_at: row.get::<_, Option<At>>("wakes_at")?.map(|at| at.0),
        created_at: row.get::<_, At>("created_at")?.0,
        updated_at: row.get::<_, At>("updated_at")?.0,
    })
}

fn step(row: &Row<'_>) -> rusqlite::Result<FlowStep> {
    Ok(FlowStep {
        node: row.get("node")?,
        item: u32::try_from(row.get::<_, i64>("item")?).ok(),
        attempt: row.get("attempt")?,
        task: row.get::<_, Option<String>>("task")?.map(TaskId::from),
        state: row.get::<_, Word<_>>("state")?.0,
        input: maybe_read(row, "input")?,
        output: maybe_read(row, "output")?,
        failure: maybe_read(row, "failure")?,
        question: maybe_read(row, "question")?,
        begun_at: row.get::<_, At>("begun_at")?.0,
        ended_at: row.get::<_, Option<At>>("ended_at")?.map(|at| at.0),
    })
}
