//! JSON with places to be filled in.
//!
//! Any string of a template may hold references in double braces. A string that is one reference and nothing else becomes what is
//! found there, whatever its type, with every digit of its numbers; inside a longer string what is found is put in as text. What is
//! fixed is kept as text, so filling a template copies and never counts.

use rialto_model::json::{Json, is_too_deep};

use crate::reference::{Cursor, Expression, Lookup, Missing, Reference, SyntaxError};

/// A filled template is no larger than what a call may carry; else a few nodes that double each other would fill the memory.
pub const LARGEST: usize = 16 << 20;

/// JSON with places to be filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Shape);

/// Why a template cannot be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// Something is not there.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// It would be larger than [`LARGEST`].
    #[error("what is filled in is larger than 16 MiB")]
    TooLarge,
    /// Its lists and objects would lie deeper inside each other than anybody reads.
    #[error("what is filled in has more than 100 lists and objects inside each other")]
    TooDeep,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Nothing to fill in.
    Fixed(Json),
    /// Becomes what is found, whatever it is.
    Whole(Expression),
    /// A string that is put together.
    Text(Vec<Piece>),
    List(Vec<Shape>),
    Object(Vec<(String, Shape)>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Fixed(String),
    Found(Expression),
}

/// Where a filled template is put together.
struct Filling<'a> {
    lookup: &'a Lookup<'a>,
    out: Vec<u8>,
}

// === impl Template ===

impl Template {
    /// A value that is the same whatever happens.
    pub fn fixed(value: Json) -> Self {
        Self(Shape::Fixed(value))
    }

    /// Reads one string of a template.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        Shape::parse(text).map(Self)
    }

    /// What becomes of one reference.
    pub fn whole(expression: impl Into<Expression>) -> Self {
        Self(Shape::Whole(expression.into()))
    }

    /// An object of templates.
    pub fn object(members: impl IntoIterator<Item = (String, Self)>) -> Self {
        Self(Shape::object(members.into_iter().map(|(name, member)| (name, member.0)).collect()))
    }

    /// A list of templates.
    pub fn list(items: impl IntoIterator<Item = Self>) -> Self {
        Self(Shape::list(items.into_iter().map(|item| item.0).collect()))
    }

    /// The value, if there is nothing to fill in.
    pub const fn as_fixed(&self) -> Option<&Json> {
        match &self.0 {
            Shape::Fixed(value) => Some(value),
            _ => None,
        }
    }

    /// What it is, in a few words for people; what is fixed and a string, without its quotes.
    pub fn summary(&self) -> String {
        let mut out = String::new();
        self.0.summarize(&mut out);
        out
    }

    /// What it looks at.
    pub fn references(&self) -> Vec<&Reference> {
        self.expressions().into_iter().flat_map(Expression::references).collect()
    }

    /// The places that are filled in.
    pub(crate) fn expressions(&self) -> Vec<&Expression> {
        let mut found = Vec::new();
        self.0.collect(&mut found);
        found
    }

    /// Fills it in.
    pub fn render(&self, lookup: &Lookup<'_>) -> Result<Json, RenderError> {
        if let Shape::Fixed(value) = &self.0 {
            return Ok(value.clone());
        }
        if let Shape::Whole(expression) = &self.0 {
            return Ok(expression.find(lookup)?);
        }
        let mut filling = Filling { lookup, out: Vec::new() };
        filling.fill(&self.0)?;
        if is_too_deep(&filling.out) {
            return Err(RenderError::TooDeep);
        }
        let text = String::from_utf8(filling.out).unwrap_or_default();
        Ok(Json::parse(text).unwrap_or_else(|_| Json::null()))
    }
}

// === impl Shape ===

impl Shape {
    pub(crate) fn parse(text: &str) -> Result<Self, SyntaxError> {
        let mut cursor = Cursor::new(text);
        let mut pieces = Vec::new();
        while let Some(begin) = cursor.rest().find("{{") {
            if begin > 0 {
                pieces.push(Piece::Fixed(cursor.rest()[..begin].to_owned()));
            }
            cursor.skip(begin + 2);
            let expression = Expression::read(&mut cursor)?;
            if !cursor.takes("}}") {
                return Err(cursor.unexpected("\"}}\""));
            }
            pieces.push(Piece::Found(expression));
        }
        if !cursor.is_over() {
            pieces.push(Piece::Fixed(cursor.rest().to_owned()));
        }
        Ok(match pieces.as_mut_slice() {
            [] => Self::Fixed(Json::encode("")),
            [Piece::Fixed(text)] => Self::Fixed(Json::encode(text)),
            [Piece::Found(expression)] => Self::Whole(expression.clone()),
            _ => Self::Text(pieces),
        })
    }

