//! Authorization, and the permission it returns.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    iter,
    sync::Arc,
};

use cedar_policy::{Effect, PolicyId, PolicySet, PrincipalConstraint, ResourceConstraint};
use rialto_model::{agent::Agent, ids::OrgId};

use crate::{
    decision_cache::DecisionCache,
    denial::Denied,
    entities::{CallerNaming, CedarNames},
    explain::PolicyExplanation,
    index::{PolicyEvaluation, PolicyIndex, concerns},
    policy_rule::PolicySummary,
    request::{Action, Authorizable, AuthorizationRequest, HardDenial},
    source::{
        OWNER_ADMIN, PolicyError, PolicySource, PolicySourceError, STARTER, ValidatedPolicies, compile,
    },
};

/// Value that policy has permitted. Only [`Policy::authorize`] can make one.
#[derive(Clone, Debug)]
pub struct Permitted<T>(T, Arc<PolicyDecision>);

/// Authorization of a value: permitted now, or once it is approved.
#[derive(Clone, Debug)]
pub enum Authorization<T> {
    /// Permitted.
    Allow(Permitted<T>),
    /// Permitted once it is approved; the decision says by whom and why. [`Policy::authorize_approved`] resumes it.
    NeedsApproval(T, Arc<PolicyDecision>),
}

/// Compiled policies. They never change: new policies are a new `Policy`.
pub struct Policy {
    /// Policies that apply to all orgs.
    shared: PolicyGroup,
    /// Policies of each org. They are evaluated for that org alone, so none can match another org.
    orgs: BTreeMap<OrgId, PolicyGroup>,
    names: CedarNames,
    cache: DecisionCache,
    fingerprint: u64,
}

/// Policies of one owner.
struct PolicyGroup {
    compiled: ValidatedPolicies,
    /// Actions that every caller may do to everything, with the decision.
    unconditional: Vec<(Action, Arc<PolicyDecision>)>,
    /// Actions that some policy may forbid.
    forbidden: Vec<Action>,
    index: PolicyIndex,
}

/// Decision, and the policies that made it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyDecision {
    /// True if it is allowed.
    pub allowed: bool,
    /// Permits, or forbids, that decided. Empty when no permit matched.
    pub policies: Arc<[String]>,
    /// Policies that could not be evaluated; they do not count.
    pub errors: Vec<String>,
    /// Approvers, when every forbid that matched only requires approval.
    pub approvers: Vec<String>,
    /// Reason why no policy was evaluated.
    pub hard_denial: Option<HardDenial>,
}

// === impl Permitted ===

impl<T> Permitted<T> {
    /// Permitted value.
    pub const fn get(&self) -> &T {
        &self.0
    }

    /// Policies that permit it.
    pub fn by(&self) -> &Arc<[String]> {
        &self.1.policies
    }

    /// Permitted value, owned.
    pub fn into_inner(self) -> T {
        self.0
    }
}

// === impl Authorization ===

impl<T> Authorization<T> {
    /// Value.
    pub const fn get(&self) -> &T {
        match self {
            Self::Allow(permitted) => permitted.get(),
            Self::NeedsApproval(value, _) => value,
        }
    }

    /// Policies that decided: permits, or those that require approval.
    pub fn by(&self) -> &Arc<[String]> {
        match self {
            Self::Allow(permitted) => permitted.by(),
            Self::NeedsApproval(_, decision) => &decision.policies,
        }
    }
}

// === impl Policy ===

impl Policy {
    /// Compiles policies; all problems are reported at once.
    pub fn parse(sources: &[PolicySource]) -> Result<Self, PolicyError> {
        let mut owners = compile(sources)?;
        let names = CedarNames::parse().map_err(|message| {
            PolicyError(vec![PolicySourceError { place: "schema".into(), message, help: None }])
        })?;
        let shared = PolicyGroup::new(owners.remove(&None).unwrap_or_default());
        let orgs = owners.into_iter().filter_map(|(org, compiled)| Some((org?, PolicyGroup::new(compiled))));
        Ok(Self {
            shared,
            orgs: orgs.collect(),
            names,
            cache: DecisionCache::new(),
            fingerprint: fingerprint(sources),
        })
    }

    /// Fingerprint of the policy texts, stable while the process runs.
    pub const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Policies of a fresh install.
    pub fn starter() -> Result<Self, PolicyError> {
        let texts = [("starter.cedar", STARTER), ("owner.cedar", OWNER_ADMIN)];
        Self::parse(&texts.map(|(name, text)| PolicySource {
            name: name.into(),
            text: text.into(),
            org: None,
        }))
    }

    /// Authorizes a value. The value of an agent needs [`Policy::authorize_as`].
    pub fn authorize<T: Authorizable>(&self, value: T) -> Result<Permitted<T>, Denied> {
        self.authorize_as(value, None)
    }

