//! Domain types of Rialto, and the traits of its store, hooks and clock.
//!
//! Every server turns a request into a [`call::Call`]; every backend answers with a stream of [`event::Event`]s; a [`task::Task`] is
//! the fold of those events. The vocabulary is that of A2A 1.0, the richest of the supported protocols: servers and clients
//! translate every other format, and members that Rialto does not know are kept in [`json::Extra`], so that nothing is lost
//! on the way through.
//!
//! Nothing here does I/O. What the product needs from outside is a trait: [`store::Store`], [`audit_event::Hook`],
//! [`clock::Clock`].

pub mod a2a_json;
pub mod agent;
pub mod approval;
pub mod audit_event;
pub mod backing;
pub mod call;
pub mod card;
pub mod clock;
pub mod cost;
pub mod credential;
pub mod event;
pub mod failure;
pub mod flow;
pub mod form_validation;
pub mod guardrail;
pub mod hidden_text;
pub mod ids;
pub mod json;
pub mod maps;
pub mod mcp_metadata;
pub mod media;
pub mod message;
pub mod name;
pub mod node;
pub mod policy;
pub mod presence;
pub mod push;
pub mod relay;
pub mod routing;
mod schema;
pub mod secret_templates;
pub mod size;
pub mod store;
pub mod task;
pub mod token_scopes;
pub mod trace;
pub mod webhook;
