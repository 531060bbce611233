//! Who may do what: the policies in force, and what would come of others.

use std::sync::Arc;

use rialto_model::{
    agent::Agent,
    call::{Caller, CallerId, CallerKind, Target},
    failure::{Failure, Kind},
    ids::{OrgId, Scope, SkillId},
};
use rialto_policy::{
    Action, Decision, Finding, Object, Policy, Problem, Question, Rule, Source, Subject, Template, Wish,
    named_agents,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Console,
    console::store_failure,
    office::{KeptPolicy, PolicyScope, PolicyVersion, SharedPolicies, Shelf},
    operation::Operation,
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
    /// The org that it belongs to; none if it applies to all orgs.
    pub org: Option<OrgId>,
}

/// Where a policy is kept, and for whom it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Location {
    /// Where it is kept, if that is said.
    pub shelf: Option<Shelf>,
    /// Whether it is one that applies to all orgs.
    pub all_orgs: bool,
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
    /// For callers with this role only: `owner`.
    pub role: String,
    /// Where to keep it, unless where new ones are kept.
    pub shelf: Option<Shelf>,
    /// Whether it applies to all orgs; only the server's owner may write such a policy.
    pub all_orgs: bool,
}

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

/// The texts that the caller may see, with the policies in them: its org's own, and for the server's owner those for all orgs.
pub async fn list(console: &Console, caller: &Caller) -> Result<Vec<Text>, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    texts(console, &scope(console, caller, false)?).await
}

async fn texts(console: &Console, scope: &PolicyScope) -> Result<Vec<Text>, Failure> {
    let mut sources = console.office().policies().await?;
    sources.retain(|source| scope.includes(source.org.as_ref()));
    // One that does not hold up is not in force, but can be looked at and mended.
    let rules = Policy::parse(&sources).map(|policy| policy.rules()).unwrap_or_default();
    let text = |source: Source| {
        let is_in = |rule: &&Rule| rule.file == source.name && rule.org == source.org;
        let rules = rules.iter().filter(is_in).cloned().collect();
        Text { name: source.name, text: source.text, rules, org: source.org }
    };
    let mut texts: Vec<Text> = sources.into_iter().map(text).collect();
    // Where an org's text and one for all orgs have the same name, the org's is found first.
    texts.sort_by_key(|text| text.org.is_none());
    Ok(texts)
}

/// One text.
pub async fn show(console: &Console, caller: &Caller, name: &str) -> Result<Text, Failure> {
    let texts = list(console, caller).await?;
    let is_it = |text: &Text| text.name == name || text.name.strip_suffix(".cedar") == Some(name);
    texts.into_iter().find(is_it).ok_or_else(|| {
        Failure::new(
            Kind::NotFound,
            format!("there is no policy \"{name}\"; `rialto policy list` shows those there are"),
        )
    })
}

/// Saves a text, once everything of its owner that would then be in force is valid.
pub async fn save(
    console: &Console,
    caller: &Caller,
    name: &str,
    text: &str,
    location: Location,
) -> Result<KeptPolicy, Failure> {
    let operation = Operation::new("policy.save", name);
    console
        .administer(caller, Action::AdminPolicies, &operation, async {
            let scope = scope(console, caller, location.all_orgs)?;
            if let Some(problem) = foreign_agent(console, &scope, name, text) {
                return Err(Failure::new(Kind::Invalid, format!("{}: {}", problem.place, problem.message)));
            }
            let before = policy_texts(console).await;
            let kept = console.office().save_policy(&scope, name, text, location.shelf).await?;
            note_change(console, &operation, &before, &kept).await;
            make_known(console).await?;
            Ok(kept)
        })
        .await
}

/// Removes a text.
pub async fn remove(
    console: &Console,
    caller: &Caller,
    name: &str,
    location: Location,
) -> Result<KeptPolicy, Failure> {
    let operation = Operation::new("policy.remove", name);
    console
        .administer(caller, Action::AdminPolicies, &operation, async {
            let scope = scope(console, caller, location.all_orgs)?;
            let before = policy_texts(console).await;
            let gone = console.office().remove_policy(&scope, name, location.shelf).await?;
            note_change(console, &operation, &before, &gone).await;
            make_known(console).await?;
            Ok(gone)
        })
        .await
}

