//! How guardrails are written down.
//!
//! The shape is `{enabled, checks: [{type, target, config}], action}`. Every option stands in `rialto config schema`, and an
//! unknown key is an error: a guardrail that is silently not there is worse than none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{classifier::Classifier, kind::Kind};

/// What is looked for, where, and what is done about it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Guardrail {
    /// Whether it counts.
    pub enabled: bool,
    /// What is looked for.
    pub checks: Vec<Check>,
    /// What is done when something is found.
    pub action: Action,
}

/// What is done when something is found, from the mildest to the strictest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// It is noted, and goes on.
    Log,
    /// It goes on, and whoever gets it is told.
    Warn,
    /// What was found is replaced by `[kind]`, and the rest goes on. What cannot be cut out is blocked.
    Redact,
    /// Nothing goes on.
    #[default]
    Block,
}

/// Which way something goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// What callers say.
    Input,
    /// What is answered.
    Output,
    /// Both.
    #[default]
    Both,
}

/// One thing that is looked for.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Check {
    /// What says who somebody is, and keys: social security numbers, cards, addresses, phones, credentials.
    Pii(Rule<Pii>),
    /// Text that wants to be obeyed by a model that only should read it.
    PromptInjection(Rule<PromptInjection>),
    /// Keys of known services, and what looks as random as a key.
    Secrets(Rule<Secrets>),
    /// Patterns of your own.
    Regex(Rule<Patterns>),
    /// More text than a model should get.
    MaxTokens(Rule<MaxTokens>),
    /// Data that does not fit a JSON Schema.
    JsonSchema(Rule<Schema>),
    /// What a model server says about it, over HTTP.
    Classifier(Rule<Classifier>),
    /// The same, asked whether the text is toxic.
    Toxicity(Rule<Classifier>),
}

/// Where a check looks, and how it is set.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, bound(deserialize = "T: Deserialize<'de> + Default"))]
#[schemars(bound = "T: JsonSchema + Default + Serialize")]
pub struct Rule<T> {
    /// Which way it looks: `input`, `output` or `both`.
    pub target: Target,
    /// What can be set for this type of check.
    pub config: T,
}

/// What can be set for `pii`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Pii {
    /// Which kinds are looked for; all of them unless said otherwise.
    pub kinds: Vec<PiiKind>,
}

/// What `pii` can look for.
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

/// What can be set for `prompt-injection`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PromptInjection {
    /// Which kinds are looked for; all of them unless said otherwise.
    pub kinds: Vec<InjectionKind>,
}

/// What `prompt-injection` can look for.
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

/// What can be set for `secrets`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Secrets {
    /// Whether keys of known services are looked for.
    pub known: bool,
    /// Whether values that are called a password, secret, token or key are looked for, and passwords in addresses.
    pub assigned: bool,
    /// Whether words that look as random as a key are looked for.
    pub high_entropy: bool,
}

/// What can be set for `regex`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Patterns {
    /// The patterns: at most 64, each at most 1,000 bytes long.
    pub patterns: Vec<Pattern>,
}

/// One pattern. They are matched in linear time: there are no look-arounds and no references back.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// What a match is called, in findings and in what replaces it: letters, digits, `-` and `_`.
    pub name: String,
    /// The regular expression.
    pub pattern: String,
}

/// What can be set for `max-tokens`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MaxTokens {
    /// How many tokens a message may have, by an estimate: one for four ASCII characters, one for each other character.
    pub limit: usize,
}

/// What can be set for `json-schema`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Schema {
    /// The schema that every data part must fit. A message of nothing but text must be JSON that fits.
    pub schema: Value,
}

// === impl Guardrail ===

impl Default for Guardrail {
    fn default() -> Self {
        Self { enabled: true, checks: Vec::new(), action: Action::default() }
    }
}

// === impl Target ===

impl Target {
    /// Whether both speak of the same way at least once.
    pub const fn meets(self, other: Self) -> bool {
        !matches!((self, other), (Self::Input, Self::Output) | (Self::Output, Self::Input))
    }
}

// === impl Check ===

impl Check {
    /// Its type, as it is written.
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

    /// Every type, as it is written.
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

    /// A check that needs no settings, by its type.
    pub fn plain(name: &str) -> Option<Self> {
        match name {
            "pii" => Some(Self::Pii(Rule::default())),
            "prompt-injection" => Some(Self::PromptInjection(Rule::default())),
            "secrets" => Some(Self::Secrets(Rule::default())),
            "max-tokens" => Some(Self::MaxTokens(Rule::default())),
            _ => None,
        }
    }

    /// Which way it looks.
    pub const fn target(&self) -> Target {
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

// === impl Pii ===

impl Default for Pii {
    fn default() -> Self {
        use PiiKind::{CloudKey, Email, PaymentCard, Phone, UsSsn};
        Self { kinds: vec![UsSsn, PaymentCard, Email, Phone, CloudKey] }
    }
}

impl PiiKind {
    pub(crate) const fn kinds(self) -> &'static [Kind] {
        match self {
            Self::UsSsn => &[Kind::UsSsn],
            Self::PaymentCard => &[Kind::PaymentCard],
            Self::Email => &[Kind::Email],
            Self::Phone => &[Kind::Phone],
            Self::CloudKey => Kind::KEYS,
        }
    }
}

// === impl PromptInjection ===

impl Default for PromptInjection {
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
    pub(crate) const fn kind(self) -> Kind {
        match self {
            Self::InstructionOverride => Kind::InstructionOverride,
            Self::PromptLeak => Kind::PromptLeak,
            Self::Persona => Kind::Persona,
            Self::Concealment => Kind::Concealment,
            Self::RoleMarker => Kind::RoleMarker,
            Self::HiddenText => Kind::HiddenText,
            Self::EncodedInstruction => Kind::EncodedInstruction,
            Self::Exfiltration => Kind::Exfiltration,
        }
    }
}

// === impl Secrets ===

impl Default for Secrets {
    fn default() -> Self {
        Self { known: true, assigned: true, high_entropy: true }
    }
}

// === impl MaxTokens ===

impl Default for MaxTokens {
    fn default() -> Self {
        Self { limit: 100_000 }
    }
}

// === impl Schema ===

impl Default for Schema {
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
        assert_eq!(guardrail.action, Action::Redact);
        let names: Vec<_> = guardrail.checks.iter().map(|check| (check.name(), check.target())).collect();
        let both = Target::Both;
        assert_eq!(names, [("pii", Target::Input), ("max-tokens", both), ("secrets", both)]);
    }

    #[test]
    fn a_key_that_nobody_knows_is_an_error() {
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
            Action::Log < Action::Warn && Action::Warn < Action::Redact && Action::Redact < Action::Block
        );
    }
}
