//! JSON templates.
//!
//! Strings of a template may contain references in double braces. A string that is exactly one reference becomes the referenced
//! value, with its type and all digits; inside a longer string the value is inserted as text. Constant parts are stored as text, so
//! rendering copies without reformatting.

use rialto_model::json::{Json, is_too_deep};

use crate::reference::{
    MissingValue, ReferenceExpression, RootLookup, SyntaxError, TextCursor, ValueReference,
};

/// A filled template is no larger than what a call may carry; else a few nodes that double each other would fill the memory.
pub const MAX_RENDERED_BYTES: usize = 16 << 20;

/// JSON with places to be filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonTemplate(TemplateNode);

/// Why a template cannot be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// Something is not there.
    #[error(transparent)]
    Missing(#[from] MissingValue),
    /// Larger than [`MAX_RENDERED_BYTES`].
    #[error("what is filled in is larger than 16 MiB")]
    TooLarge,
    /// Nested deeper than parsers accept.
    #[error("what is filled in has more than 100 lists and objects inside each other")]
    TooDeep,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TemplateNode {
    /// Nothing to fill in.
    Fixed(Json),
    /// The referenced value, of any type.
    Whole(ReferenceExpression),
    /// A string that is put together.
    Text(Vec<TextPiece>),
    List(Vec<TemplateNode>),
    Object(Vec<(String, TemplateNode)>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TextPiece {
    Fixed(String),
    Found(ReferenceExpression),
}

/// Output buffer of a rendered template.
struct TemplateRenderer<'a> {
    lookup: &'a RootLookup<'a>,
    out: Vec<u8>,
}

// === impl JsonTemplate ===

impl JsonTemplate {
    /// Constant value.
    pub fn fixed(value: Json) -> Self {
        Self(TemplateNode::Fixed(value))
    }

    /// Reads one string of a template.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        TemplateNode::parse(text).map(Self)
    }

    /// Template of one reference.
    pub fn whole(expression: impl Into<ReferenceExpression>) -> Self {
        Self(TemplateNode::Whole(expression.into()))
    }

    /// An object of templates.
    pub fn object(members: impl IntoIterator<Item = (String, Self)>) -> Self {
        Self(TemplateNode::object(members.into_iter().map(|(name, member)| (name, member.0)).collect()))
    }

    /// A list of templates.
    pub fn list(items: impl IntoIterator<Item = Self>) -> Self {
        Self(TemplateNode::list(items.into_iter().map(|item| item.0).collect()))
    }

    /// The value, if there is nothing to fill in.
    pub const fn as_fixed(&self) -> Option<&Json> {
        match &self.0 {
            TemplateNode::Fixed(value) => Some(value),
            _ => None,
        }
    }

    /// Short description for people; a constant string without its quotes.
    pub fn summary(&self) -> String {
        let mut out = String::new();
        self.0.summarize(&mut out);
        out
    }

    /// References in the template.
    pub fn references(&self) -> Vec<&ValueReference> {
        self.expressions().into_iter().flat_map(ReferenceExpression::references).collect()
    }

    /// The places that are filled in.
    pub(crate) fn expressions(&self) -> Vec<&ReferenceExpression> {
        let mut found = Vec::new();
        self.0.collect(&mut found);
        found
    }

    /// Fills it in.
    pub fn render(&self, lookup: &RootLookup<'_>) -> Result<Json, RenderError> {
        if let TemplateNode::Fixed(value) = &self.0 {
            return Ok(value.clone());
        }
        if let TemplateNode::Whole(expression) = &self.0 {
            return Ok(expression.resolve(lookup)?);
        }
        let mut filling = TemplateRenderer { lookup, out: Vec::new() };
        filling.render_node(&self.0)?;
        if is_too_deep(&filling.out) {
            return Err(RenderError::TooDeep);
        }
        let text = String::from_utf8(filling.out).unwrap_or_default();
        Ok(Json::parse(text).unwrap_or_else(|_| Json::null()))
    }
}

// === impl TemplateNode ===

impl TemplateNode {
    pub(crate) fn parse(text: &str) -> Result<Self, SyntaxError> {
        let mut cursor = TextCursor::new(text);
        let mut pieces = Vec::new();
        while let Some(begin) = cursor.rest().find("{{") {
            if begin > 0 {
                pieces.push(TextPiece::Fixed(cursor.rest()[..begin].to_owned()));
            }
            cursor.skip(begin + 2);
            let expression = ReferenceExpression::read(&mut cursor)?;
            if !cursor.skip_mark("}}") {
                return Err(cursor.unexpected("\"}}\""));
            }
            pieces.push(TextPiece::Found(expression));
        }
        if !cursor.is_at_end() {
            pieces.push(TextPiece::Fixed(cursor.rest().to_owned()));
        }
        Ok(match pieces.as_mut_slice() {
            [] => Self::Fixed(Json::encode("")),
            [TextPiece::Fixed(text)] => Self::Fixed(Json::encode(text)),
            [TextPiece::Found(expression)] => Self::Whole(expression.clone()),
            _ => Self::Text(pieces),
        })
    }

    fn list(items: Vec<Self>) -> Self {
        match fixed_values(items.iter()) {
            Some(values) => Self::Fixed(Json::encode(&values)),
            None => Self::List(items),
        }
    }

    fn object(members: Vec<(String, Self)>) -> Self {
        match fixed_values(members.iter().map(|(_, value)| value)) {
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
                        TextPiece::Fixed(text) => *out += text,
                        TextPiece::Found(expression) => *out += &expression.to_string(),
                    }
                }
            }
            Self::List(_) => *out += "[…]",
            Self::Object(_) => *out += "{…}",
        }
    }

    fn collect<'a>(&'a self, found: &mut Vec<&'a ReferenceExpression>) {
        match self {
            Self::Fixed(_) => {}
            Self::Whole(expression) => found.push(expression),
            Self::Text(pieces) => found.extend(pieces.iter().filter_map(|piece| match piece {
                TextPiece::Found(expression) => Some(expression),
                TextPiece::Fixed(_) => None,
            })),
            Self::List(items) => items.iter().for_each(|item| item.collect(found)),
            Self::Object(members) => members.iter().for_each(|(_, value)| value.collect(found)),
        }
    }
}