/// Makes an older text the one in force.
pub async fn restore(
    console: &Console,
    caller: &Caller,
    name: &str,
    version: i64,
    location: Location,
) -> Result<KeptPolicy, Failure> {
    let operation = Operation::new("policy.restore", name);
    console
        .administer(caller, Action::AdminPolicies, &operation, async {
            let scope = scope(console, caller, location.all_orgs)?;
            let before = policy_texts(console).await;
            let kept = console.office().restore_policy(&scope, name, version, location.shelf).await?;
            note_change(console, &operation, &before, &kept).await;
            make_known(console).await?;
            Ok(kept)
        })
        .await
}

/// The names of the policies that the caller may see, if all of them are valid.
pub async fn check(console: &Console, caller: &Caller) -> Result<Vec<String>, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    let scope = scope(console, caller, false)?;
    let mut sources = console.office().policies().await?;
    sources.retain(|source| scope.includes(source.org.as_ref()));
    let policy = Policy::parse(&sources).map_err(|error| Failure::new(Kind::Invalid, error.to_string()))?;
    Ok(policy.ids())
}

/// The policies in a text that was just saved. Whether the caller may still administer policies is not asked: what it did
/// may have taken that away, and it is done.
pub async fn rules_in(console: &Console, caller: &Caller, kept: &KeptPolicy) -> Result<Vec<Rule>, Failure> {
    let texts = texts(console, &scope(console, caller, false)?).await?;
    let is_it = |text: &Text| text.name == kept.listed && text.org == kept.org;
    Ok(texts.into_iter().find(is_it).map(|text| text.rules).unwrap_or_default())
}

/// The texts that a policy had, newest first.
pub async fn history(
    console: &Console,
    caller: &Caller,
    name: &str,
    location: Location,
) -> Result<Vec<PolicyVersion>, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    let scope = scope(console, caller, location.all_orgs)?;
    console.office().policy_history(&scope, name, location.shelf).await
}

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
pub(super) async fn put_template(
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

/// All texts, for a comparison; none where they cannot be read.
async fn policy_texts(console: &Console) -> Vec<Source> {
    console.office().policies().await.unwrap_or_default()
}

/// Notes what an operation has made of a text.
async fn note_change(console: &Console, operation: &Operation, before: &[Source], kept: &KeptPolicy) {
    let state = |texts: &[Source]| {
        let is_it = |source: &&Source| source.name == kept.listed && source.org == kept.org;
        let text = texts.iter().find(is_it);
        text.map_or(
            Value::Null,
            |source| json!({ "name": source.name, "org": source.org, "text": source.text }),
        )
    };
    operation.name(kept.listed.as_str());
    operation.before(state(before));
    operation.after(state(&policy_texts(console).await));
}

/// Writes one of the usual policies.
pub async fn add_usual(console: &Console, caller: &Caller, usual: &Usual) -> Result<KeptPolicy, Failure> {
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
fn subject(console: &Console, caller: &Caller, usual: &Usual) -> Result<Option<Subject>, Failure> {
    let invalid = |message: String| Err(Failure::new(Kind::Invalid, message));
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

/// What is wrong with a text, if it took the place of the one with that name.
pub async fn validate(
    console: &Console,
    caller: &Caller,
    name: &str,
    text: &str,
) -> Result<Vec<Problem>, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    let (sources, new) = replaced(console, caller, name, text).await?;
    let mut problems = Policy::parse(&sources).err().map(|error| error.0).unwrap_or_default();
    if new.org.is_some() {
        let scope = scope(console, caller, false)?;
        problems.extend(foreign_agent(console, &scope, &new.name, text));
    }
    Ok(problems)
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
        findings: visible(console, caller, policy.explain(&question)),
    })
}

