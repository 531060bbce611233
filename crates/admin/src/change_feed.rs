//! Feed of changes to agents, tools, policies, workflows and approvals.
//!
//! Writers announce nothing, so the feed costs a call nothing. One task polls for all watchers of this process, and only while there are
//! any: when the store's generation, the registry or the policies have changed, it reads a snapshot of the state. Each watcher compares
//! snapshots, so a thousand changes between two polls are one event.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use rialto_model::{
    agent::Agent,
    approval::ApprovalFilter,
    call::Caller,
    failure::Failure,
    ids::{AgentId, OrgId, Scope},
    maps::FastMap,
    token_scopes::TokenScope,
};
use rialto_policy::{Action, Policy};
use tokio::sync::{Mutex, watch};

use crate::{
    Administration,
    administration::{require_right_or_admin, store_failure},
    agents::may_see,
};

/// Interval of the poll.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum number of pending approvals in a snapshot.
const MAX_APPROVALS: usize = 1_000;

/// Source of snapshots for all watchers.
pub struct ChangeFeed {
    snapshot: watch::Sender<Arc<StateSnapshot>>,
    /// Whether the poll is running.
    is_polled: Mutex<bool>,
}

/// State at the last poll.
#[derive(Default)]
pub(crate) struct StateSnapshot {
    /// Versions it was read at.
    version: Option<StateVersion>,
    rows: FastMap<AgentId, Arc<Agent>>,
    policies: u64,
    flows: HashMap<Scope, u64>,
    approvals: HashMap<OrgId, u64>,
}

/// Subscription of one client to changes.
pub struct ChangeWatcher {
    snapshot: watch::Receiver<Arc<StateSnapshot>>,
    previous: Arc<StateSnapshot>,
}

/// Versions that change with the state.
struct StateVersion {
    generation: u64,
    registry: u64,
    policy: Arc<Policy>,
}

// === impl ChangeFeed ===

impl ChangeFeed {
    pub(crate) fn new() -> Self {
        Self { snapshot: watch::Sender::new(Arc::default()), is_polled: Mutex::new(false) }
    }

    /// Subscribes to changes from now on.
    pub async fn watch(&self, admin: &Administration) -> Result<ChangeWatcher, Failure> {
        let mut is_polled = self.is_polled.lock().await;
        if !*is_polled {
            self.snapshot.send_replace(Arc::new(StateSnapshot::read(admin).await?));
            *is_polled = true;
            tokio::spawn(poll(admin.clone()));
        }
        let mut snapshot = self.snapshot.subscribe();
        let previous = Arc::clone(&snapshot.borrow_and_update());
        Ok(ChangeWatcher { snapshot, previous })
    }

    /// Whether there are no watchers. The poll then ends, and the next watcher starts it again.
    async fn is_idle(&self) -> bool {
        if self.snapshot.receiver_count() > 0 {
            return false;
        }
        let mut is_polled = self.is_polled.lock().await;
        *is_polled = self.snapshot.receiver_count() > 0;
        !*is_polled
    }
}

/// Polls while there are watchers.
async fn poll(admin: Administration) {
    let feed = admin.change_feed();
    while !feed.is_idle().await {
        tokio::time::sleep(POLL_INTERVAL).await;
        if feed.snapshot.borrow().version.as_ref().is_some_and(|version| !version.has_moved(&admin)) {
            continue;
        }
        match StateSnapshot::read(&admin).await {
            Ok(now) => drop(feed.snapshot.send_replace(Arc::new(now))),
            Err(failure) => tracing::error!("changes cannot be read; the poll is tried again: {failure}"),
        }
    }
}

// === impl StateVersion ===

impl StateVersion {
    fn current(admin: &Administration) -> Self {
        let engine = admin.engine();
        let generation = admin.store().generation();
        Self { generation, registry: engine.registry().version(), policy: engine.policies().active() }
    }

    fn has_moved(&self, admin: &Administration) -> bool {
        let now = Self::current(admin);
        (self.generation, self.registry) != (now.generation, now.registry)
            || !Arc::ptr_eq(&self.policy, &now.policy)
    }
}

// === impl StateSnapshot ===

