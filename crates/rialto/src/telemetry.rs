//! Telemetry of a running server: metrics, readiness, logs and traces.
//!
//! Hooks run within calls, so they only increment existing counters or append to a queue. Everything else is read at scrape time.

mod call_metrics;
mod endpoints;
mod guardrail_metrics;
mod log;
mod metrics;
mod otlp;
mod process_metrics;
mod readiness;
mod traces;

pub(crate) use self::{
    call_metrics::CallCounts,
    endpoints::{HEALTH_PATH, METRICS_PATH, READY_PATH, router},
    guardrail_metrics::FindingCounts,
    log::{CallLog, LogFormat, start},
    metrics::{ConnectionCounts, MetricsRegistry},
    readiness::Readiness,
    traces::{TraceDestination, TraceExporter},
};
