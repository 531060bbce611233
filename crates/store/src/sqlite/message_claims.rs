//! Claims of messages among the processes that share one file.

use jiff::Timestamp;
use rialto_model::{
    ids::{Runner, TaskId},
    store::MessageClaim,
};
use rusqlite::{Connection, OptionalExtension, params};

use super::column::At;
use crate::fault::Snag;

/// Makes a claim, or finds the one that another task has.
pub(super) fn claim(connection: &Connection, claim: &MessageClaim) -> Result<Option<MessageClaim>, Snag> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO message_claims (key, task, runner, at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (key) DO NOTHING",
    )?;
    let values = params![claim.key, claim.task.as_str(), claim.runner.get().cast_signed(), At(claim.at)];
    if insert.execute(values)? == 1 {
        return Ok(None);
    }
    let mut select = connection
        .prepare_cached("SELECT task, runner, at FROM message_claims WHERE key = ?1 AND task <> ?2")?;
    let other = select.query_row(params![claim.key, claim.task.as_str()], |row| {
        Ok(MessageClaim {
            key: claim.key.clone(),
            task: TaskId::from(row.get::<_, String>(0)?),
            runner: Runner::from(row.get::<_, i64>(1)?.cast_unsigned()),
            at: row.get::<_, At>(2)?.0,
        })
    });
    Ok(other.optional()?)
}

/// Removes a claim, if it is still that task's.
pub(super) fn release(connection: &Connection, claim: &MessageClaim) -> Result<(), Snag> {
    let mut delete = connection.prepare_cached("DELETE FROM message_claims WHERE key = ?1 AND task = ?2")?;
    delete.execute(params![claim.key, claim.task.as_str()])?;
    Ok(())
}

/// Removes claims from before a moment.
pub(super) fn sweep(connection: &Connection, moment: Timestamp) -> Result<(), Snag> {
    let mut delete = connection.prepare_cached("DELETE FROM message_claims WHERE at < ?1")?;
    delete.execute([At(moment)])?;
    Ok(())
}
