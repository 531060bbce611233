//! Registry rows as Cedar sees them.

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

use crate::question::{Action, Question, Resource};

/// The role whose callers administer their org on a fresh install.
pub(crate) const OWNER: &str = "owner";

/// The names of Cedar's entity types, parsed once: they stand in every question.
#[derive(Debug)]
pub(crate) struct Names {
    org: EntityTypeName,
    role: EntityTypeName,
    user: EntityTypeName,
    session: EntityTypeName,
    agent: EntityTypeName,
    skill: EntityTypeName,
    action: EntityTypeName,
    /// The context of a call that nobody has approved.
    unapproved: Context,
    /// The context of one that somebody has.
    approved: Context,
}

/// Whose policies are asked: it says how the names of callers are spelt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// Policies of the caller's own org, where a name is that org's.
    Org,
    /// Policies for all orgs, where a name carries its org unless that is `default`.
    AllOrgs,
}

/// A question in Cedar's words.
pub(crate) struct Asked {
    pub(crate) request: Request,
    pub(crate) entities: Entities,
    /// The principal and what it is in, as the entities say.
    pub(crate) principal: Vec<EntityUid>,
    /// The resource and what it is in, as the entities say.
    pub(crate) resource: Vec<EntityUid>,
}

// === impl Names ===

impl Names {
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

    /// Everything a policy may look at to answer the question.
    pub(crate) fn ask(&self, question: &Question<'_>, view: View) -> Result<Asked, String> {
        let (principal, resource) = (self.principal(question, view), self.resource(question));
        let action = uid(&self.action, question.action.as_str());
        let context = match question.action {
            Action::Invoke if question.approved => self.approved.clone(),
            Action::Invoke => self.unapproved.clone(),
            _ => Context::empty(),
        };
        let (Some((who, parents)), Some(whom)) = (principal.split_first(), resource.first()) else {
            return Err("the question is about nobody".to_owned());
        };
        let request = Request::new(who.clone(), action, whom.clone(), context, None)
            .map_err(|error| error.to_string())?;
        let entities = self.entities(question, who, parents).map_err(|error| error.to_string())?;
        let entities = Entities::from_entities(entities, None).map_err(|error| error.to_string())?;
        Ok(Asked { request, entities, principal, resource })
    }

    /// The caller, its org and its roles.
    fn principal(&self, question: &Question<'_>, view: View) -> Vec<EntityUid> {
        let (caller, org) = (question.caller, &question.caller.scope.org);
        let kind = match caller.kind {
            CallerKind::User => &self.user,
            CallerKind::Session => &self.session,
            // Ids of agents are unique on the whole server.
            CallerKind::Agent => return vec![uid(&self.agent, caller.id.as_str()), self.org(question)],
        };
        let name = match view {
            View::Org => caller.id.to_string(),
            View::AllOrgs => qualified(org, caller.id.as_str()),
        };
        let mut principal = vec![uid(kind, &name), self.org(question)];
        if caller.rights.is_owner() {
            principal.push(uid(&self.role, OWNER));
            principal.push(uid(&self.role, &format!("{org}/{OWNER}")));
        }
        principal
    }

    /// What it is done to, and what that is in.
    fn resource(&self, question: &Question<'_>) -> Vec<EntityUid> {
        let org = self.org(question);
        match question.resource {
            Resource::Org => vec![org],
            Resource::Agent(agent) => vec![self.agent_uid(&agent.id), org],
            Resource::Skill(agent, skill) => {
                vec![self.skill_uid(&agent.id, &skill.id), self.agent_uid(&agent.id), org]
            }
        }
    }

    fn entities(
        &self,
        question: &Question<'_>,
        principal: &EntityUid,
        parents: &[EntityUid],
    ) -> Result<Vec<Entity>, Box<EntityAttrEvaluationError>> {
        let org = self.org(question);
        let mut entities = vec![match question.caller_agent {
            Some(row) => self.agent_entity(row, &org)?,
            None => Entity::new_no_attrs(principal.clone(), parents.iter().cloned().collect()),
        }];
        let roles = parents.iter().filter(|uid| *uid.type_name() == self.role);
        entities.extend(roles.map(|role| Entity::new_no_attrs(role.clone(), HashSet::from([org.clone()]))));
        if let Some(agent) = question.resource.agent() {
            // An agent that calls itself is one entity, not two.
            if *principal != self.agent_uid(&agent.id) {
                entities.push(self.agent_entity(agent, &org)?);
            }
        }
        if let Resource::Skill(agent, skill) = question.resource {
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

    /// Caller and resource are of one org: [`Question::bar`] sees to that.
    fn org(&self, question: &Question<'_>) -> EntityUid {
        uid(&self.org, question.caller.scope.org.as_str())
    }

    fn agent_uid(&self, agent: &AgentId) -> EntityUid {
        uid(&self.agent, agent.as_str())
    }

    fn skill_uid(&self, agent: &AgentId, skill: &SkillId) -> EntityUid {
        uid(&self.skill, &skill_key(agent, skill))
    }
}

/// A caller's name where policies are for all orgs. One without a slash is of the org `default`; before the first slash stands
/// the org, whose name has none. So no caller of one org can have a name that is another's of another org.
fn qualified(org: &OrgId, name: &str) -> String {
    if *org == Scope::default().org && !name.contains('/') {
        name.to_owned()
    } else {
        format!("{org}/{name}")
    }
}

/// A skill's id as an entity. Our agent ids have no slash, so the first one ends the agent's id.
pub(crate) fn skill_key(agent: &AgentId, skill: &SkillId) -> String {
    format!("{agent}/{skill}")
}

fn uid(kind: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(id))
}

fn text(text: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(text.to_owned())
}
