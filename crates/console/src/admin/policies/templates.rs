//! The usual policies: templates that are filled in by name, and written like any other text.

use std::sync::Arc;

use rialto_api_types::policies::NewPolicy;
use rialto_model::{
    agent::Agent,
    call::{CallTarget, Caller},
    failure::{Failure, FailureKind},
    ids::SkillId,
};
use rialto_policy::{Action, Object, Subject, Template, Wish};

use super::{Location, make_known, note_change, policy_texts, scope, target, who};
use crate::{Console, admin::agents, office::KeptPolicy, operation::Operation};

/// The usual policies: what they are called, what they do, what they are about.
pub const USUAL: [(&str, &str, &str); 8] = [
    ("allow-agent", "Let an agent and all its skills be called", "agent"),
    ("allow-skill", "Let one skill be called", "agent.skill"),
    ("allow-trust", "Let all agents of a level of trust be called", "external, trusted or system"),
    ("allow-tag", "Let all skills with a tag be called", "tag"),
    ("allow-admin", "Let a caller administer over the network", "all, admin_agents, admin_policies, …"),
    ("deny-agent", "Forbid an agent to be called, whatever permits it", "agent"),
    ("deny-skill", "Forbid one skill to be called, whatever permits it", "agent.skill"),
    ("require-approval", "Forbid it without approval", "agent or agent.skill"),
];

/// Writes a policy from a template.
pub async fn add(
    console: &Console,
    caller: &Caller,
    template: &Template<'_>,
    name: Option<&str>,
    location: Location,
) -> Result<KeptPolicy, Failure> {
    let operation = Operation::new("policy.save", name.unwrap_or_default());
    console
        .administer(caller, Action::AdminPolicies, &operation, async {
            let before = policy_texts(console).await;
            let kept = put_template(console, caller, template, name, location).await?;
            note_change(console, &operation, &before, &kept).await;
            Ok(kept)
        })
        .await
}

/// Writes a policy from a template, for an operation that is recorded.
pub(in crate::admin) async fn put_template(
    console: &Console,
    caller: &Caller,
    template: &Template<'_>,
    name: Option<&str>,
    location: Location,
) -> Result<KeptPolicy, Failure> {
    let scope = scope(console, caller, location.all_orgs)?;
    let kept = console.office().add_policy(&scope, template, name, location.shelf).await?;
    make_known(console).await?;
    Ok(kept)
}

/// Writes one of the usual policies.
pub async fn add_usual(console: &Console, caller: &Caller, usual: &NewPolicy) -> Result<KeptPolicy, Failure> {
    let name = Some(usual.name.trim()).filter(|name| !name.is_empty());
    let operation = Operation::new("policy.save", name.unwrap_or(usual.kind.as_str()));
    console
        .administer(caller, Action::AdminPolicies, &operation, async {
            let meant = Meant::of(console, caller, usual)?;
            let subject = subject(console, caller, usual)?;
            let template = meant.template(caller, usual, subject);
            let before = policy_texts(console).await;
            let location = Location { shelf: usual.shelf, all_orgs: usual.all_orgs };
            let kept = put_template(console, caller, &template, name, location).await?;
            note_change(console, &operation, &before, &kept).await;
            Ok(kept)
        })
        .await
}

/// Whom one of the usual policies is for; none means everybody.
fn subject(console: &Console, caller: &Caller, usual: &NewPolicy) -> Result<Option<Subject>, Failure> {
    let invalid = |message: String| Err(Failure::new(FailureKind::Invalid, message));
    match (usual.caller.trim(), usual.role.trim()) {
        ("", "") => Ok(None),
        ("", "owner") => Ok(Some(Subject::Owners)),
        ("", role) => invalid(format!("role: \"{role}\" is not a role; the one there is is `owner`")),
        (name, "") => {
            let (who, _) = who(console, caller, name, usual.caller_kind)?;
            Ok(Some(Subject::Caller { kind: who.kind, id: who.id }))
        }
        _ => invalid("caller and role: name one of them".to_owned()),
    }
}

/// What a usual policy is about, found.
enum Meant {
    Agent(Arc<Agent>),
    Skill(Arc<Agent>, SkillId),
    Trust(rialto_model::agent::AgentTrust),
    Tag(String),
    Admin(Vec<Action>),
}

// === impl Meant ===

impl Meant {
    fn of(console: &Console, caller: &Caller, usual: &NewPolicy) -> Result<Self, Failure> {
        let invalid = |message: String| Failure::new(FailureKind::Invalid, message);
        let name = usual.target.trim();
        match usual.kind.as_str() {
            "allow-trust" => agents::level(name).map(Self::Trust).ok_or_else(|| {
                invalid(format!("\"{name}\" is not a level of trust; use external, trusted or system"))
            }),
            "allow-tag" if name.is_empty() => Err(invalid("target: name a tag".to_owned())),
            "allow-tag" => Ok(Self::Tag(name.to_owned())),
            "allow-admin" if usual.caller.trim().is_empty() && usual.role.trim().is_empty() => Err(invalid(
                "caller: say who may administer: a caller (`--caller NAME`) or the role (`--role owner`)"
                    .to_owned(),
            )),
            "allow-admin" if name == "all" => Ok(Self::Admin(Action::ADMIN.to_vec())),
            "allow-admin" => match Action::parse(name).filter(|action| action.is_admin()) {
                Some(action) => Ok(Self::Admin(vec![action])),
                None => {
                    let actions = Action::ADMIN.map(Action::as_str).join(", ");
                    Err(invalid(format!("\"{name}\" is not an admin action; use all, or one of {actions}")))
                }
            },
            "allow-agent" | "deny-agent" => {
                Ok(Self::Agent(console.engine().registry().find(&caller.scope, name)?))
            }
            "allow-skill" | "deny-skill" | "require-approval" => {
                let CallTarget { agent, skill } = target(console, caller, name)?;
                match skill {
                    Some(skill) => Ok(Self::Skill(agent, skill.id.clone())),
                    None if usual.kind == "require-approval" => Ok(Self::Agent(agent)),
                    None => {
                        let slug = &agent.slug;
                        Err(invalid(format!(
                            "{slug} is an agent; name one of its skills, like {slug}.SKILL: `rialto agents show {slug}` lists them"
                        )))
                    }
                }
            }
            kind => {
                let all = USUAL.map(|(kind, ..)| kind).join(", ");
                Err(invalid(format!("\"{kind}\" is none of the usual policies: {all}")))
            }
        }
    }

    fn template<'a>(
        &'a self,
        caller: &'a Caller,
        usual: &NewPolicy,
        subject: Option<Subject>,
    ) -> Template<'a> {
        let by = if usual.by.trim().is_empty() { "an administrator" } else { usual.by.trim() };
        let wish = match usual.kind.split('-').next() {
            Some("allow") => Wish::Allow,
            Some("deny") => Wish::Deny,
            _ => Wish::Approval { by: by.to_owned() },
        };
        let object = match self {
            Self::Agent(agent) => Object::Agent(agent),
            Self::Skill(agent, skill) => Object::Skill(agent, skill),
            Self::Trust(level) => Object::Trust(*level),
            Self::Tag(tag) => Object::Tag(tag),
            Self::Admin(actions) => Object::Admin(actions, &caller.scope.org),
        };
        Template { wish, caller: subject, object }
    }
}
