//! Agent registry: registration, cards, credentials and trust levels.

mod rows;

use std::sync::Arc;

use futures::StreamExt;
use jiff::Timestamp;
use rialto_api_types::agents::NewAgent;
use rialto_engine::{
    address::AddressError,
    diff::CardDiff,
    peer::DiscoveryError,
    registry::{Refreshed, Registered, Registration, RegistryError},
};
use rialto_model::{
    agent::{Agent, AgentTrust, Health, Probe},
    call::{CallTarget, Caller},
    credential::{Credential, Secret, SecretSource},
    failure::{Failure, FailureKind},
    message::Part,
    token_scopes::TokenScope,
};
use rialto_policy::{Action, PolicyTemplate, TemplateEffect, TemplateTarget};
use serde_json::json;

pub use self::rows::{
    agent_facts, agent_row, agent_row_for, card_changes, card_refresh, describe_credential, refresh_result,
};
use super::{
    page_size,
    policies::{self, PolicySelector},
    truncate_page,
};
use crate::{
    Administration,
    administration::require_right_or_admin,
    operation::{AdminOperation, agent_state},
};

/// Maximum number of cards that are fetched at the same time.
const MAX_CONCURRENT_FETCHES: usize = 32;

/// Filter and page of a list of agents.
#[derive(Clone, Debug, Default)]
pub struct AgentQuery {
    /// Words in the name, the URL or a skill.
    pub q: String,
    /// Health to filter by.
    pub health: Option<Health>,
    /// Trust level to filter by.
    pub trust: Option<AgentTrust>,
    /// Maximum number of rows.
    pub limit: Option<usize>,
    /// Slug of the last agent of the previous page.
    pub cursor: Option<String>,
}

/// Page of a list of agents.
#[derive(Clone, Debug)]
pub struct AgentResults {
    /// Agents of this page, by slug.
    pub agents: Vec<Arc<Agent>>,
    /// Number of matching agents on all pages.
    pub total: usize,
    /// Number of all agents of the project, without the filter.
    pub known: usize,
    /// Cursor of the next page.
    pub next: Option<String>,
}

/// Change of an agent's card.
#[derive(Clone, Debug)]
pub struct CardHistoryEntry {
    /// Time of the change.
    pub at: Timestamp,
    /// Difference between the cards before and after it.
    pub diff: CardDiff,
}

/// Lists the agents of the caller's project that it is allowed to see.
pub async fn list(
    admin: &Administration,
    caller: &Caller,
    filter: &AgentQuery,
) -> Result<AgentResults, Failure> {
    let known = admin.engine().registry().agents(&caller.scope).len();
    let mut found = matching(admin, caller, filter).await?;
    let total = found.len();
    if let Some(cursor) = &filter.cursor {
        found.drain(..found.partition_point(|agent| agent.slug <= *cursor));
    }
    let limit = page_size(filter.limit);
    let next = truncate_page(&mut found, limit, |last| last.slug.clone());
    let agents =
        futures::future::try_join_all(found.into_iter().map(|agent| with_last_seen(admin, agent))).await?;
    Ok(AgentResults { agents, total, known, next })
}

/// Matching agents on all pages.
pub async fn matching(
    admin: &Administration,
    caller: &Caller,
    filter: &AgentQuery,
) -> Result<Vec<Arc<Agent>>, Failure> {
    require_right_or_admin(caller, TokenScope::Discover)?;
    admin.engine().policies().sync().await?;
    let all = admin.engine().registry().agents(&caller.scope);
    let words: Vec<String> = filter.q.split_whitespace().map(str::to_lowercase).collect();
    let matches_filter = |agent: &Arc<Agent>| {
        filter.health.is_none_or(|health| agent.health == health)
            && filter.trust.is_none_or(|trust| agent.trust == trust)
            && words.iter().all(|word| contains_word(agent, word))
            && may_see(admin, caller, agent)
    };
    Ok(all.into_iter().filter(matches_filter).collect())
}

