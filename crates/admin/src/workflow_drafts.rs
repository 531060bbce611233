//! Drafts of workflow definitions: checks while they are edited, and saving with a version check.
//!
//! Reading definitions needs the right to discover ([`super::workflows`]); changing them needs permission to administer agents.

use rialto_model::{
    call::Caller,
    failure::{Failure, FailureKind},
    flow::{Flow, FlowStatus},
};
use rialto_policy::Action;
use rialto_workflow::{
    definition::Workflow,
    problem::DefinitionProblem,
    read::{self, DefinitionSource},
    run::NewDefinition,
};

use super::workflows;
use crate::{Administration, operation::AdminOperation};

/// Definition that is being edited.
#[derive(Clone, Debug, Default)]
pub struct WorkflowDraft {
    /// Name, if the text has none.
    pub name: String,
    /// Text in YAML or JSON.
    pub text: String,
    /// Status in place of the one in the text.
    pub status: Option<FlowStatus>,
    /// Name and version it was edited from, so that no change of another user is overwritten.
    pub made_from: Option<(String, u64)>,
}

/// Result of a check of a draft.
#[derive(Debug)]
pub struct CheckedDraft {
    /// Parsed definition, if it is valid.
    pub workflow: Option<Workflow>,
    /// Problems, in the order of the text.
    pub problems: Vec<DefinitionProblem>,
    /// Number of problems that are left out.
    pub more: usize,
}

/// Checks a draft without saving it.
pub async fn check_draft(
    admin: &Administration,
    caller: &Caller,
    draft: &WorkflowDraft,
) -> Result<CheckedDraft, Failure> {
    admin.authorize_admin(caller, Action::AdminAgents).await?;
    let source = DefinitionSource { text: &draft.text, name: name_or_default(draft), kind: None };
    Ok(match read::workflow(source) {
        Ok(workflow) => CheckedDraft { workflow: Some(workflow), problems: Vec::new(), more: 0 },
        Err(found) => {
            let problems: Vec<DefinitionProblem> = found.iter().cloned().collect();
            CheckedDraft { workflow: None, more: found.len() - problems.len(), problems }
        }
    })
}

/// Saves a draft, replacing any workflow with the same name.
pub async fn save_draft(
    admin: &Administration,
    caller: &Caller,
    draft: &WorkflowDraft,
) -> Result<Flow, Failure> {
    let operation = AdminOperation::new("workflow.save", name_or_default(draft));
    admin
        .administer(caller, Action::AdminAgents, &operation, async {
            check_version(admin, caller, draft).await?;
            let given = NewDefinition {
                scope: caller.scope.clone(),
                text: draft.text.clone(),
                name: name_or_default(draft).to_owned(),
                kind: None,
                by: caller.id.clone(),
                token: caller.token.clone(),
                status: draft.status,
                configured: false,
            };
            workflows::save_recorded(admin, given, &operation).await
        })
        .await
}

/// Fails if the version it was edited from was replaced meanwhile.
async fn check_version(
    admin: &Administration,
    caller: &Caller,
    draft: &WorkflowDraft,
) -> Result<(), Failure> {
    let Some((name, version)) = &draft.made_from else { return Ok(()) };
    let newest = admin.workflows().definitions().show(&caller.scope, name).await?.0.version;
    if newest == *version {
        return Ok(());
    }
    let message = format!(
        "\"{name}\" was changed meanwhile: you edited version {version}, and version {newest} is active; \
         open its page again and merge your changes"
    );
    Err(Failure::new(FailureKind::Conflict, message))
}

/// Name of the draft, or a placeholder.
fn name_or_default(draft: &WorkflowDraft) -> &str {
    match draft.name.trim() {
        "" => "unnamed",
        name => name,
    }
}
