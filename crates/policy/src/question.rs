//! What policy is asked: who wants to do what to whom.

use rialto_model::{
    agent::Agent,
    call::{Call, CallTarget, Caller, CallerKind, CancelRequest, FollowRequest},
    card::Skill,
};

/// What somebody wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Have an agent work.
    Invoke,
    /// See that an agent is there, and how its work goes.
    Discover,
    /// Call work off.
    Cancel,
    /// Register, trust and remove agents.
    AdminAgents,
    /// Change policies.
    AdminPolicies,
    /// Make and revoke tokens.
    AdminTokens,
    /// Read what everybody did.
    AdminAudit,
    /// Approve or deny calls that wait for it.
    ApproveCall,
}

/// Something that must be permitted before it is done.
pub trait Deed {
    /// Who, what, to whom.
    fn question(&self) -> Question<'_>;
}

/// Who wants to do what to whom.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Who.
    pub caller: &'a Caller,
    /// The caller's own row, when it is a registered agent: its attributes are the principal's. An agent without a
    /// row may do nothing.
    pub caller_agent: Option<&'a Agent>,
    /// What.
    pub action: Action,
    /// To whom.
    pub resource: Resource<'a>,
    /// Whether somebody has approved this very call.
    pub approved: bool,
}

/// To whom something is done.
#[derive(Clone, Copy, Debug)]
pub enum Resource<'a> {
    /// The caller's own org: what administration is about.
    Org,
    /// An agent as such.
    Agent(&'a Agent),
    /// One skill of an agent.
    Skill(&'a Agent, &'a Skill),
}

/// Why no policy is even asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bar {
    /// The caller says it is an agent, and no such agent is registered.
    Unregistered,
    /// What is asked for belongs to another org.
    OtherOrg,
}

// === impl Action ===

impl Action {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Invoke,
        Self::Discover,
        Self::Cancel,
        Self::AdminAgents,
        Self::AdminPolicies,
        Self::AdminTokens,
        Self::AdminAudit,
        Self::ApproveCall,
    ];

    /// Those of administration.
    pub const ADMIN: [Self; 5] =
        [Self::AdminAgents, Self::AdminPolicies, Self::AdminTokens, Self::AdminAudit, Self::ApproveCall];

    /// Its name in policies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Invoke => "a2a_invoke",
            Self::Discover => "a2a_discover",
            Self::Cancel => "a2a_cancel",
            Self::AdminAgents => "admin_agents",
            Self::AdminPolicies => "admin_policies",
            Self::AdminTokens => "admin_tokens",
            Self::AdminAudit => "admin_audit",
            Self::ApproveCall => "approve_call",
        }
    }

    /// The action with that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == name)
    }

    /// Whether it is done to an org, not to an agent.
    pub const fn is_admin(self) -> bool {
        match self {
            Self::Invoke | Self::Discover | Self::Cancel => false,
            Self::AdminAgents
            | Self::AdminPolicies
            | Self::AdminTokens
            | Self::AdminAudit
            | Self::ApproveCall => true,
        }
    }
}

// === impl Deed ===

impl Deed for Call {
    fn question(&self) -> Question<'_> {
        Question::about(&self.caller, Action::Invoke, &self.target)
    }
}

impl Deed for CancelRequest {
    fn question(&self) -> Question<'_> {
        Question::about(&self.caller, Action::Cancel, &self.target)
    }
}

impl Deed for FollowRequest {
    fn question(&self) -> Question<'_> {
        Question::about(&self.caller, Action::Discover, &self.target)
    }
}

// === impl Question ===

impl<'a> Question<'a> {
    /// A question about a resolved target.
    pub fn about(caller: &'a Caller, action: Action, target: &'a CallTarget) -> Self {
        let resource = match &target.skill {
            Some(skill) => Resource::Skill(&target.agent, skill),
            None => Resource::Agent(&target.agent),
        };
        Self { caller, caller_agent: None, action, resource, approved: false }
    }

    /// A question about the caller's own org.
    pub const fn admin(caller: &'a Caller, action: Action) -> Self {
        Self { caller, caller_agent: None, action, resource: Resource::Org, approved: false }
    }

    /// The same question, with the caller's own row.
    #[must_use]
    pub const fn by(self, caller_agent: Option<&'a Agent>) -> Self {
        Self { caller_agent, ..self }
    }

    /// The same question about a call that somebody has approved.
    #[must_use]
    pub const fn once_approved(self) -> Self {
        Self { approved: true, ..self }
    }

    /// What no policy can allow.
    pub(crate) fn bar(&self) -> Option<Bar> {
        let caller = self.caller;
        let is_own = |row: &Agent| row.id.as_str() == caller.id.as_str() && row.scope.org == caller.scope.org;
        if caller.kind == CallerKind::Agent && !self.caller_agent.is_some_and(is_own) {
            return Some(Bar::Unregistered);
        }
        let is_foreign = self.resource.agent().is_some_and(|agent| agent.scope.org != caller.scope.org);
        is_foreign.then_some(Bar::OtherOrg)
    }
}

// === impl Resource ===

impl<'a> Resource<'a> {
    /// The agent it is, or whose skill it is.
    pub const fn agent(self) -> Option<&'a Agent> {
        match self {
            Self::Org => None,
            Self::Agent(agent) | Self::Skill(agent, _) => Some(agent),
        }
    }

    /// The skill it is.
    pub const fn skill(self) -> Option<&'a Skill> {
        match self {
            Self::Org | Self::Agent(_) => None,
            Self::Skill(_, skill) => Some(skill),
        }
    }
}
