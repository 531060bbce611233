//! JSON as a tree.
//!
//! The text is checked once, and then taken apart in place: each part is a slice of the file, so where it begins is where it stands.

use std::borrow::Cow;

use rialto_model::json::{RawJson, is_too_deep};

use super::{
    DEEPEST, MOST_VALUES,
    tree::{Member, Text, Tree, Value},
};
use crate::{
    definition::Place,
    problem::{Code, Problems},
};

struct Builder<'a> {
    text: &'a str,
    /// How many bytes of it are counted, and the place behind them. Parts come in the order of the file, so all is counted once.
    counted: usize,
    behind: Place,
    values: usize,
}

/// Reads a whole file.
pub(super) fn read(text: &str) -> Result<Tree, Problems> {
    let start = Place { line: 1, column: 1 };
    if is_too_deep(text.as_bytes()) {
        return Err(too_deep(start));
    }
    let document = RawJson::parse(text).map_err(|error| {
        let short = |number: usize| u32::try_from(number.max(1)).unwrap_or(u32::MAX);
        let place = Place { line: short(error.line()), column: short(error.column()) };
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        Problems::one(place, Code::Syntax, format!("this is no JSON: {message}"))
    })?;
    Builder { text, counted: 0, behind: start, values: 0 }.tree(document, 0)
}

// === impl Builder ===

impl Builder<'_> {
    fn tree(&mut self, raw: RawJson<'_>, depth: usize) -> Result<Tree, Problems> {
        let place = self.place(raw.get());
        self.values += 1;
        if self.values > MOST_VALUES {
            return Err(Problems::one(
                place,
                Code::Syntax,
                format!("a workflow has at most {MOST_VALUES} values"),
            ));
        }
        if depth > DEEPEST {
            return Err(too_deep(place));
        }
        if let Some(items) = raw.items() {
            let items = items.into_iter().map(|item| self.tree(item, depth + 1)).collect::<Result<_, _>>()?;
            return Ok(Tree { place, value: Value::List(items) });
        }
        let value = match (raw.members(), raw.get()) {
            (Some(members), _) => {
                let mut found = Vec::new();
                for (name, raw) in members {
                    // A name with escapes was written anew, so it stands nowhere; its value is near.
                    let inside = matches!(name, Cow::Borrowed(_)).then(|| self.place(&name));
                    let tree = self.tree(raw, depth + 1)?;
                    let place =
                        inside.map_or(tree.place, |inside| Place { column: inside.column - 1, ..inside });
                    found.push(Member { name: name.into_owned(), place, tree });
                }
                Value::Object(found)
            }
            (None, "null") => Value::Null,
            (None, "true") => Value::Bool(true),
            (None, "false") => Value::Bool(false),
            (None, text) if text.starts_with('"') => Value::Text(string(text, place)),
            (None, number) => Value::Number(number.to_owned()),
        };
        Ok(Tree { place, value })
    }

    /// Where a part of the text begins.
    fn place(&mut self, part: &str) -> Place {
        let at = (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        for c in self.text.get(self.counted..at).unwrap_or_default().chars() {
            let Place { line, column } = self.behind;
            self.behind = if c == '\n' {
                Place { line: line.saturating_add(1), column: 1 }
            } else {
                Place { line, column: column.saturating_add(1) }
            };
        }
        self.counted = self.counted.max(at);
        self.behind
    }
}

fn string(raw: &str, place: Place) -> Text {
    let text: String = serde_json::from_str(raw).unwrap_or_default();
    let is_same = !raw.contains('\\');
    Text { text, begin: is_same.then(|| Place { column: place.column + 1, ..place }) }
}

fn too_deep(place: Place) -> Problems {
    Problems::one(
        place,
        Code::Syntax,
        format!("lists and objects lie at most {DEEPEST} deep inside each other"),
    )
}
