//! Routing decisions, reserved slots, and learned success rates.

use std::collections::BTreeMap;

use async_trait::async_trait;
use rialto_model::{
    call::CallerId,
    ids::{AgentId, DispatchId, OrgId, Scope, TaskId},
    routing::{
        ActivityWindow, AssignmentEnd, AssignmentOutcome, Dispatch, DispatchFilter, EndedAssignment,
        RoutingStats, RoutingStatsQuery, SlotReservation, SuccessRate,
    },
    store::{RoutingStore, StoreError},
};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use super::{
    SqliteStore,
    column::{At, Word},
};
use crate::error::SqliteError;

/// Maximum number of rows removed at once.
const MAX_SWEPT_DISPATCHES: u64 = 1_000;

#[async_trait]
impl RoutingStore for SqliteStore {
    async fn routing_stats(
        &self,
        query: &RoutingStatsQuery,
    ) -> Result<BTreeMap<AgentId, RoutingStats>, StoreError> {
        let query = query.clone();
        self.read(move |connection| routing_stats(connection, &query)).await
    }

    async fn success_rates(
        &self,
        org: &OrgId,
        agent: &AgentId,
        limit: usize,
    ) -> Result<Vec<(String, SuccessRate)>, StoreError> {
        let (org, agent) = (org.clone(), agent.clone());
        self.read(move |connection| success_rates(connection, &org, &agent, limit)).await
    }

    async fn reserve(&self, reservation: &SlotReservation) -> Result<bool, StoreError> {
        let reservation = reservation.clone();
        self.transact(move |transaction| reserve(transaction, &reservation)).await
    }

    async fn end_assignment(&self, task: &TaskId, end: &AssignmentEnd) -> Result<bool, StoreError> {
        let (task, end) = (task.clone(), *end);
        self.transact(move |transaction| record_end(transaction, &task, &end)).await
    }

    async fn ended_assignments(&self, limit: usize) -> Result<Vec<EndedAssignment>, StoreError> {
        self.read(move |connection| unsettled(connection, limit)).await
    }

    async fn dispatches(&self, scope: &Scope, filter: &DispatchFilter) -> Result<Vec<Dispatch>, StoreError> {
        let (scope, filter) = (scope.clone(), filter.clone());
        self.read(move |connection| list(connection, &scope, &filter)).await
    }
}

/// Routing facts of these agents.
pub(super) fn routing_stats(
    connection: &Connection,
    query: &RoutingStatsQuery,
) -> Result<BTreeMap<AgentId, RoutingStats>, SqliteError> {
    // All is read at one moment.
    let reading = connection.unchecked_transaction()?;
    let agents: Vec<&str> = query.agents.iter().map(AgentId::as_str).collect();
    let agents = serde_json::to_string(&agents).unwrap_or_default();
    let mut standings: BTreeMap<AgentId, RoutingStats> = BTreeMap::new();
    let mut select = reading.prepare_cached(
        "SELECT agent, wins, losses, recent_wins, recent_losses, observed FROM arms
         WHERE org = ?1 AND work_type = ?2 AND agent IN (SELECT value FROM json_each(?3))",
    )?;
    let mut rows = select.query(params![query.org.as_str(), query.work_type, agents])?;
    while let Some(row) = rows.next()? {
        let posterior = posterior(row)?;
        let agent = AgentId::from(row.get::<_, String>("agent")?);
        standings.entry(agent).or_default().posterior = posterior;
    }
    let mut select = reading.prepare_cached(
        "SELECT agent_id, sum(tasks) FROM (
             SELECT agent_id, count(*) AS tasks FROM a2a_task_instances
             WHERE active = 1 AND org = ?1 AND updated_at >= ?2 GROUP BY agent_id
             UNION ALL
             SELECT agent, count(*) FROM plays INDEXED BY plays_open
             WHERE outcome IS NULL AND org = ?1 AND until > ?3
                 AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.id = plays.task) GROUP BY agent
         ) WHERE agent_id IN (SELECT value FROM json_each(?4)) GROUP BY agent_id",
    )?;
    let ActivityWindow { now, since } = query.window;
    let mut rows = select.query(params![query.org.as_str(), At(since), At(now), agents])?;
    while let Some(row) = rows.next()? {
        standings.entry(AgentId::from(row.get::<_, String>(0)?)).or_default().active = row.get(1)?;
    }
    Ok(standings)
}

