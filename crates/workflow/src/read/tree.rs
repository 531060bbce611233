//! Tree of a file's values with their positions.

use rialto_model::json::{Extra, Json};

use crate::definition::SourcePosition;

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct SourceTree {
    pub(crate) place: SourcePosition,
    pub(crate) value: SourceValue,
}

#[derive(Clone, Debug)]
pub(crate) enum SourceValue {
    Null,
    Bool(bool),
    /// The text of a JSON number.
    Number(String),
    Text(SourceText),
    List(Vec<SourceTree>),
    Object(Vec<ObjectMember>),
}

/// A string.
#[derive(Clone, Debug)]
pub(crate) struct SourceText {
    pub(crate) text: String,
    /// Position of the first character, if the text is in the file unchanged and on one line.
    pub(crate) begin: Option<SourcePosition>,
}

/// A name in an object, and its value.
#[derive(Clone, Debug)]
pub(crate) struct ObjectMember {
    pub(crate) name: String,
    pub(crate) place: SourcePosition,
    pub(crate) tree: SourceTree,
}

// === impl SourceTree ===

impl SourceTree {
    /// The value as JSON.
    pub(crate) fn json(&self) -> Json {
        match &self.value {
            SourceValue::Null => Json::null(),
            SourceValue::Bool(value) => Json::encode(value),
            SourceValue::Number(number) => Json::parse(number).unwrap_or_else(|_| Json::null()),
            SourceValue::Text(text) => Json::encode(&text.text),
            SourceValue::List(items) => Json::encode(&items.iter().map(Self::json).collect::<Vec<_>>()),
            SourceValue::Object(members) => {
                let members = members.iter().map(|member| (member.name.clone(), member.tree.json()));
                Json::encode(&members.collect::<Extra>())
            }
        }
    }

    /// Type of the value, in words.
    pub(crate) const fn kind(&self) -> &'static str {
        match self.value {
            SourceValue::Null => "nothing",
            SourceValue::Bool(_) => "a boolean",
            SourceValue::Number(_) => "a number",
            SourceValue::Text(_) => "a string",
            SourceValue::List(_) => "a list",
            SourceValue::Object(_) => "an object",
        }
    }

    /// Number of values.
    pub(crate) fn size(&self) -> usize {
        1 + match &self.value {
            SourceValue::List(items) => items.iter().map(Self::size).sum::<usize>(),
            SourceValue::Object(members) => members.iter().map(|member| member.tree.size()).sum(),
            _ => 0,
        }
    }

    /// Nesting depth of lists and objects, including itself.
    pub(crate) fn depth(&self) -> usize {
        match &self.value {
            SourceValue::List(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            SourceValue::Object(members) => {
                1 + members.iter().map(|member| member.tree.depth()).max().unwrap_or(0)
            }
            _ => 0,
        }
    }
}

// === impl SourceText ===

impl SourceText {
    /// Position of the byte `at`; `otherwise` if it is unknown.
    pub(crate) fn place(&self, at: usize, otherwise: SourcePosition) -> SourcePosition {
        let before = self.text.get(..at).map(|before| before.chars().count());
        match (self.begin, before.and_then(|count| u32::try_from(count).ok())) {
            (Some(begin), Some(count)) => {
                SourcePosition { column: begin.column.saturating_add(count), ..begin }
            }
            _ => otherwise,
        }
    }
}
