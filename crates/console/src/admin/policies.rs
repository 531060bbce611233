//! Who may do what: the policies in force, and what would come of others.

use std::sync::Arc;

use rialto_model::{
    agent::Agent,
    call::{Caller, CallerId, CallerKind, Target},
    failure::{Failure, Kind},
    ids::SkillId,
};
use rialto_policy::{
    Action, Decision, Finding, Object, Policy, Problem, Question, Rule, Source, Template, Who, Wish,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Console,
    console::store_failure,
    office::{KeptPolicy, PolicyVersion, Shelf},
};

/// So many skills of an agent are asked about.
const ASKED: usize = 30;

/// One text of policies.
#[derive(Clone, Debug)]
pub struct Text {
    /// What it is called by: a file, or `store:NAME`.
    pub name: String,
    /// What it says.
    pub text: String,
    /// The policies in it.
    pub rules: Vec<Rule>,
}

/// Whether something would be allowed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Asked {
    /// Who: a name, or for an agent its slug, id or URL.
    pub caller: String,
    /// `user`, `session` or `agent`.
    pub kind: Option<CallerKind>,
    /// What: `a2a_invoke`, `admin_agents`, …
    pub action: String,
    /// To whom: a skill or an agent. Nothing for admin actions.
    pub target: String,
}

/// The answer, and what each policy says to it.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Who would do it.
    pub caller: CallerId,
    /// What was asked about.
    pub target: String,
    /// The decision.
    pub decision: Arc<Decision>,
    /// Why not, and what would allow it.
    pub why_not: Option<String>,
    /// Policy by policy.
    pub findings: Vec<Finding>,
}

/// One of the usual policies that somebody wants.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Usual {
    /// `allow-agent`, `allow-skill`, `allow-trust`, `allow-tag`, `allow-admin`, `deny-agent`, `deny-skill`, `require-approval`.
    pub kind: String,
    /// What it is about.
    pub target: String,
    /// For this caller only.
    pub caller: String,
    /// `user`, `session` or `agent`.
    pub caller_kind: Option<CallerKind>,
    /// Who must approve, with `require-approval`.
    pub by: String,
    /// What to call it; what has that name is replaced.
    pub name: String,
    /// Where to keep it, unless where new ones are kept.
    pub shelf: Option<Shelf>,
}

/// The usual policies: what they are called, what they do, what they are about.
pub const USUAL: [(&str, &str, &str); 8] = [
    ("allow-agent", "Let an agent and all its skills be called", "agent"),
    ("allow-skill", "Let one skill be called", "agent.skill"),
    ("allow-trust", "Let all agents of a level of trust be called", "external, trusted or system"),
    ("allow-tag", "Let all skills with a tag be called", "tag"),
    ("allow-admin", "Let somebody administer over the network", "admin_agents, admin_policies, …"),
    ("deny-agent", "Forbid an agent to be called, whatever permits it", "agent"),
    ("deny-skill", "Forbid one skill to be called, whatever permits it", "agent.skill"),
    ("require-approval", "Forbid it without approval", "agent or agent.skill"),
];

/// All texts, with the policies in them.
pub async fn list(console: &Console, caller: &Caller) -> Result<Vec<Text>, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    let sources = console.office().policies().await?;
    // One that does not hold up is not in force, but can be looked at and mended.
    let rules = Policy::parse(&sources).map(|policy| policy.rules()).unwrap_or_default();
    let text = |source: Source| {
        let rules = rules.iter().filter(|rule| rule.file == source.name).cloned().collect();
        Text { name: source.name, text: source.text, rules }
    };
    Ok(sources.into_iter().map(text).collect())
}

/// One text.
pub async fn show(console: &Console, caller: &Caller, name: &str) -> Result<Text, Failure> {
    let texts = list(console, caller).await?;
    let is_it = |text: &Text| text.name == name || text.name.strip_suffix(".cedar") == Some(name);
    texts.into_iter().find(is_it).ok_or_else(|| {
        Failure::new(
            Kind::NotFound,
            format!("there is no policy \"{name}\"; look at the list for those there are"),
        )
    })
}

/// Keeps a text, once everything that would then be in force holds up.
pub async fn save(
    console: &Console,
    caller: &Caller,
    name: &str,
    text: &str,
    shelf: Option<Shelf>,
) -> Result<KeptPolicy, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    let kept = console.office().save_policy(caller.id.as_str(), name, text, shelf).await?;
    make_known(console).await?;
    Ok(kept)
}

/// Takes a text away.
pub async fn remove(
    console: &Console,
    caller: &Caller,
    name: &str,
    shelf: Option<Shelf>,
) -> Result<KeptPolicy, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    let gone = console.office().remove_policy(caller.id.as_str(), name, shelf).await?;
    make_known(console).await?;
    Ok(gone)
}

