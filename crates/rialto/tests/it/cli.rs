//! The program from the command line, against agents inside the test: nothing but Rust is needed.

mod agents;
mod audit;
mod callers;
mod calls;
mod cards;
mod credentials;
mod digits;
mod policies;
mod policy_changes;
mod secrets;
mod server;
mod setup;
mod stdio;
mod tokens;
