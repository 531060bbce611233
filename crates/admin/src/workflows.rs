//! Workflows and pipelines: definitions, versions and status. Reading needs the right to discover; changes need permission to administer
//! agents.

use std::sync::Arc;

use rialto_model::{
    call::Caller,
    failure::{Failure, FailureKind},
    flow::{Flow, FlowKind, FlowRun, FlowStatus},
    token_scopes::TokenScope,
};
use rialto_policy::Action;
use rialto_workflow::{definition::Workflow, run::NewDefinition};
use serde_json::{Value, json};

use super::{MAX_PAGE_ROWS, page_size, runs};
use crate::{
    Administration,
    administration::{require_right_or_admin, store_failure},
    operation::AdminOperation,
};

/// Definition in a list, with its last run.
#[derive(Clone, Debug)]
pub struct WorkflowListItem {
    /// Definition.
    pub flow: Flow,
    /// Parsed definition, if it is valid.
    pub workflow: Option<Arc<Workflow>>,
    /// Last run that the caller is allowed to see.
    pub last: Option<FlowRun>,
}

/// Version of a definition.
#[derive(Clone, Debug)]
pub struct WorkflowView {
    /// Definition of this version.
    pub flow: Arc<Flow>,
    /// Parsed definition.
    pub workflow: Arc<Workflow>,
    /// Number of the active version.
    pub newest: u64,
}

/// Definition to save.
#[derive(Clone, Debug, Default)]
pub struct NewWorkflow {
    /// Text in YAML or JSON.
    pub text: String,
    /// Name, if the text has none.
    pub name: String,
    /// Required kind; any kind by default.
    pub kind: Option<FlowKind>,
    /// Status in place of the one in the text.
    pub status: Option<FlowStatus>,
}

/// Definitions of the caller's project, by name.
pub async fn list_definitions(admin: &Administration, caller: &Caller) -> Result<Vec<Flow>, Failure> {
    require_right_or_admin(caller, TokenScope::Discover)?;
    Ok(admin.workflows().definitions().list(&caller.scope).await?)
}

/// Definitions of the caller's project, parsed and with their last runs.
pub async fn list_with_runs(
    admin: &Administration,
    caller: &Caller,
) -> Result<Vec<WorkflowListItem>, Failure> {
    let book = admin.workflows().definitions();
    let mut listed = Vec::new();
    for flow in list_definitions(admin, caller).await?.into_iter().take(MAX_PAGE_ROWS) {
        let workflow = book.workflow(&flow).ok();
        let last = runs::latest_run(admin, caller, &flow.name).await?;
        listed.push(WorkflowListItem { flow, workflow, last });
    }
    Ok(listed)
}

/// Finds a definition: the active version, or an earlier one.
pub async fn show(
    admin: &Administration,
    caller: &Caller,
    name: &str,
    version: Option<u64>,
) -> Result<WorkflowView, Failure> {
    require_right_or_admin(caller, TokenScope::Discover)?;
    let book = admin.workflows().definitions();
    let (flow, workflow) = book.show(&caller.scope, name).await?;
    let newest = flow.version;
    let Some(version) = version.filter(|version| *version != newest) else {
        return Ok(WorkflowView { flow, workflow, newest });
    };
    let found = admin.store().flow(&caller.scope, name, Some(version)).await.map_err(store_failure)?;
    let none = || Failure::new(FailureKind::NotFound, format!("there is no version {version} of \"{name}\""));
    let flow = found.ok_or_else(none)?;
    let workflow = book.workflow(&flow)?;
    Ok(WorkflowView { flow: Arc::new(flow), workflow, newest })
}

/// Page of the versions of a definition, newest first, and the cursor of the next one.
pub async fn versions(
    admin: &Administration,
    caller: &Caller,
    name: &str,
    limit: Option<usize>,
    cursor: Option<u64>,
) -> Result<(Vec<Flow>, Option<u64>), Failure> {
    let newest = show(admin, caller, name, None).await?.newest;
    let (limit, first) =
        (page_size(limit), cursor.map_or(newest, |cursor| newest.min(cursor.saturating_sub(1))));
    let mut found = Vec::new();
    let mut version = first;
    while version > 0 && found.len() < limit {
        found.extend(admin.store().flow(&caller.scope, name, Some(version)).await.map_err(store_failure)?);
        version -= 1;
    }
    let next = found.last().filter(|_| version > 0).map(|last| last.version);
    Ok((found, next))
}

/// Saves a definition, replacing any with the same name.
pub async fn save(
    admin: &Administration,
    caller: &Caller,
    new_workflow: NewWorkflow,
) -> Result<Flow, Failure> {
    let given = NewDefinition {
        scope: caller.scope.clone(),
        text: new_workflow.text,
        name: new_workflow.name,
        kind: new_workflow.kind,
        by: caller.id.clone(),
        token: caller.token.clone(),
        status: new_workflow.status,
        configured: false,
    };
    let name = if given.name.is_empty() { "unnamed" } else { given.name.as_str() };
    let operation = AdminOperation::new("workflow.save", name);
    admin.administer(caller, Action::AdminAgents, &operation, save_recorded(admin, given, &operation)).await
}

/// Saves a definition as part of a recorded operation.
pub(super) async fn save_recorded(
    admin: &Administration,
    given: NewDefinition,
    operation: &AdminOperation,
) -> Result<Flow, Failure> {
    let (scope, saved_from) = (given.scope.clone(), admin.engine().now());
    let flow = admin.workflows().definitions().add(admin.engine(), given).await?;
    operation.name(flow.name.as_str());
    if flow.at < saved_from {
        // An identical text creates no new version.
        operation.before(audit_state(&flow));
    } else if let Some(earlier) = flow.version.checked_sub(1).filter(|version| *version > 0) {
        let earlier = admin.store().flow(&scope, &flow.name, Some(earlier)).await.map_err(store_failure)?;
        operation.before(earlier.as_ref().map_or(Value::Null, audit_state));
    }
    operation.after(audit_state(&flow));
    Ok(flow)
}

/// Sets the status of a definition.
pub async fn set_status(
    admin: &Administration,
    caller: &Caller,
    name: &str,
    status: FlowStatus,
) -> Result<Flow, Failure> {
    let operation = AdminOperation::new("workflow.set_status", name);
    admin
        .administer(caller, Action::AdminAgents, &operation, async {
            let book = admin.workflows().definitions();
            operation.before(audit_state(&book.show(&caller.scope, name).await?.0));
            let flow = book.set_status(admin.engine(), &caller.scope, name, status).await?;
            operation.after(audit_state(&flow));
            Ok(flow)
        })
        .await
}

/// Removes a definition. Its active runs continue.
pub async fn remove(admin: &Administration, caller: &Caller, name: &str) -> Result<(), Failure> {
    let operation = AdminOperation::new("workflow.remove", name);
    admin
        .administer(caller, Action::AdminAgents, &operation, async {
            let book = admin.workflows().definitions();
            operation.before(audit_state(&book.show(&caller.scope, name).await?.0));
            Ok(book.remove(admin.engine(), &caller.scope, name, false).await?)
        })
        .await
}

/// State of a definition in audit records. Its text is stored with its versions.
fn audit_state(flow: &Flow) -> Value {
    json!({ "name": flow.name, "kind": flow.kind, "status": flow.status, "version": flow.version, "by": flow.by })
}