/// Makes an older text the one in force.
pub async fn restore(
    console: &Console,
    caller: &Caller,
    name: &str,
    version: i64,
    shelf: Option<Shelf>,
) -> Result<KeptPolicy, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    let kept = console.office().restore_policy(caller.id.as_str(), name, version, shelf).await?;
    make_known(console).await?;
    Ok(kept)
}

/// The names of the policies that are kept, if all of them hold up.
pub async fn check(console: &Console, caller: &Caller) -> Result<Vec<String>, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    let sources = console.office().policies().await?;
    let policy = Policy::parse(&sources).map_err(|error| Failure::new(Kind::Invalid, error.to_string()))?;
    Ok(policy.ids())
}

/// The policies in a text that was kept.
pub async fn rules_in(console: &Console, caller: &Caller, kept: &KeptPolicy) -> Result<Vec<Rule>, Failure> {
    let texts = list(console, caller).await?;
    Ok(texts.into_iter().find(|text| text.name == kept.listed).map(|text| text.rules).unwrap_or_default())
}

/// The texts that a policy had, newest first.
pub async fn history(
    console: &Console,
    caller: &Caller,
    name: &str,
    shelf: Option<Shelf>,
) -> Result<Vec<PolicyVersion>, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    console.office().policy_history(name, shelf).await
}

/// Writes what a template says.
pub async fn add(
    console: &Console,
    caller: &Caller,
    template: &Template<'_>,
    name: Option<&str>,
    shelf: Option<Shelf>,
) -> Result<KeptPolicy, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    let kept = console.office().add_policy(caller.id.as_str(), template, name, shelf).await?;
    make_known(console).await?;
    Ok(kept)
}

/// Writes one of the usual policies.
pub async fn add_usual(console: &Console, caller: &Caller, usual: &Usual) -> Result<KeptPolicy, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    let meant = Meant::of(console, caller, usual)?;
    let for_whom = match usual.caller.trim() {
        "" => None,
        name => {
            let (who, _) = who(console, caller, name, usual.caller_kind)?;
            Some(Who { kind: who.kind, id: who.id })
        }
    };
    let name = Some(usual.name.trim()).filter(|name| !name.is_empty());
    add(console, caller, &meant.template(caller, usual, for_whom), name, usual.shelf).await
}

/// What is wrong with a text, if it took the place of the one with that name.
pub async fn validate(
    console: &Console,
    caller: &Caller,
    name: &str,
    text: &str,
) -> Result<Vec<Problem>, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    let sources = replaced(console, name, text).await?;
    Ok(Policy::parse(&sources).err().map(|error| error.0).unwrap_or_default())
}

/// Whether something would be allowed, and why.
pub async fn test(console: &Console, caller: &Caller, asked: &Asked) -> Result<Answer, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    let invalid = |message: String| Failure::new(Kind::Invalid, message);
    let action = Action::parse(&asked.action).ok_or_else(|| {
        let names = Action::ALL.map(Action::as_str).join(", ");
        invalid(format!("\"{}\" is not an action; use one of {names}", asked.action))
    })?;
    let (who, row) = who(console, caller, &asked.caller, asked.kind)?;
    let target = match asked.target.trim() {
        _ if action.is_admin() => None,
        "" => return Err(invalid(format!("{} needs the name of a skill or an agent", asked.action))),
        name => Some(target(console, caller, name)?),
    };
    let question = match &target {
        Some(target) => Question::about(&who, action, target),
        None => Question::admin(&who, action),
    };
    let question = question.by(row.as_deref());
    let policy = console.engine().policy();
    Ok(Answer {
        caller: who.id.clone(),
        target: target.as_ref().map_or_else(|| format!("org {}", who.scope.org), Target::verb),
        decision: policy.decide(&question),
        why_not: policy.allow(&question).err().map(|denied| denied.to_string()),
        findings: policy.explain(&question),
    })
}

/// The policies that are about an agent or any of its skills, and how the caller fares there.
pub fn about(console: &Console, caller: &Caller, agent: &Arc<Agent>) -> Vec<Finding> {
    use rialto_policy::Outcome::{Decides, Failed, Overruled, Unmet};
    let (policy, row) = (console.engine().policy(), console.caller_row(caller));
    let mut found: Vec<Finding> = Vec::new();
    let skills = agent.card.skills.iter().take(ASKED).cloned().map(Some);
    for skill in skills.chain([None]) {
        let target = Target { agent: Arc::clone(agent), skill };
        let question = Question::about(caller, Action::Invoke, &target).by(row.as_deref());
        for finding in policy.explain(&question) {
            let applies = matches!(finding.outcome, Decides | Overruled | Unmet | Failed(_));
            if applies && !found.iter().any(|known| known.rule.name == finding.rule.name) {
                found.push(finding);
            }
        }
    }
    found
}