/// Finds an agent by slug, id, URL or name.
pub async fn find(admin: &Administration, caller: &Caller, key: &str) -> Result<Arc<Agent>, Failure> {
    require_right_or_admin(caller, TokenScope::Discover)?;
    admin.engine().policies().sync().await?;
    let found = admin.engine().registry().find(&caller.scope, key)?;
    if may_see(admin, caller, &found) {
        return with_last_seen(admin, found).await;
    }
    Err(RegistryError::NotFound(key.to_owned()).into())
}

/// Fetches the card of an agent and registers the agent.
///
/// Returns the agent and the name of the policy that allows all callers, if one was requested.
pub async fn register(
    admin: &Administration,
    caller: &Caller,
    requested: &NewAgent,
) -> Result<(Registered, Option<String>), Failure> {
    let operation = AdminOperation::new("agent.register", requested.url.trim());
    let work = register_authorized(admin, caller, requested, &operation);
    admin.administer(caller, Action::AdminAgents, &operation, work).await
}

async fn register_authorized(
    admin: &Administration,
    caller: &Caller,
    requested: &NewAgent,
    operation: &AdminOperation,
) -> Result<(Registered, Option<String>), Failure> {
    if requested.allow {
        admin.check_admin(caller, Action::AdminPolicies)?;
    }
    if let Ok(known) = admin.engine().registry().find(&caller.scope, requested.url.trim()) {
        operation.before(agent_state(admin, &known));
    }
    let blank = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let trust = blank(&requested.trust).as_deref().map(parse_assignable_trust).transpose()?;
    trust.map_or(Ok(()), |level| check_may_trust(admin, caller, level))?;
    let registration = Registration {
        scope: caller.scope.clone(),
        trust,
        credential: parse_credential(
            admin,
            caller,
            blank(&requested.secret).as_deref(),
            requested.credential.as_ref(),
        )?,
        allow_private: admin.may_use_private_addresses(caller),
        card_path: blank(&requested.card_path),
        timeout_ms: requested.timeout_ms,
        ..Registration::new(requested.url.trim())
    };
    let registered = admin.engine().registry().register(registration).await;
    let registered = registered.map_err(|error| {
        let help = registration_help(&error);
        let mut failure = Failure::from(error);
        if failure.kind == FailureKind::Denied {
            failure = with_local_hint(admin, caller, failure, "rialto agents add");
        }
        failure.message += help;
        failure
    })?;
    operation.agent(&registered.agent);
    let mut after = agent_state(admin, &registered.agent);
    if !requested.allow {
        operation.after(after);
        return Ok((registered, None));
    }
    let target = TemplateTarget::Agent(&registered.agent);
    let template = PolicyTemplate { effect: TemplateEffect::Allow, caller: None, target };
    let policy = policies::save_template(admin, caller, &template, None, PolicySelector::default()).await;
    if let Ok(policy) = &policy {
        after["policy"] = json!(policy.listed);
    }
    operation.after(after);
    let policy = policy?;
    Ok((registered, Some(policy.listed)))
}

/// Registers an agent by its URL, as the MCP tool `load_agent` does. A token is saved as a secret, under a name derived from the URL.
pub async fn load(
    admin: &Administration,
    caller: &Caller,
    url: &str,
    card_path: Option<String>,
    token: Option<&Secret>,
) -> Result<Arc<Agent>, Failure> {
    let operation = AdminOperation::new("agent.register", url);
    let work = load_authorized(admin, caller, url, card_path, (token, &operation));
    admin.administer(caller, Action::AdminAgents, &operation, work).await
}

