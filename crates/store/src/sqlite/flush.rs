//! Flushes a batch of the write buffer to the database.

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use super::{
    audit,
    journal_record::{RecordView, parse_record},
    meta,
    tasks::Inserts,
    write_buffer::{FlushBatch, PendingTask},
};
use crate::error::SqliteError;

/// Writes all of it, together with how far the write buffer is flushed.
///
/// What is on the batch was acknowledged, so there is nobody to refuse it to. Should the database refuse a task all the
/// same, the others must not suffer: then each is tried for itself, and the log says which one is missing.
pub(super) fn flush_batch(
    connection: &mut Connection,
    name: &str,
    batch: &FlushBatch,
) -> Result<(), SqliteError> {
    match write(connection, name, batch, insert) {
        Err(SqliteError::Broken(error)) if !is_refusal(&error) => Err(error.into()),
        Err(_) => write(connection, name, batch, insert_or_log),
        Ok(()) => Ok(()),
    }
}

fn write(
    connection: &mut Connection,
    name: &str,
    batch: &FlushBatch,
    insert: fn(&mut Inserts<'_>, &FlushBatch, &PendingTask) -> Result<(), SqliteError>,
) -> Result<(), SqliteError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    write_to(&transaction, name, batch, insert)?;
    Ok(transaction.commit()?)
}

/// Writes all of it to a transaction that the caller ends.
pub(super) fn write_uncommitted(
    transaction: &Connection,
    name: &str,
    batch: &FlushBatch,
) -> Result<(), SqliteError> {
    write_to(transaction, name, batch, insert)
}

fn write_to(
    transaction: &Connection,
    name: &str,
    batch: &FlushBatch,
    insert: fn(&mut Inserts<'_>, &FlushBatch, &PendingTask) -> Result<(), SqliteError>,
) -> Result<(), SqliteError> {
    let mut inserts = Inserts::new(transaction)?;
    for pending in batch.tasks() {
        insert(&mut inserts, batch, pending)?;
    }
    drop(inserts);
    let records = batch.records().filter_map(parse_record).flat_map(|view| match view {
        RecordView::Open(new_task) => new_task.audit,
        RecordView::Append(events) => events.audit,
        RecordView::Audit(records) => records,
    });
    audit::append(transaction, records)?;
    Ok(meta::set_flushed(transaction, name, batch.up_to)?)
}

/// Writes a task as it stands after all that was buffered of it.
fn insert(inserts: &mut Inserts<'_>, batch: &FlushBatch, pending: &PendingTask) -> Result<(), SqliteError> {
    let mut views = batch.records_of(pending).filter_map(parse_record);
    let Some(RecordView::Open(mut new_task)) = views.next() else { return Ok(()) };
    let first = new_task.first();
    let additions =
        views.filter_map(|view| if let RecordView::Append(events) = view { Some(events) } else { None });
    if let Some(last) = additions.clone().last() {
        (new_task.standing, new_task.brief) = (last.standing, last.brief);
    }
    let row = inserts.task(&new_task)?;
    if let Some(first) = first {
        inserts.events(row, &first)?;
    }
    for events in additions {
        inserts.events(row, &events)?;
    }
    Ok(())
}

fn insert_or_log(
    inserts: &mut Inserts<'_>,
    batch: &FlushBatch,
    pending: &PendingTask,
) -> Result<(), SqliteError> {
    let connection = inserts.connection();
    connection.execute_batch("SAVEPOINT draft")?;
    let why = match insert(inserts, batch, pending) {
        Ok(()) => return Ok(connection.execute_batch("RELEASE draft")?),
        Err(SqliteError::Broken(error)) if !is_refusal(&error) => return Err(error.into()),
        Err(SqliteError::Broken(error)) => error.to_string(),
        Err(SqliteError::Refused(error)) => error.to_string(),
    };
    let id = batch.task(pending);
    tracing::error!(task.id = id, "task {id} was acknowledged, but the database refuses it: {why}");
    Ok(connection.execute_batch("ROLLBACK TO draft; RELEASE draft")?)
}

/// Returns whether the rows are to blame, and not the disk.
fn is_refusal(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}
