//! Claims of messages among the nodes that share one database.

use deadpool_postgres::GenericClient;
use jiff::Timestamp;
use rialto_model::{
    ids::{Runner, TaskId},
    store::MessageClaim,
};

use super::{
    column::{Cells, nanoseconds, nearest},
    snag::Snag,
    sql,
};

/// Makes a claim, or finds the one that another task has.
pub(super) async fn claim(
    client: &impl GenericClient,
    claim: &MessageClaim,
) -> Result<Option<MessageClaim>, Snag> {
    let insert = "INSERT INTO message_claims (key, task, runner, at) VALUES ($1, $2, $3, $4) ON CONFLICT (key) DO NOTHING";
    let (task, runner, at) = (claim.task.as_str(), claim.runner.get().cast_signed(), nanoseconds(claim.at)?);
    if sql::execute(client, insert, &[&claim.key, &task, &runner, &at]).await? == 1 {
        return Ok(None);
    }
    let select = "SELECT task, runner, at FROM message_claims WHERE key = $1 AND task <> $2";
    let rows = sql::rows(client, select, &[&claim.key, &task]).await?;
    let Some(row) = rows.first().map(Cells) else { return Ok(None) };
    Ok(Some(MessageClaim {
        key: claim.key.clone(),
        task: TaskId::from(row.text("task")?),
        runner: Runner::from(row.number("runner")?),
        at: row.at("at")?,
    }))
}

/// Removes a claim, if it is still that task's.
pub(super) async fn release(client: &impl GenericClient, claim: &MessageClaim) -> Result<(), Snag> {
    let delete = "DELETE FROM message_claims WHERE key = $1 AND task = $2";
    sql::execute(client, delete, &[&claim.key, &claim.task.as_str()]).await?;
    Ok(())
}

/// Removes claims from before a moment.
pub(super) async fn sweep(client: &impl GenericClient, moment: Timestamp) -> Result<(), Snag> {
    sql::execute(client, "DELETE FROM message_claims WHERE at < $1", &[&nearest(moment)]).await?;
    Ok(())
}
