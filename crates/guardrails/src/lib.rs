//! Guardrails: content checks of requests and responses, as pure functions.
//!
//! [`config`] is what an operator writes, [`GuardrailRuleset`] its compiled form, and [`GuardrailRuleset::check`] scans one message in one
//! pass. A finding has a kind and a range, never the text: a [`ContentFinding`] can be logged, listed and sent without revealing what was
//! found.

pub mod classifier;
pub mod config;
mod finding;
mod finding_kind;
mod json_strings;
mod patterns;
mod redaction;
mod ruleset;
mod scan;
mod schema;
pub mod scoped_rules;
pub mod secrets;
mod text_attachments;
mod token_estimate;

pub use finding::{ContentFinding, FindingVerdict, Findings, PartField};
pub use finding_kind::FindingKind;
pub use ruleset::{ClassifierCheck, CompileError, GuardrailRuleset};
pub use text_attachments::text_of_file;
pub use token_estimate::estimate_tokens;