    /// Authorizes a value. `caller_agent` is the caller's own row, when it is an agent.
    pub fn authorize_as<T: Authorizable>(
        &self,
        value: T,
        caller_agent: Option<&Agent>,
    ) -> Result<Permitted<T>, Denied> {
        let request = value.policy_request().with_caller_agent(caller_agent);
        let decision = self.decide(&request);
        if decision.allowed { Ok(Permitted(value, decision)) } else { Err(Denied::new(&request, decision)) }
    }

    /// Authorizes a value that may be held until it is approved.
    pub fn authorize_or_hold<T: Authorizable>(
        &self,
        value: T,
        caller_agent: Option<&Agent>,
    ) -> Result<Authorization<T>, Denied> {
        let request = value.policy_request().with_caller_agent(caller_agent);
        let decision = self.decide(&request);
        if decision.allowed {
            return Ok(Authorization::Allow(Permitted(value, decision)));
        }
        // A request that no approval would allow is denied at once.
        if !decision.approvers.is_empty() && self.decide(&request.as_approved()).allowed {
            return Ok(Authorization::NeedsApproval(value, decision));
        }
        Err(Denied::new(&request, decision))
    }

    /// Authorizes an approved value, if it is still permitted then.
    pub fn authorize_approved<T: Authorizable>(
        &self,
        value: T,
        caller_agent: Option<&Agent>,
    ) -> Result<Permitted<T>, Denied> {
        let request = value.policy_request().with_caller_agent(caller_agent).as_approved();
        let decision = self.decide(&request);
        if decision.allowed { Ok(Permitted(value, decision)) } else { Err(Denied::new(&request, decision)) }
    }

    /// Authorizes a request without a value, such as administration.
    pub fn require(&self, request: &AuthorizationRequest<'_>) -> Result<(), Denied> {
        let decision = self.decide(request);
        if decision.allowed { Ok(()) } else { Err(Denied::new(request, decision)) }
    }

    /// Decides a request, from the cache if possible.
    pub fn decide(&self, request: &AuthorizationRequest<'_>) -> Arc<PolicyDecision> {
        if let Some(hard_denial) = request.hard_denial() {
            return Arc::new(PolicyDecision { hard_denial: Some(hard_denial), ..PolicyDecision::default() });
        }
        match self.unconditional_decision(request) {
            Some(decision) => Arc::clone(decision),
            None => self.cache.get_or_decide(request, || self.evaluate(request)),
        }
    }

    /// Names of all policies, in order.
    pub fn ids(&self) -> Vec<String> {
        let groups = [&self.shared].into_iter().chain(self.orgs.values());
        let ids = groups.flat_map(|group| group.compiled.origins.iter().map(|(id, _)| id.to_string()));
        let mut ids: Vec<String> = ids.collect();
        ids.sort();
        ids
    }

    /// All policies, in the order of their files; those for all orgs first.
    pub fn rules(&self) -> Vec<PolicySummary> {
        let shared =
            self.shared.policies().map(|(policy, file)| PolicySummary::from_cedar(policy, file, None));
        let owned = self.orgs.iter().flat_map(|(org, group)| {
            group.policies().map(move |(policy, file)| PolicySummary::from_cedar(policy, file, Some(org)))
        });
        shared.chain(owned).collect()
    }

    /// Result of each policy that applies to the caller's org.
    pub fn explain(&self, request: &AuthorizationRequest<'_>) -> Vec<PolicyExplanation> {
        let decision = self.decide(request);
        if decision.hard_denial.is_some() {
            return Vec::new();
        }
        let mut findings = Vec::new();
        for (group, org, view) in self.groups(request) {
            let Ok(cedar) = self.names.cedar_request(request, view) else { continue };
            let found = group.policies().map(|(policy, file)| {
                PolicyExplanation::new(
                    PolicySummary::from_cedar(policy, file, org),
                    policy,
                    request.action,
                    &cedar,
                )
            });
            findings.extend(found.map(|finding| finding.after_decision(&decision)));
        }
        findings
    }

