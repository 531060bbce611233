//! Sample agents and an MCP client for `rialto demo`.
//!
//! [`agents`] are A2A agents of every generation on loopback ports, and [`client`] calls a server over HTTP as any MCP client does. The
//! command itself (its server, its steps and its output) is part of the program.

pub mod agents;
pub mod client;
