//! Where in a task a piece of its result stands, and the addresses that say so.
//!
//! `rialto://tasks/<task>/artifacts/<n>/parts/<m>` is one part of an artifact, `…/artifacts/<n>` is all of it, and
//! `…/message/parts/<m>` is a part of what the agent said last. A file's name may follow a part, for people. `?offset=` says from which
//! byte on. An address is no right: whoever reads it must be the task's caller.

use std::fmt;

use rialto_model::{
    message::{Artifact, Part},
    task::Task,
};

/// What all addresses begin with.
const TASKS: &str = "rialto://tasks/";

/// A place in a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A whole artifact.
    Artifact(usize),
    /// One part of an artifact.
    Part(usize, usize),
    /// One part of the agent's last message.
    Said(usize),
}

/// A place in a certain task, from a certain byte on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) task: String,
    pub(crate) place: Place,
    pub(crate) offset: usize,
}

/// What stands at a place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found<'a> {
    Artifact(&'a Artifact),
    Part(&'a Part),
}

// === impl Place ===

impl Place {
    /// Reads what [`fmt::Display`] writes, with or without a file's name behind it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match *text.split('/').collect::<Vec<_>>() {
            ["artifacts", artifact] => Some(Self::Artifact(number(artifact)?)),
            ["artifacts", artifact, "parts", part] | ["artifacts", artifact, "parts", part, _] => {
                Some(Self::Part(number(artifact)?, number(part)?))
            }
            ["message", "parts", part] | ["message", "parts", part, _] => Some(Self::Said(number(part)?)),
            _ => None,
        }
    }

    /// What stands here in a task.
    pub(crate) fn find<'a>(&self, task: &'a Task) -> Option<Found<'a>> {
        match *self {
            Self::Artifact(artifact) => task.artifacts.get(artifact).map(Found::Artifact),
            Self::Part(artifact, part) => task.artifacts.get(artifact)?.parts.get(part).map(Found::Part),
            Self::Said(part) => task.message.as_ref()?.parts.get(part).map(Found::Part),
        }
    }

    /// The address of this place in a task.
    pub(crate) fn in_task(&self, task: &str) -> String {
        format!("{TASKS}{task}/{self}")
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Artifact(artifact) => write!(f, "artifacts/{artifact}"),
            Self::Part(artifact, part) => write!(f, "artifacts/{artifact}/parts/{part}"),
            Self::Said(part) => write!(f, "message/parts/{part}"),
        }
    }
}

// === impl Address ===

impl Address {
    /// Reads an address; none of what is no address of ours.
    pub(crate) fn parse(uri: &str) -> Option<Self> {
        let (path, query) = match uri.strip_prefix(TASKS)?.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (uri.strip_prefix(TASKS)?, None),
        };
        let (task, place) = path.split_once('/')?;
        let offset = match query {
            Some(query) => number(query.strip_prefix("offset=")?)?,
            None => 0,
        };
        Some(Self { task: task.to_owned(), place: Place::parse(place)?, offset })
    }

    /// The same place from another byte on.
    pub(crate) fn at(&self, offset: usize) -> String {
        format!("{}?offset={offset}", self.place.in_task(&self.task))
    }
}

/// A number as we write it, and in no other spelling.
fn number(text: &str) -> Option<usize> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_was_written() {
        for place in [Place::Artifact(3), Place::Part(0, 12), Place::Said(7)] {
            let uri = place.in_task("task_1");
            assert_eq!(
                Address::parse(&uri),
                Some(Address { task: "task_1".into(), place, offset: 0 }),
                "{uri}"
            );
            let later = Address { task: "task_1".into(), place, offset: 4_096 };
            assert_eq!(Address::parse(&later.at(4_096)), Some(later));
        }
    }

    #[test]
    fn a_file_may_be_named_behind_its_part() {
        let address = Address::parse("rialto://tasks/t/artifacts/0/parts/1/a%20b.pdf").unwrap();
        assert_eq!(address.place, Place::Part(0, 1));
        assert_eq!(Place::parse("message/parts/1/a.txt"), Some(Place::Said(1)));
    }

    #[test]
    fn nothing_else_is_an_address() {
        for other in [
            "",
            "rialto://tasks/",
            "rialto://tasks/t",
            "rialto://tasks/t/artifacts",
            "rialto://tasks/t/artifacts/x",
            "rialto://tasks/t/artifacts/-1",
            "rialto://tasks/t/artifacts/+1",
            "rialto://tasks/t/artifacts/99999999999999999999999",
            "rialto://tasks/t/artifacts/0/parts/0/a/b",
            "rialto://tasks/t/artifacts/0?offset=x",
            "rialto://tasks/t/artifacts/0?length=1",
            "file:///tasks/t/artifacts/0",
            "test://static-text",
        ] {
            assert_eq!(Address::parse(other), None, "{other}");
        }
    }
}
