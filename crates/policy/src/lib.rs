//! Who may do what: Cedar policies over live registry rows.
//!
//! This crate is the only maker of [`Permitted`], and everything that sends something out wants one. So a call that
//! was not checked does not compile, let alone leave.

mod entities;
mod policy;
mod text;

pub use entities::{Action, Deed, Question};
pub use policy::{Decision, Denied, Permitted, Policy};
pub use text::{PolicyError, Problem, SCHEMA, STARTER, Source, allow_agent};
