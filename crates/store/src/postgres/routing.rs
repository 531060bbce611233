//! Routing decisions, reserved slots, and learned success rates.

use std::collections::BTreeMap;

use async_trait::async_trait;
use rialto_model::{
    call::CallerId,
    clock::Timestamp,
    ids::{AgentId, DispatchId, OrgId, Scope, TaskId},
    routing::{
        AssignmentEnd, AssignmentOutcome, Dispatch, DispatchFilter, EndedAssignment, RoutingStats,
        RoutingStatsQuery, SlotReservation, SuccessRate,
    },
    store::{RoutingStore, StoreError},
};

use super::{
    PostgresStore, begin,
    column::{Cells, json, limit, nanoseconds, nearest},
    connection::GenericClient,
    error::PostgresError,
    sql::{self, Value},
};

/// Maximum number of rows removed at once.
const MAX_SWEPT_DISPATCHES: i64 = 1_000;

#[async_trait]
impl RoutingStore for PostgresStore {
    async fn routing_stats(
        &self,
        query: &RoutingStatsQuery,
    ) -> Result<BTreeMap<AgentId, RoutingStats>, StoreError> {
        Ok(routing_stats(&self.client().await?, query).await?)
    }

    async fn success_rates(
        &self,
        org: &OrgId,
        agent: &AgentId,
        limit: usize,
    ) -> Result<Vec<(String, SuccessRate)>, StoreError> {
        Ok(success_rates(&self.client().await?, org, agent, limit).await?)
    }

    async fn reserve(&self, reservation: &SlotReservation) -> Result<bool, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let is_taken = reserve(&transaction, reservation).await?;
        self.commit(transaction, false).await?;
        Ok(is_taken)
    }

    async fn end_assignment(&self, task: &TaskId, end: &AssignmentEnd) -> Result<bool, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let is_news = record_end(&transaction, task, end).await?;
        self.commit(transaction, false).await?;
        Ok(is_news)
    }

    async fn ended_assignments(&self, limit: usize) -> Result<Vec<EndedAssignment>, StoreError> {
        Ok(unsettled(&self.client().await?, limit).await?)
    }

    async fn dispatches(&self, scope: &Scope, filter: &DispatchFilter) -> Result<Vec<Dispatch>, StoreError> {
        Ok(list(&self.client().await?, scope, filter).await?)
    }
}

/// Routing facts of these agents.
pub(super) async fn routing_stats(
    client: &impl GenericClient,
    query: &RoutingStatsQuery,
) -> Result<BTreeMap<AgentId, RoutingStats>, PostgresError> {
    let agents: Vec<&str> = query.agents.iter().map(AgentId::as_str).collect();
    let org = query.org.as_str();
    let mut standings: BTreeMap<AgentId, RoutingStats> = BTreeMap::new();
    let select = "
        SELECT agent, wins, losses, recent_wins, recent_losses, observed FROM arms
        WHERE org = $1 AND work_type = $2 AND agent = ANY ($3)";
    for row in sql::rows(client, select, &[&org, &query.work_type, &agents]).await? {
        let row = Cells(&row);
        standings.entry(AgentId::from(row.text("agent")?)).or_default().posterior = posterior(row)?;
    }
    let select = "
        SELECT agent_id, sum(tasks)::bigint AS tasks FROM (
            SELECT agent_id, count(*) AS tasks FROM a2a_task_instances
            WHERE active AND org = $1 AND updated_at >= $2 GROUP BY agent_id
            UNION ALL
            SELECT agent, count(*) FROM plays
            WHERE outcome IS NULL AND org = $1 AND until > $3
                AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.id = plays.task) GROUP BY agent
        ) AS counted WHERE agent_id = ANY ($4) GROUP BY agent_id";
    let (since, now) = (nearest(query.window.since), nearest(query.window.now));
    for row in sql::rows(client, select, &[&org, &since, &now, &agents]).await? {
        let row = Cells(&row);
        standings.entry(AgentId::from(row.text("agent_id")?)).or_default().active = row.number("tasks")?;
    }
    Ok(standings)
}

