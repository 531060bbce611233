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

pub use self::{
    call_metrics::CallCounts,
    endpoints::{HEALTH_PATH, METRICS_PATH, READY_PATH, monitoring_router},
    guardrail_metrics::FindingCounts,
    log::{CallLog, LogFormat, start_logging},
    metrics::{ConnectionCounts, MetricsRegistry},
    readiness::{PendingServerNames, Readiness},
    traces::{SpanCounts, TraceDestination, TraceExporter},
};
