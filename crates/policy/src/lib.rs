//! Authorization: Cedar policies over live registry rows.
//!
//! This crate is the only maker of [`Permitted`], and every backend requires one. So a call that was not authorized does not compile.

mod decision_cache;
mod denial;
mod entities;
mod explain;
mod index;
mod policy;
mod policy_rule;
mod request;
#[cfg(test)]
mod samples;
mod source;
mod template;

pub use denial::Denied;
pub use explain::{Finding, Outcome};
pub use policy::{Decision, Leave, Permitted, Policy};
pub use policy_rule::{Effect, Rule, is_only_about};
pub use request::{Action, Bar, Deed, Question, Resource};
pub use source::{OWNER_ADMIN, PolicyError, Problem, SCHEMA, STARTER, Source, format, named_agents};
pub use template::{Object, Subject, Template, Wish};
