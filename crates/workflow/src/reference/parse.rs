//! Parser of references.
//!
//! `path ("??" path)* ("??" literal)?`, where a literal alone is allowed too: `{{ "{{" }}` writes two braces.

use rialto_model::json::Json;

use super::{PathStep, ReferenceExpression, ReferenceRoot, ValueReference};
use crate::definition::NodeId;

/// A literal in a reference may hold lists this deep.
const MAX_LITERAL_DEPTH: usize = 16;

/// Syntax error with its offset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct SyntaxError {
    /// Offset in the text, in bytes.
    pub at: usize,
    /// Message with a hint.
    pub problem: String,
}

/// Reads a text from left to right.
#[derive(Clone, Debug)]
pub(crate) struct TextCursor<'a> {
    text: &'a str,
    at: usize,
}

// === impl ReferenceExpression ===

impl ReferenceExpression {
    /// Parses the text between `{{` and `}}`.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let mut cursor = TextCursor::new(text);
        let expression = Self::read(&mut cursor)?;
        cursor.skip_space();
        if cursor.is_at_end() { Ok(expression) } else { Err(cursor.unexpected("the end")) }
    }

    /// Reads as much as belongs to it.
    pub(crate) fn read(cursor: &mut TextCursor<'_>) -> Result<Self, SyntaxError> {
        let mut expression = Self { choices: Vec::new(), default: None };
        loop {
            cursor.skip_space();
            if let Some(literal) = cursor.parse_literal()? {
                expression.default = Some(literal);
                return Ok(expression);
            }
            expression.choices.push(cursor.parse_reference()?);
            if !cursor.skip_mark("??") {
                return Ok(expression);
            }
        }
    }
}

// === impl TextCursor ===

