//! What a template or a condition looks at: `nodes.fetch.output.items[0].title ?? "untitled"`.
//!
//! A [`Reference`] names a root (what the run was given, what a node has made, the item at hand) and a path into it; an
//! [`Expression`] is a few of them in turn, and what counts when none is there. Whoever fills them in answers for roots only, by a
//! [`Lookup`]; the path is followed here, through JSON that nobody takes apart further than it must.

mod find;
mod parse;

use std::fmt;

use rialto_model::json::Json;

use crate::definition::NodeId;

pub use self::find::{Missing, Why};
pub(crate) use self::parse::Cursor;
pub use self::parse::SyntaxError;

/// Answers what stands at a root; none when there is nothing.
pub type Lookup<'a> = dyn Fn(&Root) -> Option<Json> + 'a;

/// Where a reference begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Root {
    /// `$trigger` or `$input`: what the run was given.
    Trigger,
    /// `nodes.<id>` or `nodes.<id>.output`: what a node has made. There is nothing while it has not, or was skipped, or failed.
    Output(NodeId),
    /// `nodes.<id>.state`: how a node stands, as a string.
    State(NodeId),
    /// `item`: the item of a `map` that is at hand.
    Item,
    /// `index`: its number, counted from zero.
    Index,
}

/// One step into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// `.name` or `["odd name"]`: a member; `.0` is an item too, where there is a list.
    Field(String),
    /// `[0]`: an item.
    Index(usize),
}

/// A place in what is known while a workflow runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Where it begins.
    pub root: Root,
    /// The way from there.
    pub path: Vec<Step>,
    /// How it was written.
    pub(crate) text: String,
    /// Where that is in the text around it, in bytes.
    pub(crate) at: usize,
}

/// References in turn, and what counts when none of them is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    pub(crate) choices: Vec<Reference>,
    pub(crate) default: Option<Json>,
}

// === impl Root ===

impl Root {
    /// The node that must be over before there is something.
    pub const fn node(&self) -> Option<&NodeId> {
        match self {
            Self::Output(id) | Self::State(id) => Some(id),
            Self::Trigger | Self::Item | Self::Index => None,
        }
    }
}

// === impl Reference ===

impl Reference {
    /// A reference that nobody has written: to all that a root holds.
    pub fn whole(root: Root) -> Self {
        let text = match &root {
            Root::Trigger => "$input".to_owned(),
            Root::Output(id) => format!("nodes.{id}.output"),
            Root::State(id) => format!("nodes.{id}.state"),
            Root::Item => "item".to_owned(),
            Root::Index => "index".to_owned(),
        };
        Self { root, path: Vec::new(), text, at: 0 }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

// === impl Expression ===

impl Expression {
    /// What it looks at.
    pub fn references(&self) -> &[Reference] {
        &self.choices
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let choices = self.choices.iter().map(ToString::to_string);
        let all: Vec<String> = choices.chain(self.default.iter().map(ToString::to_string)).collect();
        write!(f, "{{{{ {} }}}}", all.join(" ?? "))
    }
}

impl From<Reference> for Expression {
    fn from(reference: Reference) -> Self {
        Self { choices: vec![reference], default: None }
    }
}
