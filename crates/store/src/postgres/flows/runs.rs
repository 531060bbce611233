//! Runs and their steps.

use jiff::Timestamp;
use rialto_model::{
    call::CallerId,
    flow::{FlowRun, FlowStep, RunChange, RunFilter, RunRecord, RunState},
    ids::{Scope, TaskId, TokenId},
    json::Json,
};
use serde::Serialize;
use tokio_postgres::Row;

use super::super::{
    column::{Cells, json, limit, maybe_nanoseconds, nanoseconds, nearest, signed, word},
    connection::GenericClient,
    error::PostgresError,
    sql::{self, Value},
};

/// Maximum number of rows removed at once.
const MAX_SWEPT_RUNS: i64 = 1_000;

/// Writes a new one down, unless it is there.
pub(super) async fn begin(
    client: &impl GenericClient,
    run: &FlowRun,
    driver: &str,
    steps: &[FlowStep],
) -> Result<bool, PostgresError> {
    let insert = "
        INSERT INTO flow_runs (id, org, project, caller, name, version, definition, input, depth, state, output, failure,
            wakes_at, driver, created_at, updated_at, token, hops)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
        ON CONFLICT (id) DO NOTHING";
    let values: [Value<'_>; 18] = [
        &run.id.as_str(),
        &run.scope.org.as_str(),
        &run.scope.project.as_str(),
        &run.caller.as_str(),
        &run.name,
        &run.version.map(signed),
        &run.definition,
        &run.input.get(),
        &i64::from(run.depth),
        &word(&run.state)?,
        &run.output.as_ref().map(Json::get),
        &maybe(run.failure.as_ref())?,
        &maybe_nanoseconds(run.wakes_at)?,
        &driver,
        &nanoseconds(run.created_at)?,
        &nanoseconds(run.updated_at)?,
        &run.token.as_ref().map(TokenId::as_str),
        &i64::from(run.hops),
    ];
    let is_new = sql::execute(client, insert, &values).await? > 0;
    if is_new {
        write_steps(client, &run.id, steps).await?;
    }
    Ok(is_new)
}

/// Gives one to a driver, unless it is over.
pub(super) async fn take(
    client: &impl GenericClient,
    id: &TaskId,
    driver: &str,
) -> Result<Option<RunRecord>, PostgresError> {
    let update = "
        UPDATE flow_runs SET driver = $2, wakes_at = NULL WHERE id = $1 AND state IN ('running', 'waiting')";
    sql::execute(client, update, &[&id.as_str(), &driver]).await?;
    find(client, id).await
}

/// One with its steps.
pub(super) async fn find(
    client: &impl GenericClient,
    id: &TaskId,
) -> Result<Option<RunRecord>, PostgresError> {
    let found = sql::maybe_row(client, "SELECT * FROM flow_runs WHERE id = $1", &[&id.as_str()]).await?;
    let Some(found) = found else { return Ok(None) };
    let select = "SELECT * FROM flow_steps WHERE run = $1 ORDER BY row";
    let steps = sql::rows(client, select, &[&id.as_str()]).await?;
    Ok(Some(RunRecord { run: run(&found)?, steps: steps.iter().map(step).collect::<Result<_, _>>()? }))
}

/// Runs of a project, newest first.
pub(super) async fn list(
    client: &impl GenericClient,
    of: &Scope,
    filter: &RunFilter,
) -> Result<Vec<FlowRun>, PostgresError> {
    let select = "
        SELECT * FROM flow_runs
        WHERE org = $1 AND project = $2 AND ($3::text IS NULL OR caller = $3) AND ($4::text IS NULL OR name = $4)
            AND ($5::text IS NULL OR state = $5) AND ($6::text IS NULL OR id < $6)
        ORDER BY id DESC LIMIT $7";
    let values: [Value<'_>; 7] = [
        &of.org.as_str(),
        &of.project.as_str(),
        &filter.caller.as_ref().map(CallerId::as_str),
        &filter.name,
        &filter.state.map(RunState::as_str),
        &filter.before.as_ref().map(TaskId::as_str),
        &limit(filter.limit),
    ];
    sql::rows(client, select, &values).await?.iter().map(run).collect()
}

/// Stores changes of a run, if the driver still has it.
pub(super) async fn change(client: &impl GenericClient, change: &RunChange) -> Result<bool, PostgresError> {
    let update = "
        UPDATE flow_runs SET state = $3, output = $4, failure = $5, wakes_at = $6, updated_at = $7, token = $8
        WHERE id = $1 AND driver = $2 AND state IN ('running', 'waiting')";
    let values: [Value<'_>; 8] = [
        &change.run.as_str(),
        &change.driver,
        &word(&change.state)?,
        &change.output.as_ref().map(Json::get),
        &maybe(change.failure.as_ref())?,
        &maybe_nanoseconds(change.wakes_at)?,
        &nanoseconds(change.at)?,
        &change.token.as_ref().map(TokenId::as_str),
    ];
    let is_taken = sql::execute(client, update, &values).await? > 0;
    if is_taken {
        write_steps(client, &change.run, &change.steps).await?;
    }
    Ok(is_taken)
}

