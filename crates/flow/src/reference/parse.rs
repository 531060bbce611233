//! How references are written.
//!
//! `path ("??" path)* ("??" literal)?`, where a literal alone is allowed too: `{{ "{{" }}` writes two braces.

use rialto_model::json::Json;

use super::{Expression, Reference, Root, Step};
use crate::definition::NodeId;

/// A literal in a reference may hold lists this deep.
const DEEPEST: usize = 16;

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct SyntaxError {
    /// Where in the text, in bytes.
    pub at: usize,
    /// What is wrong, and what helps.
    pub problem: String,
}

/// Reads a text from left to right.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

// === impl Expression ===

impl Expression {
    /// Reads what stands between `{{` and `}}`.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let mut cursor = Cursor::new(text);
        let expression = Self::read(&mut cursor)?;
        cursor.skip_space();
        if cursor.is_over() { Ok(expression) } else { Err(cursor.unexpected("the end")) }
    }

    /// Reads as much as belongs to it.
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self, SyntaxError> {
        let mut expression = Self { choices: Vec::new(), default: None };
        loop {
            cursor.skip_space();
            if let Some(literal) = cursor.literal()? {
                expression.default = Some(literal);
                return Ok(expression);
            }
            expression.choices.push(cursor.reference()?);
            if !cursor.takes("??") {
                return Ok(expression);
            }
        }
    }
}

// === impl Cursor ===