    /// Groups of policies that apply to the caller's org: those for all orgs, and its own.
    fn groups<'a>(
        &'a self,
        request: &AuthorizationRequest<'a>,
    ) -> impl Iterator<Item = (&'a PolicyGroup, Option<&'a OrgId>, CallerNaming)> + use<'a> {
        let org = &request.caller.scope.org;
        let own = self.orgs.get(org).map(|group| (group, Some(org), CallerNaming::Org));
        [(&self.shared, None, CallerNaming::AllOrgs)].into_iter().chain(own)
    }

    /// Decision about an action that every caller of the org may do to everything.
    fn unconditional_decision(&self, request: &AuthorizationRequest<'_>) -> Option<&Arc<PolicyDecision>> {
        let action = request.action;
        match self.orgs.get(&request.caller.scope.org) {
            None => self.shared.unconditional_decision(action),
            Some(own) if own.forbidden.contains(&action) || self.shared.forbidden.contains(&action) => None,
            Some(own) => {
                self.shared.unconditional_decision(action).or_else(|| own.unconditional_decision(action))
            }
        }
    }

    /// Turns the policy index off, or leaves it on. Without it, all policies of an action are evaluated for each request; decisions are
    /// the same.
    #[must_use]
    pub fn with_index(mut self, is_indexed: bool) -> Self {
        if !is_indexed {
            for group in iter::once(&mut self.shared).chain(self.orgs.values_mut()) {
                group.index = PolicyIndex::without_buckets(&group.compiled.set);
            }
        }
        self
    }

    /// Number of policies that were evaluated for the requests so far. Remembered decisions evaluate none.
    pub fn evaluations(&self) -> u64 {
        iter::once(&self.shared).chain(self.orgs.values()).map(|group| group.index.evaluations()).sum()
    }

    fn evaluate(&self, request: &AuthorizationRequest<'_>) -> PolicyDecision {
        let mut evaluation = PolicyEvaluation::default();
        // Approvers, as long as every forbid names one.
        let mut approvers = Some(Vec::new());
        for (group, _, view) in self.groups(request) {
            let cedar = match self.names.cedar_request(request, view) {
                Ok(cedar) => cedar,
                // A row that Cedar rejects is not allowed anything.
                Err(error) => return PolicyDecision { errors: vec![error], ..PolicyDecision::default() },
            };
            let found = group.index.evaluate(request.action, &cedar);
            approvers =
                approvers.zip(group.approvers(&found.forbids)).map(|(all, more)| [all, more].concat());
            evaluation.extend(found);
        }
        let (allowed, policies, errors) = evaluation.decide();
        let mut approvers = approvers.filter(|_| !allowed).unwrap_or_default();
        approvers.sort();
        approvers.dedup();
        PolicyDecision { allowed, policies: policies.into(), errors, approvers, hard_denial: None }
    }
}

// === impl PolicyGroup ===

impl PolicyGroup {
    fn new(compiled: ValidatedPolicies) -> Self {
        let open = |action| {
            Some((action, Arc::new(PolicyDecision::permit(unconditional_permit(&compiled.set, action)?))))
        };
        let unconditional = Action::ALL.into_iter().filter_map(open).collect();
        let forbids = |action: &Action| {
            let mut forbids = compiled.set.policies().filter(|policy| policy.effect() == Effect::Forbid);
            forbids.any(|policy| concerns(policy, *action))
        };
        let forbidden = Action::ALL.into_iter().filter(forbids).collect();
        Self { index: PolicyIndex::new(&compiled.set), compiled, unconditional, forbidden }
    }

    fn unconditional_decision(&self, action: Action) -> Option<&Arc<PolicyDecision>> {
        self.unconditional.iter().find(|(open, _)| *open == action).map(|(_, decision)| decision)
    }

    /// Each policy, with its file.
    fn policies(&self) -> impl Iterator<Item = (&cedar_policy::Policy, &str)> {
        let origins = self.compiled.origins.iter();
        origins.filter_map(|(id, file)| Some((self.compiled.set.policy(id)?, file.as_str())))
    }

    /// Approvers, when each of these forbids names one (`@approval("…")`).
    fn approvers(&self, forbids: &[String]) -> Option<Vec<String>> {
        let approver = |id: &String| {
            self.compiled.set.policy(&PolicyId::new(id))?.annotation("approval").map(str::to_owned)
        };
        forbids.iter().map(approver).collect()
    }
}

/// Permit that lets every caller do `action` to everything, if there is one and no forbid applies to the action.
///
/// A list of a hundred thousand skills authorizes each of them; a policy that permits all need not be evaluated.
fn unconditional_permit(set: &PolicySet, action: Action) -> Option<String> {
    let mut permit = None;
    for policy in set.policies().filter(|policy| concerns(policy, action)) {
        if policy.effect() == Effect::Forbid {
            return None;
        }
        let is_plain = !policy.has_non_scope_constraint()
            && policy.principal_constraint() == PrincipalConstraint::Any
            && policy.resource_constraint() == ResourceConstraint::Any;
        if is_plain {
            permit = permit.or_else(|| Some(policy.id().to_string()));
        }
    }
    permit
}

impl std::fmt::Debug for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Policy").field("policies", &self.ids()).finish_non_exhaustive()
    }
}

// === impl PolicyDecision ===

impl PolicyDecision {
    fn permit(policy: String) -> Self {
        Self { allowed: true, policies: [policy].into(), ..Self::default() }
    }
}

fn fingerprint(sources: &[PolicySource]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for source in sources {
        (&source.name, &source.text, &source.org).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod matrix;
#[cfg(test)]
mod tests;