impl StateSnapshot {
    async fn read(admin: &Administration) -> Result<Self, Failure> {
        admin.engine().policies().sync().await?;
        // The versions are read first, so that later changes are seen by the next poll.
        let version = StateVersion::current(admin);
        let rows = admin.engine().registry().all();
        let flows = admin.store().flows(None).await.map_err(store_failure)?;
        let undecided = ApprovalFilter {
            undecided: true,
            unsettled: true,
            limit: MAX_APPROVALS,
            ..ApprovalFilter::default()
        };
        let waiting = admin.store().approvals(&undecided).await.map_err(store_failure)?;
        let policies = admin.host().policy_sources().await.unwrap_or_default();
        let texts = policies.iter().map(|source| ((), (&source.name, &source.text)));
        Ok(Self {
            version: Some(version),
            rows: rows.into_iter().map(|row| (row.id.clone(), row)).collect(),
            policies: hash_groups(texts).remove(&()).unwrap_or_default(),
            flows: hash_groups(
                flows.iter().map(|flow| (flow.scope.clone(), (&flow.name, flow.version, flow.status))),
            ),
            approvals: hash_groups(waiting.iter().map(|waits| (waits.scope.org.clone(), &waits.id))),
        })
    }

    /// Kinds of resources that changed for a caller since the previous snapshot.
    fn visible_changes(&self, before: &Self, admin: &Administration, caller: &Caller) -> Vec<&'static str> {
        let may = |action| admin.check_admin(caller, action).is_ok();
        let may_discover = require_right_or_admin(caller, TokenScope::Discover).is_ok();
        let changed = self.changed_rows(before, &caller.scope);
        let is_visible = |row: &&&Arc<Agent>| may_see(admin, caller, row);
        let is_agent = |row: &&&Arc<Agent>| row.backing.is_agent();
        let org = &caller.scope.org;
        let changes = [
            ("agents", may_discover && changed.iter().filter(is_agent).any(|row| is_visible(&row))),
            ("tools", changed.iter().any(|row| !row.backing.is_agent()) && may(Action::AdminAgents)),
            ("policies", self.policies != before.policies && may(Action::AdminPolicies)),
            ("workflows", self.flows.get(&caller.scope) != before.flows.get(&caller.scope) && may_discover),
            ("approvals", self.approvals.get(org) != before.approvals.get(org) && may(Action::ApproveCall)),
        ];
        changes.into_iter().filter(|(_, is_so)| *is_so).map(|(what, _)| what).collect()
    }

    /// Agents and tools of a project that are new, removed or changed.
    fn changed_rows<'a>(&'a self, before: &'a Self, scope: &Scope) -> Vec<&'a Arc<Agent>> {
        let is_same = |row: &Agent, other: &Agent| row.version == other.version;
        let others = |row: &&'a Arc<Agent>, side: &'a Self| {
            side.rows.get(&row.id).is_none_or(|other| !Arc::ptr_eq(row, other) && !is_same(row, other))
        };
        let now = self.rows.values().filter(|row| row.scope == *scope && others(row, before));
        let gone = before.rows.values().filter(|row| row.scope == *scope && others(row, self));
        now.chain(gone).collect()
    }
}

// === impl ChangeWatcher ===

impl ChangeWatcher {
    /// Waits for changes that a caller is allowed to see.
    pub async fn next(&mut self, admin: &Administration, caller: &Caller) -> Vec<&'static str> {
        loop {
            if self.snapshot.changed().await.is_err() {
                // The sender lives as long as the administration.
                std::future::pending::<()>().await;
            }
            let now = Arc::clone(&self.snapshot.borrow_and_update());
            let before = std::mem::replace(&mut self.previous, Arc::clone(&now));
            let changed = now.visible_changes(&before, admin, caller);
            if !changed.is_empty() {
                return changed;
            }
        }
    }
}

/// Hash of the values of each key, independent of their order.
fn hash_groups<K: Hash + Eq, V: Hash>(all: impl Iterator<Item = (K, V)>) -> HashMap<K, u64> {
    let mut sums = HashMap::new();
    for (key, value) in all {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        let sum: &mut u64 = sums.entry(key).or_default();
        *sum = sum.wrapping_add(hasher.finish());
    }
    sums
}
