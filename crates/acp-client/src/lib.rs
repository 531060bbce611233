//! Coding agents on this machine, over the Agent Client Protocol.
//!
//! A registry row is one program, started when it is first needed and restarted when it has ended. A conversation is a session of that
//! program, a task is one turn in it. Updates of the agent become events; its permission requests become approvals, and the turn resumes
//! with the decision.
//!
//! This is the only crate that uses `agent-client-protocol`.

pub mod backend;
mod connection;
mod content_blocks;
mod files;
mod supervisor;
mod turn;
mod updates;

pub use backend::AcpBackend;
