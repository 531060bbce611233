//! YAML as a tree.
//!
//! The library reports words, lists and objects with positions; their meaning is decided here, so that numbers keep all digits.
//! Anchors are copied where they are used, and all copies count: ten lines cannot become a million values.

use std::{borrow::Cow, collections::BTreeMap};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};

use super::{
    MAX_NESTING_DEPTH, MAX_VALUES, scalar,
    tree::{ObjectMember, SourceText, SourceTree, SourceValue},
};
use crate::{
    definition::SourcePosition,
    problem::{DefinitionProblems, ProblemCode},
};

/// Positions inside of texts are not computed beyond this column.
const MAX_COLUMN: usize = 1_000;

struct YamlTreeBuilder<'a> {
    lines: Vec<&'a str>,
    parser: Parser<'a, StrInput<'a>>,
    /// Anchored value, and its number of values.
    anchors: BTreeMap<usize, (SourceTree, usize)>,
    values: usize,
}

type YamlScalar<'a> = (Cow<'a, str>, ScalarStyle, Option<Cow<'a, Tag>>);

/// Reads one document.
pub(super) fn parse_yaml(text: &str) -> Result<SourceTree, DefinitionProblems> {
    let parser = Parser::new_from_str(text);
    let mut builder =
        YamlTreeBuilder { lines: text.lines().collect(), parser, anchors: BTreeMap::new(), values: 0 };
    loop {
        match builder.next()? {
            (Event::StreamStart | Event::DocumentStart(_) | Event::Nothing, _) => {}
            (Event::StreamEnd, span) => return Err(yaml_problem(span, "the file is empty")),
            (event, span) => {
                let tree = builder.tree(event, span, 0)?;
                builder.end()?;
                return Ok(tree);
            }
        }
    }
}

// === impl YamlTreeBuilder ===

impl<'a> YamlTreeBuilder<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), DefinitionProblems> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(scan_problem(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    /// There must be nothing behind the first document.
    fn end(&mut self) -> Result<(), DefinitionProblems> {
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(()),
                (Event::DocumentEnd, _) => {}
                (_, span) => {
                    return Err(yaml_problem(
                        span,
                        "one file holds one workflow; put the next in a file of its own",
                    ));
                }
            }
        }
    }

    fn tree(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<SourceTree, DefinitionProblems> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(yaml_problem(
                span,
                format!("a workflow has at most {MAX_VALUES} values, copies of anchors included"),
            ));
        }
        if depth > MAX_NESTING_DEPTH {
            return Err(yaml_problem(
                span,
                format!("lists and objects lie at most {MAX_NESTING_DEPTH} deep inside each other"),
            ));
        }
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => (anchor, self.scalar((text, style, tag), span)?),
            Event::SequenceStart(anchor, _) => (anchor, self.list(depth)?),
            Event::MappingStart(anchor, _) => (anchor, self.object(depth)?),
            Event::Alias(anchor) => return self.alias(anchor, span, depth),
            _ => return Err(yaml_problem(span, "a value is missing here")),
        };
        let tree = SourceTree { place: position(span.start), value };
        if anchor > 0 {
            let size = tree.size();
            self.anchors.insert(anchor, (tree.clone(), size));
        }
        Ok(tree)
    }

    fn alias(&mut self, anchor: usize, span: Span, depth: usize) -> Result<SourceTree, DefinitionProblems> {
        let Some((tree, size)) = self.anchors.get(&anchor) else {
            return Err(yaml_problem(span, "this alias repeats a value that contains it"));
        };
        self.values += size;
        if self.values > MAX_VALUES || depth + tree.depth() > MAX_NESTING_DEPTH {
            return Err(yaml_problem(span, "repeated aliases make the workflow too large"));
        }
        Ok(tree.clone())
    }

    fn list(&mut self, depth: usize) -> Result<SourceValue, DefinitionProblems> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(SourceValue::List(items)),
                (event, span) => items.push(self.tree(event, span, depth + 1)?),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<SourceValue, DefinitionProblems> {
        let mut members = Vec::new();
        loop {
            let (name, at) = match self.next()? {
                (Event::MappingEnd, _) => return Ok(SourceValue::Object(members)),
                (Event::Scalar(name, ..), span) => (name.into_owned(), span),
                (Event::MappingStart(..), span) => {
                    return Err(yaml_problem(
                        span,
                        "this is not a name; a value that begins with {{ needs quotes",
                    ));
                }
                (_, span) => return Err(yaml_problem(span, "the name of a member must be a word")),
            };
            let (event, span) = self.next()?;
            let tree = self.tree(event, span, depth + 1)?;
            members.push(ObjectMember { name, place: position(at.start), tree });
        }
    }

    fn scalar(
        &self,
        (text, style, tag): YamlScalar<'a>,
        span: Span,
    ) -> Result<SourceValue, DefinitionProblems> {
        let as_text = || {
            SourceValue::Text(SourceText {
                begin: self.begin(&text, style, span),
                text: text.clone().into_owned(),
            })
        };
        let meant = match tag.as_deref() {
            None if style == ScalarStyle::Plain => scalar::parse_plain(&text),
            None => Ok(None),
            Some(tag) if tag.is_yaml_core_schema() => match tag.suffix.as_str() {
                "str" => Ok(None),
                "int" | "float" => scalar::parse_number(&text)
                    .map(|number| Some(SourceValue::Number(number)))
                    .ok_or_else(|| format!("\"{text}\" is no number")),
                "bool" | "null" => scalar::parse_plain(&text),
                other => Err(format!("unknown tag !!{other}; remove it")),
            },
            Some(tag) => Err(format!("unknown tag {tag}; remove it")),
        };
        match meant {
            Ok(value) => Ok(value.unwrap_or_else(as_text)),
            Err(message) => Err(yaml_problem(span, message)),
        }
    }

    /// Position of the first character of a text, if the text is in the file unchanged.
    fn begin(&self, text: &str, style: ScalarStyle, span: Span) -> Option<SourcePosition> {
        let quote = match style {
            ScalarStyle::Plain => 0,
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => 1,
            ScalarStyle::Literal | ScalarStyle::Folded => return None,
        };
        let column = span.start.col() + quote;
        // Only the beginning of a very long line is read.
        let line = self.lines.get(span.start.line().checked_sub(1)?).filter(|_| column <= MAX_COLUMN)?;
        let (begin, _) = line.char_indices().nth(column)?;
        let at = position(span.start);
        line.get(begin..)?
            .starts_with(text)
            .then_some(SourcePosition { column: at.column + u32::from(quote == 1), ..at })
    }
}

fn position(mark: Marker) -> SourcePosition {
    let short = |number| u32::try_from(number).unwrap_or(u32::MAX);
    SourcePosition { line: short(mark.line().max(1)), column: short(mark.col()).saturating_add(1) }
}

fn yaml_problem(span: Span, message: impl Into<String>) -> DefinitionProblems {
    DefinitionProblems::single(position(span.start), ProblemCode::Syntax, message)
}

fn scan_problem(error: &ScanError) -> DefinitionProblems {
    let message = format!("this is no YAML: {}", error.info());
    DefinitionProblems::single(position(*error.marker()), ProblemCode::Syntax, message)
}
