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
mod commands;
mod events;
mod flows;
mod house;
mod pages;
mod policies;
mod shapes;
mod signing;
mod tasks;
mod tokens;
mod traffic;
mod ways;
mod work;
