//! Problems and references collected while a file is read.
//!
//! An invalid value is reported and left out, and reading continues.

use std::time::Duration;

use super::{
    duration,
    tree::{ObjectMember, SourceText, SourceTree, SourceValue},
};
use crate::{
    condition::Condition,
    definition::{NodeId, SourcePosition},
    problem::{DefinitionProblems, ProblemCode},
    reference::{ReferenceRoot, SyntaxError, ValueReference},
    schema_keys::is_spelling_of,
    suggest::nearest,
    template::JsonTemplate,
};

/// Maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Problems and references collected so far.
#[derive(Default)]
pub(crate) struct Diagnostics {
    pub(crate) problems: DefinitionProblems,
    /// References to nodes, since they were last taken.
    pub(crate) seen: Vec<NodeReference>,
    /// True if `item` and `index` are defined here.
    pub(crate) is_in_map: bool,
}

/// Reference to a node, and its position.
#[derive(Clone, Debug)]
pub(crate) struct NodeReference {
    pub(crate) node: NodeId,
    pub(crate) text: String,
    pub(crate) place: SourcePosition,
}

// === impl Diagnostics ===

impl Diagnostics {
    pub(crate) fn expect_object<'a>(
        &mut self,
        tree: &'a SourceTree,
        what: &str,
    ) -> Option<&'a [ObjectMember]> {
        match &tree.value {
            SourceValue::Object(members) => Some(members),
            _ => self.report_type(tree, what, "an object"),
        }
    }

    pub(crate) fn text<'a>(&mut self, tree: &'a SourceTree, what: &str) -> Option<&'a SourceText> {
        match &tree.value {
            SourceValue::Text(text) => Some(text),
            _ => self.report_type(tree, what, "a string"),
        }
    }

    pub(crate) fn expect_bool(&mut self, tree: &SourceTree, what: &str) -> Option<bool> {
        match tree.value {
            SourceValue::Bool(flag) => Some(flag),
            _ => self.report_type(tree, what, "true or false"),
        }
    }

    /// A whole number from 1 to `most`.
    pub(crate) fn expect_count(&mut self, tree: &SourceTree, what: &str, most: u32) -> Option<u32> {
        let SourceValue::Number(number) = &tree.value else {
            return self.report_type(tree, what, "a whole number");
        };
        match number.parse() {
            Ok(count) if (1..=most).contains(&count) => Some(count),
            _ => self.report(
                tree.place,
                ProblemCode::BadValue,
                format!("{what} is a whole number from 1 to {most}, not {number}"),
            ),
        }
    }

    /// A number of at least 1.
    pub(crate) fn expect_factor(&mut self, tree: &SourceTree, what: &str) -> Option<f64> {
        let SourceValue::Number(number) = &tree.value else {
            return self.report_type(tree, what, "a number");
        };
        match number.parse::<f64>() {
            Ok(factor) if (1.0..=100.0).contains(&factor) => Some(factor),
            _ => self.report(
                tree.place,
                ProblemCode::BadValue,
                format!("{what} is a number from 1 to 100, not {number}"),
            ),
        }
    }

    pub(crate) fn duration(&mut self, tree: &SourceTree, what: &str) -> Option<Duration> {
        let read = match &tree.value {
            SourceValue::Text(text) => duration::parse_duration(&text.text),
            SourceValue::Number(number) => duration::parse_duration(&format!("{number}s")),
            _ => return self.report_type(tree, what, "a length of time, as in 30s or 1m30s"),
        };
        match read {
            Ok(duration) => Some(duration),
            Err(error) => self.report(tree.place, ProblemCode::BadDuration, format!("{what}: {error}")),
        }
    }

    /// A name that can be part of an address and of a reference.
    pub(crate) fn name(&mut self, tree: &SourceTree, what: &str) -> Option<String> {
        // `id: 1` and `id: true` are meant as names.
        let name = match &tree.value {
            SourceValue::Text(text) => text.text.clone(),
            SourceValue::Number(number) => number.clone(),
            SourceValue::Bool(flag) => flag.to_string(),
            _ => return self.report_type(tree, what, "a string"),
        };
        if is_name(&name) {
            return Some(name);
        }
        let message = format!(
            "{what} has 1 to {MAX_NAME_CHARS} letters, digits, \"_\" and \"-\", and begins with a letter or digit"
        );
        self.report(tree.place, ProblemCode::BadValue, message)
    }

    /// Expects one of several words.
    pub(crate) fn word(
        &mut self,
        tree: &SourceTree,
        what: &str,
        words: &[&'static str],
    ) -> Option<&'static str> {
        let text = self.text(tree, what)?;
        if let Some(word) = words.iter().copied().find(|word| is_spelling_of(word, &text.text)) {
            return Some(word);
        }
        let hint = did_you_mean(&text.text, words.iter().copied());
        let message = format!("{what} is one of {}, not \"{}\"{hint}", words.join(", "), text.text);
        self.report(tree.place, ProblemCode::BadValue, message)
    }

    /// Names of nodes, each with its place; one alone needs no list.
    pub(crate) fn ids(&mut self, tree: &SourceTree, what: &str) -> Vec<(NodeId, SourcePosition)> {
        let items = match &tree.value {
            SourceValue::List(items) => items.as_slice(),
            _ => std::slice::from_ref(tree),
        };
        let id =
            |item: &SourceTree| self.name(item, what).map(|name| (NodeId::from(name.as_str()), item.place));
        items.iter().filter_map(id).collect()
    }

    /// Any JSON, with references in its strings.
    pub(crate) fn template(&mut self, tree: &SourceTree) -> Option<JsonTemplate> {
        match &tree.value {
            SourceValue::Text(text) => self.text_template(tree, text),
            SourceValue::List(items) => {
                // All strings are parsed, so that all problems are reported.
                let items: Vec<_> = items.iter().map(|item| self.template(item)).collect();
                Some(JsonTemplate::list(items.into_iter().collect::<Option<Vec<_>>>()?))
            }
            SourceValue::Object(members) => {
                let read = |member: &ObjectMember| Some((member.name.clone(), self.template(&member.tree)?));
                let members: Vec<_> = members.iter().map(read).collect();
                Some(JsonTemplate::object(members.into_iter().collect::<Option<Vec<_>>>()?))
            }
            _ => Some(JsonTemplate::fixed(tree.json())),
        }
    }

    /// A string with references.
    pub(crate) fn string(&mut self, tree: &SourceTree, what: &str) -> Option<JsonTemplate> {
        let text = self.text(tree, what)?;
        self.text_template(tree, text)
    }

    /// An object with references, or a reference to one.
    pub(crate) fn arguments(&mut self, tree: &SourceTree, what: &str) -> Option<JsonTemplate> {
        match &tree.value {
            SourceValue::Object(_) => self.template(tree),
            SourceValue::Text(text) if text.text.contains("{{") => self.template(tree),
            _ => self.report_type(tree, what, "an object, or a reference to one"),
        }
    }

    pub(crate) fn condition(&mut self, tree: &SourceTree, what: &str) -> Option<Condition> {
        if let SourceValue::Bool(answer) = tree.value {
            return Some(Condition::constant(answer));
        }
        let text = self.text(tree, what)?;
        match Condition::parse(&text.text) {
            Ok(condition) => {
                for reference in condition.references() {
                    self.add_reference(reference, text, tree.place);
                }
                Some(condition)
            }
            Err(SyntaxError { at, problem }) => self.report(
                text.place(at, tree.place),
                ProblemCode::BadCondition,
                format!("{what}: {problem}"),
            ),
        }
    }

    /// Notes what a text refers to.
    pub(crate) fn add_reference(
        &mut self,
        reference: &ValueReference,
        text: &SourceText,
        otherwise: SourcePosition,
    ) {
        let place = text.place(reference.at, otherwise);
        match &reference.root {
            ReferenceRoot::Output(node) | ReferenceRoot::State(node) => {
                self.seen.push(NodeReference { node: node.clone(), text: reference.to_string(), place });
            }
            ReferenceRoot::Item | ReferenceRoot::Index if !self.is_in_map => {
                let message = format!("there is no {reference} here, only inside a map's \"do\"");
                self.problems.add(place, ProblemCode::BadReference, message);
            }
            ReferenceRoot::Item | ReferenceRoot::Index | ReferenceRoot::Trigger => {}
        }
    }

    fn text_template(&mut self, tree: &SourceTree, text: &SourceText) -> Option<JsonTemplate> {
        match JsonTemplate::parse(&text.text) {
            Ok(template) => {
                for reference in template.references() {
                    self.add_reference(reference, text, tree.place);
                }
                Some(template)
            }
            Err(SyntaxError { at, problem }) => {
                self.report(text.place(at, tree.place), ProblemCode::BadReference, problem)
            }
        }
    }

    pub(crate) fn report_type<T>(&mut self, tree: &SourceTree, what: &str, wanted: &str) -> Option<T> {
        self.report(tree.place, ProblemCode::WrongType, format!("{what} is {wanted}, not {}", tree.kind()))
    }

    pub(crate) fn report<T>(
        &mut self,
        place: SourcePosition,
        code: ProblemCode,
        message: impl Into<String>,
    ) -> Option<T> {
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
    name.len() <= MAX_NAME_CHARS
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(is_part)
}
