//! Resolution of references, with precise errors.
//!
//! An error names the type of a value and its keys, never its content: error texts are logged and displayed.

use std::fmt;

use rialto_model::json::{Json, RawJson};

use super::{PathStep, ReferenceExpression, ReferenceRoot, RootLookup, ValueReference};
use crate::definition::NodeId;

/// Maximum number of keys listed in an error.
const MAX_NAMES_IN_ERROR: usize = 8;

/// Something that a template needs is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{{{{ {reference} }}}} cannot be filled in: {why}")]
pub struct MissingValue {
    /// The reference, as it was written.
    pub reference: String,
    /// Reason.
    pub why: MissingReason,
}

/// Reason that a value is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingReason {
    /// The node has no output.
    NoOutput {
        /// The node.
        node: NodeId,
        /// State of the node, if known.
        state: Option<String>,
    },
    /// There is nothing at this root here.
    NoRoot(&'static str),
    /// An object lacks a member.
    NoMember {
        /// Reference up to the value.
        inside: String,
        /// The member.
        name: String,
        /// First keys of the object.
        has: Vec<String>,
    },
    /// A list is too short.
    NoItem {
        /// Reference up to the value.
        inside: String,
        /// The item.
        index: usize,
        /// Number of items.
        length: usize,
    },
    /// There is nothing inside of such a value.
    NotInside {
        /// Reference up to the value.
        inside: String,
        /// Type of the value.
        kind: &'static str,
        /// Requested step.
        step: String,
    },
}

// === impl ReferenceExpression ===

impl ReferenceExpression {
    /// The first value that is there and not null; else the default; else null, if one of them was that.
    pub fn resolve(&self, lookup: &RootLookup<'_>) -> Result<Json, MissingValue> {
        let mut missing = None;
        let mut null = None;
        for reference in &self.choices {
            match reference.resolve(lookup) {
                Ok(found) if found.is_null() => null = Some(found),
                Ok(found) => return Ok(found),
                Err(error) => missing = missing.or(Some(error)),
            }
        }
        match (&self.default, null, missing) {
            (Some(default), _, _) => Ok(default.clone()),
            (None, None, Some(missing)) => Err(missing),
            (None, null, _) => Ok(null.unwrap_or_else(Json::null)),
        }
    }
}

// === impl ValueReference ===

impl ValueReference {
    /// Value at the reference.
    pub fn resolve(&self, lookup: &RootLookup<'_>) -> Result<Json, MissingValue> {
        let missing = |why| MissingValue { reference: self.text.clone(), why };
        let whole = lookup(&self.root).ok_or_else(|| missing(self.missing_root_reason(lookup)))?;
        if self.path.is_empty() {
            return Ok(whole);
        }
        let mut found = whole.raw();
        for (depth, step) in self.path.iter().enumerate() {
            found =
                step.get_from(found).ok_or_else(|| missing(self.missing_step_reason(depth, step, found)))?;
        }
        Ok(Json::from(found))
    }

    fn missing_root_reason(&self, lookup: &RootLookup<'_>) -> MissingReason {
        match &self.root {
            ReferenceRoot::Output(node) | ReferenceRoot::State(node) => {
                let state = lookup(&ReferenceRoot::State(node.clone())).and_then(|state| state.read().ok());
                MissingReason::NoOutput { node: node.clone(), state }
            }
            ReferenceRoot::Trigger => MissingReason::NoRoot("this run was given nothing"),
            ReferenceRoot::Item | ReferenceRoot::Index => {
                MissingReason::NoRoot("there are items only inside of a map")
            }
        }
    }

    fn missing_step_reason(&self, depth: usize, step: &PathStep, found: RawJson<'_>) -> MissingReason {
        let inside = self.prefix_text(depth);
        match (step, found.members(), found.items()) {
            (PathStep::Field(name), Some(members), _) => {
                let has =
                    members.into_iter().map(|(name, _)| name.into_owned()).take(MAX_NAMES_IN_ERROR).collect();
                MissingReason::NoMember { inside, name: name.clone(), has }
            }
            (PathStep::Index(index), _, Some(items)) => {
                MissingReason::NoItem { inside, index: *index, length: items.len() }
            }
            _ => MissingReason::NotInside { inside, kind: found.kind(), step: step.to_string() },
        }
    }

    /// The reference up to its step number `depth`.
    fn prefix_text(&self, depth: usize) -> String {
        let mut text = Self::whole(self.root.clone()).text;
        for step in self.path.iter().take(depth) {
            text += &step.to_string();
        }
        text
    }
}

// === impl PathStep ===

impl PathStep {
    fn get_from<'a>(&self, value: RawJson<'a>) -> Option<RawJson<'a>> {
        match self {
            Self::Index(index) => value.items()?.get(*index).copied(),
            Self::Field(name) => match value.items() {
                Some(items) => items.get(name.parse::<usize>().ok()?).copied(),
                None => value.member(name),
            },
        }
    }
}

impl fmt::Display for PathStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Field(name) if super::parse::is_identifier(name) => write!(f, ".{name}"),
            Self::Field(name) => write!(f, "[{}]", Json::encode(name)),
        }
    }
}

// === impl MissingReason ===

impl fmt::Display for MissingReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOutput { node, state: None } => write!(f, "node \"{node}\" has no output"),
            Self::NoOutput { node, state: Some(state) } => {
                write!(f, "node \"{node}\" has no output, it is {state}")
            }
            Self::NoRoot(why) => f.write_str(why),
            Self::NoMember { inside, name, has } if has.is_empty() => {
                write!(f, "{inside} is an empty object, without \"{name}\"")
            }
            Self::NoMember { inside, name, has } => {
                write!(f, "{inside} has no member \"{name}\", it has {}", has.join(", "))
            }
            Self::NoItem { inside, index, length } => {
                write!(f, "{inside} has {length} items, so there is no [{index}]")
            }
            Self::NotInside { inside, kind, step } => write!(f, "{inside} is {kind}, so there is no {step}"),
        }
    }
}
