//! Health probes: rounds over all agents, and quick ones of an agent that has just failed.
//!
//! An agent that restarts or answers 503 for a moment must not be left alone until the next round: it is probed again at once
//! and then with backoff, for two minutes or until it is reachable.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use rand::RngExt;
use rialto_model::{
    agent::{Agent, Health},
    ids::AgentId,
};
use tokio::{sync::Semaphore, task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    peer::DiscoveryError,
    registry::{Registry, RegistryError},
};

/// Shortest wait between two probes of an agent that cannot be reached.
const SHORTEST_RETRY: Duration = Duration::from_millis(250);

/// Longest wait between two of them.
const LONGEST_RETRY: Duration = Duration::from_secs(5);

/// Time after which an agent that is still not reachable is left to the rounds.
const RECOVERY_TIME: Duration = Duration::from_secs(120);

/// Probes all agents in rounds, spread over the interval so that they do not all ask at once.
pub struct Prober {
    registry: Arc<Registry>,
    interval: Duration,
    slots: Arc<Semaphore>,
}

// === impl Prober ===

impl Prober {
    /// A prober that has not begun.
    pub fn new(registry: Arc<Registry>, interval: Duration, concurrency: usize) -> Self {
        Self { registry, interval, slots: Arc::new(Semaphore::new(concurrency.max(1))) }
    }

    /// Probes until `stop` is cancelled. The first round is quick, so that agents are soon known to be reachable after a start.
    pub async fn run(self, stop: CancellationToken) {
        let mut spread = self.interval.min(Duration::from_secs(1));
        while !stop.is_cancelled() {
            let next_round = Instant::now() + self.interval;
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.round(spread) => {}
            }
            spread = self.interval.mul_f32(0.9);
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep_until(next_round) => {}
            }
        }
    }

    async fn round(&self, spread: Duration) {
        let begun = Instant::now();
        let mut under_way = JoinSet::new();
        for (offset, agent) in schedule(self.registry.all(), spread) {
            tokio::time::sleep_until(begun + offset).await;
            // A closed semaphore cannot be: nobody closes it. If it were, this round would end.
            let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await else { return };
            let registry = Arc::clone(&self.registry);
            under_way.spawn(async move {
                probe(&registry, &agent.id).await;
                drop(slot);
                if agent.health != Health::Unreachable && is_unreachable(&registry, &agent.id) {
                    start_recovery(&registry, agent.id.clone());
                }
            });
            while under_way.try_join_next().is_some() {}
        }
        under_way.join_all().await;
    }
}

/// Probes an agent at once, and again with backoff while it cannot be reached. One at a time for each agent.
pub(crate) fn start_recovery(registry: &Arc<Registry>, id: AgentId) {
    if !registry.recovering.lock().insert(id.clone()) {
        return;
    }
    let registry = Arc::downgrade(registry);
    tokio::spawn(async move {
        recover(&registry, &id).await;
        if let Some(registry) = registry.upgrade() {
            registry.recovering.lock().remove(&id);
        }
    });
}

async fn recover(registry: &Weak<Registry>, id: &AgentId) {
    let begun = Instant::now();
    loop {
        {
            let Some(registry) = registry.upgrade() else { return };
            probe(&registry, id).await;
            if !is_unreachable(&registry, id) || begun.elapsed() >= RECOVERY_TIME {
                return;
            }
        }
        // A third of the outage so far: an agent that was away for a moment is found again in a moment.
        let wait = (begun.elapsed() / 3).clamp(SHORTEST_RETRY, LONGEST_RETRY);
        tokio::time::sleep(wait.mul_f64(rand::random_range(0.8..1.2))).await;
    }
}

/// True if the last probe could not reach an agent. MCP servers and functions have their own backoff.
fn is_unreachable(registry: &Registry, id: &AgentId) -> bool {
    registry.get(id).is_some_and(|agent| agent.health == Health::Unreachable && agent.backing.is_agent())
}

/// Asks one agent how it is. Trouble in writing the answer down is ours, and is logged.
pub(crate) async fn probe(registry: &Registry, id: &AgentId) {
    // Look again: the row may have changed or gone since the round began.
    let Some(agent) = registry.get(id) else { return };
    match registry.probe(&agent).await {
        Ok(health) if health != agent.health => {
            tracing::info!(agent.id = %agent.id, "agent {} is {health} (was {})", agent.slug, agent.health);
        }
        Ok(_) => {}
        // The client that could not open a connection has logged it, once for all probes and calls.
        Err(RegistryError::Discovery(DiscoveryError::Local { .. })) => {}
        Err(error) => {
            tracing::warn!(agent.id = %agent.id, "the probe of {} was not recorded: {error}", agent.slug);
        }
    }
}

fn schedule(agents: Vec<Arc<Agent>>, spread: Duration) -> Vec<(Duration, Arc<Agent>)> {
    let mut random = rand::rng();
    let mut schedule: Vec<_> =
        agents.into_iter().map(|agent| (spread.mul_f64(random.random_range(0.0..1.0)), agent)).collect();
    schedule.sort_by_key(|(offset, _)| *offset);
    schedule
}
