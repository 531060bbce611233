//! Templates of common policies, compiled to Cedar text.
//!
//! Texts of third parties (an agent's address, a skill's id, a tag) are always quoted and escaped, so no name can change the policy. A
//! property test parses the text with Cedar's own parser.

use rialto_model::{
    agent::{Agent, AgentTrust},
    call::{CallerId, CallerKind},
    ids::{OrgId, SkillId},
    name::slug,
};

use crate::{
    entities::{OWNER, skill_key},
    request::Action,
    source::{PolicySource, format},
};

/// Template of a policy.
#[derive(Clone, Debug)]
pub struct PolicyTemplate<'a> {
    /// Effect.
    pub effect: TemplateEffect,
    /// Callers it applies to; none means every caller.
    pub caller: Option<TemplateSubject>,
    /// Calls or actions it applies to.
    pub target: TemplateTarget<'a>,
}

/// Effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateEffect {
    /// Allow, unless another policy forbids it.
    Allow,
    /// Deny.
    Deny,
    /// Deny without approval.
    Approval {
        /// Approver: `caller` for the caller itself, a caller's name, or words for people to read.
        by: String,
    },
}

/// Callers of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateSubject {
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

/// Calls or actions of a policy.
#[derive(Clone, Copy, Debug)]
pub enum TemplateTarget<'a> {
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

// === impl PolicyTemplate ===

impl PolicyTemplate<'_> {
    /// A name that says what it does, made of letters, digits, `_` and `-`.
    pub fn name(&self) -> String {
        let (agent, skill) = match self.target {
            TemplateTarget::Agent(agent) => (agent.slug.as_str(), ""),
            TemplateTarget::Skill(agent, skill) => (agent.slug.as_str(), skill.as_str()),
            TemplateTarget::Trust(level) => ("trust", level.as_str()),
            TemplateTarget::Tag(tag) => ("tag", tag),
            TemplateTarget::Admin([action], _) => (action.as_str(), ""),
            TemplateTarget::Admin(..) => ("admin", "all"),
        };
        let caller = self.caller.as_ref().map_or("", TemplateSubject::name);
        let marker = if caller.is_empty() { "" } else { "for" };
        let words = [self.effect.name_prefix(), agent, skill, marker, caller].map(slug);
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
    }

    /// Summary for people.
    pub fn summary(&self) -> String {
        let who = self.caller.as_ref().map_or("everybody", TemplateSubject::name);
        let what = match self.target {
            TemplateTarget::Agent(agent) => format!("call {} ({})", agent.slug, agent.url),
            TemplateTarget::Skill(agent, skill) => format!("call {}.{skill} ({})", agent.slug, agent.url),
            TemplateTarget::Trust(level) => format!("call every {level} agent"),
            TemplateTarget::Tag(tag) => format!("call every skill tagged {tag}"),
            TemplateTarget::Admin([action], _) => format!("do {}", action.as_str()),
            TemplateTarget::Admin(_, org) => format!("administer everything in org {org}"),
        };
        match &self.effect {
            TemplateEffect::Allow => format!("{who} may {what}"),
            TemplateEffect::Deny if self.caller.is_none() => format!("nobody may {what}"),
            TemplateEffect::Deny => format!("{who} may not {what}"),
            TemplateEffect::Approval { by } => format!("{who} may {what} only with approval by {by}"),
        }
    }

    /// The policy's text, with `name` as its `@id` and its file's name.
    pub fn compile(&self, name: &str) -> PolicySource {
        let (resource, condition) = self.resource();
        let approval = match &self.effect {
            TemplateEffect::Approval { by } => format!("@approval({})\n", quote_cedar(by)),
            TemplateEffect::Allow | TemplateEffect::Deny => String::new(),
        };
        let text = format!(
            "@id({})\n@summary({})\n{approval}{} ({}, action {}, {resource}){condition}{};\n",
            quote_cedar(name),
            quote_cedar(&self.summary()),
            self.effect.effect(),
            self.caller.as_ref().map_or_else(|| "principal".to_owned(), TemplateSubject::scope),
            self.target.actions(),
            self.effect.unless(),
        );
        let source = PolicySource { name: format!("{name}.cedar"), text, org: None };
        match format(&source) {
            Ok(text) => PolicySource { text, ..source },
            // The layout is for the eye; the text means the same without it.
            Err(_) => source,
        }
    }

    /// The scope's resource, and the condition that makes it exact.
    fn resource(&self) -> (String, String) {
        match self.target {
            TemplateTarget::Agent(agent) => {
                (format!("resource in A2AAgent::{}", quote_cedar(agent.id.as_str())), String::new())
            }
            TemplateTarget::Skill(agent, skill) => {
                (format!("resource == Skill::{}", quote_cedar(&skill_key(&agent.id, skill))), String::new())
            }
            TemplateTarget::Trust(level) => {
                let level = quote_cedar(level.as_str());
                let condition = format!(
                    " when {{ (resource is Skill && resource.agent.trustLevel == {level}) || (resource is A2AAgent && resource.trustLevel == {level}) }}"
                );
                ("resource".to_owned(), condition)
            }
            TemplateTarget::Tag(tag) => {
                let condition = format!(" when {{ resource.tags.contains({}) }}", quote_cedar(tag));
                ("resource is Skill".to_owned(), condition)
            }
            TemplateTarget::Admin(_, org) => {
                (format!("resource == Org::{}", quote_cedar(org.as_str())), String::new())
            }
        }
    }
}

// === impl TemplateEffect ===

impl TemplateEffect {
    const fn name_prefix(&self) -> &'static str {
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

// === impl TemplateSubject ===

impl TemplateSubject {
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
            Self::Owners => return format!("principal in Role::{}", quote_cedar(OWNER)),
        };
        format!("principal == {kind}::{}", quote_cedar(id.as_str()))
    }
}

// === impl TemplateTarget ===

impl TemplateTarget<'_> {
    /// The scope's action.
    fn actions(&self) -> String {
        let literal = |action: &Action| format!("Action::{}", quote_cedar(action.as_str()));
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

/// Quotes a text as Cedar parses it: its escapes are Rust's.
fn quote_cedar(text: &str) -> String {
    format!("\"{}\"", text.escape_debug())
}

#[cfg(test)]
mod tests;
