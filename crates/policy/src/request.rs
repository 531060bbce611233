//! Request to policy: caller, action, resource.

use rialto_model::{
    agent::Agent,
    call::{Call, CallTarget, Caller, CallerKind, CancelRequest, FollowRequest},
    card::Skill,
};

/// Action that a caller requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Call an agent.
    Invoke,
    /// See an agent, and the progress of its tasks.
    Discover,
    /// Cancel a task.
    Cancel,
    /// Register, trust and remove agents.
    AdminAgents,
    /// Change policies.
    AdminPolicies,
    /// Make and revoke tokens.
    AdminTokens,
    /// Read the audit log.
    AdminAudit,
    /// Approve or deny calls that wait for it.
    ApproveCall,
}

/// Value that needs authorization.
pub trait Authorizable {
    /// Request for its authorization.
    fn policy_request(&self) -> AuthorizationRequest<'_>;
}

/// Request: caller, action, resource.
#[derive(Clone, Copy, Debug)]
pub struct AuthorizationRequest<'a> {
    /// Caller.
    pub caller: &'a Caller,
    /// The caller's own row, when it is a registered agent: its attributes are the principal's. An agent without a
    /// row may do nothing.
    pub caller_agent: Option<&'a Agent>,
    /// Action.
    pub action: Action,
    /// Resource.
    pub resource: Resource<'a>,
    /// True if this call has been approved.
    pub approved: bool,
}

/// Resource of a request.
#[derive(Clone, Copy, Debug)]
pub enum Resource<'a> {
    /// The caller's own org, for administration.
    Org,
    /// Agent.
    Agent(&'a Agent),
    /// Skill of an agent.
    Skill(&'a Agent, &'a Skill),
}

/// Reason for a denial without evaluating policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HardDenial {
    /// The caller claims to be an agent that is not registered.
    Unregistered,
    /// The resource belongs to another org.
    OtherOrg,
}

// === impl Action ===

impl Action {
    /// All actions.
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

    /// Actions of administration.
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

    /// True if its resource is an org, not an agent.
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

// === impl Call ===

impl Authorizable for Call {
    fn policy_request(&self) -> AuthorizationRequest<'_> {
        AuthorizationRequest::for_target(&self.caller, Action::Invoke, &self.target)
    }
}

impl Authorizable for CancelRequest {
    fn policy_request(&self) -> AuthorizationRequest<'_> {
        AuthorizationRequest::for_target(&self.caller, Action::Cancel, &self.target)
    }
}

impl Authorizable for FollowRequest {
    fn policy_request(&self) -> AuthorizationRequest<'_> {
        AuthorizationRequest::for_target(&self.caller, Action::Discover, &self.target)
    }
}

// === impl AuthorizationRequest ===

impl<'a> AuthorizationRequest<'a> {
    /// Request about a resolved target.
    pub fn for_target(caller: &'a Caller, action: Action, target: &'a CallTarget) -> Self {
        let resource = match &target.skill {
            Some(skill) => Resource::Skill(&target.agent, skill),
            None => Resource::Agent(&target.agent),
        };
        Self { caller, caller_agent: None, action, resource, approved: false }
    }

    /// Request about the caller's own org.
    pub const fn for_admin(caller: &'a Caller, action: Action) -> Self {
        Self { caller, caller_agent: None, action, resource: Resource::Org, approved: false }
    }

    /// Adds the caller's own row.
    #[must_use]
    pub const fn with_caller_agent(self, caller_agent: Option<&'a Agent>) -> Self {
        Self { caller_agent, ..self }
    }

    /// Request for an approved call.
    #[must_use]
    pub const fn as_approved(self) -> Self {
        Self { approved: true, ..self }
    }

    /// Reason why no policy can allow it, if any.
    pub(crate) fn hard_denial(&self) -> Option<HardDenial> {
        let caller = self.caller;
        let is_own = |row: &Agent| row.id.as_str() == caller.id.as_str() && row.scope.org == caller.scope.org;
        if caller.kind == CallerKind::Agent && !self.caller_agent.is_some_and(is_own) {
            return Some(HardDenial::Unregistered);
        }
        let is_foreign = self.resource.agent().is_some_and(|agent| agent.scope.org != caller.scope.org);
        is_foreign.then_some(HardDenial::OtherOrg)
    }
}

// === impl Resource ===

impl<'a> Resource<'a> {
    /// Agent, or the agent of the skill.
    pub const fn agent(self) -> Option<&'a Agent> {
        match self {
            Self::Org => None,
            Self::Agent(agent) | Self::Skill(agent, _) => Some(agent),
        }
    }

    /// Skill.
    pub const fn skill(self) -> Option<&'a Skill> {
        match self {
            Self::Org | Self::Agent(_) => None,
            Self::Skill(_, skill) => Some(skill),
        }
    }
}
