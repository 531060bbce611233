//! Workflows and pipelines: what there is. Whoever may discover sees it; whoever may administer agents changes it.

use std::sync::Arc;

use rialto_flow::{definition::Workflow, run::Given};
use rialto_model::{
    call::Caller,
    failure::{Failure, FailureKind},
    flow::{Flow, FlowKind, FlowRun, FlowStatus},
    token_scopes::TokenScope,
};
use rialto_policy::Action;
use serde_json::{Value, json};

use super::{MOST, page_size, runs};
use crate::{Console, console::store_failure, operation::Operation};

/// A definition in a list.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The definition.
    pub flow: Flow,
    /// What it says, if it can still be read.
    pub workflow: Option<Arc<Workflow>>,
    /// The last run of it that the caller may see.
    pub last: Option<FlowRun>,
}

/// One version of a definition.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The version.
    pub flow: Arc<Flow>,
    /// What it says.
    pub workflow: Arc<Workflow>,
    /// The version in force.
    pub newest: u64,
}

/// A definition that somebody wants kept.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The text, in YAML or JSON.
    pub text: String,
    /// What it is called if it does not say so itself.
    pub name: String,
    /// What it must be; nothing leaves it to the text.
    pub kind: Option<FlowKind>,
    /// Whether it may be run, in place of what the text says.
    pub status: Option<FlowStatus>,
}

/// The definitions of the caller's project, by name.
pub async fn all(console: &Console, caller: &Caller) -> Result<Vec<Flow>, Failure> {
    Console::need(caller, TokenScope::Discover)?;
    Ok(console.flows().book().list(&caller.scope).await?)
}

/// The same, with what they say and how they went last.
pub async fn list(console: &Console, caller: &Caller) -> Result<Vec<Listed>, Failure> {
    let book = console.flows().book();
    let mut listed = Vec::new();
    for flow in all(console, caller).await?.into_iter().take(MOST) {
        let workflow = book.workflow(&flow).ok();
        let last = runs::latest(console, caller, &flow.name).await?;
        listed.push(Listed { flow, workflow, last });
    }
    Ok(listed)
}

/// A definition: the version in force, or an earlier one.
pub async fn show(
    console: &Console,
    caller: &Caller,
    name: &str,
    version: Option<u64>,
) -> Result<Shown, Failure> {
    Console::need(caller, TokenScope::Discover)?;
    let book = console.flows().book();
    let (flow, workflow) = book.show(&caller.scope, name).await?;
    let newest = flow.version;
    let Some(version) = version.filter(|version| *version != newest) else {
        return Ok(Shown { flow, workflow, newest });
    };
    let found = console.store().flow(&caller.scope, name, Some(version)).await.map_err(store_failure)?;
    let none = || Failure::new(FailureKind::NotFound, format!("there is no version {version} of \"{name}\""));
    let flow = found.ok_or_else(none)?;
    let workflow = book.workflow(&flow)?;
    Ok(Shown { flow: Arc::new(flow), workflow, newest })
}

/// The versions of a definition, newest first, and where the next page begins.
pub async fn versions(
    console: &Console,
    caller: &Caller,
    name: &str,
    limit: Option<usize>,
    cursor: Option<u64>,
) -> Result<(Vec<Flow>, Option<u64>), Failure> {
    let newest = show(console, caller, name, None).await?.newest;
    let (limit, first) =
        (page_size(limit), cursor.map_or(newest, |cursor| newest.min(cursor.saturating_sub(1))));
    let mut found = Vec::new();
    let mut version = first;
    while version > 0 && found.len() < limit {
        found.extend(console.store().flow(&caller.scope, name, Some(version)).await.map_err(store_failure)?);
        version -= 1;
    }
    let next = found.last().filter(|_| version > 0).map(|last| last.version);
    Ok((found, next))
}

/// Keeps a definition, in place of the one that has its name.
pub async fn keep(console: &Console, caller: &Caller, wanted: Wanted) -> Result<Flow, Failure> {
    let given = Given {
        scope: caller.scope.clone(),
        text: wanted.text,
        name: wanted.name,
        kind: wanted.kind,
        by: caller.id.clone(),
        token: caller.token.clone(),
        status: wanted.status,
        configured: false,
    };
    let name = if given.name.is_empty() { "unnamed" } else { given.name.as_str() };
    let operation = Operation::new("workflow.save", name);
    console.administer(caller, Action::AdminAgents, &operation, put(console, given, &operation)).await
}

/// Keeps a definition, for an operation that is recorded.
pub(super) async fn put(console: &Console, given: Given, operation: &Operation) -> Result<Flow, Failure> {
    let (scope, begun) = (given.scope.clone(), console.engine().now());
    let flow = console.flows().book().add(console.engine(), given).await?;
    operation.name(flow.name.as_str());
    if flow.at < begun {
        // The same text again changes nothing.
        operation.before(state(&flow));
    } else if let Some(earlier) = flow.version.checked_sub(1).filter(|version| *version > 0) {
        let earlier = console.store().flow(&scope, &flow.name, Some(earlier)).await.map_err(store_failure)?;
        operation.before(earlier.as_ref().map_or(Value::Null, state));
    }
    operation.after(state(&flow));
    Ok(flow)
}

/// Says whether a definition may be run.
pub async fn set_status(
    console: &Console,
    caller: &Caller,
    name: &str,
    status: FlowStatus,
) -> Result<Flow, Failure> {
    let operation = Operation::new("workflow.set_status", name);
    console
        .administer(caller, Action::AdminAgents, &operation, async {
            let book = console.flows().book();
            operation.before(state(&book.show(&caller.scope, name).await?.0));
            let flow = book.set_status(console.engine(), &caller.scope, name, status).await?;
            operation.after(state(&flow));
            Ok(flow)
        })
        .await
}

/// Forgets a definition. Runs of it go on.
pub async fn remove(console: &Console, caller: &Caller, name: &str) -> Result<(), Failure> {
    let operation = Operation::new("workflow.remove", name);
    console
        .administer(caller, Action::AdminAgents, &operation, async {
            let book = console.flows().book();
            operation.before(state(&book.show(&caller.scope, name).await?.0));
            Ok(book.remove(console.engine(), &caller.scope, name, false).await?)
        })
        .await
}

/// A definition as records show it. Its text is kept with its versions.
fn state(flow: &Flow) -> Value {
    json!({ "name": flow.name, "kind": flow.kind, "status": flow.status, "version": flow.version, "by": flow.by })
}
