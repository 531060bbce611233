//! Approvals and their decisions.

use async_trait::async_trait;
use jiff::Timestamp;
use rialto_model::{
    approval::{Approval, ApprovalFilter, ApprovalVerdict},
    ids::{ApprovalId, OrgId, TaskId},
    store::{ApprovalStore, StoreError},
};
use rusqlite::{
    Connection, Row, named_params, params,
    types::{FromSqlError, Type},
};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    SqliteStore,
    column::{At, taken},
    meta,
};
use crate::error::SqliteError;

#[async_trait]
impl ApprovalStore for SqliteStore {
    async fn put_approval(&self, approval: &Approval) -> Result<u64, StoreError> {
        let approval = approval.clone();
        let made = self.transact_change(move |transaction| add(transaction, &approval).map(Some));
        Ok(made.await?.unwrap_or_else(|| self.generation.get()))
    }

    async fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<Approval>, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| list(connection, &filter)).await
    }

    async fn decide_approval(&self, id: &ApprovalId, decided: &ApprovalVerdict) -> Result<bool, StoreError> {
        let (id, decided) = (id.clone(), decided.clone());
        let made = self.transact_change(move |transaction| decide(transaction, &id, &decided));
        Ok(made.await?.is_some())
    }

    async fn close_approval(&self, id: &ApprovalId) -> Result<bool, StoreError> {
        let id = id.clone();
        self.transact(move |transaction| close(transaction, &id)).await
    }
}

/// Adds one. Answers the generation that this makes.
pub(super) fn add(connection: &Connection, approval: &Approval) -> Result<u64, SqliteError> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO approvals (id, org, project, task, asked_at, body, decided, settled)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let inserted = insert.execute(params![
        approval.id.as_str(),
        approval.scope.org.as_str(),
        approval.scope.project.as_str(),
        approval.task.as_str(),
        At(approval.asked_at),
        json(&Approval { decided: None, is_settled: false, ..approval.clone() })?,
        approval.decided.as_ref().map(json).transpose()?,
        approval.is_settled,
    ]);
    match inserted {
        Ok(_) => Ok(meta::next_generation(connection)?),
        Err(error) if taken(&error, "approvals.id") => {
            Err(StoreError::Taken(format!("the approval {}", approval.id)).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Approvals that match a filter, newest first.
pub(super) fn list(connection: &Connection, filter: &ApprovalFilter) -> Result<Vec<Approval>, SqliteError> {
    // Written out, so that the index of those few is seen to fit.
    let unsettled = if filter.unsettled { "settled = 0" } else { "TRUE" };
    let mut select = connection.prepare_cached(&format!(
        "SELECT * FROM approvals
         WHERE {unsettled} AND (:id IS NULL OR id = :id) AND (:org IS NULL OR org = :org)
             AND (:task IS NULL OR task = :task) AND (NOT :undecided OR decided IS NULL)
             AND (:before IS NULL OR id < :before)
         ORDER BY id DESC LIMIT :limit",
    ))?;
    let values = named_params! {
        ":id": filter.id.as_ref().map(ApprovalId::as_str),
        ":org": filter.org.as_ref().map(OrgId::as_str),
        ":task": filter.task.as_ref().map(TaskId::as_str),
        ":undecided": filter.undecided,
        ":before": filter.before.as_ref().map(ApprovalId::as_str),
        ":limit": filter.limit,
    };
    let approvals = select.query_map(values, approval)?.collect::<Result<_, _>>()?;
    Ok(approvals)
}

/// Decides, if nobody has. Answers the generation that this makes, if it counts.
pub(super) fn decide(
    connection: &Connection,
    id: &ApprovalId,
    decided: &ApprovalVerdict,
) -> Result<Option<u64>, SqliteError> {
    let mut update =
        connection.prepare_cached("UPDATE approvals SET decided = ?2 WHERE id = ?1 AND decided IS NULL")?;
    let counts = update.execute(params![id.as_str(), json(decided)?])? > 0;
    Ok(if counts { Some(meta::next_generation(connection)?) } else { None })
}

/// Says that one need not be looked at again. Returns whether that is news.
pub(super) fn close(connection: &Connection, id: &ApprovalId) -> Result<bool, SqliteError> {
    let mut update =
        connection.prepare_cached("UPDATE approvals SET settled = 1 WHERE id = ?1 AND settled = 0")?;
    Ok(update.execute([id.as_str()])? > 0)
}

/// Forgets those that were asked before this moment and are settled.
pub(super) fn sweep(connection: &Connection, moment: Timestamp) -> Result<(), SqliteError> {
    connection.execute("DELETE FROM approvals WHERE settled = 1 AND asked_at < ?1", [At(moment)])?;
    Ok(())
}

fn approval(row: &Row<'_>) -> rusqlite::Result<Approval> {
    let body: Approval = read(&row.get::<_, String>("body")?)?;
    let decided: Option<String> = row.get("decided")?;
    Ok(Approval {
        decided: decided.as_deref().map(read).transpose()?,
        is_settled: row.get("settled")?,
        ..body
    })
}

fn json<T: Serialize>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

fn read<T: DeserializeOwned>(text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(FromSqlError::other(error)))
    })
}
