//! Export of traces to a collector, as OTLP over HTTP.
//!
//! A small implementation: ended calls are queued without waiting, and one task sends them through the outbound client. Spans that
//! the collector does not accept in time are dropped and counted.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, NoLabelSet},
    metrics::MetricType,
};
use prost::Message;
use rialto_http_client::{
    address::Reach,
    fetch::{self, Fetch},
};
use rialto_model::{
    audit_event::{AuditEvent, AuditPhase, Hook, InvocationOutcome, SkillInvocation},
    clock::Timestamp,
};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::otlp::{Span, export_request, span_of_call};
use crate::environment::Environment;

/// Maximum number of queued spans; further ones are dropped.
const MAX_QUEUED_SPANS: usize = 8_192;

/// Maximum number of spans in a request.
const MAX_BATCH_SPANS: usize = 512;

/// Time to wait for a batch to fill.
const BATCH_DELAY: Duration = Duration::from_millis(200);

/// Timeout of a request.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout of the final flush.
const FINAL_FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// Collector, with headers and service name.
#[derive(Clone)]
pub(crate) struct TraceDestination {
    uri: Uri,
    /// May hold the collector's secrets, so it is never shown.
    headers: HeaderMap,
    service: String,
}

/// Hook that exports calls.
pub(crate) struct TraceExporter {
    queue: mpsc::Sender<EndedCall>,
    counts: Arc<SpanCounts>,
    stop: CancellationToken,
    sending: Mutex<Option<JoinHandle<()>>>,
}

/// Counters of exported and dropped spans.
#[derive(Debug, Default)]
pub(crate) struct SpanCounts {
    sent: AtomicU64,
    lost: AtomicU64,
}

/// A call that has ended.
struct EndedCall {
    verb: Arc<SkillInvocation>,
    at: Timestamp,
    took: Duration,
    code: Option<i64>,
}

/// The side of the queue that sends.
struct TraceSender {
    fetch: Arc<dyn Fetch>,
    to: TraceDestination,
    queue: mpsc::Receiver<EndedCall>,
    counts: Arc<SpanCounts>,
    /// True if the last request succeeded: only changes are logged.
    works: bool,
}

// === impl TraceDestination ===

impl TraceDestination {
    /// Collector from the configuration or from OpenTelemetry's variables; none if neither is set.
    pub(crate) fn find(endpoint: Option<&str>, environment: &Environment) -> Result<Option<Self>, String> {
        let Some(base) = endpoint.or_else(|| environment.get("OTEL_EXPORTER_OTLP_ENDPOINT")) else {
            return Ok(None);
        };
        let uri = format!("{}/v1/traces", base.trim_end_matches('/'));
        let uri = uri.parse::<Uri>().ok().filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")));
        let Some(uri) = uri.filter(|uri| !uri.authority().is_some_and(|at| at.as_str().contains('@'))) else {
            let message = "[telemetry] otlp_endpoint must be an address like http://localhost:4318; a login belongs into \
                           OTEL_EXPORTER_OTLP_HEADERS";
            return Err(message.to_owned());
        };
        let headers = parse_headers(environment.get("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default())?;
        let service = environment.get("OTEL_SERVICE_NAME").unwrap_or("rialto").to_owned();
        Ok(Some(Self { uri, headers, service }))
    }
}

// === impl TraceExporter ===

impl TraceExporter {
    /// Sends from now on. To be called inside a Tokio runtime.
    pub(crate) fn start(fetch: Arc<dyn Fetch>, to: TraceDestination) -> Arc<Self> {
        let (queue, receiver) = mpsc::channel(MAX_QUEUED_SPANS);
        let (counts, stop) = (Arc::<SpanCounts>::default(), CancellationToken::new());
        let sender = TraceSender { fetch, to, queue: receiver, counts: Arc::clone(&counts), works: true };
        let sending = Mutex::new(Some(tokio::spawn(sender.run(stop.clone()))));
        Arc::new(Self { queue, counts, stop, sending })
    }

    /// Sends what is left, but does not take long.
    pub(crate) async fn flush(&self) {
        self.stop.cancel();
        let sending = self.sending.lock().take();
        if let Some(sending) = sending {
            let _ = tokio::time::timeout(FINAL_FLUSH_TIMEOUT, sending).await;
        }
    }

    /// Counters of spans, for metrics.
    pub(crate) fn counts(&self) -> Arc<SpanCounts> {
        Arc::clone(&self.counts)
    }
}

impl Hook for TraceExporter {
    fn hear(&self, event: &mut AuditEvent) {
        let code = match (event.phase, &event.error) {
            (AuditPhase::PostVerb, _) if event.outcome != Some(InvocationOutcome::Failed) => None,
            // A failure has two events, and the second has its code.
            (AuditPhase::VerbError, Some(error)) => Some(error.code),
            (AuditPhase::Breaker | AuditPhase::Guardrail | AuditPhase::Admin, _)
            | (AuditPhase::PreVerb | AuditPhase::PostVerb | AuditPhase::VerbError, _) => return,
        };
        if !event.verb.trace.as_ref().is_some_and(|trace| trace.is_sampled()) {
            return;
        }
        let (at, took) = (event.emitted_at, event.took.unwrap_or_default());
        if self.queue.try_send(EndedCall { verb: Arc::clone(&event.verb), at, took, code }).is_err() {
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

// === impl TraceSender ===

impl TraceSender {
    async fn run(mut self, stop: CancellationToken) {
        let mut batch = Vec::with_capacity(MAX_BATCH_SPANS);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                count = self.queue.recv_many(&mut batch, MAX_BATCH_SPANS) => if count == 0 { return },
            }
            if batch.len() < MAX_BATCH_SPANS {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = tokio::time::sleep(BATCH_DELAY) => {}
                }
            }
            self.fill_batch(&mut batch);
            self.send(&mut batch).await;
        }
        self.fill_batch(&mut batch);
        while !batch.is_empty() {
            self.send(&mut batch).await;
            self.fill_batch(&mut batch);
        }
    }

    /// Takes what is there already.
    fn fill_batch(&mut self, batch: &mut Vec<EndedCall>) {
        while batch.len() < MAX_BATCH_SPANS
            && let Ok(ended) = self.queue.try_recv()
        {
            batch.push(ended);
        }
    }

    async fn send(&mut self, batch: &mut Vec<EndedCall>) {
        let spans: Vec<Span> = batch.drain(..).filter_map(|ended| ended.span()).collect();
        let count = spans.len() as u64;
        let body = export_request(&self.to.service, spans).encode_to_vec();
        let mut headers = self.to.headers.clone();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        let request = fetch::FetchRequest {
            method: Method::POST,
            uri: self.to.uri.clone(),
            headers,
            body: body.into(),
            // The collector was configured by the operator.
            reach: Reach::Private,
            patience: EXPORT_TIMEOUT,
            total: Some(EXPORT_TIMEOUT),
            limit: None,
            http2: false,
        };
        let outcome = match self.fetch.fetch(request).await {
            Ok(answer) if answer.status.is_success() => {
                // The body is read so that the connection can be reused.
                let _ = answer.body.read().await;
                Ok(())
            }
            Ok(answer) => Err(format!("it answered with HTTP status {}", answer.status.as_u16())),
            Err(error) => Err(error.to_string()),
        };
        let counted = if outcome.is_ok() { &self.counts.sent } else { &self.counts.lost };
        counted.fetch_add(count, Ordering::Relaxed);
        match outcome {
            Err(why) if self.works => {
                tracing::warn!("the collector does not accept traces, they are dropped: {why}");
                self.works = false;
            }
            Ok(()) if !self.works => {
                tracing::info!("the collector accepts traces again");
                self.works = true;
            }
            Ok(()) | Err(_) => {}
        }
    }
}

// === impl EndedCall ===

impl EndedCall {
    fn span(&self) -> Option<Span> {
        let begun = self.at.checked_sub(self.took).unwrap_or(self.at);
        Some(span_of_call(&self.verb, self.verb.trace.as_deref()?, (begun, self.at), self.code))
    }
}

// === impl SpanCounts ===

impl Collector for SpanCounts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Spans for the collector";
        let mut spans = encoder.encode_descriptor("rialto_spans", help, None, MetricType::Counter)?;
        for (outcome, count) in [("sent", &self.sent), ("lost", &self.lost)] {
            let (labels, count) = ([("outcome", outcome)], count.load(Ordering::Relaxed));
            spans.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(&count, None)?;
        }
        Ok(())
    }
}

