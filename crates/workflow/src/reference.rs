//! References of templates and conditions: `nodes.fetch.output.items[0].title ?? "untitled"`.
//!
//! A [`ValueReference`] names a root (what the run was given, what a node has made, the item at hand) and a path into it; an
//! [`ReferenceExpression`] is several of them in order, with a default. A [`RootLookup`] resolves roots; the path is followed here,
//! through JSON that is parsed only as far as necessary.

mod parse;
mod resolve;

use std::fmt;

use rialto_model::json::Json;

use crate::definition::NodeId;

pub use self::parse::SyntaxError;
pub(crate) use self::parse::TextCursor;
pub use self::resolve::{MissingReason, MissingValue};

/// Returns the value of a root, if there is one.
pub type RootLookup<'a> = dyn Fn(&ReferenceRoot) -> Option<Json> + 'a;

/// Root of a reference.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReferenceRoot {
    /// `$trigger` or `$input`: what the run was given.
    Trigger,
    /// `nodes.<id>` or `nodes.<id>.output`: what a node has made. There is nothing while it has not, or was skipped, or failed.
    Output(NodeId),
    /// `nodes.<id>.state`: state of a node, as a string.
    State(NodeId),
    /// `item`: the item of a `map` that is at hand.
    Item,
    /// `index`: its number, counted from zero.
    Index,
}

/// Step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// `.name` or `["odd name"]`: a member; `.0` is an item too, where there is a list.
    Field(String),
    /// `[0]`: an item.
    Index(usize),
}

/// A place in what is known while a workflow runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueReference {
    /// Root.
    pub root: ReferenceRoot,
    /// The way from there.
    pub path: Vec<PathStep>,
    /// Source text.
    pub(crate) text: String,
    /// Offset in the surrounding text, in bytes.
    pub(crate) at: usize,
}

/// References in turn, and what counts when none of them is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceExpression {
    pub(crate) choices: Vec<ValueReference>,
    pub(crate) default: Option<Json>,
}

// === impl ReferenceRoot ===

impl ReferenceRoot {
    /// The node that must be over before there is something.
    pub const fn node(&self) -> Option<&NodeId> {
        match self {
            Self::Output(id) | Self::State(id) => Some(id),
            Self::Trigger | Self::Item | Self::Index => None,
        }
    }
}

// === impl ValueReference ===

impl ValueReference {
    /// Reference to the whole value of a root, without source text.
    pub fn whole(root: ReferenceRoot) -> Self {
        let text = match &root {
            ReferenceRoot::Trigger => "$input".to_owned(),
            ReferenceRoot::Output(id) => format!("nodes.{id}.output"),
            ReferenceRoot::State(id) => format!("nodes.{id}.state"),
            ReferenceRoot::Item => "item".to_owned(),
            ReferenceRoot::Index => "index".to_owned(),
        };
        Self { root, path: Vec::new(), text, at: 0 }
    }
}

impl fmt::Display for ValueReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

// === impl ReferenceExpression ===

impl ReferenceExpression {
    /// References in the expression.
    pub fn references(&self) -> &[ValueReference] {
        &self.choices
    }
}

impl fmt::Display for ReferenceExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let choices = self.choices.iter().map(ToString::to_string);
        let all: Vec<String> = choices.chain(self.default.iter().map(ToString::to_string)).collect();
        write!(f, "{{{{ {} }}}}", all.join(" ?? "))
    }
}

impl From<ValueReference> for ReferenceExpression {
    fn from(reference: ValueReference) -> Self {
        Self { choices: vec![reference], default: None }
    }
}
