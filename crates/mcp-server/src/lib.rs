//! MCP server: serves MCP clients over stdio or HTTP.
//!
//! Every skill of every agent is a tool here, beside the built-in tools. All protocol versions from 2024-11-05 to 2026-07-28 are
//! served at once. rmcp implements the protocol; none of its types leave this crate.

mod aliases;
mod builtin_tools;
mod call_stream;
mod catalog;
mod client_profile;
mod config;
mod continuation_args;
mod depth_limit;
mod dispatch_tools;
mod elicitation;
mod errors;
mod fast_path;
mod handler;
mod header_params;
mod http;
mod legacy_elicitation;
mod list_changed;
mod names;
mod progress;
mod render;
mod resources;
mod result_chunks;
mod result_uri;
mod server;
mod sessions;
mod task_notifications;
mod tasks;
mod tool;
mod tool_lookup;
mod tool_result;
mod tool_search;
mod tool_service;
mod trace;
mod workflow_tools;

pub use aliases::Aliases;
pub use config::{CardReader, Config, InvokeConfig, OwnTools, SchemaStyle, ToolErrors, ToolList, ToolNames};
pub use server::{AgentRegistrar, AgentToLoad, LoadAgents, McpEndpoint, McpEndpointOptions, ServeError};
