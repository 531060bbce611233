//! All metrics of a server, as OpenMetrics text.

use std::{collections::BTreeMap, fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, NoLabelSet, text},
    metrics::MetricType,
    registry::Registry,
};
use rialto_engine::Engine;
use rialto_http_server::{listener::Connections, request_counters::RequestCounters};
use rialto_model::{
    agent::Agent,
    clock::{Clock, SystemClock},
    store::Store,
};

use super::{call_metrics::CallCounts, process_metrics::ProcessMetrics};

/// Registry of metrics, read at scrape time.
#[derive(Debug)]
pub(crate) struct MetricsRegistry(Registry);

/// Requests at admission.
#[derive(Debug)]
struct RequestCounts(Arc<RequestCounters>);

/// Connections to the listener.
#[derive(Debug)]
pub(crate) struct ConnectionCounts(pub(crate) Arc<Connections>);

/// Gauges of the engine and the store.
struct EngineGauges {
    engine: Engine,
    store: Arc<dyn Store>,
}

// === impl MetricsRegistry ===

impl MetricsRegistry {
    /// The numbers of a server.
    pub(crate) fn new(
        calls: Arc<CallCounts>,
        counters: Arc<RequestCounters>,
        engine: Engine,
        store: Arc<dyn Store>,
    ) -> Self {
        let mut metrics = Self(Registry::default());
        metrics.add(Box::new(calls));
        metrics.add(Box::new(RequestCounts(counters)));
        metrics.add(Box::new(EngineGauges { engine, store }));
        metrics.add(Box::new(ProcessMetrics::new(SystemClock.now())));
        metrics
    }

    /// Adds a collector.
    pub(crate) fn add(&mut self, collector: Box<dyn Collector>) {
        self.0.register_collector(collector);
    }

    /// The page that Prometheus reads.
    pub(crate) fn render(&self) -> Result<String, fmt::Error> {
        let mut page = String::with_capacity(8 * 1024);
        text::encode(&mut page, &self.0).map(|()| page)
    }
}

// === impl RequestCounts ===

impl Collector for RequestCounts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "HTTP requests that were answered";
        let mut requests =
            encoder.encode_descriptor("rialto_http_requests", help, None, MetricType::Counter)?;
        for (door, class, count) in self.0.requests().filter(|(.., count)| *count > 0) {
            let labels = [("door", door), ("status", class)];
            requests.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(&count, None)?;
        }
        let help = "Requests that were turned away before any protocol saw them";
        let mut refused = encoder.encode_descriptor("rialto_refused", help, None, MetricType::Counter)?;
        for (reason, count) in self.0.rejections() {
            let labels = [("reason", reason)];
            refused.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(&count, None)?;
        }
        Ok(())
    }
}

// === impl ConnectionCounts ===

impl Collector for ConnectionCounts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        encoder
            .encode_descriptor("rialto_connections", "Open connections", None, MetricType::Gauge)?
            .encode_gauge(&u64::try_from(self.0.open()).unwrap_or(u64::MAX))?;
        let help = "Connections that were one too many, in all or from one address";
        encoder
            .encode_descriptor("rialto_connections_refused", help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, f64>(&self.0.refused(), None)
    }
}

// === impl EngineGauges ===

impl Collector for EngineGauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Calls in progress in this process, including detached ones";
        encoder
            .encode_descriptor("rialto_calls_in_flight", help, None, MetricType::Gauge)?
            .encode_gauge(&(u64::try_from(self.engine.running().count()).unwrap_or(u64::MAX)))?;
        let all = self.engine.registry().all();
        let mut by_health = BTreeMap::<&str, u64>::new();
        for agent in &all {
            *by_health.entry(agent.health.as_str()).or_default() += 1;
        }
        let mut agents =
            encoder.encode_descriptor("rialto_agents", "Registered agents", None, MetricType::Gauge)?;
        for (health, count) in by_health {
            agents.encode_family(&[("health", health)])?.encode_gauge(&count)?;
        }
        let held = self.engine.running().held_counts();
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let help = "Writes to tasks that wait until the store is available";
        encoder
            .encode_descriptor("rialto_held_writes", help, None, MetricType::Gauge)?
            .encode_gauge(&count(held.writes))?;
        let help = "Bytes that wait until the store is available";
        encoder
            .encode_descriptor("rialto_held_bytes", help, None, MetricType::Gauge)?
            .encode_gauge(&count(held.bytes))?;
        let help = "Audit records that were lost because too many waited for the store";
        encoder
            .encode_descriptor("rialto_audit_records_lost", help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, f64>(&held.lost_audit_records, None)?;
        encode_breakers(&mut encoder, &self.engine, &all)?;
        encode_node(&mut encoder, &self.engine)?;
        let help = "Counts the changes of registry and tokens by all processes";
        encoder
            .encode_descriptor("rialto_store_generation", help, None, MetricType::Gauge)?
            .encode_gauge(&self.store.generation())
    }
}

/// Name of this process as a node, and its drained state.
fn encode_node(encoder: &mut DescriptorEncoder<'_>, engine: &Engine) -> fmt::Result {
    let Some(name) = engine.nodes().name() else { return Ok(()) };
    encoder
        .encode_descriptor("rialto_node", "Node that these numbers are of", None, MetricType::Info)?
        .encode_info(&[("node", name)])?;
    let help = "1 if this node is drained, else 0";
    encoder
        .encode_descriptor("rialto_node_draining", help, None, MetricType::Gauge)?
        .encode_gauge(&u64::from(engine.nodes().is_draining()))
}

/// Circuit breakers by state, and how many times each has opened.
fn encode_breakers(
    encoder: &mut DescriptorEncoder<'_>,
    engine: &Engine,
    agents: &[Arc<Agent>],
) -> fmt::Result {
    let breakers: Vec<_> =
        agents.iter().map(|agent| (agent, engine.calls().breaker_status(&agent.id))).collect();
    let help = "Circuit breakers of agents in this process";
    let mut states = encoder.encode_descriptor("rialto_breakers", help, None, MetricType::Gauge)?;
    for state in ["closed", "half-open", "open"] {
        let count = breakers.iter().filter(|(_, breaker)| breaker.state == state).count();
        states.encode_family(&[("state", state)])?.encode_gauge(&u64::try_from(count).unwrap_or(u64::MAX))?;
    }
    let help = "How often an agent's circuit breaker has opened";
    let mut opened = encoder.encode_descriptor("rialto_breaker_opened", help, None, MetricType::Counter)?;
    for (agent, breaker) in breakers.iter().filter(|(_, breaker)| breaker.opened > 0) {
        let (org, project) = (agent.scope.org.as_str(), agent.scope.project.as_str());
        let labels = [("org", org), ("project", project), ("agent", agent.slug.as_str())];
        opened.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(&breaker.opened, None)?;
    }
    Ok(())
}

impl fmt::Debug for EngineGauges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standing").finish_non_exhaustive()
    }
}
