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
    explain::Finding,
    index::{PolicyEvaluation, PolicyIndex, concerns},
    policy_rule::Rule,
    request::{Action, Bar, Deed, Question},
    source::{OWNER_ADMIN, PolicyError, Problem, STARTER, Source, ValidatedPolicies, compile},
};

/// Value that policy has permitted. Only [`Policy::check`] can make one.
#[derive(Clone, Debug)]
pub struct Permitted<T>(T, Arc<Decision>);

/// Authorization of a value: permitted now, or once it is approved.
#[derive(Clone, Debug)]
pub enum Leave<T> {
    /// Permitted.
    Now(Permitted<T>),
    /// Permitted once it is approved; the decision says by whom and why. [`Policy::check_approved`] resumes it.
    OnceApproved(T, Arc<Decision>),
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
    open: Vec<(Action, Arc<Decision>)>,
    /// Actions that some policy may forbid.
    forbidden: Vec<Action>,
    index: PolicyIndex,
}

/// Decision, and the policies that made it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// True if it is allowed.
    pub allowed: bool,
    /// Permits, or forbids, that decided. Empty when no permit matched.
    pub policies: Arc<[String]>,
    /// Policies that could not be evaluated; they do not count.
    pub errors: Vec<String>,
    /// Approvers, when every forbid that matched only requires approval.
    pub approvers: Vec<String>,
    /// Reason why no policy was evaluated.
    pub bar: Option<Bar>,
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

// === impl Leave ===

impl<T> Leave<T> {
    /// Value.
    pub const fn get(&self) -> &T {
        match self {
            Self::Now(permitted) => permitted.get(),
            Self::OnceApproved(deed, _) => deed,
        }
    }

    /// Policies that decided: permits, or those that require approval.
    pub fn by(&self) -> &Arc<[String]> {
        match self {
            Self::Now(permitted) => permitted.by(),
            Self::OnceApproved(_, decision) => &decision.policies,
        }
    }
}

// === impl Policy ===

impl Policy {
    /// Compiles policies; all problems are reported at once.
    pub fn parse(sources: &[Source]) -> Result<Self, PolicyError> {
        let mut owners = compile(sources)?;
        let names = CedarNames::parse()
            .map_err(|message| PolicyError(vec![Problem { place: "schema".into(), message, help: None }]))?;
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
        Self::parse(&texts.map(|(name, text)| Source { name: name.into(), text: text.into(), org: None }))
    }

    /// Authorizes a value. The value of an agent needs [`Policy::check_as`].
    pub fn check<T: Deed>(&self, deed: T) -> Result<Permitted<T>, Denied> {
        self.check_as(deed, None)
    }

    /// Authorizes a value. `caller_agent` is the caller's own row, when it is an agent.
    pub fn check_as<T: Deed>(&self, deed: T, caller_agent: Option<&Agent>) -> Result<Permitted<T>, Denied> {
        let question = deed.question().by(caller_agent);
        let decision = self.decide(&question);
        if decision.allowed { Ok(Permitted(deed, decision)) } else { Err(Denied::new(&question, decision)) }
    }

    /// Authorizes a value that may be held until it is approved.
    pub fn check_or_hold<T: Deed>(&self, deed: T, caller_agent: Option<&Agent>) -> Result<Leave<T>, Denied> {
        let question = deed.question().by(caller_agent);
        let decision = self.decide(&question);
        if decision.allowed {
            return Ok(Leave::Now(Permitted(deed, decision)));
        }
        // A request that no approval would allow is denied at once.
        if !decision.approvers.is_empty() && self.decide(&question.once_approved()).allowed {
            return Ok(Leave::OnceApproved(deed, decision));
        }
        Err(Denied::new(&question, decision))
    }

    /// Authorizes an approved value, if it is still permitted then.
    pub fn check_approved<T: Deed>(
        &self,
        deed: T,
        caller_agent: Option<&Agent>,
    ) -> Result<Permitted<T>, Denied> {
        let question = deed.question().by(caller_agent).once_approved();
        let decision = self.decide(&question);
        if decision.allowed { Ok(Permitted(deed, decision)) } else { Err(Denied::new(&question, decision)) }
    }

    /// Authorizes a request without a value, such as administration.
    pub fn allow(&self, question: &Question<'_>) -> Result<(), Denied> {
        let decision = self.decide(question);
        if decision.allowed { Ok(()) } else { Err(Denied::new(question, decision)) }
    }