async fn load_authorized(
    admin: &Administration,
    caller: &Caller,
    url: &str,
    card_path: Option<String>,
    (token, operation): (Option<&Secret>, &AdminOperation),
) -> Result<Arc<Agent>, Failure> {
    let mut requested = NewAgent { url: url.to_owned(), card_path, ..NewAgent::default() };
    if let Some(token) = token {
        // All projects share the secrets of a server, so the name contains the project.
        let slug = rialto_model::name::slug(&format!("{} {} {url}", caller.scope.org, caller.scope.project));
        let hash = rialto_engine::hash_parts(&[Part::text(slug.as_str())]);
        let (prefix, suffix) = (slug.get(..40).unwrap_or(&slug), hash.as_str().get(..12).unwrap_or_default());
        let name = format!("agent-{}-{suffix}", prefix.trim_matches('_'));
        super::secrets::save_authorized(admin, caller, &name, token).await?;
        requested.secret = Some(format!("store:{name}"));
    }
    Ok(register_authorized(admin, caller, &requested, operation).await?.0.agent)
}

/// Fetches the card of an agent.
pub async fn refresh(admin: &Administration, caller: &Caller, key: &str) -> Result<Refreshed, Failure> {
    let operation = AdminOperation::new("agent.refresh", key);
    admin
        .administer(caller, Action::AdminAgents, &operation, async {
            let agent = find_to_change(admin, caller, key, &operation)?;
            let refreshed = admin.engine().registry().refresh(&agent).await?;
            operation.after(agent_state(admin, refreshed.agent()));
            Ok(refreshed)
        })
        .await
}

/// Fetches the cards of these agents, or of all. Returns the numbers of successes and failures.
pub async fn refresh_all(
    admin: &Administration,
    caller: &Caller,
    slugs: &[String],
) -> Result<(usize, usize), Failure> {
    let answered = refresh_each(admin, caller, slugs).await?;
    let succeeded = answered.iter().filter(|(_, result)| result.is_ok()).count();
    Ok((succeeded, answered.len() - succeeded))
}

/// Fetches the cards of these agents, or of all. Returns the result of each, by slug.
pub async fn refresh_each(
    admin: &Administration,
    caller: &Caller,
    slugs: &[String],
) -> Result<Vec<(String, Result<Refreshed, RegistryError>)>, Failure> {
    let operation = AdminOperation::new("agent.refresh", join_slugs(slugs));
    admin
        .administer(caller, Action::AdminAgents, &operation, async {
            let registry = admin.engine().registry();
            let mut agents = registry.agents(&caller.scope);
            agents.retain(|agent| slugs.is_empty() || slugs.contains(&agent.slug));
            operation.before(json!({ "agents": agents.len() }));
            let fetches = futures::stream::iter(agents)
                .map(|agent| async move { (agent.slug.clone(), registry.refresh(&agent).await) });
            let answered: Vec<(String, Result<Refreshed, RegistryError>)> =
                fetches.buffered(MAX_CONCURRENT_FETCHES).collect().await;
            let succeeded = answered.iter().filter(|(_, result)| result.is_ok()).count();
            operation.after(json!({ "refreshed": succeeded, "failed": answered.len() - succeeded }));
            Ok(answered)
        })
        .await
}

/// Sets the credential that is sent to an agent, or removes it.
pub async fn set_credential(
    admin: &Administration,
    caller: &Caller,
    key: &str,
    requested: Option<&Credential>,
) -> Result<Arc<Agent>, Failure> {
    let operation = AdminOperation::new("agent.set_credential", key);
    admin
        .administer(caller, Action::AdminAgents, &operation, async {
            let agent = find_to_change(admin, caller, key, &operation)?;
            let credential = parse_credential(admin, caller, None, requested)?;
            let agent = admin.engine().registry().set_credential(&agent, credential).await?;
            operation.after(agent_state(admin, &agent));
            Ok(agent)
        })
        .await
}

/// Removes an agent and the policies that apply only to it.
pub async fn remove(admin: &Administration, caller: &Caller, key: &str) -> Result<Arc<Agent>, Failure> {
    let operation = AdminOperation::new("agent.remove", key);
    admin
        .administer(caller, Action::AdminAgents, &operation, async {
            let agent = find_to_change(admin, caller, key, &operation)?;
            admin.engine().registry().remove(&agent).await?;
            if let Err(failure) = admin.host().remove_agent_policies(&agent).await {
                tracing::error!(
                    "policies of the removed agent {} could not be removed: {failure}",
                    agent.slug
                );
            }
            Ok(agent)
        })
        .await
}

