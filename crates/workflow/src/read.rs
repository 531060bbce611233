//! Parser of workflows: YAML or JSON, with steps, nodes or a pipeline.
//!
//! Parsing has three stages. The text becomes a tree with positions (`yaml`, `json`); the tree becomes drafts of nodes, key by key
//! (`metadata`, `node`, `node_kinds`, [`crate::pipeline`]); and the drafts are connected and checked as a whole ([`crate::check`]).
//! Each stage continues after a problem, so all problems are reported at once.

pub(crate) mod diagnostics;
mod duration;
pub(crate) mod fields;
mod json;
mod metadata;
mod node;
mod node_kinds;
mod scalar;
mod steps;
#[cfg(test)]
mod tests;
pub(crate) mod tree;
mod yaml;

use rialto_model::json::Json;

use self::{diagnostics::Diagnostics, tree::SourceTree};
use crate::{
    definition::{SourcePosition, Workflow, WorkflowKind},
    problem::{DefinitionProblems, ProblemCode},
};

pub(crate) use self::{
    node::{CommonFields, NodeDraft, limit_nodes, read_common},
    steps::parallel_group,
};

/// A file is no larger than this, in bytes.
pub const MAX_FILE_BYTES: usize = 1 << 20;
/// A workflow has no more nodes than this.
pub const MAX_NODES: usize = 1_000;
/// A file has no more values than this, copies of anchors included.
const MAX_VALUES: usize = 50_000;
/// Lists and objects of a file lie no deeper inside each other than this.
const MAX_NESTING_DEPTH: usize = 50;

/// A text that may be a workflow.
#[derive(Clone, Copy, Debug)]
pub struct DefinitionSource<'a> {
    /// YAML or JSON.
    pub text: &'a str,
    /// Name if the text has none.
    pub name: &'a str,
    /// Required notation, if any.
    pub kind: Option<WorkflowKind>,
}

/// Parses a workflow, or reports all problems.
pub fn workflow(source: DefinitionSource<'_>) -> Result<Workflow, DefinitionProblems> {
    let tree = tree(source.text)?;
    let mut diagnostics = Diagnostics::default();
    let read = metadata::read_workflow(&tree, source, &mut diagnostics);
    match read {
        Some(workflow) if diagnostics.problems.is_empty() => Ok(workflow),
        _ => {
            diagnostics.problems.sort();
            Err(diagnostics.problems)
        }
    }
}

/// The text as JSON, with all digits, without interpreting it.
pub fn json(text: &str) -> Result<Json, DefinitionProblems> {
    tree(text).map(|tree| tree.json())
}

fn tree(text: &str) -> Result<SourceTree, DefinitionProblems> {
    if text.len() > MAX_FILE_BYTES {
        let message = format!("a workflow has at most {} KiB", MAX_FILE_BYTES >> 10);
        return Err(DefinitionProblems::single(
            SourcePosition { line: 1, column: 1 },
            ProblemCode::Syntax,
            message,
        ));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !text.trim_start().starts_with('{') {
        return yaml::parse_yaml(text);
    }
    // It may be YAML that resembles JSON; if it is neither, the JSON problem is reported.
    json::parse_json(text).or_else(|problems| yaml::parse_yaml(text).map_err(|_| problems))
}
