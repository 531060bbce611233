//! Workflows as they are written: YAML or JSON, steps or nodes or a pipeline.
//!
//! Reading goes in three turns. The text becomes a tree that knows its places (`yaml`, `json`); the tree becomes drafts of nodes,
//! key by key (`head`, `node`, `does`, [`crate::pipeline`]); and the drafts are tied together and looked over as a whole
//! ([`crate::check`]). Each turn goes on after what is wrong, so all of it is told at once.

mod does;
mod duration;
pub(crate) mod fields;
mod head;
mod json;
mod node;
pub(crate) mod notes;
mod scalar;
mod steps;
#[cfg(test)]
mod tests;
pub(crate) mod tree;
mod yaml;

use rialto_model::json::Json;

use self::{notes::Notes, tree::Tree};
use crate::{
    definition::{Kind, Place, Workflow},
    problem::{Code, Problems},
};

pub(crate) use self::{
    node::{Common, Draft, common, few},
    steps::group,
};

/// A file is no larger than this, in bytes.
pub const LARGEST: usize = 1 << 20;
/// A workflow has no more nodes than this.
pub const MOST_NODES: usize = 1_000;
/// A file has no more values than this, copies of anchors included.
const MOST_VALUES: usize = 50_000;
/// Lists and objects of a file lie no deeper inside each other than this.
const DEEPEST: usize = 50;

/// A text that may be a workflow.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// YAML or JSON.
    pub text: &'a str,
    /// What it is called if it does not say so itself.
    pub name: &'a str,
    /// What it must be; nothing leaves it to the text.
    pub kind: Option<Kind>,
}

/// Reads a workflow, or tells all that is wrong with it.
pub fn workflow(source: Source<'_>) -> Result<Workflow, Problems> {
    let tree = tree(source.text)?;
    let mut notes = Notes::default();
    let read = head::read(&tree, source, &mut notes);
    match read {
        Some(workflow) if notes.problems.is_empty() => Ok(workflow),
        _ => {
            notes.problems.sort();
            Err(notes.problems)
        }
    }
}

/// The same text as JSON, with every digit, whatever it says.
pub fn json(text: &str) -> Result<Json, Problems> {
    tree(text).map(|tree| tree.json())
}

fn tree(text: &str) -> Result<Tree, Problems> {
    if text.len() > LARGEST {
        let message = format!("a workflow has at most {} KiB", LARGEST >> 10);
        return Err(Problems::one(Place { line: 1, column: 1 }, Code::Syntax, message));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !text.trim_start().starts_with('{') {
        return yaml::read(text);
    }
    // It may be YAML that looks like JSON; if it is neither, JSON is what was meant.
    json::read(text).or_else(|problems| yaml::read(text).map_err(|_| problems))
}
