//! The check, and the permission it leaves behind.

use cedar_policy::{
    ActionConstraint, Authorizer, Context, Effect, Entities, PolicySet, PrincipalConstraint, Request,
    ResourceConstraint,
};
use moka::sync::Cache;
use rialto_model::{
    call::{CallerId, CallerKind},
    ids::{AgentId, OrgId, SkillId},
};

use crate::{
    entities::{Action, Deed, Names, Question},
    text::{PolicyError, Problem, STARTER, Source, compile},
};

/// Decisions kept in memory. Each is a few dozen bytes, and a registry of any size has a working set.
const REMEMBERED: u64 = 50_000;

/// Something that policy has allowed. Only [`Policy::check`] can make one.
#[derive(Clone, Debug)]
pub struct Permitted<T>(T);

/// A set of policies, compiled. It never changes: new policies are a new `Policy`.
pub struct Policy {
    set: PolicySet,
    /// Actions that everybody may do to everything, with the permit that says so.
    open: Vec<(Action, String)>,
    names: Names,
    authorizer: Authorizer,
    decided: Cache<Key, Decision>,
}

/// An answer, and the policies that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether it may be done.
    pub allowed: bool,
    /// The permits, or the forbids, that decided. Empty when no permit matched.
    pub policies: Vec<String>,
    /// Policies that could not be evaluated; they do not count.
    pub errors: Vec<String>,
}

/// Policy says no.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.explain())]
pub struct Denied {
    /// What was wanted.
    pub action: Action,
    /// Of whom, by its canonical name.
    pub target: String,
    /// The agent's slug, for the command that would help.
    pub agent: String,
    /// Who wanted it.
    pub caller: String,
    /// The forbids that matched. Empty when no permit did.
    pub policies: Vec<String>,
}

/// What a decision depends on. An agent's version moves with each change of its row, so a change is seen by the
/// very next question.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    org: OrgId,
    kind: CallerKind,
    caller: CallerId,
    action: Action,
    agent: AgentId,
    version: u64,
    skill: Option<SkillId>,
}

// === impl Permitted ===

impl<T> Permitted<T> {
    /// What was permitted.
    pub const fn get(&self) -> &T {
        &self.0
    }

    /// What was permitted, to keep.
    pub fn into_inner(self) -> T {
        self.0
    }
}

// === impl Policy ===

impl Policy {
    /// Compiles policies; all problems are reported at once.
    pub fn parse(sources: &[Source]) -> Result<Self, PolicyError> {
        let (set, _) = compile(sources)?;
        let names = Names::parse().map_err(|error| {
            PolicyError(vec![Problem { place: "schema".into(), message: error.to_string(), help: None }])
        })?;
        let open =
            Action::ALL.into_iter().filter_map(|action| Some((action, open_to_all(&set, action)?))).collect();
        Ok(Self { set, open, names, authorizer: Authorizer::new(), decided: Cache::new(REMEMBERED) })
    }

    /// The policy of a fresh install.
    pub fn starter() -> Result<Self, PolicyError> {
        Self::parse(&[Source { name: "starter.cedar".into(), text: STARTER.into() }])
    }

    /// Lets a deed through, or says why not.
    pub fn check<T: Deed>(&self, deed: T) -> Result<Permitted<T>, Denied> {
        let decision = self.decide(&deed.question());
        if decision.allowed { Ok(Permitted(deed)) } else { Err(Denied::new(&deed.question(), decision)) }
    }

    /// Answers a question, from memory when it was asked before.
    pub fn decide(&self, question: &Question<'_>) -> Decision {
        if let Some((_, permit)) = self.open.iter().find(|(action, _)| *action == question.action) {
            return Decision { allowed: true, policies: vec![permit.clone()], errors: Vec::new() };
        }
        let key = Key {
            org: question.caller.scope.org.clone(),
            kind: question.caller.kind,
            caller: question.caller.id.clone(),
            action: question.action,
            agent: question.agent.id.clone(),
            version: question.agent.version,
            skill: question.skill.map(|skill| skill.id.clone()),
        };
        if let Some(decision) = self.decided.get(&key) {
            return decision;
        }
        let decision = self.evaluate(question);
        self.decided.insert(key, decision.clone());
        decision
    }

    /// The names of all policies, in order.
    pub fn ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.set.policies().map(|policy| policy.id().to_string()).collect();
        ids.sort();
        ids
    }

    fn evaluate(&self, question: &Question<'_>) -> Decision {
        let asked = self.names.entities(question).map_err(|error| error.to_string()).and_then(|entities| {
            let entities = Entities::from_entities(entities, None).map_err(|error| error.to_string())?;
            let principal = self.names.principal(question);
            let (action, resource) = (self.names.action(question), self.names.resource(question));
            let request = Request::new(principal, action, resource, Context::empty(), None)
                .map_err(|error| error.to_string())?;
            Ok((entities, request))
        });
        let (entities, request) = match asked {
            Ok(asked) => asked,
            // A row that Cedar cannot take in is not allowed anything.
            Err(error) => return Decision { allowed: false, policies: Vec::new(), errors: vec![error] },
        };
        let response = self.authorizer.is_authorized(&request, &self.set, &entities);
        let mut policies: Vec<String> = response.diagnostics().reason().map(ToString::to_string).collect();
        policies.sort();
        Decision {
            allowed: response.decision() == cedar_policy::Decision::Allow,
            policies,
            errors: response.diagnostics().errors().map(ToString::to_string).collect(),
        }
    }
}

/// The permit that lets everybody do `action` to everything, when there is one and no forbid could speak against it.
///
/// A list of a hundred thousand skills asks about each of them; a policy that says yes to all need not be evaluated.
fn open_to_all(set: &PolicySet, action: Action) -> Option<String> {
    let concerns = |policy: &cedar_policy::Policy| match policy.action_constraint() {
        ActionConstraint::Any => true,
        ActionConstraint::Eq(uid) => uid.id().unescaped() == action.as_str(),
        // Our schema has no groups of actions.
        ActionConstraint::In(uids) => uids.iter().any(|uid| uid.id().unescaped() == action.as_str()),
    };
    let mut permit = None;
    for policy in set.policies().filter(|policy| concerns(policy)) {
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

// === impl Denied ===

impl Denied {
    fn new(question: &Question<'_>, decision: Decision) -> Self {
        let slug = &question.agent.slug;
        let target = question.skill.map_or_else(|| slug.clone(), |skill| format!("{slug}.{}", skill.id));
        Self {
            action: question.action,
            target,
            agent: slug.clone(),
            caller: question.caller.id.to_string(),
            policies: decision.policies,
        }
    }

    fn explain(&self) -> String {
        let what = format!("{} may not {} {}", self.caller, self.action.as_str(), self.target);
        if self.policies.is_empty() {
            format!(
                "{what}: no policy permits it; to allow it run `rialto agents trust {} trusted`, or `rialto policy allow {}`",
                self.agent, self.agent
            )
        } else {
            format!(
                "{what}: forbidden by policy {}; to allow it, change that policy and check it with `rialto policy check`",
                self.policies.join(", ")
            )
        }
    }
}

#[cfg(test)]
mod tests;
