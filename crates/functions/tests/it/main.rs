//! Functions and plain HTTP, with a real engine and a scripted network.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod call_endpoint;
mod fixture;
mod functions;
