//! The road of a call, with scripted peers and a real store in memory.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

mod approvals;
mod breakers;
mod budgets;
mod calls;
mod conversations;
mod deployed;
mod dispatches;
mod fixture;
mod guardrails;
mod listeners;
mod policies;
mod registry;
mod revocation;
mod running;
mod shared_usage;
mod shutdown;
mod store_outage;
mod takeover;
