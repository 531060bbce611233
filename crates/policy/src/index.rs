//! Policy index: finds the few policies that can apply to a request.
//!
//! Most policies name an entity: `resource in A2AAgent::"agt_1"`, `principal == User::"ann"`. Such a policy is in the bucket of that
//! entity, every other one in a bucket of its action that is always evaluated. A request evaluates the buckets of its principal, its
//! resource, and their ancestors.
//!
//! Three facts make the result equal to Cedar's own:
//!
//! 1. A policy in a bucket that is not evaluated has `==` or `in` in its scope with an entity that the principal (or the resource) neither
//!    is nor is in, or another action. That part of the scope is false, and Cedar evaluates a policy as `scope && conditions` from left to
//!    right: the policy is not satisfied, and cannot even fail.
//! 2. A policy is in one bucket per action, and a bucket is evaluated once: no policy counts twice.
//! 3. A forbid anywhere wins, otherwise a permit anywhere; so results of parts can be combined. A part hides its satisfied permits only
//!    behind a forbid of its own, and then the whole does the same.
//!
//! A property test compares both ways.
//!
//! With a thousand policies that name an agent each, a first decision takes 11 µs instead of 1,398 (`cargo run --release -p rialto-policy
//! --example cost`).
//! `[calls] policy_index = false` turns it off ([`Policy::with_index`]); [`Policy::evaluations`] counts the policies that were evaluated,
//! so that a test can tell that it was used.
//!
//! [`Policy::with_index`]: crate::Policy::with_index
//! [`Policy::evaluations`]: crate::Policy::evaluations

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
};

use cedar_policy::{
    ActionConstraint, Authorizer, EntityUid, Policy, PolicySet, PrincipalConstraint, ResourceConstraint,
};

use crate::{entities::CedarRequest, request::Action};

/// Policies by the entity they name.
pub(crate) struct PolicyIndex {
    authorizer: Authorizer,
    /// Policies that name none have no entity.
    buckets: HashMap<(Action, Option<EntityUid>), PolicyBucket>,
    /// Policies evaluated so far.
    evaluations: AtomicU64,
}

/// Policies that are evaluated together.
#[derive(Default)]
struct PolicyBucket {
    policies: PolicySet,
    len: u64,
}

/// Satisfied and failed policies of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PolicyEvaluation {
    pub(crate) permits: Vec<String>,
    pub(crate) forbids: Vec<String>,
    pub(crate) errors: Vec<String>,
}

// === impl PolicyIndex ===

impl PolicyIndex {
    /// Sorts policies into buckets by the entity they name.
    pub(crate) fn new(set: &PolicySet) -> Self {
        Self::group_by(set, named_entity)
    }

    /// Puts all policies of an action into one bucket, so that each is evaluated.
    pub(crate) fn without_buckets(set: &PolicySet) -> Self {
        Self::group_by(set, |_| None)
    }

    fn group_by(set: &PolicySet, named_entity: impl Fn(&Policy) -> Option<EntityUid>) -> Self {
        let mut buckets: HashMap<_, PolicyBucket> = HashMap::new();
        for policy in set.policies() {
            for action in Action::ALL.into_iter().filter(|action| concerns(policy, *action)) {
                let bucket = buckets.entry((action, named_entity(policy))).or_default();
                // The ids of a set are unique, so those of a part are: this cannot fail.
                let _ = bucket.policies.add(policy.clone());
                bucket.len += 1;
            }
        }
        Self { authorizer: Authorizer::new(), buckets, evaluations: AtomicU64::new(0) }
    }

    /// Number of policies evaluated so far.
    pub(crate) fn evaluations(&self) -> u64 {
        self.evaluations.load(Ordering::Relaxed)
    }

    /// Evaluates all policies that can apply.
    pub(crate) fn evaluate(&self, action: Action, cedar: &CedarRequest) -> PolicyEvaluation {
        let mut about: Vec<Option<&EntityUid>> = vec![None];
        for uid in cedar.principal.iter().chain(&cedar.resource) {
            if !about.contains(&Some(uid)) {
                about.push(Some(uid));
            }
        }
        let mut evaluation = PolicyEvaluation::default();
        for uid in about {
            if let Some(bucket) = self.buckets.get(&(action, uid.cloned())) {
                self.evaluations.fetch_add(bucket.len, Ordering::Relaxed);
                evaluation.add(&self.authorizer, &bucket.policies, cedar);
            }
        }
        evaluation.sort();
        evaluation
    }
}

// === impl PolicyEvaluation ===

impl PolicyEvaluation {
    /// Evaluates one set of policies.
    pub(crate) fn evaluate(authorizer: &Authorizer, set: &PolicySet, cedar: &CedarRequest) -> Self {
        let mut evaluation = Self::default();
        evaluation.add(authorizer, set, cedar);
        evaluation.sort();
        evaluation
    }

    fn add(&mut self, authorizer: &Authorizer, set: &PolicySet, cedar: &CedarRequest) {
        let response = authorizer.is_authorized(&cedar.request, set, &cedar.entities);
        let reasons = response.diagnostics().reason().map(ToString::to_string);
        match response.decision() {
            cedar_policy::Decision::Allow => self.permits.extend(reasons),
            cedar_policy::Decision::Deny => self.forbids.extend(reasons),
        }
        self.errors.extend(response.diagnostics().errors().map(ToString::to_string));
    }

    /// Adds the results of another set of policies for one request.
    pub(crate) fn extend(&mut self, other: Self) {
        self.permits.extend(other.permits);
        self.forbids.extend(other.forbids);
        self.errors.extend(other.errors);
    }

    fn sort(&mut self) {
        self.permits.sort();
        self.forbids.sort();
        self.errors.sort();
    }

    /// Decision, with the policies that decided and the errors.
    pub(crate) fn decide(self) -> (bool, Vec<String>, Vec<String>) {
        if self.forbids.is_empty() {
            (!self.permits.is_empty(), self.permits, self.errors)
        } else {
            (false, self.forbids, self.errors)
        }
    }
}

/// True if a policy's scope matches an action.
pub(crate) fn concerns(policy: &Policy, action: Action) -> bool {
    let is_action = |uid: &EntityUid| uid.id().unescaped() == action.as_str();
    match policy.action_constraint() {
        ActionConstraint::Any => true,
        ActionConstraint::Eq(uid) => is_action(&uid),
        // Our schema has no groups of actions.
        ActionConstraint::In(uids) => uids.iter().any(is_action),
    }
}

/// Entity that a policy's scope names, if it does: the resource's side is the more selective.
fn named_entity(policy: &Policy) -> Option<EntityUid> {
    let resource = match policy.resource_constraint() {
        ResourceConstraint::Eq(uid) | ResourceConstraint::In(uid) | ResourceConstraint::IsIn(_, uid) => {
            Some(uid)
        }
        ResourceConstraint::Any | ResourceConstraint::Is(_) => None,
    };
    resource.or_else(|| match policy.principal_constraint() {
        PrincipalConstraint::Eq(uid) | PrincipalConstraint::In(uid) | PrincipalConstraint::IsIn(_, uid) => {
            Some(uid)
        }
        PrincipalConstraint::Any | PrincipalConstraint::Is(_) => None,
    })
}

#[cfg(test)]
mod tests;
