//! The check, and the permission it leaves behind.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    iter,
    sync::Arc,
};

use cedar_policy::{Effect, PolicyId, PolicySet, PrincipalConstraint, ResourceConstraint};
use rialto_model::{agent::Agent, ids::OrgId};

use crate::{
    denied::Denied,
    entities::{Names, View},
    explain::Finding,
    index::{Index, Verdict, concerns},
    memory::Memory,
    question::{Action, Bar, Deed, Question},
    rules::Rule,
    text::{Compiled, OWNER_ADMIN, PolicyError, Problem, STARTER, Source, compile},
};

/// Something that policy has allowed. Only [`Policy::check`] can make one.
#[derive(Clone, Debug)]
pub struct Permitted<T>(T, Arc<Decision>);

/// What policy says to a deed that may be done now, or once somebody has approved it.
#[derive(Clone, Debug)]
pub enum Leave<T> {
    /// It may be done.
    Now(Permitted<T>),
    /// It may be done once somebody has approved it; the decision says who and why. It goes on with
    /// [`Policy::check_approved`].
    OnceApproved(T, Arc<Decision>),
}

/// A set of policies, compiled. It never changes: new policies are a new `Policy`.
pub struct Policy {
    /// The policies that apply to all orgs.
    shared: PolicyGroup,
    /// Those of each org. They are asked about that org alone, so nothing that one says can match another.
    orgs: BTreeMap<OrgId, PolicyGroup>,
    names: Names,
    decided: Memory,
    mark: u64,
}

/// The policies of one owner.
struct PolicyGroup {
    compiled: Compiled,
    /// Actions that everybody may do to everything, with the permit that says so.
    open: Vec<(Action, Arc<Decision>)>,
    /// Actions that some policy may forbid.
    forbidden: Vec<Action>,
    index: Index,
}

/// An answer, and the policies that made it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether it may be done.
    pub allowed: bool,
    /// The permits, or the forbids, that decided. Empty when no permit matched.
    pub policies: Arc<[String]>,
    /// Policies that could not be evaluated; they do not count.
    pub errors: Vec<String>,
    /// Who would have to approve, when every forbid that matched asks only for that.
    pub approvers: Vec<String>,
    /// Why no policy was even asked.
    pub bar: Option<Bar>,
}

// === impl Permitted ===

impl<T> Permitted<T> {
    /// What was permitted.
    pub const fn get(&self) -> &T {
        &self.0
    }

    /// The policies that permit it.
    pub fn by(&self) -> &Arc<[String]> {
        &self.1.policies
    }

    /// What was permitted, to keep.
    pub fn into_inner(self) -> T {
        self.0
    }
}

// === impl Leave ===

impl<T> Leave<T> {
    /// What may be done.
    pub const fn get(&self) -> &T {
        match self {
            Self::Now(permitted) => permitted.get(),
            Self::OnceApproved(deed, _) => deed,
        }
    }