/// All texts as they would be.
pub(super) async fn replaced(console: &Console, name: &str, text: &str) -> Result<Vec<Source>, Failure> {
    let mut sources = console.office().policies().await?;
    sources.retain(|source| source.name != name && source.name.strip_suffix(".cedar") != Some(name));
    let name = if name.is_empty() { "new.cedar" } else { name };
    sources.push(Source { name: name.to_owned(), text: text.to_owned() });
    Ok(sources)
}

/// An answer for programs.
pub fn answer(asked: &Asked, answer: &Answer) -> Value {
    let policies = answer.findings.iter().map(|finding| {
        json!({
            "name": finding.rule.name,
            "effect": finding.rule.effect.as_str(),
            "outcome": finding.outcome.name(),
            "reason": finding.outcome.to_string(),
            "summary": finding.rule.summary,
            "file": finding.rule.file,
        })
    });
    json!({
        "decision": if answer.decision.allowed { "allow" } else { "deny" },
        "caller": asked.caller,
        "callerId": answer.caller,
        "decidedBy": answer.decision.policies,
        "action": asked.action,
        "target": answer.target,
        "whyNot": answer.why_not,
        "policies": policies.collect::<Vec<_>>(),
        "errors": answer.decision.errors,
    })
}

/// What a usual policy is about, found.
enum Meant {
    Agent(Arc<Agent>),
    Skill(Arc<Agent>, SkillId),
    Trust(rialto_model::agent::Trust),
    Tag(String),
    Admin(Action),
}

// === impl Meant ===

impl Meant {
    fn of(console: &Console, caller: &Caller, usual: &Usual) -> Result<Self, Failure> {
        let invalid = |message: String| Failure::new(Kind::Invalid, message);
        let name = usual.target.trim();
        match usual.kind.as_str() {
            "allow-trust" => super::agents::level(name).map(Self::Trust).ok_or_else(|| {
                invalid(format!("\"{name}\" is not a level of trust; use external, trusted or system"))
            }),
            "allow-tag" if name.is_empty() => Err(invalid("target: name a tag".to_owned())),
            "allow-tag" => Ok(Self::Tag(name.to_owned())),
            "allow-admin" if usual.caller.trim().is_empty() => {
                Err(invalid("caller: say who may administer".to_owned()))
            }
            "allow-admin" => {
                Action::parse(name).filter(|action| action.is_admin()).map(Self::Admin).ok_or_else(|| {
                    let all = Action::ALL.into_iter().filter(|action| action.is_admin()).map(Action::as_str);
                    invalid(format!(
                        "\"{name}\" is not an admin action; use one of {}",
                        all.collect::<Vec<_>>().join(", ")
                    ))
                })
            }
            "allow-agent" | "deny-agent" => {
                Ok(Self::Agent(console.engine().registry().find(&caller.scope, name)?))
            }
            "allow-skill" | "deny-skill" | "require-approval" => {
                let Target { agent, skill } = target(console, caller, name)?;
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

    fn template<'a>(&'a self, caller: &'a Caller, usual: &Usual, for_whom: Option<Who>) -> Template<'a> {
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
            Self::Admin(action) => Object::Admin(*action, &caller.scope.org),
        };
        Template { wish, caller: for_whom, object }
    }
}

/// Every process goes by what was changed, this one at once.
async fn make_known(console: &Console) -> Result<(), Failure> {
    console.store().touch().await.map_err(store_failure)?;
    console.engine().sync().await
}

/// A caller by its name; an agent is any that is registered.
fn who(
    console: &Console,
    asks: &Caller,
    name: &str,
    kind: Option<CallerKind>,
) -> Result<(Caller, Option<Arc<Agent>>), Failure> {
    let kind = kind.unwrap_or(CallerKind::User);
    let name = if name.trim().is_empty() { asks.id.as_str() } else { name.trim() };
    let caller = Caller { kind, scope: asks.scope.clone(), ..Caller::user(name) };
    match kind {
        CallerKind::User | CallerKind::Session => Ok((caller, None)),
        CallerKind::Agent => {
            let row = console.engine().registry().find(&asks.scope, name)?;
            Ok((Caller { id: row.id.as_str().into(), ..caller }, Some(row)))
        }
    }
}

fn target(console: &Console, caller: &Caller, name: &str) -> Result<Target, Failure> {
    let registry = console.engine().registry();
    if let Some(entry) = registry.directory(&caller.scope).find(name) {
        return Ok(entry.target());
    }
    Ok(Target { agent: registry.find(&caller.scope, name)?, skill: None })
}
