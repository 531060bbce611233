//! Cache of decisions.
//!
//! A decision depends on the policies, which never change within one cache, and on the key. An agent's version moves with each change of
//! its row, so a change is seen by the next request. A lookup allocates nothing: the request is compared with the keys by reference.

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
    policy::PolicyDecision,
    request::{Action, AuthorizationRequest},
};

/// Maximum number of cached decisions. Each is a few dozen bytes, and a registry of any size has a working set.
const MAX_CACHED_DECISIONS: u64 = 50_000;

/// Cache of decisions.
pub(crate) struct DecisionCache(Cache<DecisionKey, Arc<PolicyDecision>, FastHash>);

/// Key of a decision: everything it depends on.
#[derive(Debug)]
struct DecisionKey {
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

/// Borrowed key of a decision.
#[derive(PartialEq, Eq, Hash)]
struct DecisionKeyRef<'a> {
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

// === impl DecisionCache ===

impl DecisionCache {
    /// Creates an empty cache.
    pub(crate) fn new() -> Self {
        Self(Cache::builder().max_capacity(MAX_CACHED_DECISIONS).build_with_hasher(FastHash::default()))
    }

    /// Cached decision, or the one that `decide` makes.
    pub(crate) fn get_or_decide(
        &self,
        request: &AuthorizationRequest<'_>,
        decide: impl FnOnce() -> PolicyDecision,
    ) -> Arc<PolicyDecision> {
        if let Some(decision) = self.0.get(&DecisionKeyRef::from_request(request)) {
            return decision;
        }
        let decision = Arc::new(decide());
        self.0.insert(DecisionKey::from_request(request), Arc::clone(&decision));
        decision
    }
}

// === impl DecisionKey ===

impl DecisionKey {
    fn from_request(request: &AuthorizationRequest<'_>) -> Self {
        let (caller, resource) = (request.caller, request.resource);
        Self {
            org: caller.scope.org.clone(),
            kind: caller.kind,
            caller: caller.id.clone(),
            is_owner: caller.rights.is_owner(),
            caller_version: request.caller_agent.map(|row| row.version),
            action: request.action,
            agent: resource.agent().map(|agent| (agent.id.clone(), agent.version)),
            skill: resource.skill().map(|skill| skill.id.clone()),
            approved: request.approved,
        }
    }

    fn as_ref(&self) -> DecisionKeyRef<'_> {
        DecisionKeyRef {
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

impl Hash for DecisionKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_ref().hash(state);
    }
}

impl PartialEq for DecisionKey {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

impl Eq for DecisionKey {}

// === impl DecisionKeyRef ===

impl<'a> DecisionKeyRef<'a> {
    fn from_request(request: &AuthorizationRequest<'a>) -> Self {
        let caller = request.caller;
        let version = |agent: &'a Agent| (agent.id.as_str(), agent.version);
        Self {
            org: caller.scope.org.as_str(),
            kind: caller.kind,
            caller: caller.id.as_str(),
            is_owner: caller.rights.is_owner(),
            caller_version: request.caller_agent.map(|row| row.version),
            action: request.action,
            agent: request.resource.agent().map(version),
            skill: request.resource.skill().map(|skill| skill.id.as_str()),
            approved: request.approved,
        }
    }
}

impl Equivalent<DecisionKey> for DecisionKeyRef<'_> {
    fn equivalent(&self, key: &DecisionKey) -> bool {
        *self == key.as_ref()
    }
}
