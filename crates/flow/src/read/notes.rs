//! What is noted while a file is read: what is wrong, and what is referred to from where.
//!
//! A value that is wrong is told and left out, and reading goes on.

use std::time::Duration;

use super::{
    duration,
    tree::{Member, Text, Tree, Value},
};
use crate::{
    condition::Condition,
    definition::{NodeId, Place},
    keys::is_spelt,
    problem::{Code, Problems},
    reference::{Reference, Root, SyntaxError},
    suggest::nearest,
    template::Template,
};

/// As long as a name may be.
const LONGEST_NAME: usize = 64;

/// What is noted while a file is read.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) problems: Problems,
    /// References to nodes, since they were last taken.
    pub(crate) seen: Vec<Seen>,
    /// Whether `item` and `index` mean something here.
    pub(crate) is_in_map: bool,
}

/// A reference to a node, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) node: NodeId,
    pub(crate) text: String,
    pub(crate) place: Place,
}

// === impl Notes ===

impl Notes {
    pub(crate) fn object<'a>(&mut self, tree: &'a Tree, what: &str) -> Option<&'a [Member]> {
        match &tree.value {
            Value::Object(members) => Some(members),
            _ => self.wrong_type(tree, what, "an object"),
        }
    }

    pub(crate) fn text<'a>(&mut self, tree: &'a Tree, what: &str) -> Option<&'a Text> {
        match &tree.value {
            Value::Text(text) => Some(text),
            _ => self.wrong_type(tree, what, "a string"),
        }
    }

    pub(crate) fn flag(&mut self, tree: &Tree, what: &str) -> Option<bool> {
        match tree.value {
            Value::Bool(flag) => Some(flag),
            _ => self.wrong_type(tree, what, "true or false"),
        }
    }

    /// A whole number from 1 to `most`.
    pub(crate) fn count(&mut self, tree: &Tree, what: &str, most: u32) -> Option<u32> {
        let Value::Number(number) = &tree.value else {
            return self.wrong_type(tree, what, "a whole number");
        };
        match number.parse() {
            Ok(count) if (1..=most).contains(&count) => Some(count),
            _ => self.bad(
                tree.place,
                Code::BadValue,
                format!("{what} is a whole number from 1 to {most}, not {number}"),
            ),
        }
    }

    /// A number of at least 1.
    pub(crate) fn factor(&mut self, tree: &Tree, what: &str) -> Option<f64> {
        let Value::Number(number) = &tree.value else { return self.wrong_type(tree, what, "a number") };
        match number.parse::<f64>() {
            Ok(factor) if (1.0..=100.0).contains(&factor) => Some(factor),
            _ => self.bad(
                tree.place,
                Code::BadValue,
                format!("{what} is a number from 1 to 100, not {number}"),
            ),
        }
    }

    pub(crate) fn duration(&mut self, tree: &Tree, what: &str) -> Option<Duration> {
        let read = match &tree.value {
            Value::Text(text) => duration::parse(&text.text),
            Value::Number(number) => duration::parse(&format!("{number}s")),
            _ => return self.wrong_type(tree, what, "a length of time, as in 30s or 1m30s"),
        };
        match read {
            Ok(duration) => Some(duration),
            Err(error) => self.bad(tree.place, Code::BadDuration, format!("{what}: {error}")),
        }
    }

    /// A name that can be part of an address and of a reference.
    pub(crate) fn name(&mut self, tree: &Tree, what: &str) -> Option<String> {
        // `id: 1` and `id: true` are meant as names.
        let name = match &tree.value {
            Value::Text(text) => text.text.clone(),
            Value::Number(number) => number.clone(),
            Value::Bool(flag) => flag.to_string(),
            _ => return self.wrong_type(tree, what, "a string"),
        };
        if is_name(&name) {
            return Some(name);
        }
        let message = format!(
            "{what} has 1 to {LONGEST_NAME} letters, digits, \"_\" and \"-\", and begins with a letter or digit"
        );
        self.bad(tree.place, Code::BadValue, message)
    }

    /// One of some words.
    pub(crate) fn word(&mut self, tree: &Tree, what: &str, words: &[&'static str]) -> Option<&'static str> {
        let text = self.text(tree, what)?;
        if let Some(word) = words.iter().copied().find(|word| is_spelt(word, &text.text)) {
            return Some(word);
        }
        let hint = did_you_mean(&text.text, words.iter().copied());
        let message = format!("{what} is one of {}, not \"{}\"{hint}", words.join(", "), text.text);
        self.bad(tree.place, Code::BadValue, message)
    }

    /// Names of nodes, each with its place; one alone needs no list.
    pub(crate) fn ids(&mut self, tree: &Tree, what: &str) -> Vec<(NodeId, Place)> {
        let items = match &tree.value {
            Value::List(items) => items.as_slice(),
            _ => std::slice::from_ref(tree),
        };
        let id = |item: &Tree| self.name(item, what).map(|name| (NodeId::from(name.as_str()), item.place));
        items.iter().filter_map(id).collect()
    }

    /// Any JSON, with references in its strings.
    pub(crate) fn template(&mut self, tree: &Tree) -> Option<Template> {
        match &tree.value {
            Value::Text(text) => self.text_template(tree, text),
            Value::List(items) => {
                // All of them are read, so that all that is wrong is told.
                let items: Vec<_> = items.iter().map(|item| self.template(item)).collect();
                Some(Template::list(items.into_iter().collect::<Option<Vec<_>>>()?))
            }
            Value::Object(members) => {
                let read = |member: &Member| Some((member.name.clone(), self.template(&member.tree)?));
                let members: Vec<_> = members.iter().map(read).collect();
                Some(Template::object(members.into_iter().collect::<Option<Vec<_>>>()?))
            }
            _ => Some(Template::fixed(tree.json())),
        }
    }

    /// A string with references.
    pub(crate) fn string(&mut self, tree: &Tree, what: &str) -> Option<Template> {
        let text = self.text(tree, what)?;
        self.text_template(tree, text)
    }

    /// An object with references, or a reference to one.
    pub(crate) fn arguments(&mut self, tree: &Tree, what: &str) -> Option<Template> {
        match &tree.value {
            Value::Object(_) => self.template(tree),
            Value::Text(text) if text.text.contains("{{") => self.template(tree),
            _ => self.wrong_type(tree, what, "an object, or a reference to one"),
        }
    }

    pub(crate) fn condition(&mut self, tree: &Tree, what: &str) -> Option<Condition> {
        if let Value::Bool(answer) = tree.value {
            return Some(Condition::always(answer));
        }
        let text = self.text(tree, what)?;
        match Condition::parse(&text.text) {
            Ok(condition) => {
                for reference in condition.references() {
                    self.see(reference, text, tree.place);
                }
                Some(condition)
            }
            Err(SyntaxError { at, problem }) => {
                self.bad(text.place(at, tree.place), Code::BadCondition, format!("{what}: {problem}"))
            }
        }
    }

    /// Notes what a text refers to.
    pub(crate) fn see(&mut self, reference: &Reference, text: &Text, otherwise: Place) {
        let place = text.place(reference.at, otherwise);
        match &reference.root {
            Root::Output(node) | Root::State(node) => {
                self.seen.push(Seen { node: node.clone(), text: reference.to_string(), place });
            }
            Root::Item | Root::Index if !self.is_in_map => {
                let message = format!("there is no {reference} here, only inside of a map's \"do\"");
                self.problems.add(place, Code::BadReference, message);
            }
            Root::Item | Root::Index | Root::Trigger => {}
        }
    }

    fn text_template(&mut self, tree: &Tree, text: &Text) -> Option<Template> {
        match Template::parse(&text.text) {
            Ok(template) => {
                for reference in template.references() {
                    self.see(reference, text, tree.place);
                }
                Some(template)
            }
            Err(SyntaxError { at, problem }) => {
                self.bad(text.place(at, tree.place), Code::BadReference, problem)
            }
        }
    }

    pub(crate) fn wrong_type<T>(&mut self, tree: &Tree, what: &str, wanted: &str) -> Option<T> {
        self.bad(tree.place, Code::WrongType, format!("{what} is {wanted}, not {}", tree.kind()))
    }

    pub(crate) fn bad<T>(&mut self, place: Place, code: Code, message: impl Into<String>) -> Option<T> {
        self.problems.add(place, code, message);
        None
    }
}

/// `; did you mean "…"?`, or nothing.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map_or_else(String::new, |meant| format!("; did you mean \"{meant}\"?"))
}

pub(crate) fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.len() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(is_part)
}
