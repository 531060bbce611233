//! Coding agents on this machine, prompted over the Agent Client Protocol.
//!
//! A row of the registry is one program, started when it is first needed and again when it has died. A conversation is a session
//! of that program, a task is one turn in it. What the agent says while it works becomes events; what it wants to do and must
//! ask for waits for approval like anything else, and the turn goes on when that is decided.
//!
//! This is the only crate that names `agent-client-protocol`.

mod blocks;
mod files;
mod line;
mod link;
pub mod peer;
mod turn;
mod updates;

pub use peer::AcpPeer;
