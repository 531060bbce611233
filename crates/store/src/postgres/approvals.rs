//! Approvals and their decisions.

use async_trait::async_trait;
use jiff::Timestamp;
use rialto_model::{
    approval::{Approval, ApprovalFilter, ApprovalVerdict},
    ids::{ApprovalId, OrgId, TaskId},
    store::{ApprovalStore, StoreError},
};

use super::{
    PostgresStore, begin,
    column::{Cells, json, limit, nanoseconds, nearest},
    connection::GenericClient,
    error::PostgresError,
    sql::{self, Value},
};

#[async_trait]
impl ApprovalStore for PostgresStore {
    async fn put_approval(&self, approval: &Approval) -> Result<u64, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        add(&transaction, approval).await?;
        self.commit_change(transaction).await
    }

    async fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<Approval>, StoreError> {
        Ok(list(&self.client().await?, filter).await?)
    }

    async fn decide_approval(&self, id: &ApprovalId, decided: &ApprovalVerdict) -> Result<bool, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let counts = decide(&transaction, id, decided).await?;
        Ok(self.commit(transaction, counts).await?.is_some())
    }

    async fn close_approval(&self, id: &ApprovalId) -> Result<bool, StoreError> {
        Ok(close(&self.client().await?, id).await?)
    }
}

/// Adds one.
pub(super) async fn add(client: &impl GenericClient, approval: &Approval) -> Result<(), PostgresError> {
    let insert = "
        INSERT INTO approvals (id, org, project, task, asked_at, body, decided, settled)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let values: [Value<'_>; 8] = [
        &approval.id.as_str(),
        &approval.scope.org.as_str(),
        &approval.scope.project.as_str(),
        &approval.task.as_str(),
        &nanoseconds(approval.asked_at)?,
        &json(&Approval { decided: None, is_settled: false, ..approval.clone() })?,
        &approval.decided.as_ref().map(json).transpose()?,
        &approval.is_settled,
    ];
    let inserted = sql::execute(client, insert, &values).await.map(drop);
    inserted.map_err(|failure| failure.or_taken("approvals_pkey", || format!("the approval {}", approval.id)))
}

/// Approvals that match a filter, newest first.
pub(super) async fn list(
    client: &impl GenericClient,
    filter: &ApprovalFilter,
) -> Result<Vec<Approval>, PostgresError> {
    let select = "
        SELECT * FROM approvals
        WHERE ($1::text IS NULL OR id = $1) AND ($2::text IS NULL OR org = $2) AND ($3::text IS NULL OR task = $3)
            AND (NOT $4::bool OR decided IS NULL) AND (NOT $5::bool OR NOT settled)
            AND ($6::text IS NULL OR id < $6)
        ORDER BY id DESC LIMIT $7";
    let values: [Value<'_>; 7] = [
        &filter.id.as_ref().map(ApprovalId::as_str),
        &filter.org.as_ref().map(OrgId::as_str),
        &filter.task.as_ref().map(TaskId::as_str),
        &filter.undecided,
        &filter.unsettled,
        &filter.before.as_ref().map(ApprovalId::as_str),
        &limit(filter.limit),
    ];
    sql::rows(client, select, &values).await?.iter().map(|row| approval(Cells(row))).collect()
}

/// Decides, if nobody has: of two at the same moment, the second waits for the first and then changes nothing. Answers
/// whether this one counts.
pub(super) async fn decide(
    client: &impl GenericClient,
    id: &ApprovalId,
    decided: &ApprovalVerdict,
) -> Result<bool, PostgresError> {
    let update = "UPDATE approvals SET decided = $2 WHERE id = $1 AND decided IS NULL";
    Ok(sql::execute(client, update, &[&id.as_str(), &json(decided)?]).await? > 0)
}

/// Says that one need not be looked at again. Returns whether that is news.
pub(super) async fn close(client: &impl GenericClient, id: &ApprovalId) -> Result<bool, PostgresError> {
    let update = "UPDATE approvals SET settled = TRUE WHERE id = $1 AND NOT settled";
    Ok(sql::execute(client, update, &[&id.as_str()]).await? > 0)
}

/// Forgets those that were asked before this moment and are settled.
pub(super) async fn sweep(client: &impl GenericClient, moment: Timestamp) -> Result<(), PostgresError> {
    let delete = "DELETE FROM approvals WHERE settled AND asked_at < $1";
    sql::execute(client, delete, &[&nearest(moment)]).await.map(drop)
}

fn approval(row: Cells<'_>) -> Result<Approval, PostgresError> {
    Ok(Approval {
        decided: row.maybe_json("decided")?,
        is_settled: row.get("settled")?,
        ..row.json::<Approval>("body")?
    })
}
