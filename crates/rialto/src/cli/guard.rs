//! Options of `rialto guard`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use rialto_guardrails::config::{CheckAction, CheckDirection};

use super::OutputOptions;

#[derive(Debug, Subcommand)]
pub(crate) enum GuardCommand {
    /// Check a text with guardrails; print findings, the redacted text and the decision
    ///
    /// The exit status is 3 if the text would be blocked.
    Test(GuardTestOptions),
}

#[derive(Debug, Args)]
pub(crate) struct GuardTestOptions {
    /// Text, or a JSON object whose strings are checked; `-` or none reads stdin
    pub(crate) text: Option<String>,
    /// Skill that receives the text: selects the configured guardrails
    #[arg(long, value_name = "NAME", conflicts_with_all = ["checks", "guardrail", "action"])]
    pub(crate) skill: Option<String>,
    /// Checks to run in place of the configured guardrails: pii, prompt-injection, secrets, max-tokens
    ///
    /// Default: the configured guardrails, or the first three checks if none are configured.
    #[arg(long, value_name = "CHECK", value_delimiter = ',')]
    pub(crate) checks: Option<Vec<String>>,
    /// TOML or JSON file with a guardrail, in place of --checks
    #[arg(long, value_name = "FILE", conflicts_with_all = ["checks", "action"])]
    pub(crate) guardrail: Option<PathBuf>,
    /// Direction of the text
    #[arg(long, value_name = "DIRECTION", default_value = "input")]
    pub(crate) target: TextDirection,
    /// Action for findings of --checks (default: block)
    #[arg(long, value_name = "ACTION")]
    pub(crate) action: Option<GuardActionName>,
    #[command(flatten)]
    pub(crate) listing: OutputOptions,
}

/// Direction of a text: request or response.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TextDirection {
    Input,
    Output,
}

/// Action of a guardrail for a finding.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum GuardActionName {
    Log,
    Warn,
    Redact,
    Block,
}

// === impl TextDirection ===

impl TextDirection {
    pub(crate) const fn target(self) -> CheckDirection {
        match self {
            Self::Input => CheckDirection::Input,
            Self::Output => CheckDirection::Output,
        }
    }
}

// === impl GuardActionName ===

impl GuardActionName {
    pub(crate) const fn action(self) -> CheckAction {
        match self {
            Self::Log => CheckAction::Log,
            Self::Warn => CheckAction::Warn,
            Self::Redact => CheckAction::Redact,
            Self::Block => CheckAction::Block,
        }
    }
}
