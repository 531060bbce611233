//! Metrics of calls: outcomes and durations.
//!
//! The hook runs within every call: an agent and a skill are looked up once each, and then only counters are incremented. Labels are
//! rendered at scrape time from the current rows; counters of removed agents and skills are dropped, so memory stays within the
//! size of the registry.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::RwLock;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, NoLabelSet},
    metrics::MetricType,
};
use rialto_engine::Registry;
use rialto_model::{
    agent::Agent,
    audit_event::{AuditEvent, AuditPhase, Hook, InvocationOutcome},
    failure::FailureKind,
    maps::FastMap,
};

/// Labels of outcomes.
const OUTCOMES: [&str; 10] = [
    "completed",
    "failed",
    "denied",
    "blocked",
    "invalid",
    "timeout",
    "unreachable",
    "garbled",
    "busy",
    "error",
];

/// Upper bounds of the duration buckets, in seconds. Longer calls are in the last bucket.
const DURATION_BOUNDS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// Counts calls.
pub struct CallCounts {
    registry: Arc<Registry>,
    agents: RwLock<FastMap<String, Arc<AgentCallCounts>>>,
}

/// Counters of one agent.
#[derive(Default)]
struct AgentCallCounts {
    skills: RwLock<FastMap<String, Arc<SkillCounts>>>,
    durations: DurationHistogram,
}

/// Counters of one skill, by outcome.
#[derive(Default)]
struct SkillCounts([AtomicU64; OUTCOMES.len()]);

#[derive(Default)]
struct DurationHistogram {
    /// One more bucket than bounds: the last is unbounded.
    counts: [AtomicU64; DURATION_BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

// === impl CallCounts ===

impl CallCounts {
    /// Creates empty counters. `registry` determines which are dropped.
    pub fn new(registry: Arc<Registry>) -> Self {
        Self { registry, agents: RwLock::default() }
    }

    fn agent(&self, id: &str) -> Arc<AgentCallCounts> {
        get_or_insert(&self.agents, id)
    }

    /// The agents that are still there, with their rows; the others are forgotten.
    fn live_agents(&self) -> Vec<(Arc<Agent>, Arc<AgentCallCounts>)> {
        let rows = self.registry.all();
        let rows: HashMap<&str, &Arc<Agent>> = rows.iter().map(|row| (row.id.as_str(), row)).collect();
        self.agents.write().retain(|id, _| rows.contains_key(id.as_str()));
        let counted = self.agents.read();
        let with_row = counted.iter().filter_map(|(id, of)| {
            let row = rows.get(id.as_str())?;
            of.retain_skills(row);
            Some((Arc::clone(row), Arc::clone(of)))
        });
        with_row.collect()
    }
}

impl Hook for CallCounts {
    fn hear(&self, event: &mut AuditEvent) {
        let outcome = match (event.phase, event.outcome, &event.error) {
            (AuditPhase::PostVerb, outcome, _) => {
                let agent = self.agent(&event.verb.agent_card_id);
                agent.durations.add(event.took.unwrap_or_default());
                // The error follows in an event of its own; a waiting call was answered with its question.
                if outcome == Some(InvocationOutcome::Failed) {
                    return;
                }
                agent.skill(&event.verb.skill_id).add(0);
                return;
            }
            (AuditPhase::VerbError, _, Some(error)) => outcome_index(error.code),
            (AuditPhase::VerbError, _, None)
            | (AuditPhase::PreVerb | AuditPhase::Breaker | AuditPhase::Guardrail | AuditPhase::Admin, ..) => {
                return;
            }
        };
        self.agent(&event.verb.agent_card_id).skill(&event.verb.skill_id).add(outcome);
    }
}

impl Collector for CallCounts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let present = self.live_agents();
        let help = "Calls that ended, by how they ended";
        let mut calls = encoder.encode_descriptor("rialto_calls", help, None, MetricType::Counter)?;
        for (row, agent) in &present {
            for (skill, counts) in agent.skills.read().iter() {
                for (outcome, count) in OUTCOMES.iter().zip(&counts.0) {
                    let count = count.load(Ordering::Relaxed);
                    if count == 0 {
                        continue;
                    }
                    let (org, project) = (row.scope.org.as_str(), row.scope.project.as_str());
                    let labels = [
                        ("org", org),
                        ("project", project),
                        ("agent", row.slug.as_str()),
                        ("skill", skill.as_str()),
                        ("outcome", outcome),
                    ];
                    calls.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(&count, None)?;
                }
            }
        }
        let help = "How long callers waited for the end of a call";
        let mut durations =
            encoder.encode_descriptor("rialto_call_duration_seconds", help, None, MetricType::Histogram)?;
        for (row, agent) in &present {
            let (org, project) = (row.scope.org.as_str(), row.scope.project.as_str());
            let labels = [("org", org), ("project", project), ("agent", row.slug.as_str())];
            let (sum, buckets) = agent.durations.read();
            let count = buckets.iter().map(|(_, count)| count).sum();
            durations.encode_family(&labels)?.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }
}

impl fmt::Debug for CallCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallCounts").field("agents", &self.agents.read().len()).finish()
    }
}

