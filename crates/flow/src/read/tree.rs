//! A file as a tree whose every value knows where it stands.

use rialto_model::json::{Extra, Json};

use crate::definition::Place;

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// The text of a JSON number.
    Number(String),
    Text(Text),
    List(Vec<Tree>),
    Object(Vec<Member>),
}

/// A string.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) text: String,
    /// Where its first character stands, if it is written in the file as it is, in one line.
    pub(crate) begin: Option<Place>,
}

/// A name in an object, and its value.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) tree: Tree,
}

// === impl Tree ===

impl Tree {
    /// The same value as JSON.
    pub(crate) fn json(&self) -> Json {
        match &self.value {
            Value::Null => Json::null(),
            Value::Bool(value) => Json::encode(value),
            Value::Number(number) => Json::parse(number).unwrap_or_else(|_| Json::null()),
            Value::Text(text) => Json::encode(&text.text),
            Value::List(items) => Json::encode(&items.iter().map(Self::json).collect::<Vec<_>>()),
            Value::Object(members) => {
                let members = members.iter().map(|member| (member.name.clone(), member.tree.json()));
                Json::encode(&members.collect::<Extra>())
            }
        }
    }

    /// What it is, in words.
    pub(crate) const fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Object(_) => "an object",
        }
    }

    /// How many values it is made of.
    pub(crate) fn size(&self) -> usize {
        1 + match &self.value {
            Value::List(items) => items.iter().map(Self::size).sum::<usize>(),
            Value::Object(members) => members.iter().map(|member| member.tree.size()).sum(),
            _ => 0,
        }
    }

    /// How many lists and objects lie inside each other, itself included.
    pub(crate) fn depth(&self) -> usize {
        match &self.value {
            Value::List(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            Value::Object(members) => 1 + members.iter().map(|member| member.tree.depth()).max().unwrap_or(0),
            _ => 0,
        }
    }
}

// === impl Text ===

impl Text {
    /// Where the byte number `at` of it stands; `otherwise` if that cannot be said.
    pub(crate) fn place(&self, at: usize, otherwise: Place) -> Place {
        let before = self.text.get(..at).map(|before| before.chars().count());
        match (self.begin, before.and_then(|count| u32::try_from(count).ok())) {
            (Some(begin), Some(count)) => Place { column: begin.column.saturating_add(count), ..begin },
            _ => otherwise,
        }
    }
}
