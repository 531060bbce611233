//! Templates of common policies.

use std::sync::Arc;

use rialto_api_types::policies::NewPolicy;
use rialto_model::{
    agent::Agent,
    call::{CallTarget, Caller},
    failure::{Failure, FailureKind},
    ids::SkillId,
};
use rialto_policy::{Action, PolicyTemplate, TemplateEffect, TemplateSubject, TemplateTarget};

use super::{
    PolicySelector, find_caller, find_target, policy_scope, policy_texts, publish_change, record_change,
};
use crate::{Administration, agents, host::ChangedPolicy, operation::AdminOperation};

/// Templates: name, summary and kind of target.
pub const TEMPLATES: [(&str, &str, &str); 8] = [
    ("allow-agent", "Allow calls of an agent and all its skills", "agent"),
    ("allow-skill", "Allow calls of one skill", "agent.skill"),
    ("allow-trust", "Allow calls of all agents with a trust level", "external, trusted or system"),
    ("allow-tag", "Allow calls of all skills with a tag", "tag"),
    ("allow-admin", "Allow a caller to administer over the network", "all, admin_agents, admin_policies, …"),
    ("deny-agent", "Deny calls of an agent, overriding all permits", "agent"),
    ("deny-skill", "Deny calls of one skill, overriding all permits", "agent.skill"),
    ("require-approval", "Require approval for calls", "agent or agent.skill"),
];

/// Saves a policy from a template as part of a recorded operation.
pub(crate) async fn save_template(
    admin: &Administration,
    caller: &Caller,
    template: &PolicyTemplate<'_>,
    name: Option<&str>,
    selector: PolicySelector,
) -> Result<ChangedPolicy, Failure> {
    let scope = policy_scope(admin, caller, selector.all_orgs)?;
    let changed = admin.host().add_policy(&scope, template, name, selector.place).await?;
    publish_change(admin).await?;
    Ok(changed)
}

/// Writes a policy from a template.
pub async fn add_from_template(
    admin: &Administration,
    caller: &Caller,
    new: &NewPolicy,
) -> Result<ChangedPolicy, Failure> {
    let name = Some(new.name.trim()).filter(|name| !name.is_empty());
    let operation = AdminOperation::new("policy.save", name.unwrap_or(new.kind.as_str()));
    admin
        .administer(caller, Action::AdminPolicies, &operation, async {
            let target = NamedTarget::find(admin, caller, new)?;
            let subject = subject(admin, caller, new)?;
            let template = target.template(caller, new, subject);
            let before = policy_texts(admin).await;
            let selector = PolicySelector { place: new.shelf, all_orgs: new.all_orgs };
            let changed = save_template(admin, caller, &template, name, selector).await?;
            record_change(admin, &operation, &before, &changed).await;
            Ok(changed)
        })
        .await
}

/// Callers that the policy applies to; none means all callers.
fn subject(
    admin: &Administration,
    caller: &Caller,
    new: &NewPolicy,
) -> Result<Option<TemplateSubject>, Failure> {
    let invalid = |message: String| Err(Failure::new(FailureKind::Invalid, message));
    match (new.caller.trim(), new.role.trim()) {
        ("", "") => Ok(None),
        ("", "owner") => Ok(Some(TemplateSubject::Owners)),
        ("", role) => invalid(format!("role: \"{role}\" is not a role; use `owner`")),
        (name, "") => {
            let (who, _) = find_caller(admin, caller, name, new.caller_kind)?;
            Ok(Some(TemplateSubject::Caller { kind: who.kind, id: who.id }))
        }
        _ => invalid("caller and role: set one of them".to_owned()),
    }
}

/// Target of a template, resolved by its name.
enum NamedTarget {
    Agent(Arc<Agent>),
    Skill(Arc<Agent>, SkillId),
    Trust(rialto_model::agent::AgentTrust),
    Tag(String),
    Admin(Vec<Action>),
}

// === impl NamedTarget ===

impl NamedTarget {
    fn find(admin: &Administration, caller: &Caller, new: &NewPolicy) -> Result<Self, Failure> {
        let invalid = |message: String| Failure::new(FailureKind::Invalid, message);
        let name = new.target.trim();
        match new.kind.as_str() {
            "allow-trust" => agents::parse_trust(name).map(Self::Trust).ok_or_else(|| {
                invalid(format!("\"{name}\" is not a trust level; use external, trusted or system"))
            }),
            "allow-tag" if name.is_empty() => Err(invalid("target: set a tag".to_owned())),
            "allow-tag" => Ok(Self::Tag(name.to_owned())),
            "allow-admin" if new.caller.trim().is_empty() && new.role.trim().is_empty() => {
                Err(invalid("caller: set a caller (`--caller NAME`) or a role (`--role owner`)".to_owned()))
            }
            "allow-admin" if name == "all" => Ok(Self::Admin(Action::ADMIN.to_vec())),
            "allow-admin" => match Action::parse(name).filter(|action| action.is_admin()) {
                Some(action) => Ok(Self::Admin(vec![action])),
                None => {
                    let actions = Action::ADMIN.map(Action::as_str).join(", ");
                    Err(invalid(format!("\"{name}\" is not an admin action; use all, or one of {actions}")))
                }
            },
            "allow-agent" | "deny-agent" => {
                Ok(Self::Agent(admin.engine().registry().find(&caller.scope, name)?))
            }
            "allow-skill" | "deny-skill" | "require-approval" => {
                let CallTarget { agent, skill } = find_target(admin, caller, name)?;
                match skill {
                    Some(skill) => Ok(Self::Skill(agent, skill.id.clone())),
                    None if new.kind == "require-approval" => Ok(Self::Agent(agent)),
                    None => {
                        let slug = &agent.slug;
                        Err(invalid(format!(
                            "{slug} is an agent; use one of its skills, like {slug}.SKILL: see `rialto agents show {slug}`"
                        )))
                    }
                }
            }
            kind => {
                let all = TEMPLATES.map(|(kind, ..)| kind).join(", ");
                Err(invalid(format!("\"{kind}\" is not a template; use one of {all}")))
            }
        }
    }

    fn template<'a>(
        &'a self,
        caller: &'a Caller,
        new: &NewPolicy,
        subject: Option<TemplateSubject>,
    ) -> PolicyTemplate<'a> {
        let by = if new.by.trim().is_empty() { "an administrator" } else { new.by.trim() };
        let effect = match new.kind.split('-').next() {
            Some("allow") => TemplateEffect::Allow,
            Some("deny") => TemplateEffect::Deny,
            _ => TemplateEffect::Approval { by: by.to_owned() },
        };
        let target = match self {
            Self::Agent(agent) => TemplateTarget::Agent(agent),
            Self::Skill(agent, skill) => TemplateTarget::Skill(agent, skill),
            Self::Trust(level) => TemplateTarget::Trust(*level),
            Self::Tag(tag) => TemplateTarget::Tag(tag),
            Self::Admin(actions) => TemplateTarget::Admin(actions, &caller.scope.org),
        };
        PolicyTemplate { effect, caller: subject, target }
    }
}
