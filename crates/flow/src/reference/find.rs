//! Following a reference through what is there, and saying precisely where it ends.
//!
//! What is told about a value is its kind and the names in it, never what it says: the text of an error is logged and shown.

use std::fmt;

use rialto_model::json::{Json, RawJson};

use super::{Expression, Lookup, Reference, Root, Step};
use crate::definition::NodeId;

/// As many names are told of an object that lacks one.
const NAMES: usize = 8;

/// Something that a template needs is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{{{{ {reference} }}}} cannot be filled in: {why}")]
pub struct Missing {
    /// The reference, as it was written.
    pub reference: String,
    /// What there was instead.
    pub why: Why,
}

/// What there was instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The node has made nothing.
    NoOutput {
        /// The node.
        node: NodeId,
        /// How it stands, when that is known.
        state: Option<String>,
    },
    /// There is nothing at this root here.
    NoRoot(&'static str),
    /// An object lacks a member.
    NoMember {
        /// What was looked into, as it was written.
        inside: String,
        /// The member.
        name: String,
        /// Those it has, the first few.
        has: Vec<String>,
    },
    /// A list is too short.
    NoItem {
        /// What was looked into, as it was written.
        inside: String,
        /// The item.
        index: usize,
        /// How many there are.
        length: usize,
    },
    /// There is nothing inside of such a value.
    NotInside {
        /// What was looked into, as it was written.
        inside: String,
        /// What it is.
        kind: &'static str,
        /// What was looked for.
        step: String,
    },
}

// === impl Expression ===

impl Expression {
    /// The first value that is there and not null; else the default; else null, if one of them was that.
    pub fn find(&self, lookup: &Lookup<'_>) -> Result<Json, Missing> {
        let mut missing = None;
        let mut null = None;
        for reference in &self.choices {
            match reference.find(lookup) {
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

// === impl Reference ===

impl Reference {
    /// What stands at its place.
    pub fn find(&self, lookup: &Lookup<'_>) -> Result<Json, Missing> {
        let missing = |why| Missing { reference: self.text.clone(), why };
        let whole = lookup(&self.root).ok_or_else(|| missing(self.nothing(lookup)))?;
        if self.path.is_empty() {
            return Ok(whole);
        }
        let mut found = whole.raw();
        for (depth, step) in self.path.iter().enumerate() {
            found = step.inside(found).ok_or_else(|| missing(self.instead(depth, step, found)))?;
        }
        Ok(Json::from(found))
    }

    fn nothing(&self, lookup: &Lookup<'_>) -> Why {
        match &self.root {
            Root::Output(node) | Root::State(node) => {
                let state = lookup(&Root::State(node.clone())).and_then(|state| state.read().ok());
                Why::NoOutput { node: node.clone(), state }
            }
            Root::Trigger => Why::NoRoot("this run was given nothing"),
            Root::Item | Root::Index => Why::NoRoot("there are items only inside of a map"),
        }
    }

    fn instead(&self, depth: usize, step: &Step, found: RawJson<'_>) -> Why {
        let inside = self.spelled(depth);
        match (step, found.members(), found.items()) {
            (Step::Field(name), Some(members), _) => {
                let has = members.into_iter().map(|(name, _)| name.into_owned()).take(NAMES).collect();
                Why::NoMember { inside, name: name.clone(), has }
            }
            (Step::Index(index), _, Some(items)) => {
                Why::NoItem { inside, index: *index, length: items.len() }
            }
            _ => Why::NotInside { inside, kind: found.kind(), step: step.to_string() },
        }
    }

    /// The reference up to its step number `depth`.
    fn spelled(&self, depth: usize) -> String {
        let mut text = Self::whole(self.root.clone()).text;
        for step in self.path.iter().take(depth) {
            text += &step.to_string();
        }
        text
    }
}

// === impl Step ===

impl Step {
    fn inside<'a>(&self, value: RawJson<'a>) -> Option<RawJson<'a>> {
        match self {
            Self::Index(index) => value.items()?.get(*index).copied(),
            Self::Field(name) => match value.items() {
                Some(items) => items.get(name.parse::<usize>().ok()?).copied(),
                None => value.member(name),
            },
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Field(name) if super::parse::is_word(name) => write!(f, ".{name}"),
            Self::Field(name) => write!(f, "[{}]", Json::encode(name)),
        }
    }
}

// === impl Why ===

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOutput { node, state: None } => write!(f, "node \"{node}\" has made nothing"),
            Self::NoOutput { node, state: Some(state) } => {
                write!(f, "node \"{node}\" has made nothing, it is {state}")
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
