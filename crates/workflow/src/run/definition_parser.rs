//! Parser of definitions for the runner, with all problems in one text.

use rialto_model::flow::FlowKind;

use super::definitions::DefinitionError;
use crate::{
    definition::{Workflow, WorkflowKind},
    read::{self, DefinitionSource},
};

/// Parses a definition. `name` is its name if the text has none.
pub(super) fn parse_definition(
    text: &str,
    name: &str,
    kind: Option<FlowKind>,
) -> Result<Workflow, DefinitionError> {
    let kind = kind.map(|kind| match kind {
        FlowKind::Workflow => WorkflowKind::Workflow,
        FlowKind::Pipeline => WorkflowKind::Pipeline,
    });
    read::workflow(DefinitionSource { text, name, kind })
        .map_err(|problems| DefinitionError::Invalid(problems.to_string()))
}