/// `name=value,name=value`, the values percent-encoded.
fn parse_headers(text: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let read = pair.split_once('=').and_then(|(name, value)| {
            let name = name.trim().parse::<HeaderName>().ok()?;
            let mut value = HeaderValue::from_bytes(&percent_decode(value.trim())?).ok()?;
            value.set_sensitive(true);
            Some((name, value))
        });
        // The value may be a secret.
        let (name, value) = read.ok_or("OTEL_EXPORTER_OTLP_HEADERS must be like name=value,name=value")?;
        headers.insert(name, value);
    }
    Ok(headers)
}

fn percent_decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let pair = [bytes.next()?, bytes.next()?];
            decoded.push(u8::from_str_radix(std::str::from_utf8(&pair).ok()?, 16).ok()?);
        } else {
            decoded.push(byte);
        }
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(endpoint: Option<&str>, variables: &[(&str, &str)]) -> Result<Option<TraceDestination>, String> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        TraceDestination::find(endpoint, &variables.collect())
    }

    #[test]
    fn without_an_endpoint_nothing_is_sent_and_what_is_configured_counts_first() {
        assert!(found(None, &[]).unwrap().is_none());
        let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318/")];
        assert_eq!(found(None, &variables).unwrap().unwrap().uri, "http://a:4318/v1/traces");
        assert_eq!(found(Some("http://b/x"), &variables).unwrap().unwrap().uri, "http://b/x/v1/traces");
    }

    #[test]
    fn headers_are_read_as_open_telemetry_writes_them_and_never_repeated() {
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20abc, x-org = 7"),
        ];
        let headers = found(None, &variables).unwrap().unwrap().headers;
        assert_eq!(
            (&headers["authorization"], &headers["x-org"]),
            (&"Bearer abc".parse().unwrap(), &"7".parse().unwrap())
        );
        assert!(!format!("{headers:?}").contains("abc"));
        let wrong = [variables[0], ("OTEL_EXPORTER_OTLP_HEADERS", "hunter2")];
        assert!(found(None, &wrong).is_err_and(|error| !error.contains("hunter2")));
    }

    #[test]
    fn an_endpoint_that_cannot_be_one_is_said_so_without_repeating_it() {
        for wrong in ["localhost:4318", "ftp://a", "http://user:hunter2@a:4318"] {
            assert!(found(Some(wrong), &[]).is_err_and(|error| !error.contains("hunter2")), "{wrong}");
        }
    }
}
