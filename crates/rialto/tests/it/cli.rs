//! The program from the command line, against agents inside the test: nothing but Rust is needed.

mod agents;
mod audit;
mod callers;
mod calls;
mod cards;
mod costs;
mod digits;
mod events;
mod policies;
mod policy_changes;
mod server;
mod setup;
mod stdio;
mod tokens;
mod webhooks;
