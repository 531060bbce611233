//! Why this agent: choices that were made, with everybody who was considered.

use rialto_model::{
    call::Caller,
    failure::{Failure, Kind},
    ids::DispatchId,
    rights::Right,
    routing::{Dispatch, DispatchFilter},
};

use super::page_size;
use crate::Console;

/// Choices of the caller, or of everybody where it may see them, newest first.
pub async fn list(
    console: &Console,
    caller: &Caller,
    work_type: Option<&str>,
    before: Option<&str>,
) -> Result<(Vec<Dispatch>, Option<DispatchId>), Failure> {
    let limit = page_size(None);
    let filter = DispatchFilter {
        work_type: work_type.filter(|name| !name.is_empty()).map(str::to_owned),
        before: before.map(DispatchId::from),
        limit,
        ..DispatchFilter::default()
    };
    let found = read(console, caller, filter).await?;
    let next = found.last().filter(|_| found.len() == limit).map(|last| last.id.clone());
    Ok((found, next))
}

/// One of them: by its id, or by that of a task it made.
pub async fn show(console: &Console, caller: &Caller, id: &str) -> Result<Dispatch, Failure> {
    let filter = DispatchFilter { id: Some(id.to_owned()), limit: 1, ..DispatchFilter::default() };
    let found = read(console, caller, filter).await?.into_iter().next();
    found.ok_or_else(|| Failure::new(Kind::NotFound, format!("there is no choice \"{id}\" that you may see")))
}

async fn read(console: &Console, caller: &Caller, filter: DispatchFilter) -> Result<Vec<Dispatch>, Failure> {
    Console::need(caller, Right::Call)?;
    console.engine().sync().await?;
    let own = (!console.sees_all(caller)).then(|| caller.id.clone());
    console.engine().dispatches(caller, DispatchFilter { caller: own, ..filter }).await
}