/// Success of an agent at each type of work, the latest first.
pub(super) fn success_rates(
    connection: &Connection,
    org: &OrgId,
    agent: &AgentId,
    limit: usize,
) -> Result<Vec<(String, SuccessRate)>, SqliteError> {
    let mut select = connection.prepare_cached(
        "SELECT work_type, wins, losses, recent_wins, recent_losses, observed FROM arms
         WHERE org = ?1 AND agent = ?2 ORDER BY updated_at DESC, work_type LIMIT ?3",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = select.query_map(params![org.as_str(), agent.as_str(), limit], |row| {
        Ok((row.get("work_type")?, posterior(row)?))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Takes a slot and writes the decision down, if there is one left.
pub(super) fn reserve(connection: &Connection, wanted: &SlotReservation) -> Result<bool, SqliteError> {
    let (dispatch, play) = (&wanted.dispatch, &wanted.play);
    let org = &dispatch.scope.org;
    if active(connection, org, &play.agent, wanted.window)? >= wanted.hard_cap {
        return Ok(false);
    }
    let record = serde_json::to_string(dispatch)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO dispatches (id, org, project, caller, work_type, at, record) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (id) DO UPDATE SET record = excluded.record",
    )?;
    let (project, caller) = (dispatch.scope.project.as_str(), dispatch.caller.as_str());
    let work_type = &dispatch.work.work_type;
    insert.execute(params![
        dispatch.id.as_str(),
        org.as_str(),
        project,
        caller,
        work_type,
        At(dispatch.at),
        record
    ])?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO plays (task, dispatch, org, agent, work_type, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    let (task, agent) = (play.task.as_str(), play.agent.as_str());
    insert.execute(params![task, dispatch.id.as_str(), org.as_str(), agent, work_type, At(play.until)])?;
    Ok(true)
}

/// Number of tasks of one agent: open ones and reserved slots.
fn active(
    connection: &Connection,
    org: &OrgId,
    agent: &AgentId,
    window: ActivityWindow,
) -> Result<u64, SqliteError> {
    let mut select = connection.prepare_cached(
        "SELECT (SELECT count(*) FROM a2a_task_instances
                 WHERE active = 1 AND org = ?1 AND agent_id = ?2 AND updated_at >= ?3)
              + (SELECT count(*) FROM plays INDEXED BY plays_open
                 WHERE outcome IS NULL AND org = ?1 AND agent = ?2 AND until > ?4
                     AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.id = plays.task))",
    )?;
    let values = params![org.as_str(), agent.as_str(), At(window.since), At(window.now)];
    Ok(select.query_row(values, |row| row.get(0))?)
}

/// Ends a play, once, and has the agent's posterior learn from it.
fn record_end(connection: &Connection, task: &TaskId, end: &AssignmentEnd) -> Result<bool, SqliteError> {
    let mut update = connection.prepare_cached(
        "UPDATE plays SET outcome = ?2, ended_at = ?3 WHERE task = ?1 AND outcome IS NULL
         RETURNING org, agent, work_type",
    )?;
    let arm =
        |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?));
    let ended = update.query_row(params![task.as_str(), end.outcome.as_str(), At(end.at)], arm).optional()?;
    let Some((org, agent, work_type)) = ended else { return Ok(false) };
    let Some(reward) = end.reward else { return Ok(true) };
    let mut select = connection.prepare_cached(
        "SELECT wins, losses, recent_wins, recent_losses, observed FROM arms
         WHERE org = ?1 AND work_type = ?2 AND agent = ?3",
    )?;
    let known = select.query_row(params![org, work_type, agent], posterior).optional()?;
    let known = known.unwrap_or_default().after(reward, end.discount);
    let mut upsert = connection.prepare_cached(
        "INSERT OR REPLACE INTO arms
             (org, agent, work_type, wins, losses, recent_wins, recent_losses, observed, updated_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    let SuccessRate { wins, losses, recent_wins, recent_losses, observed } = known;
    let at = At(end.at);
    upsert.execute(params![org, agent, work_type, wins, losses, recent_wins, recent_losses, observed, at])?;
    Ok(true)
}

fn posterior(row: &Row<'_>) -> rusqlite::Result<SuccessRate> {
    Ok(SuccessRate {
        wins: row.get("wins")?,
        losses: row.get("losses")?,
        recent_wins: row.get("recent_wins")?,
        recent_losses: row.get("recent_losses")?,
        observed: row.get("observed")?,
    })
}

/// Plays whose tasks are over.
pub(super) fn unsettled(connection: &Connection, limit: usize) -> Result<Vec<EndedAssignment>, SqliteError> {
    let mut select = connection.prepare_cached(
        "SELECT tasks.id, tasks.state, tasks.created_at, tasks.updated_at
         FROM plays INDEXED BY plays_open JOIN tasks ON tasks.id = plays.task
         WHERE plays.outcome IS NULL AND tasks.open = 0 ORDER BY tasks.id LIMIT ?1",
    )?;
    let unsettled = |row: &Row<'_>| {
        Ok(EndedAssignment {
            task: TaskId::from(row.get::<_, String>(0)?),
            state: row.get::<_, Word<_>>(1)?.0,
            begun_at: row.get::<_, At>(2)?.0,
            ended_at: row.get::<_, At>(3)?.0,
        })
    };
    let found = select.query_map([limit], unsettled)?.collect::<rusqlite::Result<_>>()?;
    Ok(found)
}

