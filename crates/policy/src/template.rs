//! Policies that people ask for most, written for them as Cedar text.
//!
//! What others chose (an agent's address, a skill's id, a tag) enters the text only between quotes and escaped, so no
//! name can say more than its name. A property test reads the text back through Cedar's own parser.

use rialto_model::{
    agent::{Agent, AgentTrust},
    call::{CallerId, CallerKind},
    ids::{OrgId, SkillId},
    name::slug,
};

use crate::{
    entities::{OWNER, skill_key},
    question::Action,
    text::{Source, format},
};

/// One policy that can be asked for.
#[derive(Clone, Debug)]
pub struct Template<'a> {
    /// What shall be.
    pub wish: Wish,
    /// For whom; none means everybody.
    pub caller: Option<Subject>,
    /// What it is about.
    pub object: Object<'a>,
}

/// What shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// It is allowed, unless something else forbids it.
    Allow,
    /// It is forbidden.
    Deny,
    /// It is forbidden as long as nobody has approved it.
    Approval {
        /// Who must approve: `caller` for the caller itself, a caller's name, or words for people to read.
        by: String,
    },
}

/// Whom a policy is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// One caller.
    Caller {
        /// What it is.
        kind: CallerKind,
        /// Its name; an agent's id.
        id: CallerId,
    },
    /// All callers with the role `owner`.
    Owners,
}

/// What a policy is about.
#[derive(Clone, Copy, Debug)]
pub enum Object<'a> {
    /// Calls of an agent and all its skills.
    Agent(&'a Agent),
    /// Calls of one skill.
    Skill(&'a Agent, &'a SkillId),
    /// Calls of all agents of a level of trust.
    Trust(AgentTrust),
    /// Calls of all skills with a tag.
    Tag(&'a str),
    /// Admin actions in one org. The org is named because a caller's name is unique only within its org.
    Admin(&'a [Action], &'a OrgId),
}

// === impl Template ===

impl Template<'_> {
    /// A name that says what it does, made of letters, digits, `_` and `-`.
    pub fn name(&self) -> String {
        let (agent, skill) = match self.object {
            Object::Agent(agent) => (agent.slug.as_str(), ""),
            Object::Skill(agent, skill) => (agent.slug.as_str(), skill.as_str()),
            Object::Trust(level) => ("trust", level.as_str()),
            Object::Tag(tag) => ("tag", tag),
            Object::Admin([action], _) => (action.as_str(), ""),
            Object::Admin(..) => ("admin", "all"),
        };
        let caller = self.caller.as_ref().map_or("", Subject::name);
        let marker = if caller.is_empty() { "" } else { "for" };
        let words = [self.wish.word(), agent, skill, marker, caller].map(slug);
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
    }

    /// What it does, for people.
    pub fn summary(&self) -> String {
        let who = self.caller.as_ref().map_or("everybody", Subject::name);
        let what = match self.object {
            Object::Agent(agent) => format!("call {} ({})", agent.slug, agent.url),
            Object::Skill(agent, skill) => format!("call {}.{skill} ({})", agent.slug, agent.url),
            Object::Trust(level) => format!("call every {level} agent"),
            Object::Tag(tag) => format!("call every skill tagged {tag}"),
            Object::Admin([action], _) => format!("do {}", action.as_str()),
            Object::Admin(_, org) => format!("administer everything in org {org}"),
        };
        match &self.wish {
            Wish::Allow => format!("{who} may {what}"),
            Wish::Deny if self.caller.is_none() => format!("nobody may {what}"),
            Wish::Deny => format!("{who} may not {what}"),
            Wish::Approval { by } => format!("{who} may {what} only with approval by {by}"),
        }
    }

    /// The policy's text, with `name` as its `@id` and its file's name.
    pub fn compile(&self, name: &str) -> Source {
        let (resource, condition) = self.resource();
        let approval = match &self.wish {
            Wish::Approval { by } => format!("@approval({})\n", quoted(by)),
            Wish::Allow | Wish::Deny => String::new(),
        };
        let text = format!(
            "@id({})\n@summary({})\n{approval}{} ({}, action {}, {resource}){condition}{};\n",
            quoted(name),
            quoted(&self.summary()),
            self.wish.effect(),
            self.caller.as_ref().map_or_else(|| "principal".to_owned(), Subject::scope),
            self.object.actions(),
            self.wish.unless(),
        );
        let source = Source { name: format!("{name}.cedar"), text, org: None };
        match format(&source) {
            Ok(text) => Source { text, ..source },
            // The layout is for the eye; the text means the same without it.
            Err(_) => source,
        }
    }

    /// The scope's resource, and the condition that makes it exact.
    fn resource(&self) -> (String, String) {
        match self.object {
            Object::Agent(agent) => {
                (format!("resource in A2AAgent::{}", quoted(agent.id.as_str())), String::new())
            }
            Object::Skill(agent, skill) => {
                (format!("resource == Skill::{}", quoted(&skill_key(&agent.id, skill))), String::new())
            }
            Object::Trust(level) => {
                let level = quoted(level.as_str());
                let condition = format!(
                    " when {{ (resource is Skill && resource.agent.trustLevel == {level}) || (resource is A2AAgent && resource.trustLevel == {level}) }}"
                );
                ("resource".to_owned(), condition)
            }
            Object::Tag(tag) => {
                let condition = format!(" when {{ resource.tags.contains({}) }}", quoted(tag));
                ("resource is Skill".to_owned(), condition)
            }
            Object::Admin(_, org) => (format!("resource == Org::{}", quoted(org.as_str())), String::new()),
        }
    }
}

// === impl Wish ===

impl Wish {
    const fn word(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Approval { .. } => "approve",
        }
    }

    const fn effect(&self) -> &'static str {
        match self {
            Self::Allow => "permit",
            Self::Deny | Self::Approval { .. } => "forbid",
        }
    }

    const fn unless(&self) -> &'static str {
        match self {
            Self::Allow | Self::Deny => "",
            Self::Approval { .. } => " unless { context.approved }",
        }
    }
}

// === impl Subject ===

impl Subject {
    fn name(&self) -> &str {
        match self {
            Self::Caller { id, .. } => id.as_str(),
            Self::Owners => "owners",
        }
    }

    fn scope(&self) -> String {
        let (kind, id) = match self {
            Self::Caller { kind: CallerKind::User, id } => ("User", id),
            Self::Caller { kind: CallerKind::Session, id } => ("Session", id),
            Self::Caller { kind: CallerKind::Agent, id } => ("A2AAgent", id),
            Self::Owners => return format!("principal in Role::{}", quoted(OWNER)),
        };
        format!("principal == {kind}::{}", quoted(id.as_str()))
    }
}

// === impl Object ===

impl Object<'_> {
    /// The scope's action.
    fn actions(&self) -> String {
        let literal = |action: &Action| format!("Action::{}", quoted(action.as_str()));
        match self {
            Self::Agent(_) | Self::Skill(..) | Self::Trust(_) | Self::Tag(_) => {
                format!("== {}", literal(&Action::Invoke))
            }
            Self::Admin([action], _) => format!("== {}", literal(action)),
            Self::Admin(actions, _) => {
                format!("in [{}]", actions.iter().map(literal).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// A text as Cedar reads it back: its escapes are Rust's.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.escape_debug())
}

#[cfg(test)]
mod tests;
