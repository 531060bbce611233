//! Messages, their parts, and artifacts, in A2A 1.0's terms.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::{Extra, Json};

/// A message or an artifact has at most `limit` parts.
pub const MAX_PARTS: usize = 1_000;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "MessageRole")]
pub enum Role {
    /// The side that asks.
    User,
    /// The side that works.
    Agent,
    /// The sender did not say, or said something no version of the protocol knows.
    Unspecified,
}

/// One turn of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TaskMessage")]
pub struct Message {
    /// The sender's name for this message. Empty where the dialect has none (0.1).
    pub id: String,
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub parts: Vec<Part>,
    /// The conversation, in the words of whoever made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_id: Option<String>,
    /// The task this belongs to, in the words of whoever made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Free-form facts beside the parts; always an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "object"))]
    pub metadata: Option<Json>,
    /// URIs of the protocol extensions in use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// Other tasks this message speaks of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reference_task_ids: Vec<String>,
    /// Members we do not know.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// Hash of a message as it was sent, in hexadecimal digits.
///
/// The stored message is redacted, so it cannot show whether another one says the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct ContentHash(String);

/// One piece of content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// The content itself.
    pub content: Content,
    /// A file's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// The content's media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Free-form facts; always an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "object"))]
    pub metadata: Option<Json>,
    /// Members we do not know.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// The four kinds of content, and whatever a later protocol invents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Any JSON value.
    Data(Json),
    /// A file's bytes, still in base64: we pass them on, we do not look inside.
    Raw(String),
    /// Where a file can be fetched.
    Url(String),
    /// A part of a kind we do not know: the whole object, as it came.
    Unknown(Json),
}

/// Something a task has made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Artifact {
    /// Its name within the task; chunks with the same id belong together.
    pub id: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The content.
    pub parts: Vec<Part>,
    /// Free-form facts; always an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "object"))]
    pub metadata: Option<Json>,
    /// URIs of the protocol extensions in use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// Members we do not know.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

// === impl ContentHash ===

impl ContentHash {
    /// The hash with these digits.
    pub const fn new(digits: String) -> Self {
        Self(digits)
    }

    /// Its digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

// === impl Message ===

impl Message {
    /// A message with parts and nothing else.
    pub fn new(id: impl Into<String>, role: Role, parts: Vec<Part>) -> Self {
        Self {
            id: id.into(),
            role,
            parts,
            context_id: None,
            task_id: None,
            metadata: None,
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
            extra: Extra::new(),
        }
    }

    /// All text of the message, parts joined by line ends.
    pub fn text(&self) -> String {
        text_of(&self.parts)
    }
}

// === impl Part ===

impl Part {
    /// A part with content and nothing else.
    pub fn new(content: Content) -> Self {
        Self { content, filename: None, media_type: None, metadata: None, extra: Extra::new() }
    }

    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Content::Text(text.into()))
    }

    /// A data part.
    pub fn data(data: Json) -> Self {
        Self::new(Content::Data(data))
    }
}

// === impl Artifact ===

impl Artifact {
    /// An artifact with parts and nothing else.
    pub fn new(id: impl Into<String>, parts: Vec<Part>) -> Self {
        Self {
            id: id.into(),
            name: None,
            description: None,
            parts,
            metadata: None,
            extensions: Vec::new(),
            extra: Extra::new(),
        }
    }
}

/// All text among `parts`, joined by line ends.
pub fn text_of(parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        if let Content::Text(piece) = &part.content {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(piece);
        }
    }
    text
}
