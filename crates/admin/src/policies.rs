//! Policies: texts, versions, checks and test decisions.

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
    Action, AuthorizationRequest, Effect, Policy, PolicyDecision, PolicyExplanation, PolicySource,
    PolicySourceError, PolicySummary, named_agents,
};
use serde_json::{Value, json};

use crate::{
    Administration,
    administration::store_failure,
    host::{ChangedPolicy, PolicyHistoryEntry, PolicyScope, SharedPolicies},
    operation::AdminOperation,
};

pub(super) use self::templates::save_template;
pub use self::templates::{TEMPLATES, add_from_template};

/// Maximum number of skills of an agent that are evaluated.
const MAX_SKILLS: usize = 30;

/// Author that is shown for texts in files.
const FILE_ORIGIN: &str = "file";

/// Policy text with its policies.
#[derive(Clone, Debug)]
pub struct PolicyDocument {
    /// Name of its file, or `store:NAME`.
    pub name: String,
    /// Cedar text.
    pub text: String,
    /// Policies in it.
    pub rules: Vec<PolicySummary>,
    /// Org it belongs to; none if it applies to all orgs.
    pub org: Option<OrgId>,
}

/// Place and owner of a policy text.
#[derive(Clone, Copy, Debug, Default)]
pub struct PolicySelector {
    /// Place it is kept in; any place by default.
    pub place: Option<PolicyPlace>,
    /// Whether it applies to all orgs.
    pub all_orgs: bool,
}

/// Result of a policy test.
#[derive(Clone, Debug)]
pub struct PolicyTestResult {
    /// Caller of the tested request.
    pub caller: CallerId,
    /// Target of the tested request.
    pub target: String,
    /// Decision.
    pub decision: Arc<PolicyDecision>,
    /// Reason of a denial, and how to allow the request.
    pub why_not: Option<String>,
    /// Effect of each policy.
    pub findings: Vec<PolicyExplanation>,
}

/// Policy texts that the caller is allowed to see: those of its org, and for the server's owner also those for all orgs.
pub async fn list(admin: &Administration, caller: &Caller) -> Result<Vec<PolicyDocument>, Failure> {
    admin.authorize_admin(caller, Action::AdminPolicies).await?;
    texts(admin, &policy_scope(admin, caller, false)?).await
}

async fn texts(admin: &Administration, scope: &PolicyScope) -> Result<Vec<PolicyDocument>, Failure> {
    let mut sources = admin.host().policy_sources().await?;
    sources.retain(|source| scope.includes(source.org.as_ref()));
    // An invalid text is not active, but can be read and fixed.
    let rules = Policy::parse(&sources).map(|policy| policy.rules()).unwrap_or_default();
    let text = |source: PolicySource| {
        let is_in = |rule: &&PolicySummary| rule.file == source.name && rule.org == source.org;
        let rules = rules.iter().filter(is_in).cloned().collect();
        PolicyDocument { name: source.name, text: source.text, rules, org: source.org }
    };
    let mut texts: Vec<PolicyDocument> = sources.into_iter().map(text).collect();
    // A text of the org comes before one for all orgs with the same name.
    texts.sort_by_key(|text| text.org.is_none());
    Ok(texts)
}

/// Finds a policy text by its name.
pub async fn show(admin: &Administration, caller: &Caller, name: &str) -> Result<PolicyDocument, Failure> {
    let texts = list(admin, caller).await?;
    let is_it = |text: &PolicyDocument| text.name == name || text.name.strip_suffix(".cedar") == Some(name);
    texts.into_iter().find(is_it).ok_or_else(|| {
        Failure::new(
            FailureKind::NotFound,
            format!("there is no policy \"{name}\"; see `rialto policy list`"),
        )
    })
}

/// Saves a text, if all active policies are then valid.
pub async fn save(
    admin: &Administration,
    caller: &Caller,
    name: &str,
    text: &str,
    selector: PolicySelector,
) -> Result<ChangedPolicy, Failure> {
    let operation = AdminOperation::new("policy.save", name);
    admin
        .administer(caller, Action::AdminPolicies, &operation, async {
            let scope = policy_scope(admin, caller, selector.all_orgs)?;
            if let Some(problem) = foreign_agent(admin, &scope, name, text) {
                return Err(Failure::new(
                    FailureKind::Invalid,
                    format!("{}: {}", problem.place, problem.message),
                ));
            }
            let before = policy_texts(admin).await;
            let changed = admin.host().save_policy(&scope, name, text, selector.place).await?;
            record_change(admin, &operation, &before, &changed).await;
            publish_change(admin).await?;
            Ok(changed)
        })
        .await
}

