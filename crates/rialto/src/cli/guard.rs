//! `rialto guard`, as `--help` shows it.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use rialto_guard::config::{CheckAction, CheckDirection};

use super::Listing;

#[derive(Debug, Subcommand)]
pub(crate) enum Guard {
    /// Say what guardrails find in a text, what would be left of it, and what would become of it
    ///
    /// The exit status is 3 when it would be blocked.
    Test(GuardTest),
}

#[derive(Debug, Args)]
pub(crate) struct GuardTest {
    /// The text, or a JSON object that is looked through in its strings; `-` or nothing reads stdin
    pub(crate) text: Option<String>,
    /// The skill that it is said to: which of the configured guardrails apply
    #[arg(long, value_name = "NAME", conflicts_with_all = ["checks", "guardrail", "action"])]
    pub(crate) skill: Option<String>,
    /// What is looked for in place of what is configured: pii, prompt-injection, secrets, max-tokens
    ///
    /// The first three of them when nothing is configured either.
    #[arg(long, value_name = "CHECK", value_delimiter = ',')]
    pub(crate) checks: Option<Vec<String>>,
    /// A file with a guardrail, as TOML or JSON, in place of --checks
    #[arg(long, value_name = "FILE", conflicts_with_all = ["checks", "action"])]
    pub(crate) guardrail: Option<PathBuf>,
    /// Which way the text goes
    #[arg(long, value_name = "WAY", default_value = "input")]
    pub(crate) target: Way,
    /// What is done when something is found of --checks; block unless said otherwise
    #[arg(long, value_name = "ACTION")]
    pub(crate) action: Option<ActionName>,
    #[command(flatten)]
    pub(crate) listing: Listing,
}

/// Which way a text goes.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Way {
    Input,
    Output,
}

/// What is done when something is found.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ActionName {
    Log,
    Warn,
    Redact,
    Block,
}

// === impl Way ===

impl Way {
    pub(crate) const fn target(self) -> CheckDirection {
        match self {
            Self::Input => CheckDirection::Input,
            Self::Output => CheckDirection::Output,
        }
    }
}

// === impl ActionName ===

impl ActionName {
    pub(crate) const fn action(self) -> CheckAction {
        match self {
            Self::Log => CheckAction::Log,
            Self::Warn => CheckAction::Warn,
            Self::Redact => CheckAction::Redact,
            Self::Block => CheckAction::Block,
        }
    }
}
