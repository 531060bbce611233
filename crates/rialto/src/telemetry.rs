//! What operators see of a running server: numbers for Prometheus, and whether it is ready.
//!
//! Nothing here is on the road of a call but [`calls::CallCounts`], which adds to counters that are there already.
//! Everything else is looked up when somebody asks.

mod calls;
mod metrics;
mod pages;
mod process;
mod ready;

pub(crate) use self::{
    calls::CallCounts,
    metrics::Metrics,
    pages::{HEALTH, METRICS, READY, router},
    ready::Readiness,
};
