//! Definitions of workflows: looked over while they are written, kept, put into use and forgotten.
//!
//! Whoever may discover sees what there is ([`super::flows`]); whoever may administer agents changes it.

use rialto_flow::{
    definition::Workflow,
    problem::Problem,
    read::{self, Source},
    run::Given,
};
use rialto_model::{
    call::Caller,
    failure::{Failure, FailureKind},
    flow::{Flow, FlowStatus},
};
use rialto_policy::Action;

use super::flows;
use crate::{Console, operation::Operation};

/// A definition that somebody writes.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// What it is called if it does not say so itself.
    pub name: String,
    /// YAML or JSON.
    pub text: String,
    /// Whether it may be run, in place of what the text says.
    pub status: Option<FlowStatus>,
    /// The name and the version that it was made from, if it was: somebody else's change is not written over.
    pub made_from: Option<(String, u64)>,
}

/// What is thought of a text.
#[derive(Debug)]
pub struct Checked {
    /// What it says, if it holds up.
    pub workflow: Option<Workflow>,
    /// Everything that is wrong with it, in the order of the text.
    pub problems: Vec<Problem>,
    /// How many more there are.
    pub more: usize,
}

/// Looks a text over, without keeping it.
pub async fn check(console: &Console, caller: &Caller, wanted: &Wanted) -> Result<Checked, Failure> {
    console.admit(caller, Action::AdminAgents).await?;
    let source = Source { text: &wanted.text, name: name_of(wanted), kind: None };
    Ok(match read::workflow(source) {
        Ok(workflow) => Checked { workflow: Some(workflow), problems: Vec::new(), more: 0 },
        Err(found) => {
            let problems: Vec<Problem> = found.iter().cloned().collect();
            Checked { workflow: None, more: found.len() - problems.len(), problems }
        }
    })
}

/// Keeps a definition, in place of the one that has its name.
pub async fn keep(console: &Console, caller: &Caller, wanted: &Wanted) -> Result<Flow, Failure> {
    let operation = Operation::new("workflow.save", name_of(wanted));
    console
        .administer(caller, Action::AdminAgents, &operation, async {
            is_newest(console, caller, wanted).await?;
            let given = Given {
                scope: caller.scope.clone(),
                text: wanted.text.clone(),
                name: name_of(wanted).to_owned(),
                kind: None,
                by: caller.id.clone(),
                token: caller.token.clone(),
                status: wanted.status,
                configured: false,
            };
            flows::put(console, given, &operation).await
        })
        .await
}

/// Refuses a change of a version that somebody else has replaced meanwhile.
async fn is_newest(console: &Console, caller: &Caller, wanted: &Wanted) -> Result<(), Failure> {
    let Some((name, version)) = &wanted.made_from else { return Ok(()) };
    let newest = console.flows().book().show(&caller.scope, name).await?.0.version;
    if newest == *version {
        return Ok(());
    }
    let message = format!(
        "\"{name}\" was changed meanwhile: this was made from version {version}, and {newest} is in force; \
         open its page again, and put your changes in there"
    );
    Err(Failure::new(FailureKind::Conflict, message))
}

/// Nobody has to think of a name before there is anything to be named.
fn name_of(wanted: &Wanted) -> &str {
    match wanted.name.trim() {
        "" => "unnamed",
        name => name,
    }
}
