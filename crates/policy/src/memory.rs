//! Decisions that were made before.
//!
//! A decision depends on the policies, which never change within one memory, and on what stands in its key. An
//! agent's version moves with each change of its row, so a change is seen by the very next question. A question that
//! was asked before is answered without allocating anything: it is compared with the keys as it is.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use moka::{Equivalent, sync::Cache};
use rialto_model::{
    agent::Agent,
    call::{CallerId, CallerKind},
    ids::{AgentId, OrgId, SkillId},
    maps::FastHash,
};

use crate::{
    policy::Decision,
    question::{Action, Question},
};

/// Decisions kept in memory. Each is a few dozen bytes, and a registry of any size has a working set.
const REMEMBERED: u64 = 50_000;

/// Decisions that were made before.
pub(crate) struct Memory(Cache<Key, Arc<Decision>, FastHash>);

/// What a decision depends on, to keep.
#[derive(Debug)]
struct Key {
    org: OrgId,
    kind: CallerKind,
    caller: CallerId,
    is_owner: bool,
    caller_version: Option<u64>,
    action: Action,
    agent: Option<(AgentId, u64)>,
    skill: Option<SkillId>,
    approved: bool,
}

/// What a decision depends on, as it stands in the question.
#[derive(PartialEq, Eq, Hash)]
struct Look<'a> {
    org: &'a str,
    kind: CallerKind,
    caller: &'a str,
    is_owner: bool,
    caller_version: Option<u64>,
    action: Action,
    agent: Option<(&'a str, u64)>,
    skill: Option<&'a str>,
    approved: bool,
}

// === impl Memory ===

impl Memory {
    /// Nothing is remembered yet.
    pub(crate) fn new() -> Self {
        Self(Cache::builder().max_capacity(REMEMBERED).build_with_hasher(FastHash::default()))
    }

    /// The decision that was made, or the one that `decide` makes now.
    pub(crate) fn recall(&self, question: &Question<'_>, decide: impl FnOnce() -> Decision) -> Arc<Decision> {
        if let Some(decision) = self.0.get(&Look::at(question)) {
            return decision;
        }
        let decision = Arc::new(decide());
        self.0.insert(Key::of(question), Arc::clone(&decision));
        decision
    }
}

// === impl Key ===

impl Key {
    fn of(question: &Question<'_>) -> Self {
        let (caller, resource) = (question.caller, question.resource);
        Self {
            org: caller.scope.org.clone(),
            kind: caller.kind,
            caller: caller.id.clone(),
            is_owner: caller.rights.is_owner(),
            caller_version: question.caller_agent.map(|row| row.version),
            action: question.action,
            agent: resource.agent().map(|agent| (agent.id.clone(), agent.version)),
            skill: resource.skill().map(|skill| skill.id.clone()),
            approved: question.approved,
        }
    }

    fn look(&self) -> Look<'_> {
        Look {
            org: self.org.as_str(),
            kind: self.kind,
            caller: self.caller.as_str(),
            is_owner: self.is_owner,
            caller_version: self.caller_version,
            action: self.action,
            agent: self.agent.as_ref().map(|(id, version)| (id.as_str(), *version)),
            skill: self.skill.as_ref().map(SkillId::as_str),
            approved: self.approved,
        }
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.look().hash(state);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.look() == other.look()
    }
}

impl Eq for Key {}

// === impl Look ===

impl<'a> Look<'a> {
    fn at(question: &Question<'a>) -> Self {
        let caller = question.caller;
        let version = |agent: &'a Agent| (agent.id.as_str(), agent.version);
        Self {
            org: caller.scope.org.as_str(),
            kind: caller.kind,
            caller: caller.id.as_str(),
            is_owner: caller.rights.is_owner(),
            caller_version: question.caller_agent.map(|row| row.version),
            action: question.action,
            agent: question.resource.agent().map(version),
            skill: question.resource.skill().map(|skill| skill.id.as_str()),
            approved: question.approved,
        }
    }
}

impl Equivalent<Key> for Look<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        *self == key.look()
    }
}
