//! Configuration of guardrails.
//!
//! The shape is `{enabled, checks: [{type, target, config}], action}`. Every option is in `rialto config schema`, and an unknown key is an
//! error: a guardrail that is silently missing is worse than none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{classifier::ClassifierOptions, finding_kind::FindingKind};

/// Guardrail: checks, and the action when one finds something.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Guardrail {
    /// True if it applies.
    pub enabled: bool,
    /// Checks.
    pub checks: Vec<GuardrailCheck>,
    /// Action when a check finds something.
    pub action: CheckAction,
}

/// Actions, from the mildest to the strictest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckAction {
    /// Record the finding, and let the message pass.
    Log,
    /// Let the message pass, with a warning to its receiver.
    Warn,
    /// Replace what was found by `[kind]`. A finding that cannot be replaced is blocked.
    Redact,
    /// Block the message.
    #[default]
    Block,
}

/// Direction of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckDirection {
    /// Requests of callers.
    Input,
    /// Responses.
    Output,
    /// Both directions.
    #[default]
    Both,
}

/// Check of one type.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum GuardrailCheck {
    /// Personal data and keys: social security numbers, cards, addresses, phones, credentials.
    Pii(CheckOptions<PiiOptions>),
    /// Prompt injection: text that gives orders to a model.
    PromptInjection(CheckOptions<InjectionOptions>),
    /// Keys of known services, and words as random as a key.
    Secrets(CheckOptions<SecretsOptions>),
    /// Your own patterns.
    Regex(CheckOptions<RegexOptions>),
    /// Maximum number of tokens.
    MaxTokens(CheckOptions<TokenLimitOptions>),
    /// JSON Schema that data must match.
    JsonSchema(CheckOptions<SchemaOptions>),
    /// Classification by a model server, over HTTP.
    Classifier(CheckOptions<ClassifierOptions>),
    /// Toxicity, classified by a model server.
    Toxicity(CheckOptions<ClassifierOptions>),
}

/// Direction and options of a check.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, bound(deserialize = "T: Deserialize<'de> + Default"))]
#[schemars(bound = "T: JsonSchema + Default + Serialize")]
pub struct CheckOptions<T> {
    /// Direction: `input`, `output` or `both`.
    pub target: CheckDirection,
    /// Options of this type of check.
    pub config: T,
}

/// Options of `pii`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PiiOptions {
    /// Kinds to find; all by default.
    pub kinds: Vec<PiiKind>,
}

/// Kinds of personal data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PiiKind {
    /// Social security numbers of the United States that can have been given out.
    UsSsn,
    /// Numbers of payment cards: a known beginning, the right length, and a check digit that fits.
    PaymentCard,
    /// E-mail addresses.
    Email,
    /// Phone numbers: international ones, North American ones, and others where a word beside them says so.
    Phone,
    /// Keys of clouds and other services, JSON Web Tokens and private keys.
    CloudKey,
}

/// Options of `prompt-injection`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InjectionOptions {
    /// Kinds to find; all by default.
    pub kinds: Vec<InjectionKind>,
}

/// Kinds of prompt injection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InjectionKind {
    /// "Ignore all previous instructions", in eleven languages.
    InstructionOverride,
    /// "Print your system prompt".
    PromptLeak,
    /// "You are now in developer mode".
    Persona,
    /// "Do not tell the user".
    Concealment,
    /// Marks that models use to tell who speaks, like `<|im_start|>`.
    RoleMarker,
    /// Characters that people do not see: tags, zero widths within words, texts turned around.
    HiddenText,
    /// One of the others, wrapped in base64.
    EncodedInstruction,
    /// Pictures that carry data away in their address, and orders to send secrets somewhere.
    Exfiltration,
}

/// Options of `secrets`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SecretsOptions {
    /// Find keys of known services.
    pub known: bool,
    /// Find values of members called password, secret, token or key, and passwords in addresses.
    pub assigned: bool,
    /// Find words as random as a key.
    pub high_entropy: bool,
}

/// Options of `regex`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RegexOptions {
    /// The patterns: at most 64, each at most 1,000 bytes long.
    pub patterns: Vec<NamedPattern>,
}

/// Pattern. It is matched in linear time: there are no look-arounds and no back-references.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedPattern {
    /// Name of a match, in findings and replacements: letters, digits, `-` and `_`.
    pub name: String,
    /// The regular expression.
    pub pattern: String,
}

/// Options of `max-tokens`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TokenLimitOptions {
    /// Maximum number of tokens of a message, by an estimate: one for four ASCII characters, one for each other character.
    pub limit: usize,
}

/// Options of `json-schema`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SchemaOptions {
    /// Schema that every data part must match. A message of text only must be JSON that matches.
    pub schema: Value,
}

// === impl Guardrail ===

impl Default for Guardrail {
    fn default() -> Self {
        Self { enabled: true, checks: Vec::new(), action: CheckAction::default() }
    }
}

// === impl CheckDirection ===

impl CheckDirection {
    /// True if the directions overlap.
    pub const fn meets(self, other: Self) -> bool {
        !matches!((self, other), (Self::Input, Self::Output) | (Self::Output, Self::Input))
    }
}

// === impl GuardrailCheck ===

