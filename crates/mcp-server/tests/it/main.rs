//! The MCP door as its clients see it: raw JSON lines on streams, raw HTTP requests, every protocol version.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::needless_pass_by_value,
    reason = "a helper that fails shall fail its test, and read like a sentence"
)]

mod asking;
mod calls;
mod changes;
mod defaults;
mod eliciting;
mod fast_path;
mod house;
mod lazy;
mod lines;
mod list;
mod nodes;
mod own;
mod resources;
mod routing;
mod tasks;
mod versions;
mod web;
