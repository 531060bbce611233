//! Guardrails: the active ones, and tests of them.

use rialto_model::json::Json;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Active guardrails.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ActiveGuardrails")]
pub struct GuardrailSettings {
    /// Section `[guardrails]` of the configuration, as far as it applies to the caller's org.
    #[schemars(extend("type" = "object"))]
    pub guardrails: Json,
}

/// Result of a guardrail test.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GuardrailReport")]
#[serde(rename_all = "camelCase")]
pub struct GuardrailTestResult {
    /// Action that would be taken on the message.
    pub verdict: GuardrailVerdict,
    /// Findings, in the order of their places.
    pub findings: Vec<GuardrailFinding>,
    /// Message with every finding replaced that can be.
    pub redacted: String,
    /// Number of model servers that would be called too.
    pub not_asked: usize,
    /// Paths of the tested guardrails in the configuration, if the active ones were tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guardrails: Option<Vec<String>>,
}

/// Action on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GuardrailVerdict {
    /// Nothing was found.
    Pass,
    /// The message passes, and the finding is logged.
    Log,
    /// The message passes with a warning.
    Warn,
    /// The message passes with its findings redacted.
    Redact,
    /// The message is blocked.
    Block,
}

/// Finding of a guardrail.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GuardrailFinding {
    /// Check that found it.
    pub check: String,
    /// Kind of content that was found.
    pub kind: String,
    /// Index of the message part, from 0.
    pub part: usize,
    /// Field of that part.
    pub field: GuardrailField,
    /// Bytes of the field's text or JSON; absent if the finding is about the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<ByteRange>,
    /// Action of the guardrail.
    pub action: GuardrailAction,
}

/// Range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ByteRange {
    /// First byte.
    pub start: usize,
    /// Byte behind the last.
    pub end: usize,
}

/// Field of a message part that guardrails check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GuardrailField {
    /// Text, data or address.
    Content,
    /// Metadata.
    Metadata,
    /// Name of a file.
    Filename,
    /// Members that no version of the protocol declares.
    Extra,
    /// All parts together.
    Message,
}

/// Action of a guardrail that found something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GuardrailAction {
    /// Log it.
    Log,
    /// Warn the receiver.
    Warn,
    /// Replace it by its kind.
    Redact,
    /// Block the message.
    Block,
}

/// Direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GuardrailTarget {
    /// Messages of callers.
    Input,
    /// Responses of agents.
    Output,
    /// Both.
    Both,
}

/// Content to test guardrails on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GuardrailTest {
    /// Text to check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Data to check in place of a text, in its strings.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = ["object", "null"]))]
    pub data: Option<Json>,
    /// Skill whose guardrails are tested: `<agent>.<skill>`; by default those for all skills.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// Direction; `input` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<GuardrailTarget>,
    /// Checks to test in place of the active guardrails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<Vec<String>>,
    /// Guardrail to test in place of the active ones, as in the section `[guardrails]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = ["object", "null"]))]
    pub guardrail: Option<Json>,
    /// Action when one of `checks` finds something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<GuardrailAction>,
    /// Whether the default checks are tested if no guardrail is active.
    #[serde(default)]
    pub or_usual: bool,
}

// === impl GuardrailVerdict ===

impl GuardrailVerdict {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Log => "log",
            Self::Warn => "warn",
            Self::Redact => "redact",
            Self::Block => "block",
        }
    }
}

// === impl GuardrailAction ===

impl GuardrailAction {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Warn => "warn",
            Self::Redact => "redact",
            Self::Block => "block",
        }
    }
}
