//! JSON as a tree.
//!
//! The text is validated once and then split in place: each part is a slice of the file, which gives its position.

use std::borrow::Cow;

use rialto_model::json::{RawJson, is_too_deep};

use super::{
    MAX_NESTING_DEPTH, MAX_VALUES,
    tree::{ObjectMember, SourceText, SourceTree, SourceValue},
};
use crate::{
    definition::SourcePosition,
    problem::{DefinitionProblems, ProblemCode},
};

struct JsonTreeBuilder<'a> {
    text: &'a str,
    /// Number of bytes already counted, and the position after them. Parts come in file order, so each byte is counted once.
    counted: usize,
    behind: SourcePosition,
    values: usize,
}

/// Reads a whole file.
pub(super) fn parse_json(text: &str) -> Result<SourceTree, DefinitionProblems> {
    let start = SourcePosition { line: 1, column: 1 };
    if is_too_deep(text.as_bytes()) {
        return Err(nesting_error(start));
    }
    let document = RawJson::parse(text).map_err(|error| {
        let short = |number: usize| u32::try_from(number.max(1)).unwrap_or(u32::MAX);
        let place = SourcePosition { line: short(error.line()), column: short(error.column()) };
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        DefinitionProblems::single(place, ProblemCode::Syntax, format!("this is no JSON: {message}"))
    })?;
    JsonTreeBuilder { text, counted: 0, behind: start, values: 0 }.tree(document, 0)
}

// === impl JsonTreeBuilder ===

impl JsonTreeBuilder<'_> {
    fn tree(&mut self, raw: RawJson<'_>, depth: usize) -> Result<SourceTree, DefinitionProblems> {
        let place = self.place(raw.get());
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(DefinitionProblems::single(
                place,
                ProblemCode::Syntax,
                format!("a workflow has at most {MAX_VALUES} values"),
            ));
        }
        if depth > MAX_NESTING_DEPTH {
            return Err(nesting_error(place));
        }
        if let Some(items) = raw.items() {
            let items = items.into_iter().map(|item| self.tree(item, depth + 1)).collect::<Result<_, _>>()?;
            return Ok(SourceTree { place, value: SourceValue::List(items) });
        }
        let value = match (raw.members(), raw.get()) {
            (Some(members), _) => {
                let mut found = Vec::new();
                for (name, raw) in members {
                    // A name with escapes was decoded, so it has no position; its value's is used.
                    let inside = matches!(name, Cow::Borrowed(_)).then(|| self.place(&name));
                    let tree = self.tree(raw, depth + 1)?;
                    let place = inside
                        .map_or(tree.place, |inside| SourcePosition { column: inside.column - 1, ..inside });
                    found.push(ObjectMember { name: name.into_owned(), place, tree });
                }
                SourceValue::Object(found)
            }
            (None, "null") => SourceValue::Null,
            (None, "true") => SourceValue::Bool(true),
            (None, "false") => SourceValue::Bool(false),
            (None, text) if text.starts_with('"') => SourceValue::Text(read_string(text, place)),
            (None, number) => SourceValue::Number(number.to_owned()),
        };
        Ok(SourceTree { place, value })
    }

    /// Position of a part of the text.
    fn place(&mut self, part: &str) -> SourcePosition {
        let at = (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        for c in self.text.get(self.counted..at).unwrap_or_default().chars() {
            let SourcePosition { line, column } = self.behind;
            self.behind = if c == '\n' {
                SourcePosition { line: line.saturating_add(1), column: 1 }
            } else {
                SourcePosition { line, column: column.saturating_add(1) }
            };
        }
        self.counted = self.counted.max(at);
        self.behind
    }
}

fn read_string(raw: &str, place: SourcePosition) -> SourceText {
    let text: String = serde_json::from_str(raw).unwrap_or_default();
    let is_same = !raw.contains('\\');
    SourceText { text, begin: is_same.then(|| SourcePosition { column: place.column + 1, ..place }) }
}

fn nesting_error(place: SourcePosition) -> DefinitionProblems {
    DefinitionProblems::single(
        place,
        ProblemCode::Syntax,
        format!("lists and objects lie at most {MAX_NESTING_DEPTH} deep inside each other"),
    )
}
