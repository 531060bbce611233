//! Posts a page of the daybook to the database.

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use super::{
    audit,
    daybook::{Draft, Posting},
    meta, tasks,
};
use crate::fault::Snag;

/// Writes all of it, together with how far the daybook is posted.
///
/// What is on the page was acknowledged, so there is nobody to refuse it to. Should the database refuse a task all the
/// same, the others must not suffer: then each is tried for itself, and the log says which one is missing.
pub(super) fn post(connection: &mut Connection, name: &str, posting: &Posting) -> Result<(), Snag> {
    match write(connection, name, posting, insert) {
        Err(Snag::Broken(error)) if !is_refusal(&error) => Err(error.into()),
        Err(_) => write(connection, name, posting, insert_or_tell),
        Ok(()) => Ok(()),
    }
}

fn write(
    connection: &mut Connection,
    name: &str,
    posting: &Posting,
    insert: fn(&Connection, &Draft) -> Result<(), Snag>,
) -> Result<(), Snag> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for draft in &posting.tasks {
        insert(&transaction, draft)?;
    }
    audit::append(&transaction, &posting.audit)?;
    meta::set_posted(&transaction, name, posting.up_to)?;
    Ok(transaction.commit()?)
}

fn insert(connection: &Connection, draft: &Draft) -> Result<(), Snag> {
    let row = tasks::insert(connection, &draft.head)?;
    for batch in &draft.batches {
        tasks::insert_events(connection, row, batch.seq, batch.at, batch.events.get())?;
    }
    Ok(())
}

fn insert_or_tell(connection: &Connection, draft: &Draft) -> Result<(), Snag> {
    connection.execute_batch("SAVEPOINT draft")?;
    let outcome = insert(connection, draft);
    let why = match outcome {
        Ok(()) => return Ok(connection.execute_batch("RELEASE draft")?),
        Err(Snag::Broken(error)) if !is_refusal(&error) => return Err(error.into()),
        Err(Snag::Broken(error)) => error.to_string(),
        Err(Snag::Refused(error)) => error.to_string(),
    };
    let id = &draft.head.id;
    tracing::error!(task.id = %id, "task {id} was noted, but the database refuses it: {why}");
    Ok(connection.execute_batch("ROLLBACK TO draft; RELEASE draft")?)
}

/// Whether the rows are to blame, and not the disk.
fn is_refusal(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}