    /// Decides a request, from the cache if possible.
    pub fn decide(&self, question: &Question<'_>) -> Arc<Decision> {
        if let Some(bar) = question.bar() {
            return Arc::new(Decision { bar: Some(bar), ..Decision::default() });
        }
        match self.open(question) {
            Some(decision) => Arc::clone(decision),
            None => self.cache.get_or_decide(question, || self.evaluate(question)),
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
    pub fn rules(&self) -> Vec<Rule> {
        let shared = self.shared.policies().map(|(policy, file)| Rule::from_cedar(policy, file, None));
        let owned = self.orgs.iter().flat_map(|(org, group)| {
            group.policies().map(move |(policy, file)| Rule::from_cedar(policy, file, Some(org)))
        });
        shared.chain(owned).collect()
    }

    /// Result of each policy that applies to the caller's org.
    pub fn explain(&self, question: &Question<'_>) -> Vec<Finding> {
        let decision = self.decide(question);
        if decision.bar.is_some() {
            return Vec::new();
        }
        let mut findings = Vec::new();
        for (group, org, view) in self.groups(question) {
            let Ok(cedar) = self.names.cedar_request(question, view) else { continue };
            let found = group.policies().map(|(policy, file)| {
                Finding::new(Rule::from_cedar(policy, file, org), policy, question.action, &cedar)
            });
            findings.extend(found.map(|finding| finding.after_decision(&decision)));
        }
        findings
    }

    /// Groups of policies that apply to the caller's org: those for all orgs, and its own.
    fn groups<'a>(
        &'a self,
        question: &Question<'a>,
    ) -> impl Iterator<Item = (&'a PolicyGroup, Option<&'a OrgId>, CallerNaming)> + use<'a> {
        let org = &question.caller.scope.org;
        let own = self.orgs.get(org).map(|group| (group, Some(org), CallerNaming::Org));
        [(&self.shared, None, CallerNaming::AllOrgs)].into_iter().chain(own)
    }

    /// Decision about an action that every caller of the org may do to everything.
    fn open(&self, question: &Question<'_>) -> Option<&Arc<Decision>> {
        let action = question.action;
        match self.orgs.get(&question.caller.scope.org) {
            None => self.shared.open(action),
            Some(own) if own.forbidden.contains(&action) || self.shared.forbidden.contains(&action) => None,
            Some(own) => self.shared.open(action).or_else(|| own.open(action)),
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

    fn evaluate(&self, question: &Question<'_>) -> Decision {
        let mut evaluation = PolicyEvaluation::default();
        // Approvers, as long as every forbid names one.
        let mut approvers = Some(Vec::new());
        for (group, _, view) in self.groups(question) {
            let cedar = match self.names.cedar_request(question, view) {
                Ok(cedar) => cedar,
                // A row that Cedar rejects is not allowed anything.
                Err(error) => return Decision { errors: vec![error], ..Decision::default() },
            };
            let found = group.index.evaluate(question.action, &cedar);
            approvers =
                approvers.zip(group.approvers(&found.forbids)).map(|(all, more)| [all, more].concat());
            evaluation.extend(found);
        }
        let (allowed, policies, errors) = evaluation.decide();
        let mut approvers = approvers.filter(|_| !allowed).unwrap_or_default();
        approvers.sort();
        approvers.dedup();
        Decision { allowed, policies: policies.into(), errors, approvers, bar: None }
    }
}

// === impl PolicyGroup ===

impl PolicyGroup {
    fn new(compiled: ValidatedPolicies) -> Self {
        let open =
            |action| Some((action, Arc::new(Decision::permit(unconditional_permit(&compiled.set, action)?))));
        let open = Action::ALL.into_iter().filter_map(open).collect();
        let forbids = |action: &Action| {
            let mut forbids = compiled.set.policies().filter(|policy| policy.effect() == Effect::Forbid);
            forbids.any(|policy| concerns(policy, *action))
        };
        let forbidden = Action::ALL.into_iter().filter(forbids).collect();
        Self { index: PolicyIndex::new(&compiled.set), compiled, open, forbidden }
    }

    fn open(&self, action: Action) -> Option<&Arc<Decision>> {
        self.open.iter().find(|(open, _)| *open == action).map(|(_, decision)| decision)
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

// === impl Decision ===

impl Decision {
    fn permit(policy: String) -> Self {
        Self { allowed: true, policies: [policy].into(), ..Self::default() }
    }
}

fn fingerprint(sources: &[Source]) -> u64 {
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