    fn list(items: Vec<Self>) -> Self {
        match fixed(items.iter()) {
            Some(values) => Self::Fixed(Json::encode(&values)),
            None => Self::List(items),
        }
    }

    fn object(members: Vec<(String, Self)>) -> Self {
        match fixed(members.iter().map(|(_, value)| value)) {
            Some(values) => {
                let names = members.iter().map(|(name, _)| name.clone());
                let object: rialto_model::json::Extra = names.zip(values).collect();
                Self::Fixed(Json::encode(&object))
            }
            None => Self::Object(members),
        }
    }

    fn summarize(&self, out: &mut String) {
        match self {
            Self::Fixed(value) => match value.read::<String>() {
                Ok(text) => *out += &text,
                Err(_) => *out += value.get(),
            },
            Self::Whole(expression) => *out += &expression.to_string(),
            Self::Text(pieces) => {
                for piece in pieces {
                    match piece {
                        Piece::Fixed(text) => *out += text,
                        Piece::Found(expression) => *out += &expression.to_string(),
                    }
                }
            }
            Self::List(_) => *out += "[…]",
            Self::Object(_) => *out += "{…}",
        }
    }

    fn collect<'a>(&'a self, found: &mut Vec<&'a Expression>) {
        match self {
            Self::Fixed(_) => {}
            Self::Whole(expression) => found.push(expression),
            Self::Text(pieces) => found.extend(pieces.iter().filter_map(|piece| match piece {
                Piece::Found(expression) => Some(expression),
                Piece::Fixed(_) => None,
            })),
            Self::List(items) => items.iter().for_each(|item| item.collect(found)),
            Self::Object(members) => members.iter().for_each(|(_, value)| value.collect(found)),
        }
    }
}

/// The values of shapes that are all fixed.
fn fixed<'a>(shapes: impl Iterator<Item = &'a Shape>) -> Option<Vec<Json>> {
    let value = |shape: &Shape| match shape {
        Shape::Fixed(value) => Some(value.clone()),
        _ => None,
    };
    shapes.map(value).collect()
}

// === impl Filling ===

impl Filling<'_> {
    fn fill(&mut self, shape: &Shape) -> Result<(), RenderError> {
        match shape {
            Shape::Fixed(value) => self.push(value.get())?,
            Shape::Whole(expression) => {
                let found = expression.find(self.lookup)?;
                self.push(found.get())?;
            }
            Shape::Text(pieces) => self.text(pieces)?,
            Shape::List(items) => {
                self.out.push(b'[');
                for (at, item) in items.iter().enumerate() {
                    self.comma(at);
                    self.fill(item)?;
                }
                self.out.push(b']');
            }
            Shape::Object(members) => {
                self.out.push(b'{');
                for (at, (name, value)) in members.iter().enumerate() {
                    self.comma(at);
                    self.string(name);
                    self.out.push(b':');
                    self.fill(value)?;
                }
                self.out.push(b'}');
            }
        }
        Ok(())
    }

    fn text(&mut self, pieces: &[Piece]) -> Result<(), RenderError> {
        let mut text = String::new();
        for piece in pieces {
            match piece {
                Piece::Fixed(fixed) => text += fixed,
                Piece::Found(expression) => {
                    let found = expression.find(self.lookup)?;
                    match found.read::<String>() {
                        Ok(found) => text += &found,
                        Err(_) => text += found.get(),
                    }
                }
            }
            if self.out.len() + text.len() > LARGEST {
                return Err(RenderError::TooLarge);
            }
        }
        self.string(&text);
        Ok(())
    }

    fn push(&mut self, json: &str) -> Result<(), RenderError> {
        if self.out.len() + json.len() > LARGEST {
            return Err(RenderError::TooLarge);
        }
        self.out.extend_from_slice(json.as_bytes());
        Ok(())
    }

    /// Appends a JSON string.
    fn string(&mut self, text: &str) {
        // Writing a string to memory cannot fail.
        let _ = serde_json::to_writer(&mut self.out, text);
    }

    fn comma(&mut self, at: usize) {
        if at > 0 {
            self.out.push(b',');
        }
    }
}

#[cfg(test)]
mod tests;
