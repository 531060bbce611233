//! Definitions as the runner reads them: what is wrong is told in one text.

use rialto_model::flow::FlowKind;

use super::book::BookError;
use crate::{
    definition::{Kind, Workflow},
    read::{self, Source},
};

/// Reads a definition. `name` is what it is called if it does not say so itself.
pub(super) fn workflow(text: &str, name: &str, kind: Option<FlowKind>) -> Result<Workflow, BookError> {
    let kind = kind.map(|kind| match kind {
        FlowKind::Workflow => Kind::Workflow,
        FlowKind::Pipeline => Kind::Pipeline,
    });
    read::workflow(Source { text, name, kind }).map_err(|problems| BookError::Invalid(problems.to_string()))
}