/// Sets the trust level of an agent. It takes effect with the next call.
pub async fn set_trust(
    admin: &Administration,
    caller: &Caller,
    key: &str,
    level: &str,
) -> Result<Arc<Agent>, Failure> {
    let operation = AdminOperation::new("agent.set_trust", key);
    admin
        .administer(caller, Action::AdminAgents, &operation, async {
            let agent = find_to_change(admin, caller, key, &operation)?;
            let level = parse_assignable_trust(level)?;
            check_may_trust(admin, caller, level)?;
            let agent = admin.engine().registry().set_trust(&agent, level).await?;
            operation.after(agent_state(admin, &agent));
            Ok(agent)
        })
        .await
}

/// Checks permission to set a trust level. The starter policy allows all callers to call trusted agents, so any level but `external`
/// needs permission to write policies.
pub(super) fn check_may_trust(
    admin: &Administration,
    caller: &Caller,
    level: AgentTrust,
) -> Result<(), Failure> {
    if level == AgentTrust::External { Ok(()) } else { admin.check_admin(caller, Action::AdminPolicies) }
}

/// Approves the changed card of an agent.
pub async fn approve(admin: &Administration, caller: &Caller, key: &str) -> Result<Arc<Agent>, Failure> {
    let operation = AdminOperation::new("agent.approve_card", key);
    admin
        .administer(caller, Action::AdminAgents, &operation, async {
            let agent = find_to_change(admin, caller, key, &operation)?;
            let agent = admin.engine().registry().approve(&agent).await?;
            operation.after(agent_state(admin, &agent));
            Ok(agent)
        })
        .await
}

/// Finds the agent of an operation and records its state before the change.
fn find_to_change(
    admin: &Administration,
    caller: &Caller,
    key: &str,
    operation: &AdminOperation,
) -> Result<Arc<Agent>, Failure> {
    let agent = admin.engine().registry().find(&caller.scope, key)?;
    operation.name(agent.slug.as_str());
    operation.agent(&agent);
    operation.before(agent_state(admin, &agent));
    Ok(agent)
}

/// Description of the selected agents for audit records.
pub(super) fn join_slugs(slugs: &[String]) -> String {
    if slugs.is_empty() { "all agents".to_owned() } else { slugs.join(", ") }
}

/// Latest probes of an agent, newest first.
pub async fn probes(admin: &Administration, agent: &Agent, limit: usize) -> Result<Vec<Probe>, Failure> {
    Ok(admin.engine().registry().probes(agent, limit).await?)
}

/// Changes of an agent's card, newest first.
pub async fn history(admin: &Administration, agent: &Agent) -> Result<Vec<CardHistoryEntry>, Failure> {
    let mut after = Arc::clone(&agent.card);
    let mut changes = Vec::new();
    for old in admin.engine().registry().history(agent).await? {
        let Some(before) = admin.host().read_card(old.card.get()).map(Arc::new) else { continue };
        changes.push(CardHistoryEntry { at: old.replaced_at, diff: CardDiff::between(&before, &after) });
        after = before;
    }
    Ok(changes)
}

/// Difference between the card in use and the one that waits for approval.
pub fn pending_changes(agent: &Agent) -> Option<CardDiff> {
    agent.pending.as_ref().map(|pending| CardDiff::between(&agent.card, &pending.card))
}

/// Health by its name.
pub fn parse_health(name: &str) -> Option<Health> {
    let all = [Health::Unknown, Health::Healthy, Health::Degraded, Health::Unreachable];
    all.into_iter().find(|health| health.as_str() == name)
}

/// Trust level by its name, including `system`, which can be queried but not assigned.
pub fn parse_trust(name: &str) -> Option<AgentTrust> {
    [AgentTrust::External, AgentTrust::Trusted, AgentTrust::System]
        .into_iter()
        .find(|trust| trust.as_str() == name)
}

