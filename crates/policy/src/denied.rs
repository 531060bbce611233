//! A denial: what was refused, why, and what would allow it.

use std::sync::Arc;

use rialto_model::call::CallerKind;

use crate::{
    policy::Decision,
    question::{Action, Bar, Question},
};

/// Policy says no.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} may not {}: {}", .caller, self.wanted(), self.reason())]
pub struct Denied {
    /// What was wanted.
    pub action: Action,
    /// Of whom, by its canonical name.
    pub target: String,
    /// The agent's slug, for the command that would help.
    pub agent: Option<String>,
    /// Who wanted it.
    pub caller: String,
    /// What kind of caller that is.
    pub caller_kind: CallerKind,
    /// The answer, with the forbids that matched; none when no permit did.
    pub decision: Arc<Decision>,
}

// === impl Denied ===

impl Denied {
    pub(crate) fn new(question: &Question<'_>, decision: Arc<Decision>) -> Self {
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
            caller_kind: question.caller.kind,
            decision,
        }
    }

    /// What was wanted, in words where it has any.
    fn wanted(&self) -> String {
        let (name, target) = (self.action.as_str(), &self.target);
        let words = match self.action {
            Action::AdminAgents => "administer agents",
            Action::AdminPolicies => "administer policies",
            Action::AdminTokens => "administer tokens",
            Action::AdminAudit => "read the audit trail",
            Action::ApproveCall => "decide about calls that wait",
            _ => return format!("{name} {target}"),
        };
        format!("{words} in {target} ({name})")
    }

    fn reason(&self) -> String {
        match self.decision.bar {
            Some(Bar::Unregistered) => {
                "it is no registered agent; to let it in run `rialto agents add URL`".to_owned()
            }
            Some(Bar::OtherOrg) => "it belongs to another org, which no policy can open".to_owned(),
            None if self.decision.policies.is_empty() => self.no_permit(),
            None if !self.decision.approvers.is_empty() => self.no_approval(),
            None => format!(
                "forbidden by policy {}; to allow it, change that policy and check it with `rialto policy check`",
                self.decision.policies.join(", ")
            ),
        }
    }

    fn no_permit(&self) -> String {
        match &self.agent {
            Some(agent) => format!(
                "no policy permits it; to allow it run `rialto agents trust {agent} trusted`, or `rialto policy allow {agent}`"
            ),
            None => format!(
                "no policy permits it; to allow it run `rialto policy add allow-admin {} --caller {}{}`",
                self.action.as_str(),
                self.caller,
                match self.caller_kind {
                    CallerKind::User => "",
                    CallerKind::Session => " --caller-kind session",
                    CallerKind::Agent => " --caller-kind agent",
                }
            ),
        }
    }

    /// It was not asked for, because nothing could wait for it: a call that is made anew asks.
    fn no_approval(&self) -> String {
        let help: Vec<_> =
            self.decision.policies.iter().map(|id| format!("`rialto policy remove {id}`")).collect();
        format!(
            "it needs approval by {} (policy {}), which nobody has given; to allow it without run {}",
            self.decision.approvers.join(" and by "),
            self.decision.policies.join(", "),
            help.join(" and ")
        )
    }
}