/// The values of shapes that are all fixed.
fn fixed_values<'a>(shapes: impl Iterator<Item = &'a TemplateNode>) -> Option<Vec<Json>> {
    let value = |shape: &TemplateNode| match shape {
        TemplateNode::Fixed(value) => Some(value.clone()),
        _ => None,
    };
    shapes.map(value).collect()
}

// === impl TemplateRenderer ===

impl TemplateRenderer<'_> {
    fn render_node(&mut self, shape: &TemplateNode) -> Result<(), RenderError> {
        match shape {
            TemplateNode::Fixed(value) => self.push(value.get())?,
            TemplateNode::Whole(expression) => {
                let found = expression.resolve(self.lookup)?;
                self.push(found.get())?;
            }
            TemplateNode::Text(pieces) => self.text(pieces)?,
            TemplateNode::List(items) => {
                self.out.push(b'[');
                for (at, item) in items.iter().enumerate() {
                    self.comma(at);
                    self.render_node(item)?;
                }
                self.out.push(b']');
            }
            TemplateNode::Object(members) => {
                self.out.push(b'{');
                for (at, (name, value)) in members.iter().enumerate() {
                    self.comma(at);
                    self.string(name);
                    self.out.push(b':');
                    self.render_node(value)?;
                }
                self.out.push(b'}');
            }
        }
        Ok(())
    }

    fn text(&mut self, pieces: &[TextPiece]) -> Result<(), RenderError> {
        let mut text = String::new();
        for piece in pieces {
            match piece {
                TextPiece::Fixed(fixed) => text += fixed,
                TextPiece::Found(expression) => {
                    let found = expression.resolve(self.lookup)?;
                    match found.read::<String>() {
                        Ok(found) => text += &found,
                        Err(_) => text += found.get(),
                    }
                }
            }
            if self.out.len() + text.len() > MAX_RENDERED_BYTES {
                return Err(RenderError::TooLarge);
            }
        }
        self.string(&text);
        Ok(())
    }

    fn push(&mut self, json: &str) -> Result<(), RenderError> {
        if self.out.len() + json.len() > MAX_RENDERED_BYTES {
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