/// Trust level by its name, if it can be assigned.
pub(super) fn parse_assignable_trust(level: &str) -> Result<AgentTrust, Failure> {
    AgentTrust::parse_assignable(level).ok_or_else(|| {
        let message = if level == "system" {
            "the trust level system cannot be assigned; use external or trusted".to_owned()
        } else {
            format!("\"{level}\" is not a trust level; use external or trusted")
        };
        Failure::new(FailureKind::Invalid, message)
    })
}

/// Credential from its short form (`secret`) or its full form (`credential`).
fn parse_credential(
    admin: &Administration,
    caller: &Caller,
    short: Option<&str>,
    full: Option<&Credential>,
) -> Result<Option<Credential>, Failure> {
    let requested = match (short, full) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err(Failure::new(FailureKind::Invalid, "set either `secret` or `credential`, not both"));
        }
        (None, Some(full)) => full.clone(),
        (Some(text), None) => Credential::new(SecretSource::parse(text.trim()).ok_or_else(|| {
            let message =
                format!("\"{text}\" is not a source of a secret; use env:NAME, file:PATH or store:NAME");
            Failure::new(FailureKind::Invalid, message)
        })?),
    };
    if !admin.may_use_machine_resources(caller) {
        let message = "secrets of the server's machine cannot be used over the network: use `rialto agents credential` on that machine, or, from the org default, set [server] allow_commands_over_api";
        return Err(Failure::new(FailureKind::Denied, message));
    }
    Ok(Some(requested))
}

/// Advice for an error in fetching a card.
const fn registration_help(error: &RegistryError) -> &'static str {
    match error {
        RegistryError::Address(AddressError::Scheme(_)) => {
            "; use a URL like https://agents.example.com/reviewer"
        }
        RegistryError::Discovery(DiscoveryError::Status { status, .. }) => match status {
            404 => {
                "; cards are fetched from /.well-known/agent-card.json and /.well-known/agent.json below the URL: check the URL, or set the path of the card (card path, `--card-path`)"
            }
            401 | 403 => {
                "; it requires authentication: save its secret with `rialto secrets set NAME`, and use it when you register the agent (secret, `--secret store:NAME`)"
            }
            500.. => "; the agent failed: see its log, and try again",
            _ => "",
        },
        RegistryError::Discovery(DiscoveryError::Unreachable { .. }) => {
            "; check that it is running and reachable from this server's machine"
        }
        _ => "",
    }
}

/// Adds advice to the error of an address that is not allowed over the network.
pub(super) fn with_local_hint(
    admin: &Administration,
    caller: &Caller,
    mut failure: Failure,
    command: &str,
) -> Failure {
    if !admin.may_use_private_addresses(caller) {
        failure.message += &format!(
            "; to allow it, use `{command}` on the server's machine, or set [server] allow_private_over_api"
        );
    }
    failure
}

/// Agent with the time it was last seen. A probe that finds nothing new is stored without a new version of the row.
async fn with_last_seen(admin: &Administration, agent: Arc<Agent>) -> Result<Arc<Agent>, Failure> {
    let latest =
        probes(admin, &agent, 1).await?.into_iter().find(|probe| probe.health != Health::Unreachable);
    let latest = latest.map(|probe| probe.at).filter(|at| agent.last_seen_at.is_none_or(|seen| seen < *at));
    Ok(match latest {
        Some(at) => Arc::new(Agent { last_seen_at: Some(at), ..Agent::clone(&agent) }),
        None => agent,
    })
}

/// Whether the caller is allowed to see an agent.
pub(crate) fn may_see(admin: &Administration, caller: &Caller, agent: &Arc<Agent>) -> bool {
    admin.is_local()
        || admin
            .engine()
            .policies()
            .may_discover(caller, &CallTarget { agent: Arc::clone(agent), skill: None })
}

fn contains_word(agent: &Agent, word: &str) -> bool {
    let is_in = |text: &str| text.to_lowercase().contains(word);
    agent.slug.contains(word)
        || is_in(&agent.card.name)
        || is_in(&agent.url)
        || agent.card.skills.iter().any(|skill| is_in(skill.id.as_str()) || is_in(&skill.name))
}
