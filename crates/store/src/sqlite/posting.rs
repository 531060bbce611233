//! Posts a page of the daybook to the database.

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use super::{
    audit,
    daybook::{Draft, Posting},
    meta,
    note::{View, view},
    tasks::Inserts,
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
    insert: fn(&mut Inserts<'_>, &Posting, &Draft) -> Result<(), Snag>,
) -> Result<(), Snag> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    write_to(&transaction, name, posting, insert)?;
    Ok(transaction.commit()?)
}

/// Writes all of it to a transaction that somebody else ends.
pub(super) fn stage(transaction: &Connection, name: &str, posting: &Posting) -> Result<(), Snag> {
    write_to(transaction, name, posting, insert)
}

fn write_to(
    transaction: &Connection,
    name: &str,
    posting: &Posting,
    insert: fn(&mut Inserts<'_>, &Posting, &Draft) -> Result<(), Snag>,
) -> Result<(), Snag> {
    let mut inserts = Inserts::new(transaction)?;
    for draft in posting.drafts() {
        insert(&mut inserts, posting, draft)?;
    }
    drop(inserts);
    let records = posting.notes().filter_map(view).flat_map(|view| match view {
        View::Open(opening) => opening.audit,
        View::Append(addition) => addition.audit,
        View::Audit(records) => records,
    });
    audit::append(transaction, records)?;
    Ok(meta::set_posted(transaction, name, posting.up_to)?)
}

/// Writes a task as it stands after all that was noted of it.
fn insert(inserts: &mut Inserts<'_>, posting: &Posting, draft: &Draft) -> Result<(), Snag> {
    let mut views = posting.notes_of(draft).filter_map(view);
    let Some(View::Open(mut opening)) = views.next() else { return Ok(()) };
    let first = opening.first();
    let additions =
        views.filter_map(|view| if let View::Append(addition) = view { Some(addition) } else { None });
    if let Some(last) = additions.clone().last() {
        (opening.standing, opening.brief) = (last.standing, last.brief);
    }
    let row = inserts.task(&opening)?;
    if let Some(first) = first {
        inserts.events(row, &first)?;
    }
    for addition in additions {
        inserts.events(row, &addition)?;
    }
    Ok(())
}

fn insert_or_tell(inserts: &mut Inserts<'_>, posting: &Posting, draft: &Draft) -> Result<(), Snag> {
    let connection = inserts.connection();
    connection.execute_batch("SAVEPOINT draft")?;
    let why = match insert(inserts, posting, draft) {
        Ok(()) => return Ok(connection.execute_batch("RELEASE draft")?),
        Err(Snag::Broken(error)) if !is_refusal(&error) => return Err(error.into()),
        Err(Snag::Broken(error)) => error.to_string(),
        Err(Snag::Refused(error)) => error.to_string(),
    };
    let id = posting.task(draft);
    tracing::error!(task.id = id, "task {id} was noted, but the database refuses it: {why}");
    Ok(connection.execute_batch("ROLLBACK TO draft; RELEASE draft")?)
}

/// Whether the rows are to blame, and not the disk.
fn is_refusal(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}