/// Success of an agent at each type of work, the latest first.
pub(super) async fn success_rates(
    client: &impl GenericClient,
    org: &OrgId,
    agent: &AgentId,
    most: usize,
) -> Result<Vec<(String, SuccessRate)>, PostgresError> {
    let select = "
        SELECT work_type, wins, losses, recent_wins, recent_losses, observed FROM arms
        WHERE org = $1 AND agent = $2 ORDER BY updated_at DESC, work_type LIMIT $3";
    let values: [Value<'_>; 3] = [&org.as_str(), &agent.as_str(), &limit(most)];
    let rows = sql::rows(client, select, &values).await?;
    rows.iter().map(|row| Ok((Cells(row).text("work_type")?, posterior(Cells(row))?))).collect()
}

fn posterior(row: Cells<'_>) -> Result<SuccessRate, PostgresError> {
    Ok(SuccessRate {
        wins: row.get("wins")?,
        losses: row.get("losses")?,
        recent_wins: row.get("recent_wins")?,
        recent_losses: row.get("recent_losses")?,
        observed: row.number("observed")?,
    })
}

/// Takes a slot and writes the decision down, if there is one left. One at a time for each agent.
pub(super) async fn reserve(
    client: &impl GenericClient,
    wanted: &SlotReservation,
) -> Result<bool, PostgresError> {
    let (dispatch, play) = (&wanted.dispatch, &wanted.play);
    let (org, agent) = (dispatch.scope.org.as_str(), play.agent.as_str());
    let lock =
        "SELECT pg_advisory_xact_lock(hashtextextended('rialto slots ' || $1::text || ' ' || $2::text, 0))";
    sql::rows(client, lock, &[&org, &agent]).await?;
    let select = "
        SELECT (SELECT count(*) FROM a2a_task_instances
                WHERE active AND org = $1 AND agent_id = $2 AND updated_at >= $3)
             + (SELECT count(*) FROM plays
                WHERE outcome IS NULL AND org = $1 AND agent = $2 AND until > $4
                    AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.id = plays.task)) AS tasks";
    let (since, now) = (nearest(wanted.window.since), nearest(wanted.window.now));
    let row = sql::row(client, select, &[&org, &agent, &since, &now]).await?;
    if Cells(&row).number("tasks")? >= wanted.hard_cap {
        return Ok(false);
    }
    let insert = "
        INSERT INTO dispatches (id, org, project, caller, work_type, at, record) VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (id) DO UPDATE SET record = excluded.record";
    let (id, work_type) = (dispatch.id.as_str(), &dispatch.work.work_type);
    let values: [Value<'_>; 7] = [
        &id,
        &org,
        &dispatch.scope.project.as_str(),
        &dispatch.caller.as_str(),
        work_type,
        &nanoseconds(dispatch.at)?,
        &json(dispatch)?,
    ];
    sql::execute(client, insert, &values).await?;
    let insert = "
        INSERT INTO plays (task, dispatch, org, agent, work_type, until) VALUES ($1, $2, $3, $4, $5, $6)";
    let values: [Value<'_>; 6] =
        [&play.task.as_str(), &id, &org, &agent, work_type, &nanoseconds(play.until)?];
    sql::execute(client, insert, &values).await?;
    Ok(true)
}

/// Ends a play, once, and has the agent's posterior learn from it.
async fn record_end(
    client: &impl GenericClient,
    task: &TaskId,
    end: &AssignmentEnd,
) -> Result<bool, PostgresError> {
    let update = "
        UPDATE plays SET outcome = $2, ended_at = $3 WHERE task = $1 AND outcome IS NULL
        RETURNING org, agent, work_type";
    let at = nanoseconds(end.at)?;
    let ended = sql::maybe_row(client, update, &[&task.as_str(), &end.outcome.as_str(), &at]).await?;
    let Some(ended) = ended else { return Ok(false) };
    let Some(reward) = end.reward else { return Ok(true) };
    let ended = Cells(&ended);
    let (org, agent, work_type) = (ended.text("org")?, ended.text("agent")?, ended.text("work_type")?);
    // The second writer waits for the row and adds to the first one's result.
    let begin = "
        INSERT INTO arms (org, agent, work_type, wins, losses, recent_wins, recent_losses, observed, updated_at)
        VALUES ($1, $2, $3, 0, 0, 0, 0, 0, $4) ON CONFLICT DO NOTHING";
    sql::execute(client, begin, &[&org, &agent, &work_type, &at]).await?;
    let select = "
        SELECT wins, losses, recent_wins, recent_losses, observed FROM arms
        WHERE org = $1 AND work_type = $2 AND agent = $3 FOR UPDATE";
    let known = sql::maybe_row(client, select, &[&org, &work_type, &agent]).await?;
    let known = known.as_ref().map(|row| posterior(Cells(row))).transpose()?.unwrap_or_default();
    let SuccessRate { wins, losses, recent_wins, recent_losses, observed } =
        known.after(reward, end.discount);
    let observed = i64::try_from(observed).unwrap_or(i64::MAX);
    let update = "
        UPDATE arms SET wins = $4, losses = $5, recent_wins = $6, recent_losses = $7, observed = $8, updated_at = $9
        WHERE org = $1 AND work_type = $2 AND agent = $3";
    let values: [Value<'_>; 9] =
        [&org, &work_type, &agent, &wins, &losses, &recent_wins, &recent_losses, &observed, &at];
    sql::execute(client, update, &values).await?;
    Ok(true)
}

/// Plays whose tasks are over.
pub(super) async fn unsettled(
    client: &impl GenericClient,
    most: usize,
) -> Result<Vec<EndedAssignment>, PostgresError> {
    let select = "
        SELECT tasks.id, tasks.state, tasks.created_at, tasks.updated_at
        FROM plays JOIN tasks ON tasks.id = plays.task
        WHERE plays.outcome IS NULL AND NOT tasks.open ORDER BY tasks.id LIMIT $1";
    let unsettled = |row| {
        let row = Cells(row);
        Ok(EndedAssignment {
            task: TaskId::from(row.text("id")?),
            state: row.word("state")?,
            begun_at: row.at("created_at")?,
            ended_at: row.at("updated_at")?,
        })
    };
    sql::rows(client, select, &[&limit(most)]).await?.iter().map(unsettled).collect()
}

/// Decisions, newest first, with what became of them.
pub(super) async fn list(
    client: &impl GenericClient,
    scope: &Scope,
    filter: &DispatchFilter,
) -> Result<Vec<Dispatch>, PostgresError> {
    let select = "
        SELECT record FROM dispatches
        WHERE org = $1 AND project = $2 AND ($3::text IS NULL OR caller = $3) AND ($4::text IS NULL OR work_type = $4)
            AND ($5::text IS NULL OR id = $5 OR id = (SELECT dispatch FROM plays WHERE task = $5))
            AND ($6::text IS NULL OR id < $6)
        ORDER BY id DESC LIMIT $7";
    let values: [Value<'_>; 7] = [
        &scope.org.as_str(),
        &scope.project.as_str(),
        &filter.caller.as_ref().map(CallerId::as_str),
        &filter.work_type,
        &filter.id,
        &filter.before.as_ref().map(DispatchId::as_str),
        &limit(filter.limit),
    ];
    let rows = sql::rows(client, select, &values).await?;
    let mut found: Vec<Dispatch> =
        rows.iter().map(|row| Cells(row).json("record")).collect::<Result<_, _>>()?;
    let ids: Vec<&str> = found.iter().map(|dispatch| dispatch.id.as_str()).collect();
    let select = "SELECT task, outcome FROM plays WHERE dispatch = ANY ($1) AND outcome IS NOT NULL";
    let mut outcomes: BTreeMap<String, AssignmentOutcome> = BTreeMap::new();
    for row in sql::rows(client, select, &[&ids]).await? {
        let row = Cells(&row);
        outcomes.insert(row.text("task")?, row.word("outcome")?);
    }
    for attempt in found.iter_mut().flat_map(|dispatch| &mut dispatch.attempts) {
        attempt.outcome = outcomes.get(attempt.task_id.as_str()).copied();
    }
    Ok(found)
}

/// Forgets decisions that were made before this moment, and plays of tasks that are forgotten.
pub(super) async fn sweep(client: &impl GenericClient, moment: Timestamp) -> Result<(), PostgresError> {
    let moment = nearest(moment);
    let delete = "
        DELETE FROM dispatches WHERE id IN (SELECT id FROM dispatches WHERE at < $1 ORDER BY id LIMIT $2)";
    sql::execute(client, delete, &[&moment, &MAX_SWEPT_DISPATCHES]).await?;
    let delete = "
        DELETE FROM plays WHERE task IN (
            SELECT task FROM plays WHERE until < $1 AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.id = plays.task)
            ORDER BY task LIMIT $2)";
    sql::execute(client, delete, &[&moment, &MAX_SWEPT_DISPATCHES]).await.map(drop)
}
