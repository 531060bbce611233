//! Runs of workflows, from the call to the last step, with scripted agents.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

mod failures;
mod fixture;
mod nesting;
mod publishing;
mod recovery;
mod running;
mod schedules;
mod store_outage;
mod waiting;