/// The findings of policies that the caller may see.
fn visible(console: &Console, caller: &Caller, mut findings: Vec<Finding>) -> Vec<Finding> {
    match scope(console, caller, false) {
        Ok(scope) => findings.retain(|finding| scope.includes(finding.rule.org.as_ref())),
        Err(_) => findings.clear(),
    }
    findings
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
        for finding in visible(console, caller, policy.explain(&question)) {
            let applies = matches!(finding.outcome, Decides | Overruled | Unmet | Failed(_));
            if applies && !found.iter().any(|known| known.rule.name == finding.rule.name) {
                found.push(finding);
            }
        }
    }
    found
}

/// The texts that have a say in the caller's org as they would be, and the new one among them.
pub(super) async fn replaced(
    console: &Console,
    caller: &Caller,
    name: &str,
    text: &str,
) -> Result<(Vec<Source>, Source), Failure> {
    let scope = scope(console, caller, false)?;
    let mut sources = console.office().policies().await?;
    sources.retain(|source| source.org.is_none() || source.org.as_ref() == Some(&scope.org));
    let is_named = |source: &Source| {
        scope.includes(source.org.as_ref())
            && (source.name == name || source.name.strip_suffix(".cedar") == Some(name))
    };
    // The org's own before one for all orgs.
    let own = sources.iter().position(|source| is_named(source) && source.org.is_some());
    let at = own.or_else(|| sources.iter().position(is_named));
    let new = match at.map(|at| sources.remove(at)) {
        Some(before) => Source { text: text.to_owned(), ..before },
        None => {
            let name = if name.is_empty() { "new.cedar" } else { name };
            Source { name: name.to_owned(), text: text.to_owned(), org: scope.owner() }
        }
    };
    sources.push(new.clone());
    Ok((sources, new))
}

/// Which policies the caller may see and change: those of its org, and for the server's owner also those for all orgs. The
/// server's owner is whoever works at the machine, or administers the org `default`.
fn scope(console: &Console, caller: &Caller, all_orgs: bool) -> Result<PolicyScope, Failure> {
    let org = caller.scope.org.clone();
    let is_server_owner = console.at_machine() || org == Scope::default().org;
    let shared = match (all_orgs, is_server_owner) {
        (true, true) => SharedPolicies::Only,
        (true, false) => {
            let message = format!(
                "policies that apply to all orgs belong to the server's owner; leave allOrgs out to write one for org {org}"
            );
            return Err(Failure::new(Kind::Denied, message));
        }
        (false, true) => SharedPolicies::Included,
        (false, false) => SharedPolicies::Hidden,
    };
    let by = if console.at_machine() { console.office().operator() } else { caller.id.to_string() };
    Ok(PolicyScope { by, org, shared })
}

/// The problem of an org's policy that names an agent of another org: it would match nothing.
fn foreign_agent(console: &Console, scope: &PolicyScope, name: &str, text: &str) -> Option<Problem> {
    scope.owner()?;
    let registry = console.engine().registry();
    let is_foreign = |agent: &Arc<Agent>| agent.scope.org != scope.org;
    let agents = named_agents(text).into_iter();
    let foreign = agents.filter_map(|id| registry.get(&id)).find(is_foreign)?;
    let place = text.find(foreign.id.as_str()).map_or(1, |at| text[..at].matches('\n').count() + 1);
    Some(Problem {
        place: format!("{name}:{place}"),
        message: format!("A2AAgent::\"{}\" is not an agent of org {}", foreign.id, scope.org),
        help: Some("a policy of an org applies to that org alone".to_owned()),
    })
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
            "org": finding.rule.org,
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
    Admin(Vec<Action>),
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

    fn template<'a>(&'a self, caller: &'a Caller, usual: &Usual, subject: Option<Subject>) -> Template<'a> {
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

/// Every process goes by what was changed, this one at once.
pub(super) async fn make_known(console: &Console) -> Result<(), Failure> {
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
