//! Finds the few policies that can say anything about a question.
//!
//! Most policies name whom they are about: `resource in A2AAgent::"agt_1"`, `principal == User::"ann"`. Such a policy
//! lies in the bucket of that entity, every other one in the bucket of its action that is always opened. A question
//! opens the buckets of its principal, its resource, and all that these are in.
//!
//! That the answer is Cedar's own follows from three things:
//!
//! 1. A policy in a bucket that stays closed has `==` or `in` in its scope with an entity that the principal
//!    (or the resource) neither is nor is in, or another action. That part of the scope is false, and Cedar evaluates
//!    a policy as `scope && conditions` from left to right: the policy is not satisfied, and cannot even fail.
//! 2. A policy lies in one bucket per action, and a bucket is opened once: no policy counts twice.
//! 3. A forbid anywhere wins, otherwise a permit anywhere; so answers of parts can be put together. A part hides its
//!    satisfied permits only behind a forbid of its own, and then the whole does the same.
//!
//! A property test compares both ways.
//!
//! What it saves, with a thousand policies that name an agent each: NUMBERS (`cargo run --release -p rialto-policy --example cost`).
//! `[calls] policy_index = false` turns it off ([`Policy::with_index`]); [`Policy::evaluations`] counts the policies that were evaluated, so a
//! test can tell that it was used.
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

use crate::{entities::Asked, question::Action};

/// Policies by whom they are about.
pub(crate) struct Index {
    authorizer: Authorizer,
    /// Those that name nobody have no entity.
    buckets: HashMap<(Action, Option<EntityUid>), Bucket>,
    /// Policies evaluated so far.
    evaluations: AtomicU64,
}

/// Policies that are evaluated together.
#[derive(Default)]
struct Bucket {
    policies: PolicySet,
    len: u64,
}

/// What the policies say to a question.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) permits: Vec<String>,
    pub(crate) forbids: Vec<String>,
    pub(crate) errors: Vec<String>,
}

// === impl Index ===

impl Index {
    /// Sorts policies into buckets by the entity they name.
    pub(crate) fn of(set: &PolicySet) -> Self {
        Self::sorted(set, anchor)
    }

    /// Puts all policies of an action into one bucket, so that each is evaluated.
    pub(crate) fn unsorted(set: &PolicySet) -> Self {
        Self::sorted(set, |_| None)
    }

    fn sorted(set: &PolicySet, anchor: impl Fn(&Policy) -> Option<EntityUid>) -> Self {
        let mut buckets: HashMap<_, Bucket> = HashMap::new();
        for policy in set.policies() {
            for action in Action::ALL.into_iter().filter(|action| concerns(policy, *action)) {
                let bucket = buckets.entry((action, anchor(policy))).or_default();
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

    /// Asks all policies that can have a say.
    pub(crate) fn ask(&self, action: Action, asked: &Asked) -> Verdict {
        let mut about: Vec<Option<&EntityUid>> = vec![None];
        for uid in asked.principal.iter().chain(&asked.resource) {
            if !about.contains(&Some(uid)) {
                about.push(Some(uid));
            }
        }
        let mut verdict = Verdict::default();
        for uid in about {
            if let Some(bucket) = self.buckets.get(&(action, uid.cloned())) {
                self.evaluations.fetch_add(bucket.len, Ordering::Relaxed);
                verdict.take(&self.authorizer, &bucket.policies, asked);
            }
        }
        verdict.sort();
        verdict
    }
}

// === impl Verdict ===

impl Verdict {
    /// What one set of policies says.
    pub(crate) fn of(authorizer: &Authorizer, set: &PolicySet, asked: &Asked) -> Self {
        let mut verdict = Self::default();
        verdict.take(authorizer, set, asked);
        verdict.sort();
        verdict
    }

    fn take(&mut self, authorizer: &Authorizer, set: &PolicySet, asked: &Asked) {
        let response = authorizer.is_authorized(&asked.request, set, &asked.entities);
        let reasons = response.diagnostics().reason().map(ToString::to_string);
        match response.decision() {
            cedar_policy::Decision::Allow => self.permits.extend(reasons),
            cedar_policy::Decision::Deny => self.forbids.extend(reasons),
        }
        self.errors.extend(response.diagnostics().errors().map(ToString::to_string));
    }

    /// Adds what another set of policies says to the same question.
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

    /// Whether it may be done, and by which policies that is decided.
    pub(crate) fn decide(self) -> (bool, Vec<String>, Vec<String>) {
        if self.forbids.is_empty() {
            (!self.permits.is_empty(), self.permits, self.errors)
        } else {
            (false, self.forbids, self.errors)
        }
    }
}

/// Whether a policy's scope has room for an action.
pub(crate) fn concerns(policy: &Policy, action: Action) -> bool {
    let is_meant = |uid: &EntityUid| uid.id().unescaped() == action.as_str();
    match policy.action_constraint() {
        ActionConstraint::Any => true,
        ActionConstraint::Eq(uid) => is_meant(&uid),
        // Our schema has no groups of actions.
        ActionConstraint::In(uids) => uids.iter().any(is_meant),
    }
}

/// The one entity a policy's scope names, if it does: the resource's side is the more selective.
fn anchor(policy: &Policy) -> Option<EntityUid> {
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
