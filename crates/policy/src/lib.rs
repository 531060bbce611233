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
pub use explain::{ExplanationOutcome, PolicyExplanation};
pub use policy::{Authorization, Permitted, Policy, PolicyDecision};
pub use policy_rule::{Effect, PolicySummary, is_only_about};
pub use request::{Action, Authorizable, AuthorizationRequest, HardDenial, Resource};
pub use source::{
    OWNER_ADMIN, PolicyError, PolicySource, PolicySourceError, SCHEMA, STARTER, format, named_agents,
};
pub use template::{PolicyTemplate, TemplateEffect, TemplateSubject, TemplateTarget};
