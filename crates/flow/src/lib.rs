//! Work in many steps: what a workflow is, what is wrong with one, and how it is run.
//!
//! A [`Workflow`](definition::Workflow) is a graph of nodes, each of which does one thing once those it needs are done. Pipelines
//! are another way to write the same graph, so whoever runs one runs both. What a node is given is a
//! [`Template`](template::Template): JSON in which some places are filled with what other nodes have made.
//!
//! All of this but [`run`] is pure: reading, checking and drawing need no server, no store and no agent.

mod check;
pub mod condition;
pub mod definition;
pub mod graph;
mod keys;
mod number;
mod pipeline;
pub mod problem;
pub mod read;
pub mod reference;
pub mod run;
pub mod schedule;
pub mod schema;
mod suggest;
pub mod template;