impl GuardrailCheck {
    /// Name of its type.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pii(_) => "pii",
            Self::PromptInjection(_) => "prompt-injection",
            Self::Secrets(_) => "secrets",
            Self::Regex(_) => "regex",
            Self::MaxTokens(_) => "max-tokens",
            Self::JsonSchema(_) => "json-schema",
            Self::Classifier(_) => "classifier",
            Self::Toxicity(_) => "toxicity",
        }
    }

    /// Names of all types.
    pub const TYPES: [&str; 8] = [
        "pii",
        "prompt-injection",
        "secrets",
        "regex",
        "max-tokens",
        "json-schema",
        "classifier",
        "toxicity",
    ];

    /// Check without options, by the name of its type.
    pub fn plain(name: &str) -> Option<Self> {
        match name {
            "pii" => Some(Self::Pii(CheckOptions::default())),
            "prompt-injection" => Some(Self::PromptInjection(CheckOptions::default())),
            "secrets" => Some(Self::Secrets(CheckOptions::default())),
            "max-tokens" => Some(Self::MaxTokens(CheckOptions::default())),
            _ => None,
        }
    }

    /// Direction it checks.
    pub const fn target(&self) -> CheckDirection {
        match self {
            Self::Pii(rule) => rule.target,
            Self::PromptInjection(rule) => rule.target,
            Self::Secrets(rule) => rule.target,
            Self::Regex(rule) => rule.target,
            Self::MaxTokens(rule) => rule.target,
            Self::JsonSchema(rule) => rule.target,
            Self::Classifier(rule) | Self::Toxicity(rule) => rule.target,
        }
    }
}

// === impl PiiOptions ===

impl Default for PiiOptions {
    fn default() -> Self {
        use PiiKind::{CloudKey, Email, PaymentCard, Phone, UsSsn};
        Self { kinds: vec![UsSsn, PaymentCard, Email, Phone, CloudKey] }
    }
}

impl PiiKind {
    pub(crate) const fn kinds(self) -> &'static [FindingKind] {
        match self {
            Self::UsSsn => &[FindingKind::UsSsn],
            Self::PaymentCard => &[FindingKind::PaymentCard],
            Self::Email => &[FindingKind::Email],
            Self::Phone => &[FindingKind::Phone],
            Self::CloudKey => FindingKind::SERVICE_KEYS,
        }
    }
}

// === impl InjectionOptions ===

impl Default for InjectionOptions {
    fn default() -> Self {
        use InjectionKind::{
            Concealment, EncodedInstruction, Exfiltration, HiddenText, InstructionOverride, Persona,
            PromptLeak, RoleMarker,
        };
        Self {
            kinds: vec![
                InstructionOverride,
                PromptLeak,
                Persona,
                Concealment,
                RoleMarker,
                HiddenText,
                EncodedInstruction,
                Exfiltration,
            ],
        }
    }
}

impl InjectionKind {
    pub(crate) const fn kind(self) -> FindingKind {
        match self {
            Self::InstructionOverride => FindingKind::InstructionOverride,
            Self::PromptLeak => FindingKind::PromptLeak,
            Self::Persona => FindingKind::Persona,
            Self::Concealment => FindingKind::Concealment,
            Self::RoleMarker => FindingKind::RoleMarker,
            Self::HiddenText => FindingKind::HiddenText,
            Self::EncodedInstruction => FindingKind::EncodedInstruction,
            Self::Exfiltration => FindingKind::Exfiltration,
        }
    }
}

// === impl SecretsOptions ===

impl Default for SecretsOptions {
    fn default() -> Self {
        Self { known: true, assigned: true, high_entropy: true }
    }
}

// === impl TokenLimitOptions ===

impl Default for TokenLimitOptions {
    fn default() -> Self {
        Self { limit: 100_000 }
    }
}

// === impl SchemaOptions ===

impl Default for SchemaOptions {
    fn default() -> Self {
        Self { schema: Value::Bool(true) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guardrail_is_read_as_it_is_documented() {
        let text = r#"{"enabled":true,"checks":[{"type":"pii","target":"input","config":{"kinds":["email"]}},
            {"type":"max-tokens","config":{"limit":10}},{"type":"secrets"}],"action":"redact"}"#;
        let guardrail: Guardrail = serde_json::from_str(text).unwrap();
        assert_eq!(guardrail.action, CheckAction::Redact);
        let names: Vec<_> = guardrail.checks.iter().map(|check| (check.name(), check.target())).collect();
        let both = CheckDirection::Both;
        assert_eq!(names, [("pii", CheckDirection::Input), ("max-tokens", both), ("secrets", both)]);
    }

    #[test]
    fn an_unknown_key_is_an_error() {
        for text in [
            r#"{"check":[]}"#,
            r#"{"checks":[{"type":"pii","targets":"input"}]}"#,
            r#"{"checks":[{"type":"pii","config":{"kind":["email"]}}]}"#,
            r#"{"checks":[{"type":"pi"}]}"#,
            r#"{"action":"drop"}"#,
        ] {
            assert!(serde_json::from_str::<Guardrail>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_strictest_action_is_the_greatest() {
        assert!(
            CheckAction::Log < CheckAction::Warn
                && CheckAction::Warn < CheckAction::Redact
                && CheckAction::Redact < CheckAction::Block
        );
    }
}
