//! The MCP door as its clients see it: raw JSON lines on streams, raw HTTP requests, every protocol version.

mod calls;
mod changes;
mod house;
mod lines;
mod list;
mod own;
mod versions;
mod web;