impl<'a> Cursor<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(crate) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.rest().is_empty()
    }

    /// Goes on by some bytes.
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.at = self.text.len().min(self.at + bytes);
    }

    pub(crate) fn skip_space(&mut self) {
        let rest = self.rest();
        self.skip(rest.len() - rest.trim_start().len());
    }

    /// Goes past `mark`, if it is the next after some space.
    pub(crate) fn takes(&mut self, mark: &str) -> bool {
        self.skip_space();
        let is_next = self.rest().starts_with(mark);
        if is_next {
            self.skip(mark.len());
        }
        is_next
    }

    /// Goes past a whole word, if it is the next after some space.
    pub(crate) fn takes_word(&mut self, word: &str) -> bool {
        self.skip_space();
        let is_next = self.word() == word;
        if is_next {
            self.skip(word.len());
        }
        is_next
    }

    pub(crate) fn wrong(&self, problem: impl Into<String>) -> SyntaxError {
        SyntaxError { at: self.at, problem: problem.into() }
    }

    pub(crate) fn unexpected(&self, wanted: &str) -> SyntaxError {
        let word = self.word();
        let found = if word.is_empty() {
            self.rest().chars().next().map(String::from)
        } else {
            Some(word.to_owned())
        };
        match found {
            Some(found) => self.wrong(format!("expected {wanted}, found \"{found}\"")),
            None => self.wrong(format!("expected {wanted}, but the text is over")),
        }
    }

    /// A string, number, list or one of the three words; none when something else is next.
    pub(crate) fn literal(&mut self) -> Result<Option<Json>, SyntaxError> {
        self.literal_within(DEEPEST)
    }

    fn literal_within(&mut self, depth: usize) -> Result<Option<Json>, SyntaxError> {
        self.skip_space();
        match self.rest().bytes().next() {
            Some(quote @ (b'"' | b'\'')) => {
                self.quoted(char::from(quote)).map(|text| Some(Json::encode(&text)))
            }
            Some(b'-' | b'0'..=b'9') => self.number().map(Some),
            Some(b'[') if depth == 0 => Err(self.wrong("lists lie too deep inside each other")),
            Some(b'[') => self.list(depth - 1).map(Some),
            _ => Ok(["true", "false", "null"]
                .into_iter()
                .find(|word| self.takes_word(word))
                .map(|word| Json::parse(word).unwrap_or_else(|_| Json::null()))),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json, SyntaxError> {
        self.skip(1);
        let mut items = Vec::new();
        while !self.takes("]") {
            if !items.is_empty() && !self.takes(",") {
                return Err(self.unexpected("\",\" or \"]\""));
            }
            items.push(self.literal_within(depth)?.ok_or_else(|| self.unexpected("a value"))?);
        }
        Ok(Json::encode(&items))
    }

    fn number(&mut self) -> Result<Json, SyntaxError> {
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let text = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        let number = Json::parse(text).map_err(|_| self.wrong(format!("\"{text}\" is no number")))?;
        self.skip(text.len());
        Ok(number)
    }

    /// A string in quotes, with the escapes of JSON; in single quotes, `\'` too.
    fn quoted(&mut self, quote: char) -> Result<String, SyntaxError> {
        let rest = self.rest();
        let mut is_escaped = false;
        let end = rest.char_indices().skip(1).find(|(_, c)| {
            let is_end = *c == quote && !is_escaped;
            is_escaped = *c == '\\' && !is_escaped;
            is_end
        });
        let Some((end, _)) = end else {
            return Err(self.wrong(format!("the string has no closing {quote}")));
        };
        let inner = &rest[1..end];
        let inner =
            if quote == '\'' { inner.replace("\\'", "'").replace('"', "\\\"") } else { inner.to_owned() };
        let text = serde_json::from_str(&format!("\"{inner}\""));
        let text = text.map_err(|_| self.wrong("the string has an escape that JSON does not know"))?;
        self.skip(end + 1);
        Ok(text)
    }

    fn word(&self) -> &'a str {
        let rest = self.rest();
        let is_first = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        let is_other = |(at, c): &(usize, char)| if *at == 0 { !is_first(*c) } else { !is_part_of_word(*c) };
        let end = rest.char_indices().find(is_other).map_or(rest.len(), |(at, _)| at);
        rest.get(..end).unwrap_or_default()
    }

    fn reference(&mut self) -> Result<Reference, SyntaxError> {
        self.skip_space();
        let begin = self.at;
        let (mut root, is_node) = self.root()?;
        let mut path = self.path()?;
        if let (true, Root::Output(node), Some(Step::Field(first))) = (is_node, &root, path.first()) {
            match first.as_str() {
                "output" => drop(path.remove(0)),
                "state" => {
                    root = Root::State(node.clone());
                    path.remove(0);
                }
                _ => {}
            }
        }
        let text = self.text.get(begin..self.at).unwrap_or_default().to_owned();
        Ok(Reference { root, path, text, at: begin })
    }

    fn root(&mut self) -> Result<(Root, bool), SyntaxError> {
        let word = self.word();
        let root = match word {
            "$trigger" | "$input" => Root::Trigger,
            "item" => Root::Item,
            "index" => Root::Index,
            "nodes" => {
                self.skip(word.len());
                return self.named().map(|id| (Root::Output(id), true));
            }
            "" => return Err(self.unexpected("a reference, as in nodes.fetch.output")),
            _ => return Err(self.wrong(unknown(word))),
        };
        self.skip(word.len());
        Ok((root, false))
    }

    /// The name of a node.
    pub(crate) fn named(&mut self) -> Result<NodeId, SyntaxError> {
        match self.step()? {
            Some(Step::Field(id)) => Ok(NodeId::from(id.as_str())),
            _ => Err(self.wrong("write which one is meant, as in nodes.fetch.output")),
        }
    }

    /// All steps there are.
    pub(crate) fn path(&mut self) -> Result<Vec<Step>, SyntaxError> {
        std::iter::from_fn(|| self.step().transpose()).collect()
    }

    /// One step of a path; none when it is over.
    fn step(&mut self) -> Result<Option<Step>, SyntaxError> {
        match self.rest().bytes().next() {
            Some(b'.') => {
                self.skip(1);
                let word = self.word();
                if word.is_empty() {
                    return Err(self.unexpected("a name behind the dot"));
                }
                self.skip(word.len());
                Ok(Some(Step::Field(word.to_owned())))
            }
            Some(b'[') => {
                self.skip(1);
                let step = self.inside_brackets()?;
                if self.takes("]") { Ok(Some(step)) } else { Err(self.unexpected("\"]\"")) }
            }
            _ => Ok(None),
        }
    }

    fn inside_brackets(&mut self) -> Result<Step, SyntaxError> {
        self.skip_space();
        match self.rest().bytes().next() {
            Some(quote @ (b'"' | b'\'')) => self.quoted(char::from(quote)).map(Step::Field),
            _ => {
                let word = self.word();
                let index = word.parse().map_err(|_| self.unexpected("a number or a name in quotes"))?;
                self.skip(word.len());
                Ok(Step::Index(index))
            }
        }
    }
}

/// Whether a name can stand behind a dot.
pub(crate) fn is_word(name: &str) -> bool {
    !name.is_empty() && Cursor::new(name).word() == name
}

fn is_part_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '$')
}

fn unknown(word: &str) -> String {
    let meant = match word {
        "trigger" => Some("$trigger"),
        "input" | "inputs" | "$inputs" => Some("$input"),
        "steps" | "node" | "$nodes" | "$steps" => Some("nodes"),
        "$item" => Some("item"),
        "$index" => Some("index"),
        _ => crate::suggest::nearest(word, ["nodes", "$trigger", "$input", "item", "index"]),
    };
    let hint = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
    format!("\"{word}\" is nothing to look at, only nodes, $trigger, $input, item and index are{hint}")
}

#[cfg(test)]
mod tests;
