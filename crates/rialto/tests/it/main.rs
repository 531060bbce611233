//! The whole program, from outside: the real binary, real agents, real clients.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot be set up has failed"
)]

mod attacks;
mod cli;
mod foreign;
mod harness;
mod layers;
mod library;
mod names;
mod provenance;