impl<'a> TextCursor<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(crate) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.rest().is_empty()
    }

    /// Skips a number of bytes.
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.at = self.text.len().min(self.at + bytes);
    }

    pub(crate) fn skip_space(&mut self) {
        let rest = self.rest();
        self.skip(rest.len() - rest.trim_start().len());
    }

    /// Goes past `mark`, if it is the next after some space.
    pub(crate) fn skip_mark(&mut self, mark: &str) -> bool {
        self.skip_space();
        let is_next = self.rest().starts_with(mark);
        if is_next {
            self.skip(mark.len());
        }
        is_next
    }

    /// Goes past a whole word, if it is the next after some space.
    pub(crate) fn skip_word(&mut self, word: &str) -> bool {
        self.skip_space();
        let is_next = self.peek_word() == word;
        if is_next {
            self.skip(word.len());
        }
        is_next
    }

    pub(crate) fn error_here(&self, problem: impl Into<String>) -> SyntaxError {
        SyntaxError { at: self.at, problem: problem.into() }
    }

    pub(crate) fn unexpected(&self, wanted: &str) -> SyntaxError {
        let word = self.peek_word();
        let found = if word.is_empty() {
            self.rest().chars().next().map(String::from)
        } else {
            Some(word.to_owned())
        };
        match found {
            Some(found) => self.error_here(format!("expected {wanted}, found \"{found}\"")),
            None => self.error_here(format!("expected {wanted}, but the text ends")),
        }
    }

    /// A string, number, list or one of the three words; none when something else is next.
    pub(crate) fn parse_literal(&mut self) -> Result<Option<Json>, SyntaxError> {
        self.parse_literal_at(MAX_LITERAL_DEPTH)
    }

    fn parse_literal_at(&mut self, depth: usize) -> Result<Option<Json>, SyntaxError> {
        self.skip_space();
        match self.rest().bytes().next() {
            Some(quote @ (b'"' | b'\'')) => {
                self.parse_quoted(char::from(quote)).map(|text| Some(Json::encode(&text)))
            }
            Some(b'-' | b'0'..=b'9') => self.parse_number().map(Some),
            Some(b'[') if depth == 0 => Err(self.error_here("lists lie too deep inside each other")),
            Some(b'[') => self.parse_list(depth - 1).map(Some),
            _ => Ok(["true", "false", "null"]
                .into_iter()
                .find(|word| self.skip_word(word))
                .map(|word| Json::parse(word).unwrap_or_else(|_| Json::null()))),
        }
    }

    fn parse_list(&mut self, depth: usize) -> Result<Json, SyntaxError> {
        self.skip(1);
        let mut items = Vec::new();
        while !self.skip_mark("]") {
            if !items.is_empty() && !self.skip_mark(",") {
                return Err(self.unexpected("\",\" or \"]\""));
            }
            items.push(self.parse_literal_at(depth)?.ok_or_else(|| self.unexpected("a value"))?);
        }
        Ok(Json::encode(&items))
    }

    fn parse_number(&mut self) -> Result<Json, SyntaxError> {
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let text = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        let number = Json::parse(text).map_err(|_| self.error_here(format!("\"{text}\" is no number")))?;
        self.skip(text.len());
        Ok(number)
    }

    /// A string in quotes, with the escapes of JSON; in single quotes, `\'` too.
    fn parse_quoted(&mut self, quote: char) -> Result<String, SyntaxError> {
        let rest = self.rest();
        let mut is_escaped = false;
        let end = rest.char_indices().skip(1).find(|(_, c)| {
            let is_end = *c == quote && !is_escaped;
            is_escaped = *c == '\\' && !is_escaped;
            is_end
        });
        let Some((end, _)) = end else {
            return Err(self.error_here(format!("the string has no closing {quote}")));
        };
        let inner = &rest[1..end];
        let inner =
            if quote == '\'' { inner.replace("\\'", "'").replace('"', "\\\"") } else { inner.to_owned() };
        let text = serde_json::from_str(&format!("\"{inner}\""));
        let text = text.map_err(|_| self.error_here("the string has an escape that JSON does not know"))?;
        self.skip(end + 1);
        Ok(text)
    }

    fn peek_word(&self) -> &'a str {
        let rest = self.rest();
        let is_first = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        let is_other = |(at, c): &(usize, char)| if *at == 0 { !is_first(*c) } else { !is_part_of_word(*c) };
        let end = rest.char_indices().find(is_other).map_or(rest.len(), |(at, _)| at);
        rest.get(..end).unwrap_or_default()
    }

    fn parse_reference(&mut self) -> Result<ValueReference, SyntaxError> {
        self.skip_space();
        let begin = self.at;
        let (mut root, is_node) = self.parse_root()?;
        let mut path = self.parse_path()?;
        if let (true, ReferenceRoot::Output(node), Some(PathStep::Field(first))) =
            (is_node, &root, path.first())
        {
            match first.as_str() {
                "output" => drop(path.remove(0)),
                "state" => {
                    root = ReferenceRoot::State(node.clone());
                    path.remove(0);
                }
                _ => {}
            }
        }
        let text = self.text.get(begin..self.at).unwrap_or_default().to_owned();
        Ok(ValueReference { root, path, text, at: begin })
    }

    fn parse_root(&mut self) -> Result<(ReferenceRoot, bool), SyntaxError> {
        let word = self.peek_word();
        let root = match word {
            "$trigger" | "$input" => ReferenceRoot::Trigger,
            "item" => ReferenceRoot::Item,
            "index" => ReferenceRoot::Index,
            "nodes" => {
                self.skip(word.len());
                return self.parse_node_id().map(|id| (ReferenceRoot::Output(id), true));
            }
            "" => return Err(self.unexpected("a reference, as in nodes.fetch.output")),
            _ => return Err(self.error_here(unknown_root_message(word))),
        };
        self.skip(word.len());
        Ok((root, false))
    }

    /// The name of a node.
    pub(crate) fn parse_node_id(&mut self) -> Result<NodeId, SyntaxError> {
        match self.parse_step()? {
            Some(PathStep::Field(id)) => Ok(NodeId::from(id.as_str())),
            _ => Err(self.error_here("write which one is meant, as in nodes.fetch.output")),
        }
    }

    /// All steps there are.
    pub(crate) fn parse_path(&mut self) -> Result<Vec<PathStep>, SyntaxError> {
        std::iter::from_fn(|| self.parse_step().transpose()).collect()
    }

    /// Parses one step of a path; none at its end.
    fn parse_step(&mut self) -> Result<Option<PathStep>, SyntaxError> {
        match self.rest().bytes().next() {
            Some(b'.') => {
                self.skip(1);
                let word = self.peek_word();
                if word.is_empty() {
                    return Err(self.unexpected("a name behind the dot"));
                }
                self.skip(word.len());
                Ok(Some(PathStep::Field(word.to_owned())))
            }
            Some(b'[') => {
                self.skip(1);
                let step = self.parse_brackets()?;
                if self.skip_mark("]") { Ok(Some(step)) } else { Err(self.unexpected("\"]\"")) }
            }
            _ => Ok(None),
        }
    }

    fn parse_brackets(&mut self) -> Result<PathStep, SyntaxError> {
        self.skip_space();
        match self.rest().bytes().next() {
            Some(quote @ (b'"' | b'\'')) => self.parse_quoted(char::from(quote)).map(PathStep::Field),
            _ => {
                let word = self.peek_word();
                let index = word.parse().map_err(|_| self.unexpected("a number or a name in quotes"))?;
                self.skip(word.len());
                Ok(PathStep::Index(index))
            }
        }
    }
}

/// True if a name can follow a dot.
pub(crate) fn is_identifier(name: &str) -> bool {
    !name.is_empty() && TextCursor::new(name).peek_word() == name
}

fn is_part_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '$')
}

fn unknown_root_message(word: &str) -> String {
    let meant = match word {
        "trigger" => Some("$trigger"),
        "input" | "inputs" | "$inputs" => Some("$input"),
        "steps" | "node" | "$nodes" | "$steps" => Some("nodes"),
        "$item" => Some("item"),
        "$index" => Some("index"),
        _ => crate::suggest::nearest(word, ["nodes", "$trigger", "$input", "item", "index"]),
    };
    let hint = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
    format!("\"{word}\" is unknown; references begin with nodes, $trigger, $input, item or index{hint}")
}

#[cfg(test)]
mod tests;
