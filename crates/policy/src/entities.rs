//! Registry rows as Cedar sees them.

use std::collections::{HashMap, HashSet};

use cedar_policy::{
    Entity, EntityAttrEvaluationError, EntityId, EntityTypeName, EntityUid, RestrictedExpression,
};
use rialto_model::{
    agent::Agent,
    call::{Call, Caller, CallerKind, Cancel, Follow, Target},
    card::Skill,
};

/// What somebody wants to do with an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Have it work.
    Invoke,
    /// See that it is there, and how its work goes.
    Discover,
    /// Call work off.
    Cancel,
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
    /// What.
    pub action: Action,
    /// To whom.
    pub agent: &'a Agent,
    /// To which skill of it; none means the agent as such.
    pub skill: Option<&'a Skill>,
}

// === impl Action ===

impl Action {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Invoke, Self::Discover, Self::Cancel];

    /// Its name in policies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Invoke => "a2a_invoke",
            Self::Discover => "a2a_discover",
            Self::Cancel => "a2a_cancel",
        }
    }

    /// The action with that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == name)
    }
}

// === impl Deed ===

impl Deed for Call {
    fn question(&self) -> Question<'_> {
        Question::about(&self.caller, Action::Invoke, &self.target)
    }
}

impl Deed for Cancel {
    fn question(&self) -> Question<'_> {
        Question::about(&self.caller, Action::Cancel, &self.target)
    }
}

impl Deed for Follow {
    fn question(&self) -> Question<'_> {
        Question::about(&self.caller, Action::Discover, &self.target)
    }
}

// === impl Question ===

impl<'a> Question<'a> {
    /// A question about a resolved target.
    pub fn about(caller: &'a Caller, action: Action, target: &'a Target) -> Self {
        Self { caller, action, agent: &target.agent, skill: target.skill.as_deref() }
    }
}

/// The names of Cedar's entity types, parsed once: they stand in every question.
#[derive(Debug)]
pub(crate) struct Names {
    org: EntityTypeName,
    user: EntityTypeName,
    session: EntityTypeName,
    agent: EntityTypeName,
    skill: EntityTypeName,
    action: EntityTypeName,
}

// === impl Names ===

impl Names {
    pub(crate) fn parse() -> Result<Self, Box<cedar_policy::ParseErrors>> {
        Ok(Self {
            org: "Org".parse().map_err(Box::new)?,
            user: "User".parse().map_err(Box::new)?,
            session: "Session".parse().map_err(Box::new)?,
            agent: "A2AAgent".parse().map_err(Box::new)?,
            skill: "Skill".parse().map_err(Box::new)?,
            action: "Action".parse().map_err(Box::new)?,
        })
    }

    pub(crate) fn principal(&self, question: &Question<'_>) -> EntityUid {
        let kind = match question.caller.kind {
            CallerKind::User => &self.user,
            CallerKind::Session => &self.session,
            CallerKind::Agent => &self.agent,
        };
        uid(kind, question.caller.id.as_str())
    }

    pub(crate) fn action(&self, question: &Question<'_>) -> EntityUid {
        uid(&self.action, question.action.as_str())
    }

    pub(crate) fn resource(&self, question: &Question<'_>) -> EntityUid {
        match question.skill {
            Some(skill) => self.skill_uid(question.agent, skill),
            None => uid(&self.agent, question.agent.id.as_str()),
        }
    }

    /// Everything a policy may look at to answer the question.
    pub(crate) fn entities(
        &self,
        question: &Question<'_>,
    ) -> Result<Vec<Entity>, Box<EntityAttrEvaluationError>> {
        let org = uid(&self.org, question.caller.scope.org.as_str());
        let mut entities = vec![self.agent_entity(question.agent)?];
        let principal = self.principal(question);
        // An agent that calls itself is one entity, not two.
        if principal != uid(&self.agent, question.agent.id.as_str()) {
            entities.push(Entity::new_no_attrs(principal, HashSet::from([org.clone()])));
        }
        entities.push(Entity::new_no_attrs(org, HashSet::new()));
        if let Some(skill) = question.skill {
            entities.push(self.skill_entity(question.agent, skill)?);
        }
        Ok(entities)
    }

    fn agent_entity(&self, agent: &Agent) -> Result<Entity, Box<EntityAttrEvaluationError>> {
        let skills = agent.card.skills.iter().map(|skill| text(skill.id.as_str()));
        let attributes = HashMap::from([
            ("agentUrl".to_owned(), text(&agent.url)),
            ("name".to_owned(), text(&agent.card.name)),
            ("slug".to_owned(), text(&agent.slug)),
            ("trustLevel".to_owned(), text(agent.trust.as_str())),
            ("health".to_owned(), text(agent.health.as_str())),
            ("skills".to_owned(), RestrictedExpression::new_set(skills)),
        ]);
        let org = uid(&self.org, agent.scope.org.as_str());
        Entity::new(uid(&self.agent, agent.id.as_str()), attributes, HashSet::from([org])).map_err(Box::new)
    }

    fn skill_entity(&self, agent: &Agent, skill: &Skill) -> Result<Entity, Box<EntityAttrEvaluationError>> {
        let home = uid(&self.agent, agent.id.as_str());
        let attributes = HashMap::from([
            ("skillId".to_owned(), text(skill.id.as_str())),
            ("tags".to_owned(), RestrictedExpression::new_set(skill.tags.iter().map(|tag| text(tag)))),
            ("agent".to_owned(), RestrictedExpression::new_entity_uid(home.clone())),
        ]);
        Entity::new(self.skill_uid(agent, skill), attributes, HashSet::from([home])).map_err(Box::new)
    }

    fn skill_uid(&self, agent: &Agent, skill: &Skill) -> EntityUid {
        uid(&self.skill, &format!("{}/{}", agent.id, skill.id))
    }
}

fn uid(kind: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(id))
}

fn text(text: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(text.to_owned())
}
