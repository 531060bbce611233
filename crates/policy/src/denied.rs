//! A denial: what was refused, why, and what would allow it.

use crate::{
    policy::Decision,
    question::{Action, Bar, Question},
};

/// Policy says no.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} may not {} {}: {}", .caller, .action.as_str(), .target, self.reason())]
pub struct Denied {
    /// What was wanted.
    pub action: Action,
    /// Of whom, by its canonical name.
    pub target: String,
    /// The agent's slug, for the command that would help.
    pub agent: Option<String>,
    /// Who wanted it.
    pub caller: String,
    /// The forbids that matched. Empty when no permit did.
    pub policies: Vec<String>,
    /// Who would have to approve, when only that is missing.
    pub approvers: Vec<String>,
    /// Why no policy was even asked.
    pub bar: Option<Bar>,
}

// === impl Denied ===

impl Denied {
    pub(crate) fn new(question: &Question<'_>, decision: &Decision) -> Self {
        let agent = question.resource.agent().map(|agent| agent.slug.clone());
        let target = match (&agent, question.resource.skill()) {
            (Some(slug), Some(skill)) => format!("{slug}.{}", skill.id),
            (Some(slug), None) => slug.clone(),
            (None, _) => format!("org {}", question.caller.scope.org),
        };
        Self {
            action: question.action,
            target,
            agent,
            caller: question.caller.id.to_string(),
            policies: decision.policies.clone(),
            approvers: decision.approvers.clone(),
            bar: decision.bar,
        }
    }

    fn reason(&self) -> String {
        match self.bar {
            Some(Bar::Unregistered) => {
                "it is no registered agent; to let it in run `rialto agents add URL`".to_owned()
            }
            Some(Bar::OtherOrg) => "it belongs to another org, which no policy can open".to_owned(),
            None if self.policies.is_empty() => self.no_permit(),
            None if !self.approvers.is_empty() => self.no_approval(),
            None => format!(
                "forbidden by policy {}; to allow it, change that policy and check it with `rialto policy check`",
                self.policies.join(", ")
            ),
        }
    }

    fn no_permit(&self) -> String {
        match &self.agent {
            Some(agent) => format!(
                "no policy permits it; to allow it run `rialto agents trust {agent} trusted`, or `rialto policy allow {agent}`"
            ),
            None => format!(
                "no policy permits it; to allow it write a permit for Action::\"{}\" and check it with `rialto policy check`",
                self.action.as_str()
            ),
        }
    }

    /// There is no way to approve a call yet, so the only help is to ask for no approval.
    fn no_approval(&self) -> String {
        let policies = self.policies.join(", ");
        format!(
            "it needs approval by {} (policy {policies}), and calls cannot be approved yet; to allow it without, take that policy away",
            self.approvers.join(" and by ")
        )
    }
}
