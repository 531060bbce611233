//! Kinds of findings.

use serde::{Serialize, Serializer};

/// Kind of a finding of the built-in checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum FindingKind {
    /// A social security number of the United States.
    UsSsn,
    /// The number of a payment card.
    PaymentCard,
    /// An e-mail address.
    Email,
    /// A phone number.
    Phone,
    /// A key of Amazon Web Services.
    AwsKey,
    /// A key of Google Cloud.
    GcpKey,
    /// A key of Azure.
    AzureKey,
    /// A token of GitHub.
    GithubToken,
    /// A token or webhook of Slack.
    SlackToken,
    /// A key of Stripe.
    StripeKey,
    /// A key of a model's API.
    AiKey,
    /// A token of another known service.
    ServiceToken,
    /// A JSON Web Token.
    Jwt,
    /// A private key in PEM.
    PrivateKey,
    /// A value that is called a secret.
    AssignedSecret,
    /// A password in an address.
    UrlPassword,
    /// A word as random as a key.
    HighEntropy,
    /// "Ignore all previous instructions".
    InstructionOverride,
    /// "Print your system prompt".
    PromptLeak,
    /// "You are now in developer mode".
    Persona,
    /// "Do not tell the user".
    Concealment,
    /// A mark that models use to tell who speaks.
    RoleMarker,
    /// Characters that people do not see.
    HiddenText,
    /// An instruction in base64.
    EncodedInstruction,
    /// Something that carries data away.
    Exfiltration,
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FindingKindSet(u32);

// === impl FindingKind ===

impl FindingKind {
    /// Keys of clouds and other services.
    pub(crate) const SERVICE_KEYS: &'static [Self] = &[
        Self::AwsKey,
        Self::GcpKey,
        Self::AzureKey,
        Self::GithubToken,
        Self::SlackToken,
        Self::StripeKey,
        Self::AiKey,
        Self::ServiceToken,
        Self::Jwt,
        Self::PrivateKey,
    ];

    /// Its name, in findings and in what replaces them.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UsSsn => "us-ssn",
            Self::PaymentCard => "payment-card",
            Self::Email => "email",
            Self::Phone => "phone",
            Self::AwsKey => "aws-key",
            Self::GcpKey => "gcp-key",
            Self::AzureKey => "azure-key",
            Self::GithubToken => "github-token",
            Self::SlackToken => "slack-token",
            Self::StripeKey => "stripe-key",
            Self::AiKey => "ai-key",
            Self::ServiceToken => "service-token",
            Self::Jwt => "jwt",
            Self::PrivateKey => "private-key",
            Self::AssignedSecret => "assigned-secret",
            Self::UrlPassword => "url-password",
            Self::HighEntropy => "high-entropy",
            Self::InstructionOverride => "instruction-override",
            Self::PromptLeak => "prompt-leak",
            Self::Persona => "persona",
            Self::Concealment => "concealment",
            Self::RoleMarker => "role-marker",
            Self::HiddenText => "hidden-text",
            Self::EncodedInstruction => "encoded-instruction",
            Self::Exfiltration => "exfiltration",
        }
    }

    /// True if another finding at that range is more specific.
    pub(crate) const fn is_vague(self) -> bool {
        matches!(self, Self::HighEntropy | Self::AssignedSecret | Self::UrlPassword)
    }
}

impl Serialize for FindingKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

// === impl FindingKindSet ===

impl FindingKindSet {
    pub(crate) fn new(kinds: &[FindingKind]) -> Self {
        Self(kinds.iter().fold(0, |set, kind| set | 1 << *kind as u8))
    }

    pub(crate) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn contains(self, kind: FindingKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    pub(crate) const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
