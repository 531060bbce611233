//! Guardrails from the outside, and how well they do on a corpus.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod corpus;
mod ruleset;
