//! Registry rows as Cedar entities.

use std::collections::{HashMap, HashSet};

use cedar_policy::{
    Context, Entities, Entity, EntityAttrEvaluationError, EntityId, EntityTypeName, EntityUid, Request,
    RestrictedExpression,
};
use rialto_model::{
    agent::Agent,
    call::CallerKind,
    card::Skill,
    ids::{AgentId, OrgId, Scope, SkillId},
};

use crate::request::{Action, AuthorizationRequest, Resource};

/// Role whose callers administer their org on a fresh install.
pub(crate) const OWNER: &str = "owner";

/// Names of Cedar's entity types, parsed once: every request has them.
#[derive(Debug)]
pub(crate) struct CedarNames {
    org: EntityTypeName,
    role: EntityTypeName,
    user: EntityTypeName,
    session: EntityTypeName,
    agent: EntityTypeName,
    skill: EntityTypeName,
    action: EntityTypeName,
    /// Context of a call without approval.
    unapproved: Context,
    /// Context of an approved call.
    approved: Context,
}

/// Spelling of caller names, by the owner of the policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallerNaming {
    /// Policies of the caller's own org, where a name belongs to that org.
    Org,
    /// Policies for all orgs, where a name has its org as prefix unless that is `default`.
    AllOrgs,
}

/// Request in Cedar's terms.
pub(crate) struct CedarRequest {
    pub(crate) request: Request,
    pub(crate) entities: Entities,
    /// Principal and its ancestors.
    pub(crate) principal: Vec<EntityUid>,
    /// Resource and its ancestors.
    pub(crate) resource: Vec<EntityUid>,
}

// === impl CedarNames ===

impl CedarNames {
    pub(crate) fn parse() -> Result<Self, String> {
        let name = |name: &str| name.parse::<EntityTypeName>().map_err(|error| error.to_string());
        let context = |approved| {
            let fact = ("approved".to_owned(), RestrictedExpression::new_bool(approved));
            Context::from_pairs([fact]).map_err(|error| error.to_string())
        };
        Ok(Self {
            org: name("Org")?,
            role: name("Role")?,
            user: name("User")?,
            session: name("Session")?,
            agent: name("A2AAgent")?,
            skill: name("Skill")?,
            action: name("Action")?,
            unapproved: context(false)?,
            approved: context(true)?,
        })
    }

    /// Builds the Cedar request with everything that a policy may read.
    pub(crate) fn cedar_request(
        &self,
        request: &AuthorizationRequest<'_>,
        view: CallerNaming,
    ) -> Result<CedarRequest, String> {
        let (principal, resource) = (self.principal(request, view), self.resource(request));
        let action = uid(&self.action, request.action.as_str());
        let context = match request.action {
            Action::Invoke if request.approved => self.approved.clone(),
            Action::Invoke => self.unapproved.clone(),
            _ => Context::empty(),
        };
        let (Some((who, parents)), Some(whom)) = (principal.split_first(), resource.first()) else {
            return Err("the request has no principal or resource".to_owned());
        };
        let cedar_request = Request::new(who.clone(), action, whom.clone(), context, None)
            .map_err(|error| error.to_string())?;
        let entities = self.entities(request, who, parents).map_err(|error| error.to_string())?;
        let entities = Entities::from_entities(entities, None).map_err(|error| error.to_string())?;
        Ok(CedarRequest { request: cedar_request, entities, principal, resource })
    }

    /// Caller, its org and its roles.
    fn principal(&self, request: &AuthorizationRequest<'_>, view: CallerNaming) -> Vec<EntityUid> {
        let (caller, org) = (request.caller, &request.caller.scope.org);
        let kind = match caller.kind {
            CallerKind::User => &self.user,
            CallerKind::Session => &self.session,
            // Ids of agents are unique on the whole server.
            CallerKind::Agent => return vec![uid(&self.agent, caller.id.as_str()), self.org(request)],
        };
        let name = match view {
            CallerNaming::Org => caller.id.to_string(),
            CallerNaming::AllOrgs => qualified(org, caller.id.as_str()),
        };
        let mut principal = vec![uid(kind, &name), self.org(request)];
        if caller.rights.is_owner() {
            principal.push(uid(&self.role, OWNER));
            principal.push(uid(&self.role, &format!("{org}/{OWNER}")));
        }
        principal
    }