/// Decisions, newest first, with what became of them.
pub(super) fn list(
    connection: &Connection,
    scope: &Scope,
    filter: &DispatchFilter,
) -> Result<Vec<Dispatch>, SqliteError> {
    let (org, project) = (scope.org.as_str(), scope.project.as_str());
    let mut sql = "SELECT id, record FROM dispatches WHERE org = :org AND project = :project".to_owned();
    let mut values: Vec<(&str, &dyn ToSql)> = vec![(":org", &org), (":project", &project)];
    let caller = filter.caller.as_ref().map(CallerId::as_str);
    if let Some(caller) = &caller {
        sql.push_str(" AND caller = :caller");
        values.push((":caller", caller));
    }
    if let Some(work_type) = &filter.work_type {
        sql.push_str(" AND work_type = :work_type");
        values.push((":work_type", work_type));
    }
    if let Some(id) = &filter.id {
        sql.push_str(" AND (id = :id OR id = (SELECT dispatch FROM plays WHERE task = :id))");
        values.push((":id", id));
    }
    let before = filter.before.as_ref().map(DispatchId::as_str);
    if let Some(before) = &before {
        sql.push_str(" AND id < :before");
        values.push((":before", before));
    }
    sql.push_str(" ORDER BY id DESC LIMIT :limit");
    values.push((":limit", &filter.limit));
    let mut select = connection.prepare_cached(&sql)?;
    let mut rows = select.query(values.as_slice())?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, record): (String, String) = (row.get(0)?, row.get(1)?);
        let mut dispatch: Dispatch = serde_json::from_str(&record)
            .map_err(|error| StoreError::Corrupt(format!("the decision {id}: {error}")))?;
        fill_in(connection, &mut dispatch)?;
        found.push(dispatch);
    }
    Ok(found)
}

/// Fills in the outcome of each attempt, as far as it is known.
fn fill_in(connection: &Connection, dispatch: &mut Dispatch) -> Result<(), SqliteError> {
    let mut select =
        connection.prepare_cached("SELECT outcome FROM plays WHERE task = ?1 AND outcome IS NOT NULL")?;
    for attempt in &mut dispatch.attempts {
        let outcome = |row: &Row<'_>| Ok(row.get::<_, Word<AssignmentOutcome>>(0)?.0);
        attempt.outcome = select.query_row([attempt.task_id.as_str()], outcome).optional()?;
    }
    Ok(())
}

/// Forgets decisions that were made before this moment, and plays of tasks that are forgotten.
pub(super) fn sweep(connection: &Connection, moment: jiff::Timestamp) -> Result<(), SqliteError> {
    let mut delete = connection.prepare_cached(
        "DELETE FROM dispatches WHERE id IN (SELECT id FROM dispatches WHERE at < ?1 ORDER BY id LIMIT ?2)",
    )?;
    delete.execute(params![At(moment), MAX_SWEPT_DISPATCHES])?;
    let mut delete = connection.prepare_cached(
        "DELETE FROM plays WHERE task IN (
             SELECT task FROM plays WHERE until < ?1 AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.id = plays.task)
             ORDER BY task LIMIT ?2)",
    )?;
    delete.execute(params![At(moment), MAX_SWEPT_DISPATCHES])?;
    Ok(())
}

/// Forgets what was learned of an agent.
pub(super) fn forget(connection: &Connection, agent: &AgentId) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM arms WHERE agent = ?1")?.execute([agent.as_str()])?;
    Ok(())
}
