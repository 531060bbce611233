//! The nouns of Rialto and the ports its parts are plugged together with.
//!
//! Every door turns what its caller said into a [`call::Call`]; every peer answers with a stream of
//! [`event::Event`]s; a [`task::Task`] is the fold of those events. The vocabulary is A2A 1.0's, because it is the
//! richest of the dialects we speak: each other shape is translated at the edge, and members we do not know travel
//! along in [`json::Extra`], so that nothing is lost on the way through.
//!
//! Nothing here does I/O. What the product needs from the outside is said as a trait: [`store::Store`],
//! [`audit_event::Hook`], [`clock::Clock`].

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
pub mod guardrail;
pub mod hidden_text;
pub mod ids;
pub mod json;
pub mod maps;
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
pub mod size;
pub mod store;
pub mod task;
pub mod token_scopes;
pub mod trace;
pub mod webhook;
