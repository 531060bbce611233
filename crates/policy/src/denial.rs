//! Denials: what was refused, why, and what would allow it.

use std::sync::Arc;

use rialto_model::{call::CallerKind, ids::Scope};

use crate::{
    policy::PolicyDecision,
    request::{Action, AuthorizationRequest, HardDenial},
};

/// Denied request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("caller \"{}\" is not allowed to {}: {}", .caller, self.describe_action(), self.reason())]
pub struct Denied {
    /// Action that was requested.
    pub action: Action,
    /// Target of the action, by its canonical name.
    pub target: String,
    /// Slug of the agent, for the command that would help.
    pub agent: Option<String>,
    /// Id of the caller.
    pub caller: String,
    /// Kind of the caller.
    pub caller_kind: CallerKind,
    /// Org and project of the caller.
    pub scope: Scope,
    /// Decision, with the forbids that matched; none when no permit did.
    pub decision: Arc<PolicyDecision>,
}

// === impl Denied ===

impl Denied {
    pub(crate) fn new(request: &AuthorizationRequest<'_>, decision: Arc<PolicyDecision>) -> Self {
        let agent = request.resource.agent().map(|agent| agent.slug.clone());
        let target = match (&agent, request.resource.skill()) {
            (Some(slug), Some(skill)) => format!("{slug}.{}", skill.id),
            (Some(slug), None) => slug.clone(),
            (None, _) => format!("org {}", request.caller.scope.org),
        };
        Self {
            action: request.action,
            target,
            agent,
            caller: request.caller.id.to_string(),
            caller_kind: request.caller.kind,
            scope: request.caller.scope.clone(),
            decision,
        }
    }

    /// Action as words, where it has any.
    fn describe_action(&self) -> String {
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
        match self.decision.hard_denial {
            Some(HardDenial::Unregistered) => {
                format!(
                    "it is not a registered agent. Register it: `rialto agents add URL{}`",
                    self.scope_options()
                )
            }
            Some(HardDenial::OtherOrg) => "it belongs to another org, which no policy can open".to_owned(),
            None if self.decision.policies.is_empty() => self.explain_missing_permit(),
            None if !self.decision.approvers.is_empty() => self.explain_missing_approval(),
            None => {
                let names: Vec<_> = self.decision.policies.iter().map(|name| quote_for_shell(name)).collect();
                format!(
                    "policy {} forbids it. Change or remove that policy: `rialto policy remove {}{}`",
                    self.decision.policies.join(", "),
                    names.first().map(String::as_str).unwrap_or_default(),
                    self.scope_options(),
                )
            }
        }
    }

    /// Fix for a missing permit. The narrowest policy comes first: this caller, and this alone.
    fn explain_missing_permit(&self) -> String {
        let caller = self.caller_options();
        match &self.agent {
            Some(agent) if self.action == Action::Invoke => format!(
                "no policy permits it. Allow it: `rialto policy allow {}{caller}`; or let all callers call the agent: `rialto agents trust {} trusted{}`",
                quote_for_shell(&self.target),
                quote_for_shell(agent),
                self.scope_options(),
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

    /// Options that name this caller, its org and project.
    fn caller_options(&self) -> String {
        let kind = match self.caller_kind {
            CallerKind::User => "",
            CallerKind::Session => " --caller-kind session",
            CallerKind::Agent => " --caller-kind agent",
        };
        format!(" --caller {}{kind}{}", quote_for_shell(&self.caller), self.scope_options())
    }

    /// Options that name the org and project, unless they are the defaults.
    fn scope_options(&self) -> String {
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

    /// Fix for a missing approval. No approval was requested, because this request cannot be held; a new call requests one.
    fn explain_missing_approval(&self) -> String {
        let help: Vec<_> = self
            .decision
            .policies
            .iter()
            .map(|id| format!("`rialto policy remove {}{}`", quote_for_shell(id), self.scope_options()))
            .collect();
        format!(
            "it needs approval by {} (policy {}), which is missing. Allow it without: {}",
            self.decision.approvers.join(" and by "),
            self.decision.policies.join(", "),
            help.join(" and ")
        )
    }
}

/// Quotes a word for a shell.
fn quote_for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
