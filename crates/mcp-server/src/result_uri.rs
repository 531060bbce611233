//! Result URIs: paths to artifacts and parts of a task's result.
//!
//! `rialto://tasks/<task>/artifacts/<n>/parts/<m>` is one part of an artifact, `…/artifacts/<n>` is all of it, and `…/message/parts/<m>`
//! is a part of the agent's last message. A file name may follow a part, for readability. `?offset=` is the first byte. A URI grants no
//! access: only the task's caller can read it.

use std::fmt;

use rialto_model::{
    message::{Artifact, Part},
    task::Task,
};

/// Common prefix of all result URIs.
const URI_PREFIX: &str = "rialto://tasks/";

/// Path to an item of a task's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultPath {
    /// Complete artifact.
    Artifact(usize),
    /// One part of an artifact.
    Part(usize, usize),
    /// One part of the agent's last message.
    Said(usize),
}

/// Path in a certain task, with a byte offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResultUri {
    pub(crate) task: String,
    pub(crate) place: ResultPath,
    pub(crate) offset: usize,
}

/// Item at a path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ResultItem<'a> {
    Artifact(&'a Artifact),
    Part(&'a Part),
}

// === impl ResultPath ===

impl ResultPath {
    /// Parses the format of [`fmt::Display`], with or without a file name behind it.
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

    /// Item at this path in a task.
    pub(crate) fn find<'a>(&self, task: &'a Task) -> Option<ResultItem<'a>> {
        match *self {
            Self::Artifact(artifact) => task.artifacts.get(artifact).map(ResultItem::Artifact),
            Self::Part(artifact, part) => task.artifacts.get(artifact)?.parts.get(part).map(ResultItem::Part),
            Self::Said(part) => task.message.as_ref()?.parts.get(part).map(ResultItem::Part),
        }
    }

    /// URI of this path in a task.
    pub(crate) fn in_task(&self, task: &str) -> String {
        format!("{URI_PREFIX}{task}/{self}")
    }
}

impl fmt::Display for ResultPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Artifact(artifact) => write!(f, "artifacts/{artifact}"),
            Self::Part(artifact, part) => write!(f, "artifacts/{artifact}/parts/{part}"),
            Self::Said(part) => write!(f, "message/parts/{part}"),
        }
    }
}

// === impl ResultUri ===

impl ResultUri {
    /// Parses a URI; none for any other URI.
    pub(crate) fn parse(uri: &str) -> Option<Self> {
        let (path, query) = match uri.strip_prefix(URI_PREFIX)?.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (uri.strip_prefix(URI_PREFIX)?, None),
        };
        let (task, place) = path.split_once('/')?;
        let offset = match query {
            Some(query) => number(query.strip_prefix("offset=")?)?,
            None => 0,
        };
        Some(Self { task: task.to_owned(), place: ResultPath::parse(place)?, offset })
    }

    /// URI of the same path with another offset.
    pub(crate) fn at(&self, offset: usize) -> String {
        format!("{}?offset={offset}", self.place.in_task(&self.task))
    }
}

/// Number in canonical decimal form.
fn number(text: &str) -> Option<usize> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_was_written() {
        for place in [ResultPath::Artifact(3), ResultPath::Part(0, 12), ResultPath::Said(7)] {
            let uri = place.in_task("task_1");
            assert_eq!(
                ResultUri::parse(&uri),
                Some(ResultUri { task: "task_1".into(), place, offset: 0 }),
                "{uri}"
            );
            let later = ResultUri { task: "task_1".into(), place, offset: 4_096 };
            assert_eq!(ResultUri::parse(&later.at(4_096)), Some(later));
        }
    }

    #[test]
    fn a_file_may_be_named_behind_its_part() {
        let address = ResultUri::parse("rialto://tasks/t/artifacts/0/parts/1/a%20b.pdf").unwrap();
        assert_eq!(address.place, ResultPath::Part(0, 1));
        assert_eq!(ResultPath::parse("message/parts/1/a.txt"), Some(ResultPath::Said(1)));
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
            assert_eq!(ResultUri::parse(other), None, "{other}");
        }
    }
}
