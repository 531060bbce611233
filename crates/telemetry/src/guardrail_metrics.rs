//! Metrics of guardrail findings.

use std::{collections::BTreeMap, fmt};

use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, NoLabelSet},
    metrics::MetricType,
};
use rialto_model::audit_event::{AuditEvent, AuditPhase, Hook};
use serde::Deserialize;

/// Counts findings, by check, action and direction: there are few of each.
#[derive(Debug, Default)]
pub struct FindingCounts(Mutex<BTreeMap<(String, String, String), u64>>);

/// Fields of a recorded finding that are counted.
#[derive(Deserialize)]
struct FindingFacts {
    direction: String,
    findings: Vec<FindingFact>,
}

#[derive(Deserialize)]
struct FindingFact {
    check: String,
    action: String,
    count: u64,
}

// === impl FindingCounts ===

impl Hook for FindingCounts {
    fn hear(&self, event: &mut AuditEvent) {
        if event.phase != AuditPhase::Guardrail {
            return;
        }
        let Ok(facts) = event.verb.args.read::<FindingFacts>() else { return };
        let mut counts = self.0.lock();
        for fact in facts.findings {
            *counts.entry((fact.check, fact.action, facts.direction.clone())).or_default() += fact.count;
        }
    }
}

impl Collector for FindingCounts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "What guardrails have found";
        let mut found =
            encoder.encode_descriptor("rialto_guardrail_findings", help, None, MetricType::Counter)?;
        for ((check, action, direction), count) in self.0.lock().iter() {
            let labels =
                [("check", check.as_str()), ("action", action.as_str()), ("direction", direction.as_str())];
            found.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(count, None)?;
        }
        Ok(())
    }
}
