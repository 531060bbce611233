//! The console's pages and API, with a real engine and a scripted network.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests may panic as tests do"
)]

mod administration;
mod api;
mod approvals;
mod cli_operations;
mod events;
mod fixture;
mod navigation;
mod pages;
mod policies;
mod resources;
mod response_schemas;
mod sign_in;
mod tasks;
mod tokens;
mod traffic;
mod workflows;
