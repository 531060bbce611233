//! Work that names nobody: giving it away, and why this agent got it. Whoever may call gives work away and sees its own choices;
//! whoever may read the audit trail sees everybody's.

use std::time::Duration;

use rialto_engine::DispatchRequest;
use rialto_model::{
    call::Caller,
    failure::{Failure, FailureKind},
    ids::{DispatchId, TaskId},
    message::Part,
    routing::{Dispatch, DispatchFilter, WorkDescription},
    task::Task,
    token_scopes::TokenScope,
    trace::Trace,
};

use super::page_size;
use crate::Console;

/// A page has at most so many: each tells of everybody who was considered.
const MOST: usize = 200;

/// Which choices to list, newest first.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only of this type of work.
    pub work_type: Option<String>,
    /// At most so many.
    pub limit: Option<usize>,
    /// Only those older than this one.
    pub cursor: Option<DispatchId>,
}

/// Work for whoever does it best.
#[derive(Debug)]
pub struct Wanted {
    /// What is to be done.
    pub work: WorkDescription,
    /// What is said to the agent.
    pub part: Part,
    /// The conversation to go on with.
    pub context: Option<String>,
    /// How long the caller waits.
    pub wall_clock: Option<Duration>,
    /// The trace that the caller has begun.
    pub trace: Option<Box<Trace>>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Done {
    /// The choice.
    pub dispatch: Option<DispatchId>,
    /// Who did it.
    pub agent: Option<String>,
    /// The task that it was.
    pub task: Task,
}

/// Choices of the caller, or of everybody where it may see them, newest first, and where the next page begins.
pub async fn list(
    console: &Console,
    caller: &Caller,
    filter: &Filter,
) -> Result<(Vec<Dispatch>, Option<DispatchId>), Failure> {
    let limit = page_size(filter.limit).min(MOST);
    let wanted = DispatchFilter {
        work_type: filter.work_type.clone(),
        before: filter.cursor.clone(),
        limit,
        ..DispatchFilter::default()
    };
    let found = read(console, caller, wanted).await?;
    let next = found.last().filter(|_| found.len() == limit).map(|last| last.id.clone());
    Ok((found, next))
}

/// One of them: by its id, or by that of a task it made.
pub async fn show(console: &Console, caller: &Caller, id: &str) -> Result<Dispatch, Failure> {
    let filter = DispatchFilter { id: Some(id.to_owned()), limit: 1, ..DispatchFilter::default() };
    let found = read(console, caller, filter).await?.into_iter().next();
    found.ok_or_else(|| {
        Failure::new(FailureKind::NotFound, format!("there is no choice \"{id}\" that you may see"))
    })
}

/// Whether a task is one that named nobody, and whose choice the caller may see.
pub(crate) async fn is_choice(console: &Console, caller: &Caller, task: &TaskId) -> bool {
    show(console, caller, task.as_str()).await.is_ok()
}

/// Gives work to whoever does it best, and waits until it is done or asks something.
pub async fn dispatch(console: &Console, caller: &Caller, wanted: Wanted) -> Result<Done, Failure> {
    Console::own(caller, TokenScope::Call)?;
    let request = DispatchRequest {
        context: wanted.context,
        wall_clock: wanted.wall_clock,
        trace: wanted.trace,
        ..DispatchRequest::new(caller.clone(), console.door(), wanted.work, vec![wanted.part])
    };
    let running = Box::pin(console.engine().dispatch(request)).await?;
    let dispatch = running.dispatch().cloned();
    let task = running.finish().await?;
    let agent = console.engine().registry().get(&task.head.agent);
    Ok(Done { dispatch, agent: agent.map(|agent| agent.slug.clone()), task })
}

/// Who would be chosen, and why. Nobody is called.
pub async fn resolve(
    console: &Console,
    caller: &Caller,
    work: &WorkDescription,
) -> Result<Dispatch, Failure> {
    Console::need(caller, TokenScope::Discover)?;
    // Others are asked what there is here, not what is elsewhere: two servers that ask each other would never end.
    if console.at_machine() {
        console.engine().explain(caller, work).await
    } else {
        console.engine().explain_here(caller, work).await
    }
}

async fn read(console: &Console, caller: &Caller, filter: DispatchFilter) -> Result<Vec<Dispatch>, Failure> {
    Console::need(caller, TokenScope::Call)?;
    console.engine().sync().await?;
    let own = (!console.sees_all(caller)).then(|| caller.id.clone());
    console.engine().dispatches(caller, DispatchFilter { caller: own, ..filter }).await
}
