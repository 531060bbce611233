//! The console's pages and API, with a real engine and a scripted network.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

mod api;
mod approvals;
mod flows;
mod house;
mod pages;
mod signing;