/// Calls one off that is not over, and says how it stood.
pub(super) async fn cancel(
    client: &impl GenericClient,
    id: &TaskId,
    at: Timestamp,
) -> Result<Option<RunRecord>, PostgresError> {
    // Locked before it is looked at: a writer is done, or finds it cancelled.
    sql::maybe_row(client, "SELECT id FROM flow_runs WHERE id = $1 FOR UPDATE", &[&id.as_str()]).await?;
    let Some(found) = find(client, id).await?.filter(|found| !found.run.state.is_over()) else {
        return Ok(None);
    };
    let at = nanoseconds(at)?;
    let update = "
        UPDATE flow_runs SET state = 'canceled', driver = '', wakes_at = NULL, updated_at = $2 WHERE id = $1";
    sql::execute(client, update, &[&id.as_str(), &at]).await?;
    let update = "
        UPDATE flow_steps SET state = 'canceled', ended_at = $2
        WHERE run = $1 AND state IN ('running', 'waiting', 'retrying')";
    sql::execute(client, update, &[&id.as_str(), &at]).await?;
    Ok(Some(found))
}

/// Waiting runs that are due; their next time is `again`.
pub(super) async fn wake(
    client: &impl GenericClient,
    now: Timestamp,
    again: Timestamp,
    most: usize,
) -> Result<Vec<FlowRun>, PostgresError> {
    let update = "
        UPDATE flow_runs SET wakes_at = $3 WHERE id IN (
            SELECT id FROM flow_runs WHERE wakes_at <= $1 AND state = 'waiting'
            ORDER BY wakes_at LIMIT $2 FOR UPDATE SKIP LOCKED)
        RETURNING *";
    sql::rows(client, update, &[&nearest(now), &limit(most), &nearest(again)])
        .await?
        .iter()
        .map(run)
        .collect()
}

/// Forgets those that were over before this moment, whose tasks are forgotten.
pub(in super::super) async fn sweep(
    client: &impl GenericClient,
    moment: Timestamp,
) -> Result<(), PostgresError> {
    let delete = "
        WITH old AS (
            DELETE FROM flow_runs WHERE id IN (
                SELECT id FROM flow_runs
                WHERE updated_at < $1 AND state NOT IN ('running', 'waiting')
                    AND NOT EXISTS (SELECT FROM tasks WHERE tasks.id = flow_runs.id)
                ORDER BY id LIMIT $2)
            RETURNING id
        )
        DELETE FROM flow_steps WHERE run IN (SELECT id FROM old)";
    sql::execute(client, delete, &[&nearest(moment), &MAX_SWEPT_RUNS]).await.map(drop)
}

async fn write_steps(
    client: &impl GenericClient,
    run: &TaskId,
    steps: &[FlowStep],
) -> Result<(), PostgresError> {
    let upsert = "
        INSERT INTO flow_steps (run, node, item, attempt, task, state, input, output, failure, question, begun_at,
            ended_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
        ON CONFLICT (run, node, item, attempt) DO UPDATE SET task = excluded.task, state = excluded.state,
            input = excluded.input, output = excluded.output, failure = excluded.failure,
            question = excluded.question, ended_at = excluded.ended_at";
    for step in steps {
        let values: [Value<'_>; 12] = [
            &run.as_str(),
            &step.node,
            &step.item.map_or(-1, i64::from),
            &i64::from(step.attempt),
            &step.task.as_ref().map(TaskId::as_str),
            &word(&step.state)?,
            &step.input.as_ref().map(Json::get),
            &step.output.as_ref().map(Json::get),
            &maybe(step.failure.as_ref())?,
            &maybe(step.question.as_ref())?,
            &nanoseconds(step.begun_at)?,
            &maybe_nanoseconds(step.ended_at)?,
        ];
        sql::execute(client, upsert, &values).await?;
    }
    Ok(())
}

fn maybe<T: Serialize>(value: Option<&T>) -> Result<Option<String>, PostgresError> {
    value.map(json).transpose()
}

fn run(row: &Row) -> Result<FlowRun, PostgresError> {
    let row = Cells(row);
    Ok(FlowRun {
        id: TaskId::from(row.text("id")?),
        scope: row.scope()?,
        caller: CallerId::from(row.text("caller")?),
        token: row.get::<Option<String>>("token")?.map(TokenId::from),
        hops: u8::try_from(row.number("hops")?).unwrap_or(u8::MAX),
        name: row.text("name")?,
        version: row.maybe_number("version")?,
        definition: row.get("definition")?,
        input: row.json("input")?,
        depth: u32::try_from(row.number("depth")?).unwrap_or(u32::MAX),
        state: row.word("state")?,
        output: row.maybe_json("output")?,
        failure: row.maybe_json("failure")?,
        wakes_at: row.maybe_at("wakes_at")?,
        created_at: row.at("created_at")?,
        updated_at: row.at("updated_at")?,
    })
}

fn step(row: &Row) -> Result<FlowStep, PostgresError> {
    let row = Cells(row);
    Ok(FlowStep {
        node: row.text("node")?,
        item: u32::try_from(row.get::<i64>("item")?).ok(),
        attempt: u32::try_from(row.number("attempt")?).unwrap_or(u32::MAX),
        task: row.get::<Option<String>>("task")?.map(TaskId::from),
        state: row.word("state")?,
        input: row.maybe_json("input")?,
        output: row.maybe_json("output")?,
        failure: row.maybe_json("failure")?,
        question: row.maybe_json("question")?,
        begun_at: row.at("begun_at")?,
        ended_at: row.maybe_at("ended_at")?,
    })
}
