//! Runs of workflows, from the call to the last step, with agents that do as they are told.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

mod failing;
mod holding;
mod house;
mod moments;
mod nesting;
mod publishing;
mod resuming;
mod running;
mod store_outage;