    /// Resource and its ancestors.
    fn resource(&self, request: &AuthorizationRequest<'_>) -> Vec<EntityUid> {
        let org = self.org(request);
        match request.resource {
            Resource::Org => vec![org],
            Resource::Agent(agent) => vec![self.agent_uid(&agent.id), org],
            Resource::Skill(agent, skill) => {
                vec![self.skill_uid(&agent.id, &skill.id), self.agent_uid(&agent.id), org]
            }
        }
    }

    fn entities(
        &self,
        request: &AuthorizationRequest<'_>,
        principal: &EntityUid,
        parents: &[EntityUid],
    ) -> Result<Vec<Entity>, Box<EntityAttrEvaluationError>> {
        let org = self.org(request);
        let mut entities = vec![match request.caller_agent {
            Some(row) => self.agent_entity(row, &org)?,
            None => Entity::new_no_attrs(principal.clone(), parents.iter().cloned().collect()),
        }];
        let roles = parents.iter().filter(|uid| *uid.type_name() == self.role);
        entities.extend(roles.map(|role| Entity::new_no_attrs(role.clone(), HashSet::from([org.clone()]))));
        if let Some(agent) = request.resource.agent() {
            // An agent that calls itself is one entity, not two.
            if *principal != self.agent_uid(&agent.id) {
                entities.push(self.agent_entity(agent, &org)?);
            }
        }
        if let Resource::Skill(agent, skill) = request.resource {
            entities.push(self.skill_entity(agent, skill)?);
        }
        entities.push(Entity::new_no_attrs(org, HashSet::new()));
        Ok(entities)
    }

    fn agent_entity(&self, agent: &Agent, org: &EntityUid) -> Result<Entity, Box<EntityAttrEvaluationError>> {
        let skills = agent.card.skills.iter().map(|skill| text(skill.id.as_str()));
        let attributes = HashMap::from([
            ("agentUrl".to_owned(), text(&agent.url)),
            ("name".to_owned(), text(&agent.card.name)),
            ("slug".to_owned(), text(&agent.slug)),
            ("trustLevel".to_owned(), text(agent.trust.as_str())),
            ("health".to_owned(), text(agent.health.as_str())),
            ("skills".to_owned(), RestrictedExpression::new_set(skills)),
        ]);
        let parents = HashSet::from([org.clone()]);
        Entity::new(self.agent_uid(&agent.id), attributes, parents).map_err(Box::new)
    }

    fn skill_entity(&self, agent: &Agent, skill: &Skill) -> Result<Entity, Box<EntityAttrEvaluationError>> {
        let home = self.agent_uid(&agent.id);
        let attributes = HashMap::from([
            ("skillId".to_owned(), text(skill.id.as_str())),
            ("tags".to_owned(), RestrictedExpression::new_set(skill.tags.iter().map(|tag| text(tag)))),
            ("agent".to_owned(), RestrictedExpression::new_entity_uid(home.clone())),
        ]);
        Entity::new(self.skill_uid(&agent.id, &skill.id), attributes, HashSet::from([home])).map_err(Box::new)
    }

    /// Org of the request. Caller and resource are of one org: [`AuthorizationRequest::hard_denial`] checks that.
    fn org(&self, request: &AuthorizationRequest<'_>) -> EntityUid {
        uid(&self.org, request.caller.scope.org.as_str())
    }

    fn agent_uid(&self, agent: &AgentId) -> EntityUid {
        uid(&self.agent, agent.as_str())
    }

    fn skill_uid(&self, agent: &AgentId, skill: &SkillId) -> EntityUid {
        uid(&self.skill, &skill_key(agent, skill))
    }
}

/// Caller's name in policies for all orgs. A name without a slash belongs to the org `default`; otherwise the org stands before the first
/// slash, and org names have none. So no caller can have a name of another org's caller.
fn qualified(org: &OrgId, name: &str) -> String {
    if *org == Scope::default().org && !name.contains('/') {
        name.to_owned()
    } else {
        format!("{org}/{name}")
    }
}

/// Entity id of a skill. Our agent ids have no slash, so the first one ends the agent's id.
pub(crate) fn skill_key(agent: &AgentId, skill: &SkillId) -> String {
    format!("{agent}/{skill}")
}

fn uid(kind: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(id))
}

fn text(text: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(text.to_owned())
}
