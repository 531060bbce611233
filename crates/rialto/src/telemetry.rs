//! What operators see of a running server: numbers for Prometheus, whether it is ready, logs, and traces.
//!
//! What hears of calls here is on their road, so it only adds to counters that are there already, or puts something into a
//! queue. Everything else is looked up when somebody asks.

mod calls;
mod guardrails;
mod log;
mod metrics;
mod otlp;
mod pages;
mod process;
mod ready;
mod traces;

pub(crate) use self::{
    calls::CallCounts,
    guardrails::GuardCounts,
    log::{CallLog, LogFormat, start},
    metrics::{ConnectionCounts, Metrics},
    pages::{HEALTH, METRICS, READY, router},
    ready::Readiness,
    traces::{Destination, Traces},
};
