//! Functions: an address or a program that takes arguments and gives a result. And plain HTTP, for callers who want just
//! that: `POST /call/<skill>`.
//!
//! [`peer::FunctionPeer`] executes calls to functions; [`door`] lets anybody call any skill there is, whatever executes it.

mod answer;
mod body;
mod command;
pub mod door;
mod endpoint;
mod openapi;
pub mod peer;
mod result;