    /// The policies that decided: permits, or those that ask for approval.
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
        let names = Names::parse()
            .map_err(|message| PolicyError(vec![Problem { place: "schema".into(), message, help: None }]))?;
        let shared = PolicyGroup::new(owners.remove(&None).unwrap_or_default());
        let orgs = owners.into_iter().filter_map(|(org, compiled)| Some((org?, PolicyGroup::new(compiled))));
        Ok(Self { shared, orgs: orgs.collect(), names, decided: Memory::new(), mark: mark(sources) })
    }

    /// A number that policies of the same texts have in common, as long as the process lives.
    pub const fn mark(&self) -> u64 {
        self.mark
    }

    /// The policy of a fresh install.
    pub fn starter() -> Result<Self, PolicyError> {
        let texts = [("starter.cedar", STARTER), ("owner.cedar", OWNER_ADMIN)];
        Self::parse(&texts.map(|(name, text)| Source { name: name.into(), text: text.into(), org: None }))
    }

    /// Lets a deed through, or says why not. An agent's deed goes through [`Policy::check_as`].
    pub fn check<T: Deed>(&self, deed: T) -> Result<Permitted<T>, Denied> {
        self.check_as(deed, None)
    }

    /// Lets a deed through, or says why not. `caller_agent` is the caller's own row, when it is an agent.
    pub fn check_as<T: Deed>(&self, deed: T, caller_agent: Option<&Agent>) -> Result<Permitted<T>, Denied> {
        let question = deed.question().by(caller_agent);
        let decision = self.decide(&question);
        if decision.allowed { Ok(Permitted(deed, decision)) } else { Err(Denied::new(&question, decision)) }
    }

    /// The same for a deed that may be held until somebody has approved it.
    pub fn check_or_hold<T: Deed>(&self, deed: T, caller_agent: Option<&Agent>) -> Result<Leave<T>, Denied> {
        let question = deed.question().by(caller_agent);
        let decision = self.decide(&question);
        if decision.allowed {
            return Ok(Leave::Now(Permitted(deed, decision)));
        }
        // What no approval would allow is refused at once.
        if !decision.approvers.is_empty() && self.decide(&question.once_approved()).allowed {
            return Ok(Leave::OnceApproved(deed, decision));
        }
        Err(Denied::new(&question, decision))
    }

    /// Lets a deed through that somebody has approved, if it still may be done then.
    pub fn check_approved<T: Deed>(
        &self,
        deed: T,
        caller_agent: Option<&Agent>,
    ) -> Result<Permitted<T>, Denied> {
        let question = deed.question().by(caller_agent).once_approved();
        let decision = self.decide(&question);
        if decision.allowed { Ok(Permitted(deed, decision)) } else { Err(Denied::new(&question, decision)) }
    }

    /// Whether something may be done that needs no [`Permitted`], like administration.
    pub fn allow(&self, question: &Question<'_>) -> Result<(), Denied> {
        let decision = self.decide(question);
        if decision.allowed { Ok(()) } else { Err(Denied::new(question, decision)) }
    }

    /// Answers a question, from memory when it was asked before.
    pub fn decide(&self, question: &Question<'_>) -> Arc<Decision> {
        if let Some(bar) = question.bar() {
            return Arc::new(Decision { bar: Some(bar), ..Decision::default() });
        }
        match self.open(question) {
            Some(decision) => Arc::clone(decision),
            None => self.decided.recall(question, || self.evaluate(question)),
        }
    }

    /// The names of all policies, in order.
    pub fn ids(&self) -> Vec<String> {
        let groups = [&self.shared].into_iter().chain(self.orgs.values());
        let ids = groups.flat_map(|group| group.compiled.origins.iter().map(|(id, _)| id.to_string()));
        let mut ids: Vec<String> = ids.collect();
        ids.sort();
        ids
    }

    /// All policies, in the order they are written in; those for all orgs first.
    pub fn rules(&self) -> Vec<Rule> {
        let shared = self.shared.policies().map(|(policy, file)| Rule::of(policy, file, None));
        let owned = self.orgs.iter().flat_map(|(org, group)| {
            group.policies().map(move |(policy, file)| Rule::of(policy, file, Some(org)))
        });
        shared.chain(owned).collect()
    }

    /// What each policy that applies to the caller's org says to a question: why it decides, or why not.
    pub fn explain(&self, question: &Question<'_>) -> Vec<Finding> {
        let decision = self.decide(question);
        if decision.bar.is_some() {
            return Vec::new();
        }
        let mut findings = Vec::new();
        for (group, org, view) in self.groups(question) {
            let Ok(asked) = self.names.ask(question, view) else { continue };
            let found = group.policies().map(|(policy, file)| {
                Finding::of(Rule::of(policy, file, org), policy, question.action, &asked)
            });
            findings.extend(found.map(|finding| finding.weighed(&decision)));
        }
        findings
    }

    /// The groups that have a say in the caller's org: those for all orgs, and its own.
    fn groups<'a>(
        &'a self,
        question: &Question<'a>,
    ) -> impl Iterator<Item = (&'a PolicyGroup, Option<&'a OrgId>, View)> + use<'a> {
        let org = &question.caller.scope.org;
        let own = self.orgs.get(org).map(|group| (group, Some(org), View::Org));
        [(&self.shared, None, View::AllOrgs)].into_iter().chain(own)
    }

    /// The decision about an action that everybody may do to everything in the caller's org.
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
                group.index = Index::unsorted(&group.compiled.set);
            }
        }
        self
    }

    /// Number of policies that were evaluated for the requests so far. Remembered decisions evaluate none.
    pub fn evaluations(&self) -> u64 {
        iter::once(&self.shared).chain(self.orgs.values()).map(|group| group.index.evaluations()).sum()
    }

    fn evaluate(&self, question: &Question<'_>) -> Decision {
        let mut verdict = Verdict::default();
        // Who must approve, as long as every forbid says who.
        let mut approvers = Some(Vec::new());
        for (group, _, view) in self.groups(question) {
            let asked = match self.names.ask(question, view) {
                Ok(asked) => asked,
                // A row that Cedar cannot take in is not allowed anything.
                Err(error) => return Decision { errors: vec![error], ..Decision::default() },
            };
            let found = group.index.ask(question.action, &asked);
            approvers =
                approvers.zip(group.approvers(&found.forbids)).map(|(all, more)| [all, more].concat());
            verdict.extend(found);
        }
        let (allowed, policies, errors) = verdict.decide();
        let mut approvers = approvers.filter(|_| !allowed).unwrap_or_default();
        approvers.sort();
        approvers.dedup();
        Decision { allowed, policies: policies.into(), errors, approvers, bar: None }
    }
}

// === impl PolicyGroup ===

impl PolicyGroup {
    fn new(compiled: Compiled) -> Self {
        let open = |action| Some((action, Arc::new(Decision::permit(open_to_all(&compiled.set, action)?))));
        let open = Action::ALL.into_iter().filter_map(open).collect();
        let forbids = |action: &Action| {
            let mut forbids = compiled.set.policies().filter(|policy| policy.effect() == Effect::Forbid);
            forbids.any(|policy| concerns(policy, *action))
        };
        let forbidden = Action::ALL.into_iter().filter(forbids).collect();
        Self { index: Index::of(&compiled.set), compiled, open, forbidden }
    }

    fn open(&self, action: Action) -> Option<&Arc<Decision>> {
        self.open.iter().find(|(open, _)| *open == action).map(|(_, decision)| decision)
    }

    /// Each policy, with its file.
    fn policies(&self) -> impl Iterator<Item = (&cedar_policy::Policy, &str)> {
        let origins = self.compiled.origins.iter();
        origins.filter_map(|(id, file)| Some((self.compiled.set.policy(id)?, file.as_str())))
    }

    /// Who would have to approve, when each of these forbids says who (`@approval("…")`).
    fn approvers(&self, forbids: &[String]) -> Option<Vec<String>> {
        let approver = |id: &String| {
            self.compiled.set.policy(&PolicyId::new(id))?.annotation("approval").map(str::to_owned)
        };
        forbids.iter().map(approver).collect()
    }
}

/// The permit that lets everybody do `action` to everything, when there is one and no forbid could speak against it.
///
/// A list of a hundred thousand skills asks about each of them; a policy that says yes to all need not be evaluated.
fn open_to_all(set: &PolicySet, action: Action) -> Option<String> {
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

fn mark(sources: &[Source]) -> u64 {
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
