//! Who may do what: the policies in force, and what would come of others.

use std::sync::Arc;

use rialto_model::{
    agent::Agent,
    call::{Caller, CallerKind, Target},
    failure::{Failure, Kind},
    ids::SkillId,
};
use rialto_policy::{
    Action, Decision, Finding, Object, Policy, Problem, Question, Rule, Source, Template, Who, Wish,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Console, console::store_failure, office::PolicyVersion};

/// So many callers and targets are in a matrix at most.
const WIDEST: usize = 12;
const LONGEST: usize = 60;

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
}

/// Who may call what: a row for each skill or agent, a column for each caller.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// The callers.
    pub callers: Vec<String>,
    /// What is called, and for each caller whether it may.
    pub rows: Vec<(String, Vec<bool>)>,
    /// How many more there are.
    pub more: usize,
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
pub async fn save(console: &Console, caller: &Caller, name: &str, text: &str) -> Result<String, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    let kept = console.office().save_policy(caller.id.as_str(), name, text).await?;
    make_known(console).await?;
    Ok(kept)
}

/// Takes a text away.
pub async fn remove(console: &Console, caller: &Caller, name: &str) -> Result<(), Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    console.office().remove_policy(caller.id.as_str(), name).await?;
    make_known(console).await
}

/// The texts that a policy had, newest first.
pub async fn history(console: &Console, caller: &Caller, name: &str) -> Result<Vec<PolicyVersion>, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    console.office().policy_history(name).await
}

/// Writes what a template says.
pub async fn add(console: &Console, caller: &Caller, template: &Template<'_>) -> Result<String, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    let kept = console.office().add_policy(caller.id.as_str(), template).await?;
    make_known(console).await?;
    Ok(kept)
}

/// Writes one of the usual policies.
pub async fn add_usual(console: &Console, caller: &Caller, usual: &Usual) -> Result<String, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    let meant = Meant::of(console, caller, usual)?;
    add(console, caller, &meant.template(caller, usual)).await
}

/// What is wrong with a text, if it took the place of the one with that name.
pub async fn validate(
    console: &Console,
    caller: &Caller,
    name: &str,
    text: &str,
) -> Result<Vec<Problem>, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    let mut sources = console.office().policies().await?;
    sources.retain(|source| source.name != name && source.name.strip_suffix(".cedar") != Some(name));
    let name = if name.is_empty() { "new.cedar" } else { name };
    sources.push(Source { name: name.to_owned(), text: text.to_owned() });
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
        target: target.as_ref().map_or_else(|| format!("org {}", who.scope.org), Target::verb),
        decision: policy.decide(&question),
        why_not: policy.allow(&question).err().map(|denied| denied.to_string()),
        findings: policy.explain(&question),
    })
}

/// Who may call what, for these callers.
pub async fn matrix(console: &Console, caller: &Caller, callers: &[String]) -> Result<Matrix, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    let policy = console.engine().policy();
    let callers: Vec<String> = callers.iter().take(WIDEST).cloned().collect();
    let directory = console.engine().registry().directory(&caller.scope);
    let people: Vec<Caller> =
        callers.iter().map(|name| Caller { scope: caller.scope.clone(), ..Caller::user(name) }).collect();
    let rows = directory.entries().iter().take(LONGEST).map(|entry| {
        let target = entry.target();
        let may = |who: &Caller| policy.decide(&Question::about(who, Action::Invoke, &target)).allowed;
        (entry.canonical.clone(), people.iter().map(may).collect())
    });
    let rows: Vec<_> = rows.collect();
    Ok(Matrix { callers, more: directory.entries().len() - rows.len(), rows })
}

/// The policies that are about an agent or any of its skills, and how everybody fares there.
pub fn about(console: &Console, caller: &Caller, agent: &Arc<Agent>) -> Vec<Finding> {
    let target = Target { agent: Arc::clone(agent), skill: agent.card.skills.first().cloned() };
    let row = console.caller_row(caller);
    let question = Question::about(caller, Action::Invoke, &target).by(row.as_deref());
    let mut findings = console.engine().policy().explain(&question);
    findings.retain(|finding| {
        use rialto_policy::Outcome::{Decides, Failed, Overruled, Unmet};
        matches!(finding.outcome, Decides | Overruled | Unmet | Failed(_))
    });
    findings
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
            "allow-agent" | "deny-agent" | "allow-skill" | "deny-skill" | "require-approval" => {
                let target = target(console, caller, name)?;
                Ok(match target.skill {
                    Some(skill) if !usual.kind.ends_with("-agent") => {
                        Self::Skill(target.agent, skill.id.clone())
                    }
                    _ => Self::Agent(target.agent),
                })
            }
            kind => {
                let all = USUAL.map(|(kind, ..)| kind).join(", ");
                Err(invalid(format!("\"{kind}\" is none of the usual policies: {all}")))
            }
        }
    }

    fn template<'a>(&'a self, caller: &'a Caller, usual: &Usual) -> Template<'a> {
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
        let name = usual.caller.trim();
        let kind = usual.caller_kind.unwrap_or(CallerKind::User);
        let caller = (!name.is_empty()).then(|| Who { kind, id: name.into() });
        Template { wish, caller, object }
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
