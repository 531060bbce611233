//! The program from the command line, against agents inside the test: nothing but Rust is needed.

mod agents;
mod audit;
mod callers;
mod calls;
mod cards;
mod costs;
mod crash;
mod credentials;
mod deaths;
mod digits;
mod events;
mod limits;
mod logs;
mod policies;
mod policy_changes;
mod secrets;
mod server;
mod setup;
mod stdio;
mod stop;
mod tokens;
mod tools;
mod tools_api;
mod traces;
mod watch;
mod webhooks;
