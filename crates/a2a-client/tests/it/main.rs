//! The peer and discovery against scripted agents: real sockets, bodies as the SDKs write them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot be set up has failed"
)]

mod answers;
mod cancels;
mod cards;
mod credentials;
mod dialects;
mod early_ends;
mod follows;
mod grpc;
mod limits;
mod requests;
mod retries;
mod rows;
mod script;
mod streams;
mod tools;
mod troubles;
mod words;