/// Removes a text.
pub async fn remove(
    admin: &Administration,
    caller: &Caller,
    name: &str,
    selector: PolicySelector,
) -> Result<ChangedPolicy, Failure> {
    let operation = AdminOperation::new("policy.remove", name);
    admin
        .administer(caller, Action::AdminPolicies, &operation, async {
            let scope = policy_scope(admin, caller, selector.all_orgs)?;
            let before = policy_texts(admin).await;
            let removed = admin.host().remove_policy(&scope, name, selector.place).await?;
            record_change(admin, &operation, &before, &removed).await;
            publish_change(admin).await?;
            Ok(removed)
        })
        .await
}

/// Makes an earlier version of a text the active one.
pub async fn restore(
    admin: &Administration,
    caller: &Caller,
    name: &str,
    version: i64,
    selector: PolicySelector,
) -> Result<ChangedPolicy, Failure> {
    let operation = AdminOperation::new("policy.restore", name);
    admin
        .administer(caller, Action::AdminPolicies, &operation, async {
            let scope = policy_scope(admin, caller, selector.all_orgs)?;
            let before = policy_texts(admin).await;
            let changed = admin.host().restore_policy(&scope, name, version, selector.place).await?;
            record_change(admin, &operation, &before, &changed).await;
            publish_change(admin).await?;
            Ok(changed)
        })
        .await
}

/// Names of the policies that the caller is allowed to see, if all of them are valid.
pub async fn check(admin: &Administration, caller: &Caller) -> Result<Vec<String>, Failure> {
    admin.authorize_admin(caller, Action::AdminPolicies).await?;
    let scope = policy_scope(admin, caller, false)?;
    let mut sources = admin.host().policy_sources().await?;
    sources.retain(|source| scope.includes(source.org.as_ref()));
    let policy =
        Policy::parse(&sources).map_err(|error| Failure::new(FailureKind::Invalid, error.to_string()))?;
    Ok(policy.ids())
}

/// Policies in a text that was just saved. Permission is not checked again, because the change may have
/// removed it.
pub async fn saved_rules(
    admin: &Administration,
    caller: &Caller,
    changed: &ChangedPolicy,
) -> Result<Vec<PolicySummary>, Failure> {
    let texts = texts(admin, &policy_scope(admin, caller, false)?).await?;
    let is_it = |text: &PolicyDocument| text.name == changed.listed && text.org == changed.org;
    Ok(texts.into_iter().find(is_it).map(|text| text.rules).unwrap_or_default())
}

/// Earlier versions of a text, newest first.
pub async fn history(
    admin: &Administration,
    caller: &Caller,
    name: &str,
    selector: PolicySelector,
) -> Result<Vec<PolicyHistoryEntry>, Failure> {
    admin.authorize_admin(caller, Action::AdminPolicies).await?;
    let scope = policy_scope(admin, caller, selector.all_orgs)?;
    admin.host().policy_history(&scope, name, selector.place).await
}

/// Author of a text in the store, or `file` for a text in a file, whose changes are in the audit log.
pub async fn find_author(
    admin: &Administration,
    caller: &Caller,
    text: &PolicyDocument,
) -> Result<Option<String>, Failure> {
    if !text.name.starts_with("store:") {
        return Ok(Some(FILE_ORIGIN.to_owned()));
    }
    let selector = PolicySelector { place: None, all_orgs: text.org.is_none() };
    let history = history(admin, caller, &text.name, selector).await?;
    Ok(history.into_iter().next().and_then(|newest| newest.by))
}

/// All texts, to compare them; none if they cannot be read.
async fn policy_texts(admin: &Administration) -> Vec<PolicySource> {
    admin.host().policy_sources().await.unwrap_or_default()
}

/// Records the state of a text before and after an operation.
async fn record_change(
    admin: &Administration,
    operation: &AdminOperation,
    before: &[PolicySource],
    changed: &ChangedPolicy,
) {
    let state = |texts: &[PolicySource]| {
        let is_it = |source: &&PolicySource| source.name == changed.listed && source.org == changed.org;
        let text = texts.iter().find(is_it);
        text.map_or(
            Value::Null,
            |source| json!({ "name": source.name, "org": source.org, "text": source.text }),
        )
    };
    operation.name(changed.listed.as_str());
    operation.before(state(before));
    operation.after(state(&policy_texts(admin).await));
}

