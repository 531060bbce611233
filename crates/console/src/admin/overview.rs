//! How things go: what is registered, what is not well, and what calls of the last hour were like.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rialto_engine::directory::Entry;
use rialto_model::{
    agent::{Agent, Health, Trust},
    call::Caller,
    failure::Failure,
    rights::Right,
    store::{AuditFilter, TaskFilter},
    verb::{Outcome, Phase, VerbEvent},
};
use serde::Serialize;

use super::agents::may_see;
use crate::{Console, console::store_failure};

/// Calls are counted in so many pieces of so many seconds each.
const PIECES: usize = 60;
const PIECE: i64 = 60;

/// So many records are looked at at most.
const MOST: usize = 5_000;

/// So many agents that are not well are named.
const NAMED: usize = 8;

/// How things go.
#[derive(Clone, Debug)]
pub struct Overview {
    /// How many agents there are, and how many of them are healthy and need a permit.
    pub agents: Counts,
    /// Some of those that are not well.
    pub unwell: Vec<Arc<Agent>>,
    /// How many skills can be called.
    pub skills: usize,
    /// How many servers and functions are deployed.
    pub tools: usize,
    /// The caller's tasks that wait for an answer.
    pub waiting: usize,
    /// What calls of the last hour were like, for whoever may read the audit trail.
    pub calls: Option<Calls>,
}

/// Agents, counted.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Counts {
    /// All of them.
    pub all: usize,
    /// Those that are healthy.
    pub healthy: usize,
    /// Those that are degraded or unreachable.
    pub unwell: usize,
    /// Those that need a permit.
    pub external: usize,
}

/// What calls of the last hour were like.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Calls {
    /// How many ended.
    pub ended: usize,
    /// How many of them failed.
    pub failed: usize,
    /// How many were refused.
    pub denied: usize,
    /// Half of them took no longer than this, in milliseconds.
    pub p50_ms: Option<u64>,
    /// All but one in a hundred took no longer than this.
    pub p99_ms: Option<u64>,
    /// How many ended in each minute, the oldest first.
    pub per_minute: Vec<u64>,
    /// How many of those failed.
    pub failed_per_minute: Vec<u64>,
    /// Whether there were more than were looked at.
    pub is_cut: bool,
}

/// How things go in the caller's project.
pub async fn overview(console: &Console, caller: &Caller) -> Result<Overview, Failure> {
    console.engine().sync().await?;
    let registry = console.engine().registry();
    // Whoever may not look around is told nothing of what there is.
    let looks = Console::need(caller, Right::Discover).is_ok();
    let mut agents = if looks { registry.agents(&caller.scope) } else { Vec::new() };
    agents.retain(|agent| may_see(console, caller, agent));
    let directory = registry.directory(&caller.scope);
    let sees = |entry: &&Entry| looks && console.engine().may_discover(caller, &entry.target());
    let is_unwell = |agent: &&Arc<Agent>| matches!(agent.health, Health::Degraded | Health::Unreachable);
    let counts = Counts {
        all: agents.len(),
        healthy: agents.iter().filter(|agent| agent.health == Health::Healthy).count(),
        unwell: agents.iter().filter(is_unwell).count(),
        external: agents.iter().filter(|agent| agent.trust == Trust::External).count(),
    };
    let waiting = TaskFilter {
        caller: Some(caller.id.clone()),
        state: Some(rialto_model::task::TaskState::InputRequired),
        limit: 100,
        ..TaskFilter::default()
    };
    let waiting = console.store().tasks(&caller.scope, &waiting).await.map_err(store_failure)?.len();
    let calls = if console.sees_all(caller) { Some(calls(console, caller).await?) } else { None };
    Ok(Overview {
        agents: counts,
        unwell: agents.iter().filter(is_unwell).take(NAMED).cloned().collect(),
        skills: directory.listed().filter(sees).count(),
        tools: if looks { registry.deployed(&caller.scope).len() } else { 0 },
        waiting,
        calls,
    })
}

async fn calls(console: &Console, caller: &Caller) -> Result<Calls, Failure> {
    let now = console.engine().now();
    let hour = SignedDuration::from_secs(PIECE * i64::try_from(PIECES).unwrap_or(PIECE));
    let since = now.checked_sub(hour).unwrap_or(Timestamp::UNIX_EPOCH);
    let filter = AuditFilter { since: Some(since), limit: MOST, ..AuditFilter::default() };
    let records = console.store().audit_trail(&caller.scope, &filter).await.map_err(store_failure)?;
    let is_cut = records.len() == MOST;
    let mut calls = Calls::of(records.iter().map(|record| &record.event), now);
    calls.is_cut = is_cut;
    Ok(calls)
}

// === impl Calls ===

impl Calls {
    fn of<'a>(events: impl Iterator<Item = &'a VerbEvent>, now: Timestamp) -> Self {
        let mut calls =
            Self { per_minute: vec![0; PIECES], failed_per_minute: vec![0; PIECES], ..Self::default() };
        let mut took = Vec::new();
        for event in events.filter(|event| event.phase == Phase::PostVerb) {
            let has_failed = event.outcome != Some(Outcome::Completed);
            calls.ended += 1;
            calls.failed += usize::from(has_failed && !event.context.denied);
            calls.denied += usize::from(event.context.denied);
            took.extend(event.duration_ms.filter(|_| !event.context.denied));
            let ago = (now.as_second() - event.emitted_at.as_second()).max(0) / PIECE;
            let at = usize::try_from(ago).ok().and_then(|ago| (PIECES - 1).checked_sub(ago));
            if let Some(at) = at {
                calls.per_minute.get_mut(at).into_iter().for_each(|count| *count += 1);
                let failed = calls.failed_per_minute.get_mut(at).filter(|_| has_failed);
                failed.into_iter().for_each(|count| *count += 1);
            }
        }
        took.sort_unstable();
        calls.p50_ms = share(&took, 50);
        calls.p99_ms = share(&took, 99);
        calls
    }
}

/// The number that so many of a hundred do not exceed.
fn share(sorted: &[u64], percent: usize) -> Option<u64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_numbers_that_were_there() {
        let numbers: Vec<u64> = (1..=100).collect();
        assert_eq!((share(&numbers, 50), share(&numbers, 99)), (Some(50), Some(99)));
        assert_eq!((share(&[7], 50), share(&[7], 99), share(&[], 50)), (Some(7), Some(7), None));
    }
}
