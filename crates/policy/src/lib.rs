//! Who may do what: Cedar policies over live registry rows.
//!
//! This crate is the only maker of [`Permitted`], and everything that sends something out wants one. So a call that
//! was not checked does not compile, let alone leave.

mod denied;
mod entities;
mod explain;
mod index;
mod memory;
mod policy;
mod question;
mod rules;
#[cfg(test)]
mod samples;
mod template;
mod text;

pub use denied::Denied;
pub use explain::{Finding, Outcome};
pub use policy::{Decision, Leave, Permitted, Policy};
pub use question::{Action, Bar, Deed, Question, Resource};
pub use rules::{Effect, Rule, is_only_about};
pub use template::{Object, Subject, Template, Wish};
pub use text::{OWNER_ADMIN, PolicyError, Problem, SCHEMA, STARTER, Source, format, named_agents};
