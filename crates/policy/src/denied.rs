//! A denial: what was refused, why, and what would allow it.

use std::sync::Arc;

use rialto_model::{call::CallerKind, ids::Scope};

use crate::{
    policy::Decision,
    question::{Action, Bar, Question},
};

/// Policy says no.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("caller \"{}\" is not allowed to {}: {}", .caller, self.wanted(), self.reason())]
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
    /// Where the caller was.
    pub scope: Scope,
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
            scope: question.caller.scope.clone(),
            decision,
        }
    }

    /// What was wanted, in words where it has any.
    fn wanted(&self) -> String {
        let (name, target) = (self.action.as_str(), &self.target);
        let words = match self.action {
            Action::Invoke => return format!("call {target}"),
            Action::Discover => return format!("see {target}"),
            Action::Cancel => return format!("cancel tasks of {target}"),
            Action::AdminAgents => "administer agents",
            Action::AdminPolicies => "administer policies",
            Action::AdminTokens => "administer tokens",
            Action::AdminAudit => "read the audit log",
            Action::ApproveCall => "approve or deny calls",
        };
        format!("{words} in {target} ({name})")
    }

    fn reason(&self) -> String {
        match self.decision.bar {
            Some(Bar::Unregistered) => {
                format!("it is not a registered agent. Register it: `rialto agents add URL{}`", self.place())
            }
            Some(Bar::OtherOrg) => "it belongs to another org, which no policy can open".to_owned(),
            None if self.decision.policies.is_empty() => self.no_permit(),
            None if !self.decision.approvers.is_empty() => self.no_approval(),
            None => {
                let names: Vec<_> = self.decision.policies.iter().map(|name| shell_word(name)).collect();
                format!(
                    "policy {} forbids it. Change or remove that policy: `rialto policy remove {}{}`",
                    self.decision.policies.join(", "),
                    names.first().map(String::as_str).unwrap_or_default(),
                    self.place(),
                )
            }
        }
    }

    /// The narrowest policy that would allow it comes first: this caller, and this alone.
    fn no_permit(&self) -> String {
        let caller = self.caller_options();
        match &self.agent {
            Some(agent) if self.action == Action::Invoke => format!(
                "no policy permits it. Allow it: `rialto policy allow {}{caller}`; or let everybody call the agent: `rialto agents trust {} trusted{}`",
                shell_word(&self.target),
                shell_word(agent),
                self.place(),
            ),
            Some(_) => {
                "no policy permits it. Write one that does, with `rialto policy add --file FILE`".to_owned()
            }
            None => format!(
                "no policy permits it. Allow it: `rialto policy add allow-admin {}{caller}`",
                self.action.as_str(),
            ),
        }
    }

    /// Options that name this caller, and the place.
    fn caller_options(&self) -> String {
        let kind = match self.caller_kind {
            CallerKind::User => "",
            CallerKind::Session => " --caller-kind session",
            CallerKind::Agent => " --caller-kind agent",
        };
        format!(" --caller {}{kind}{}", shell_word(&self.caller), self.place())
    }

    /// Options that name the org and project, unless they are those that are meant without.
    fn place(&self) -> String {
        let usual = Scope::default();
        let mut options = String::new();
        if self.scope.org != usual.org {
            options += &format!(" --org {}", self.scope.org);
        }
        if self.scope.project != usual.project {
            options += &format!(" --project {}", self.scope.project);
        }
        options
    }

    /// It was not asked for, because nothing could wait for it: a call that is made anew asks.
    fn no_approval(&self) -> String {
        let help: Vec<_> = self
            .decision
            .policies
            .iter()
            .map(|id| format!("`rialto policy remove {}{}`", shell_word(id), self.place()))
            .collect();
        format!(
            "it needs approval by {} (policy {}), which nobody has given. Allow it without: {}",
            self.decision.approvers.join(" and by "),
            self.decision.policies.join(", "),
            help.join(" and ")
        )
    }
}

/// A word as a shell takes it.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
