//! Who may do what: the policies in force, and what would come of others.

mod templates;

use std::sync::Arc;

use rialto_api_types::policies::{
    PolicyEffect, PolicyFinding, PolicyPlace, PolicyQuestion, PolicyRule, PolicyRuling, PolicyVerdict,
};
use rialto_model::{
    agent::Agent,
    call::{CallTarget, Caller, CallerId, CallerKind},
    failure::{Failure, FailureKind},
    ids::{OrgId, Scope},
};
use rialto_policy::{
    Action, Decision, Effect, Finding, Policy, Problem, Question, Rule, Source, named_agents,
};
use serde_json::{Value, json};

use crate::{
    Console,
    console::store_failure,
    office::{KeptPolicy, PolicyScope, PolicyVersion, SharedPolicies},
    operation::Operation,
};

pub(super) use self::templates::put_template;
pub use self::templates::{USUAL, add, add_usual};

/// So many skills of an agent are asked about.
const ASKED: usize = 30;

/// The origin that is shown for texts that are kept in files.
const FILE_ORIGIN: &str = "file";

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
    pub shelf: Option<PolicyPlace>,
    /// Whether it is one that applies to all orgs.
    pub all_orgs: bool,
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
            FailureKind::NotFound,
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
                return Err(Failure::new(
                    FailureKind::Invalid,
                    format!("{}: {}", problem.place, problem.message),
                ));
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
    let policy =
        Policy::parse(&sources).map_err(|error| Failure::new(FailureKind::Invalid, error.to_string()))?;
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

/// Who wrote a text that is kept in the store, or `file` for one that is kept in a file: who changed that is in the audit trail.
pub async fn author(console: &Console, caller: &Caller, text: &Text) -> Result<Option<String>, Failure> {
    if !text.name.starts_with("store:") {
        return Ok(Some(FILE_ORIGIN.to_owned()));
    }
    let location = Location { shelf: None, all_orgs: text.org.is_none() };
    let history = history(console, caller, &text.name, location).await?;
    Ok(history.into_iter().next().and_then(|newest| newest.by))
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
pub async fn test(console: &Console, caller: &Caller, asked: &PolicyQuestion) -> Result<Answer, Failure> {
    console.admit(caller, Action::AdminPolicies).await?;
    let invalid = |message: String| Failure::new(FailureKind::Invalid, message);
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
        target: target.as_ref().map_or_else(|| format!("org {}", who.scope.org), CallTarget::verb),
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
        let target = CallTarget { agent: Arc::clone(agent), skill };
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
            return Err(Failure::new(FailureKind::Denied, message));
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

/// The answer as the API describes it.
pub fn ruling(asked: &PolicyQuestion, answer: &Answer) -> PolicyRuling {
    let decision = &answer.decision;
    PolicyRuling {
        decision: if decision.allowed { PolicyVerdict::Allow } else { PolicyVerdict::Deny },
        caller: asked.caller.clone(),
        caller_id: answer.caller.clone(),
        decided_by: decision.policies.to_vec(),
        action: asked.action.clone(),
        target: answer.target.clone(),
        why_not: answer.why_not.clone(),
        policies: answer.findings.iter().map(policy_finding).collect(),
        errors: decision.errors.clone(),
    }
}

fn policy_finding(finding: &Finding) -> PolicyFinding {
    let rule = &finding.rule;
    PolicyFinding {
        name: rule.name.clone(),
        effect: effect(rule.effect),
        outcome: finding.outcome.name().to_owned(),
        reason: finding.outcome.to_string(),
        summary: rule.summary.clone(),
        file: rule.file.clone(),
        org: rule.org.clone(),
    }
}

/// A policy as the API describes it.
pub fn policy_rule(rule: &Rule) -> PolicyRule {
    PolicyRule { name: rule.name.clone(), effect: effect(rule.effect), summary: rule.summary.clone() }
}

const fn effect(effect: Effect) -> PolicyEffect {
    match effect {
        Effect::Permit => PolicyEffect::Permit,
        Effect::Forbid => PolicyEffect::Forbid,
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

fn target(console: &Console, caller: &Caller, name: &str) -> Result<CallTarget, Failure> {
    let registry = console.engine().registry();
    if let Some(entry) = registry.directory(&caller.scope).find(name) {
        return Ok(entry.target());
    }
    Ok(CallTarget { agent: registry.find(&caller.scope, name)?, skill: None })
}