// === impl AgentCallCounts ===

impl AgentCallCounts {
    fn skill(&self, id: &str) -> Arc<SkillCounts> {
        get_or_insert(&self.skills, id)
    }

    /// Forgets the skills that the agent does not have any more. A plain message is to no skill.
    fn retain_skills(&self, row: &Agent) {
        let has = |id: &str| row.card.skills.iter().any(|skill| skill.id.as_str() == id);
        self.skills.write().retain(|id, _| id.is_empty() || has(id));
    }
}

// === impl SkillCounts ===

impl SkillCounts {
    fn add(&self, outcome: usize) {
        if let Some(count) = self.0.get(outcome) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

// === impl DurationHistogram ===

impl DurationHistogram {
    fn add(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let at = DURATION_BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(DURATION_BOUNDS.len());
        if let Some(count) = self.counts.get(at) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// The sum in seconds, and each bound with what is counted below it and above the one before.
    fn read(&self) -> (f64, Vec<(f64, u64)>) {
        let bounds = DURATION_BOUNDS.into_iter().chain([f64::INFINITY]);
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        let sum = Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)).as_secs_f64();
        (sum, bounds.zip(counts).collect())
    }
}

/// Counter for `key`, created at first use only, under a short lock.
fn get_or_insert<T: Default>(map: &RwLock<FastMap<String, Arc<T>>>, key: &str) -> Arc<T> {
    let known = map.read().get(key).cloned();
    known.unwrap_or_else(|| Arc::clone(map.write().entry(key.to_owned()).or_default()))
}

/// The place of what a failure with this code counts as.
fn outcome_index(code: i64) -> usize {
    let is = |kind: FailureKind| kind.rpc_code() == code;
    let name = match code {
        _ if is(FailureKind::PeerFailed) => "failed",
        _ if is(FailureKind::Denied) => "denied",
        _ if is(FailureKind::Blocked) => "blocked",
        _ if is(FailureKind::Invalid) => "invalid",
        _ if is(FailureKind::PeerTimeout) => "timeout",
        _ if is(FailureKind::PeerUnreachable) => "unreachable",
        _ if is(FailureKind::PeerGarbled) => "garbled",
        _ if is(FailureKind::Busy) => "busy",
        _ => "error",
    };
    OUTCOMES.iter().position(|known| *known == name).unwrap_or(OUTCOMES.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_below_its_bound_and_the_longest_counts_too() {
        let durations = DurationHistogram::default();
        for milliseconds in [0, 1, 3, 90_000] {
            durations.add(Duration::from_millis(milliseconds));
        }
        let (sum, buckets) = durations.read();
        assert!((sum - 90.004).abs() < 1e-9, "{sum}");
        let counted: Vec<_> = buckets.into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, [(0.001, 2), (0.005, 1), (f64::INFINITY, 1)]);
    }

    #[test]
    fn every_kind_of_failure_counts_as_something() {
        assert_eq!(OUTCOMES[outcome_index(FailureKind::Denied.rpc_code())], "denied");
        assert_eq!(OUTCOMES[outcome_index(FailureKind::PeerTimeout.rpc_code())], "timeout");
        assert_eq!(OUTCOMES[outcome_index(FailureKind::Internal.rpc_code())], "error");
        assert_eq!(OUTCOMES[outcome_index(-1)], "error");
    }
}
