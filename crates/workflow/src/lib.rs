//! Workflows: definition, validation and execution.
//!
//! A [`Workflow`](definition::Workflow) is a graph of nodes, each of which runs once its dependencies are done. Pipelines are
//! another notation of the same graph. The input of a node is a [`JsonTemplate`](template::JsonTemplate): JSON with references to
//! the output of other nodes.
//!
//! All modules but [`run`] are pure: parsing, checking and drawing need no server, no store and no agent.

mod check;
pub mod condition;
mod decimal;
pub mod definition;
pub mod graph;
mod pipeline;
pub mod problem;
pub mod read;
pub mod reference;
pub mod run;
pub mod schedule;
pub mod schema;
mod schema_keys;
mod suggest;
pub mod template;
