//! MCP: the door through which MCP clients come in, over stdin and stdout or over HTTP, and the peer that calls the tools of
//! MCP servers ([`peer`]).
//!
//! Every skill of every agent is a tool here, beside tools of Rialto's own. All protocol versions from
//! 2024-11-05 to 2026-07-28 are served at once. rmcp speaks the protocol; no other crate names it, and none of its
//! types leave this one.

mod aliases;
mod answer;
mod asking;
mod catalog;
mod changes;
mod client;
mod config;
mod continuing;
mod desk;
mod door;
mod eliciting;
mod fast_path;
mod find;
mod flows;
mod forms;
mod handler;
mod http;
mod lazy;
mod listening;
mod names;
mod own;
mod params;
pub mod peer;
mod pieces;
mod place;
mod progress;
mod render;
mod resources;
mod routing;
mod sessions;
mod shallow;
mod tasks;
mod tool;
mod trace;
mod trouble;
mod underway;

pub use aliases::Aliases;
pub use config::{CardReader, Config, Invoking, OwnTools, Schemas, ToolErrors, ToolList, ToolNames};
pub use door::{AgentRegistrar, AgentToLoad, Control, Door, LoadAgents, ServeError};
