//! What is deployed beside the agents: MCP servers and functions.

use std::sync::Arc;

use rialto_model::{
    agent::Agent,
    call::Caller,
    failure::{Failure, Kind},
};
use rialto_policy::Action;

use crate::Console;

/// Everything that is deployed in the caller's project.
pub async fn list(console: &Console, caller: &Caller) -> Result<Vec<Arc<Agent>>, Failure> {
    console.admit(caller, Action::AdminAgents).await?;
    Ok(console.engine().registry().deployed(&caller.scope))
}

/// Takes one of them back.
pub async fn remove(console: &Console, caller: &Caller, name: &str) -> Result<(), Failure> {
    let rows = list(console, caller).await?;
    let row = rows.iter().find(|row| row.slug == name || row.url == name);
    let row =
        row.ok_or_else(|| Failure::new(Kind::NotFound, format!("nothing is deployed as \"{name}\"")))?;
    console.engine().registry().remove(row).await?;
    if let Err(failure) = console.office().forget_policies(row).await {
        tracing::error!("the policies about {} were not removed: {failure}", row.slug);
    }
    Ok(())
}
