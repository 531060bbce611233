//! Guardrails: what may be said to whoever works here, and what they may say back. Pure functions.
//!
//! [`config`] is how an operator writes it, [`Guards`] is that put into shape once, and [`Guards::check`] looks through one
//! message in one pass. What is found is told by its kind and its place, never by its text: a [`Finding`] can be logged, listed
//! and sent without giving away what it is about.

pub mod classifier;
pub mod config;
mod cutting;
mod finding;
mod guards;
mod kind;
mod patterns;
mod raw;
mod scan;
mod schema;
pub mod secrets;
pub mod setting;
mod strings;
mod tokens;

pub use finding::{Field, Finding, Findings, Verdict};
pub use guards::{Asked, CompileError, Guards};
pub use kind::Kind;
pub use raw::text as text_of_file;
pub use tokens::estimate;
