//! Request and response types of `/api/v1`, shared by the server, the command line and the OpenAPI document.
//!
//! Each member is defined here once: handlers serialize these types, `rialto --server` reads them, and their JSON Schemas ([`schema`]) are the
//! components of the OpenAPI document. Domain types that are on the wire as they are (tasks, messages, events) come from `rialto-model`.

pub mod agents;
pub mod approvals;
pub mod audit;
pub mod dispatches;
pub mod guardrails;
pub mod nodes;
pub mod overview;
pub mod policies;
pub mod schema;
pub mod secrets;
pub mod tasks;
pub mod tenants;
pub mod tokens;
pub mod tools;
pub mod webhooks;
pub mod workflows;
