//! YAML as a tree.
//!
//! The library says which words, lists and objects there are and where; what they mean is decided here, so that numbers keep their
//! digits. Anchors are copied where they are used, and all copies count: a file of ten lines cannot become a million values.

use std::{borrow::Cow, collections::BTreeMap};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};

use super::{
    DEEPEST, MOST_VALUES, scalar,
    tree::{Member, Text, Tree, Value},
};
use crate::{
    definition::Place,
    problem::{Code, Problems},
};

/// Beyond this column no places inside of texts are told.
const FURTHEST: usize = 1_000;

struct Builder<'a> {
    lines: Vec<&'a str>,
    parser: Parser<'a, StrInput<'a>>,
    /// What was anchored, and how many values it has.
    anchors: BTreeMap<usize, (Tree, usize)>,
    values: usize,
}

type Scalar<'a> = (Cow<'a, str>, ScalarStyle, Option<Cow<'a, Tag>>);

/// Reads one document.
pub(super) fn read(text: &str) -> Result<Tree, Problems> {
    let parser = Parser::new_from_str(text);
    let mut builder = Builder { lines: text.lines().collect(), parser, anchors: BTreeMap::new(), values: 0 };
    loop {
        match builder.next()? {
            (Event::StreamStart | Event::DocumentStart(_) | Event::Nothing, _) => {}
            (Event::StreamEnd, span) => return Err(wrong(span, "the file is empty")),
            (event, span) => {
                let tree = builder.tree(event, span, 0)?;
                builder.end()?;
                return Ok(tree);
            }
        }
    }
}

// === impl Builder ===

impl<'a> Builder<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), Problems> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(unreadable(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    /// There must be nothing behind the first document.
    fn end(&mut self) -> Result<(), Problems> {
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(()),
                (Event::DocumentEnd, _) => {}
                (_, span) => {
                    return Err(wrong(
                        span,
                        "one file holds one workflow; put the next in a file of its own",
                    ));
                }
            }
        }
    }

    fn tree(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Tree, Problems> {
        self.values += 1;
        if self.values > MOST_VALUES {
            return Err(wrong(
                span,
                format!("a workflow has at most {MOST_VALUES} values, copies of anchors included"),
            ));
        }
        if depth > DEEPEST {
            return Err(wrong(
                span,
                format!("lists and objects lie at most {DEEPEST} deep inside each other"),
            ));
        }
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => (anchor, self.scalar((text, style, tag), span)?),
            Event::SequenceStart(anchor, _) => (anchor, self.list(depth)?),
            Event::MappingStart(anchor, _) => (anchor, self.object(depth)?),
            Event::Alias(anchor) => return self.alias(anchor, span, depth),
            _ => return Err(wrong(span, "a value is missing here")),
        };
        let tree = Tree { place: place(span.start), value };
        if anchor > 0 {
            let size = tree.size();
            self.anchors.insert(anchor, (tree.clone(), size));
        }
        Ok(tree)
    }

    fn alias(&mut self, anchor: usize, span: Span, depth: usize) -> Result<Tree, Problems> {
        let Some((tree, size)) = self.anchors.get(&anchor) else {
            return Err(wrong(span, "this repeats what it is itself a part of"));
        };
        self.values += size;
        if self.values > MOST_VALUES || depth + tree.depth() > DEEPEST {
            return Err(wrong(span, "what is repeated here makes the workflow too large"));
        }
        Ok(tree.clone())
    }

    fn list(&mut self, depth: usize) -> Result<Value, Problems> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::List(items)),
                (event, span) => items.push(self.tree(event, span, depth + 1)?),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, Problems> {
        let mut members = Vec::new();
        loop {
            let (name, at) = match self.next()? {
                (Event::MappingEnd, _) => return Ok(Value::Object(members)),
                (Event::Scalar(name, ..), span) => (name.into_owned(), span),
                (Event::MappingStart(..), span) => {
                    return Err(wrong(span, "this is no name; a value that begins with {{ stands in quotes"));
                }
                (_, span) => return Err(wrong(span, "the name of a member must be a word")),
            };
            let (event, span) = self.next()?;
            let tree = self.tree(event, span, depth + 1)?;
            members.push(Member { name, place: place(at.start), tree });
        }
    }

    fn scalar(&self, (text, style, tag): Scalar<'a>, span: Span) -> Result<Value, Problems> {
        let as_text =
            || Value::Text(Text { begin: self.begin(&text, style, span), text: text.clone().into_owned() });
        let meant = match tag.as_deref() {
            None if style == ScalarStyle::Plain => scalar::plain(&text),
            None => Ok(None),
            Some(tag) if tag.is_yaml_core_schema() => match tag.suffix.as_str() {
                "str" => Ok(None),
                "int" | "float" => scalar::number(&text)
                    .map(|number| Some(Value::Number(number)))
                    .ok_or_else(|| format!("\"{text}\" is no number")),
                "bool" | "null" => scalar::plain(&text),
                other => Err(format!("nobody knows the tag !!{other} here; leave it out")),
            },
            Some(tag) => Err(format!("nobody knows the tag {tag} here; leave it out")),
        };
        match meant {
            Ok(value) => Ok(value.unwrap_or_else(as_text)),
            Err(message) => Err(wrong(span, message)),
        }
    }

    /// Where the first character of a text stands, if it stands there as it is.
    fn begin(&self, text: &str, style: ScalarStyle, span: Span) -> Option<Place> {
        let quote = match style {
            ScalarStyle::Plain => 0,
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => 1,
            ScalarStyle::Literal | ScalarStyle::Folded => return None,
        };
        let column = span.start.col() + quote;
        // Of a line without end only its beginning is looked at.
        let line = self.lines.get(span.start.line().checked_sub(1)?).filter(|_| column <= FURTHEST)?;
        let (begin, _) = line.char_indices().nth(column)?;
        let at = place(span.start);
        line.get(begin..)?
            .starts_with(text)
            .then_some(Place { column: at.column + u32::from(quote == 1), ..at })
    }
}

fn place(mark: Marker) -> Place {
    let short = |number| u32::try_from(number).unwrap_or(u32::MAX);
    Place { line: short(mark.line().max(1)), column: short(mark.col()).saturating_add(1) }
}

fn wrong(span: Span, message: impl Into<String>) -> Problems {
    Problems::one(place(span.start), Code::Syntax, message)
}

fn unreadable(error: &ScanError) -> Problems {
    let message = format!("this is no YAML: {}", error.info());
    Problems::one(place(*error.marker()), Code::Syntax, message)
}
