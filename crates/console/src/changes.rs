//! What has changed of what is there, for whoever watches.
//!
//! Nothing is told by those who change something, so nothing is paid for on the way of a call. One looks for all who watch in this
//! process, and only while there is one: when the store's generation, the registry or the policies have moved, it reads how
//! things stand. Each who watches compares that with what it knew, so that a thousand changes in one look are one.

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

use crate::{Console, admin::agents::may_see, console::store_failure};

/// How often it is looked whether something has moved.
const LOOK: Duration = Duration::from_millis(250);

/// So many that wait for approval are compared.
const WAITING: usize = 1_000;

/// What watches for changes.
pub(crate) struct Changes {
    standing: watch::Sender<Arc<Standing>>,
    /// Whether somebody looks.
    is_followed: Mutex<bool>,
}

/// How things stood when it was last looked.
#[derive(Default)]
pub(crate) struct Standing {
    /// What must move before it is looked again.
    mark: Option<Mark>,
    rows: FastMap<AgentId, Arc<Agent>>,
    policies: u64,
    flows: HashMap<Scope, u64>,
    approvals: HashMap<OrgId, u64>,
}

/// One who watches.
pub(crate) struct Watcher {
    standing: watch::Receiver<Arc<Standing>>,
    known: Arc<Standing>,
}

/// What moves when something has changed.
struct Mark {
    generation: u64,
    version: u64,
    policy: Arc<Policy>,
}

// === impl Changes ===

impl Changes {
    pub(crate) fn new() -> Self {
        Self { standing: watch::Sender::new(Arc::default()), is_followed: Mutex::new(false) }
    }

    /// Watches from now on.
    pub(crate) async fn watch(&self, console: &Console) -> Result<Watcher, Failure> {
        let mut is_followed = self.is_followed.lock().await;
        if !*is_followed {
            self.standing.send_replace(Arc::new(Standing::now(console).await?));
            *is_followed = true;
            tokio::spawn(follow(console.clone()));
        }
        let mut standing = self.standing.subscribe();
        let known = Arc::clone(&standing.borrow_and_update());
        Ok(Watcher { standing, known })
    }

    /// Whether nobody watches any more. Whoever comes next then begins to look again.
    async fn is_over(&self) -> bool {
        if self.standing.receiver_count() > 0 {
            return false;
        }
        let mut is_followed = self.is_followed.lock().await;
        *is_followed = self.standing.receiver_count() > 0;
        !*is_followed
    }
}

/// Looks for as long as somebody watches.
async fn follow(console: Console) {
    let changes = console.changes();
    while !changes.is_over().await {
        tokio::time::sleep(LOOK).await;
        if changes.standing.borrow().mark.as_ref().is_some_and(|mark| !mark.has_moved(&console)) {
            continue;
        }
        match Standing::now(&console).await {
            Ok(now) => drop(changes.standing.send_replace(Arc::new(now))),
            Err(failure) => tracing::error!("whoever watches has to wait: {failure}"),
        }
    }
}

// === impl Mark ===

impl Mark {
    fn of(console: &Console) -> Self {
        let engine = console.engine();
        let generation = console.store().generation();
        Self { generation, version: engine.registry().version(), policy: engine.policy() }
    }

    fn has_moved(&self, console: &Console) -> bool {
        let now = Self::of(console);
        (self.generation, self.version) != (now.generation, now.version)
            || !Arc::ptr_eq(&self.policy, &now.policy)
    }
}

// === impl Standing ===

impl Standing {
    async fn now(console: &Console) -> Result<Self, Failure> {
        console.engine().sync().await?;
        // Whatever moves from here on is seen with the next look.
        let mark = Mark::of(console);
        let rows = console.engine().registry().all();
        let flows = console.store().flows(None).await.map_err(store_failure)?;
        let undecided =
            ApprovalFilter { undecided: true, unsettled: true, limit: WAITING, ..ApprovalFilter::default() };
        let waiting = console.store().approvals(&undecided).await.map_err(store_failure)?;
        let policies = console.office().policies().await.unwrap_or_default();
        let texts = policies.iter().map(|source| ((), (&source.name, &source.text)));
        Ok(Self {
            mark: Some(mark),
            rows: rows.into_iter().map(|row| (row.id.clone(), row)).collect(),
            policies: sums(texts).remove(&()).unwrap_or_default(),
            flows: sums(
                flows.iter().map(|flow| (flow.scope.clone(), (&flow.name, flow.version, flow.status))),
            ),
            approvals: sums(waiting.iter().map(|waits| (waits.scope.org.clone(), &waits.id))),
        })
    }

    /// What looks different to a caller than it did before.
    fn since(&self, before: &Self, console: &Console, caller: &Caller) -> Vec<&'static str> {
        let may = |action| console.may(caller, action).is_ok();
        let may_look = Console::need(caller, TokenScope::Discover).is_ok();
        let moved = self.moved(before, &caller.scope);
        let seen = |row: &&&Arc<Agent>| may_see(console, caller, row);
        let is_agent = |row: &&&Arc<Agent>| row.backing.is_agent();
        let org = &caller.scope.org;
        let different = [
            ("agents", may_look && moved.iter().filter(is_agent).any(|row| seen(&row))),
            ("tools", moved.iter().any(|row| !row.backing.is_agent()) && may(Action::AdminAgents)),
            ("policies", self.policies != before.policies && may(Action::AdminPolicies)),
            ("workflows", self.flows.get(&caller.scope) != before.flows.get(&caller.scope) && may_look),
            ("approvals", self.approvals.get(org) != before.approvals.get(org) && may(Action::ApproveCall)),
        ];
        different.into_iter().filter(|(_, is_so)| *is_so).map(|(what, _)| what).collect()
    }

    /// The rows of a project that are new, gone or changed.
    fn moved<'a>(&'a self, before: &'a Self, scope: &Scope) -> Vec<&'a Arc<Agent>> {
        let is_same = |row: &Agent, other: &Agent| row.version == other.version;
        let others = |row: &&'a Arc<Agent>, side: &'a Self| {
            side.rows.get(&row.id).is_none_or(|other| !Arc::ptr_eq(row, other) && !is_same(row, other))
        };
        let now = self.rows.values().filter(|row| row.scope == *scope && others(row, before));
        let gone = before.rows.values().filter(|row| row.scope == *scope && others(row, self));
        now.chain(gone).collect()
    }
}

// === impl Watcher ===

impl Watcher {
    /// What has changed for a caller. It waits until there is something.
    pub(crate) async fn next(&mut self, console: &Console, caller: &Caller) -> Vec<&'static str> {
        loop {
            if self.standing.changed().await.is_err() {
                // It is there as long as the console is.
                std::future::pending::<()>().await;
            }
            let now = Arc::clone(&self.standing.borrow_and_update());
            let before = std::mem::replace(&mut self.known, Arc::clone(&now));
            let changed = now.since(&before, console, caller);
            if !changed.is_empty() {
                return changed;
            }
        }
    }
}

/// One number for all that belongs together, whatever its order.
fn sums<K: Hash + Eq, V: Hash>(all: impl Iterator<Item = (K, V)>) -> HashMap<K, u64> {
    let mut sums = HashMap::new();
    for (key, value) in all {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        let sum: &mut u64 = sums.entry(key).or_default();
        *sum = sum.wrapping_add(hasher.finish());
    }
    sums
}