/// Problems of a text, if it replaced the one with this name.
pub async fn validate(
    admin: &Administration,
    caller: &Caller,
    name: &str,
    text: &str,
) -> Result<Vec<PolicySourceError>, Failure> {
    admin.authorize_admin(caller, Action::AdminPolicies).await?;
    let (sources, new) = with_replacement(admin, caller, name, text).await?;
    let mut problems = Policy::parse(&sources).err().map(|error| error.0).unwrap_or_default();
    if new.org.is_some() {
        let scope = policy_scope(admin, caller, false)?;
        problems.extend(foreign_agent(admin, &scope, &new.name, text));
    }
    Ok(problems)
}

/// Tests whether a request would be allowed, and why.
pub async fn test_decision(
    admin: &Administration,
    caller: &Caller,
    tested: &PolicyQuestion,
) -> Result<PolicyTestResult, Failure> {
    admin.authorize_admin(caller, Action::AdminPolicies).await?;
    let invalid = |message: String| Failure::new(FailureKind::Invalid, message);
    let action = Action::parse(&tested.action).ok_or_else(|| {
        let names = Action::ALL.map(Action::as_str).join(", ");
        invalid(format!("\"{}\" is not an action; use one of {names}", tested.action))
    })?;
    let (who, row) = find_caller(admin, caller, &tested.caller, tested.kind)?;
    let target = match tested.target.trim() {
        _ if action.is_admin() => None,
        "" => return Err(invalid(format!("{} needs the name of a skill or an agent", tested.action))),
        name => Some(find_target(admin, caller, name)?),
    };
    let question = match &target {
        Some(target) => AuthorizationRequest::for_target(&who, action, target),
        None => AuthorizationRequest::for_admin(&who, action),
    };
    let question = question.with_caller_agent(row.as_deref());
    let policy = admin.engine().policies().active();
    Ok(PolicyTestResult {
        caller: who.id.clone(),
        target: target.as_ref().map_or_else(|| format!("org {}", who.scope.org), CallTarget::verb),
        decision: policy.decide(&question),
        why_not: policy.require(&question).err().map(|denied| denied.to_string()),
        findings: visible(admin, caller, policy.explain(&question)),
    })
}

/// Findings of policies that the caller is allowed to see.
fn visible(
    admin: &Administration,
    caller: &Caller,
    mut findings: Vec<PolicyExplanation>,
) -> Vec<PolicyExplanation> {
    match policy_scope(admin, caller, false) {
        Ok(scope) => findings.retain(|finding| scope.includes(finding.rule.org.as_ref())),
        Err(_) => findings.clear(),
    }
    findings
}

/// Policies that apply to the caller's calls of an agent or its skills.
pub fn policies_for_agent(
    admin: &Administration,
    caller: &Caller,
    agent: &Arc<Agent>,
) -> Vec<PolicyExplanation> {
    use rialto_policy::ExplanationOutcome::{Decides, Failed, Overruled, Unmet};
    let (policy, row) = (admin.engine().policies().active(), admin.agent_of_caller(caller));
    let mut found: Vec<PolicyExplanation> = Vec::new();
    let skills = agent.card.skills.iter().take(MAX_SKILLS).cloned().map(Some);
    for skill in skills.chain([None]) {
        let target = CallTarget { agent: Arc::clone(agent), skill };
        let question = AuthorizationRequest::for_target(caller, Action::Invoke, &target)
            .with_caller_agent(row.as_deref());
        for finding in visible(admin, caller, policy.explain(&question)) {
            let applies = matches!(finding.outcome, Decides | Overruled | Unmet | Failed(_));
            if applies && !found.iter().any(|known| known.rule.name == finding.rule.name) {
                found.push(finding);
            }
        }
    }
    found
}

/// Texts that apply to the caller's org with one replaced, and the new one.
pub(super) async fn with_replacement(
    admin: &Administration,
    caller: &Caller,
    name: &str,
    text: &str,
) -> Result<(Vec<PolicySource>, PolicySource), Failure> {
    let scope = policy_scope(admin, caller, false)?;
    let mut sources = admin.host().policy_sources().await?;
    sources.retain(|source| source.org.is_none() || source.org.as_ref() == Some(&scope.org));
    let is_named = |source: &PolicySource| {
        scope.includes(source.org.as_ref())
            && (source.name == name || source.name.strip_suffix(".cedar") == Some(name))
    };
    // A text of the org comes before one for all orgs.
    let own = sources.iter().position(|source| is_named(source) && source.org.is_some());
    let at = own.or_else(|| sources.iter().position(is_named));
    let new = match at.map(|at| sources.remove(at)) {
        Some(before) => PolicySource { text: text.to_owned(), ..before },
        None => {
            let name = if name.is_empty() { "new.cedar" } else { name };
            PolicySource { name: name.to_owned(), text: text.to_owned(), org: scope.owner() }
        }
    };
    sources.push(new.clone());
    Ok((sources, new))
}

/// Policies that the caller is allowed to read and change: those of its org, and for the server's owner also those for all orgs. The
/// server's owner is the operator on the machine, or an administrator of the org `default`.
fn policy_scope(admin: &Administration, caller: &Caller, all_orgs: bool) -> Result<PolicyScope, Failure> {
    let org = caller.scope.org.clone();
    let is_server_owner = admin.is_local() || org == Scope::default().org;
    let shared = match (all_orgs, is_server_owner) {
        (true, true) => SharedPolicies::Only,
        (true, false) => {
            let message = format!(
                "only the server's owner can change policies for all orgs; omit allOrgs to write one for org {org}"
            );
            return Err(Failure::new(FailureKind::Denied, message));
        }
        (false, true) => SharedPolicies::Included,
        (false, false) => SharedPolicies::Hidden,
    };
    let by = if admin.is_local() { admin.host().operator_name() } else { caller.id.to_string() };
    Ok(PolicyScope { by, org, shared })
}

/// Problem of an org's policy with an agent of another org, which would match nothing.
fn foreign_agent(
    admin: &Administration,
    scope: &PolicyScope,
    name: &str,
    text: &str,
) -> Option<PolicySourceError> {
    scope.owner()?;
    let registry = admin.engine().registry();
    let is_foreign = |agent: &Arc<Agent>| agent.scope.org != scope.org;
    let agents = named_agents(text).into_iter();
    let foreign = agents.filter_map(|id| registry.get(&id)).find(is_foreign)?;
    let place = text.find(foreign.id.as_str()).map_or(1, |at| text[..at].matches('\n').count() + 1);
    Some(PolicySourceError {
        place: format!("{name}:{place}"),
        message: format!("A2AAgent::\"{}\" is not an agent of org {}", foreign.id, scope.org),
        help: Some("a policy of an org applies to that org alone".to_owned()),
    })
}

/// API representation of a test result.
pub fn to_ruling(tested: &PolicyQuestion, answer: &PolicyTestResult) -> PolicyRuling {
    let decision = &answer.decision;
    PolicyRuling {
        decision: if decision.allowed { PolicyVerdict::Allow } else { PolicyVerdict::Deny },
        caller: tested.caller.clone(),
        caller_id: answer.caller.clone(),
        decided_by: decision.policies.to_vec(),
        action: tested.action.clone(),
        target: answer.target.clone(),
        why_not: answer.why_not.clone(),
        policies: answer.findings.iter().map(policy_finding).collect(),
        errors: decision.errors.clone(),
    }
}

fn policy_finding(finding: &PolicyExplanation) -> PolicyFinding {
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

/// API representation of a policy.
pub fn policy_rule(rule: &PolicySummary) -> PolicyRule {
    PolicyRule { name: rule.name.clone(), effect: effect(rule.effect), summary: rule.summary.clone() }
}

const fn effect(effect: Effect) -> PolicyEffect {
    match effect {
        Effect::Permit => PolicyEffect::Permit,
        Effect::Forbid => PolicyEffect::Forbid,
    }
}

/// Makes a change effective: at once in this process, and soon in all others.
pub(super) async fn publish_change(admin: &Administration) -> Result<(), Failure> {
    admin.store().touch().await.map_err(store_failure)?;
    admin.engine().policies().sync().await.map(drop)
}

/// Caller by its name. An agent must be registered.
fn find_caller(
    admin: &Administration,
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
            let row = admin.engine().registry().find(&asks.scope, name)?;
            Ok((Caller { id: row.id.as_str().into(), ..caller }, Some(row)))
        }
    }
}

fn find_target(admin: &Administration, caller: &Caller, name: &str) -> Result<CallTarget, Failure> {
    let registry = admin.engine().registry();
    if let Some(entry) = registry.directory(&caller.scope).find(name) {
        return Ok(entry.target());
    }
    Ok(CallTarget { agent: registry.find(&caller.scope, name)?, skill: None })
}
