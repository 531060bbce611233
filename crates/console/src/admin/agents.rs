//! The registry: who is there, how they are doing, and how far they are trusted.

mod shown;

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
use rialto_policy::{Action, Object, Template, Wish};
use serde_json::json;

pub(crate) use self::shown::{card_changes, credential_of, facts, row_for};
pub use self::shown::{card_refresh, refresh_result, row};
use super::{
    cut, page_size,
    policies::{self, Location},
};
use crate::{
    Console,
    operation::{Operation, agent_state},
};

/// How many cards are fetched at once when there are many.
const AT_ONCE: usize = 32;

/// Which agents to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Words in the name, the address or a skill.
    pub q: String,
    /// Only those that are doing like this.
    pub health: Option<Health>,
    /// Only those that are trusted so far.
    pub trust: Option<AgentTrust>,
    /// At most so many.
    pub limit: Option<usize>,
    /// Only those behind this one: the slug of the last of the page before.
    pub cursor: Option<String>,
}

/// One page of agents.
#[derive(Clone, Debug)]
pub struct Page {
    /// Those of this page, by slug.
    pub agents: Vec<Arc<Agent>>,
    /// How many there are on all pages.
    pub total: usize,
    /// How many there are, whatever was asked for.
    pub known: usize,
    /// Where the next page begins.
    pub next: Option<String>,
}

/// A card that was replaced, and what was different after it.
#[derive(Clone, Debug)]
pub struct Replaced {
    /// When.
    pub at: Timestamp,
    /// What changed then.
    pub diff: CardDiff,
}

/// The agents of the caller's project that it may see.
pub async fn list(console: &Console, caller: &Caller, filter: &Filter) -> Result<Page, Failure> {
    let known = console.engine().registry().agents(&caller.scope).len();
    let mut found = fitting(console, caller, filter).await?;
    let total = found.len();
    if let Some(cursor) = &filter.cursor {
        found.drain(..found.partition_point(|agent| agent.slug <= *cursor));
    }
    let limit = page_size(filter.limit);
    let next = cut(&mut found, limit, |last| last.slug.clone());
    let agents =
        futures::future::try_join_all(found.into_iter().map(|agent| as_seen(console, agent))).await?;
    Ok(Page { agents, total, known, next })
}

/// Those on all pages.
pub(crate) async fn fitting(
    console: &Console,
    caller: &Caller,
    filter: &Filter,
) -> Result<Vec<Arc<Agent>>, Failure> {
    Console::need(caller, TokenScope::Discover)?;
    console.engine().sync().await?;
    let all = console.engine().registry().agents(&caller.scope);
    let words: Vec<String> = filter.q.split_whitespace().map(str::to_lowercase).collect();
    let fits = |agent: &Arc<Agent>| {
        filter.health.is_none_or(|health| agent.health == health)
            && filter.trust.is_none_or(|trust| agent.trust == trust)
            && words.iter().all(|word| has(agent, word))
            && may_see(console, caller, agent)
    };
    Ok(all.into_iter().filter(fits).collect())
}

/// The agent that is meant: by slug, id, URL or name.
pub async fn find(console: &Console, caller: &Caller, key: &str) -> Result<Arc<Agent>, Failure> {
    Console::need(caller, TokenScope::Discover)?;
    console.engine().sync().await?;
    let found = console.engine().registry().find(&caller.scope, key)?;
    if may_see(console, caller, &found) {
        return as_seen(console, found).await;
    }
    Err(RegistryError::NotFound(key.to_owned()).into())
}

/// Fetches an agent's card and writes the agent down.
///
/// Answers the name of the policy too that lets everybody call it, if one was wanted.
pub async fn register(
    console: &Console,
    caller: &Caller,
    wanted: &NewAgent,
) -> Result<(Registered, Option<String>), Failure> {
    let operation = Operation::new("agent.register", wanted.url.trim());
    let work = register_now(console, caller, wanted, &operation);
    console.administer(caller, Action::AdminAgents, &operation, work).await
}

async fn register_now(
    console: &Console,
    caller: &Caller,
    wanted: &NewAgent,
    operation: &Operation,
) -> Result<(Registered, Option<String>), Failure> {
    if wanted.allow {
        console.may(caller, Action::AdminPolicies)?;
    }
    if let Ok(known) = console.engine().registry().find(&caller.scope, wanted.url.trim()) {
        operation.before(agent_state(console, &known));
    }
    let blank = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let trust = blank(&wanted.trust).as_deref().map(assignable).transpose()?;
    trust.map_or(Ok(()), |level| may_trust(console, caller, level))?;
    let registration = Registration {
        scope: caller.scope.clone(),
        trust,
        credential: credential(
            console,
            caller,
            blank(&wanted.secret).as_deref(),
            wanted.credential.as_ref(),
        )?,
        allow_private: console.may_use_private_addresses(caller),
        card_path: blank(&wanted.card_path),
        timeout_ms: wanted.timeout_ms,
        ..Registration::new(wanted.url.trim())
    };
    let registered = console.engine().registry().register(registration).await;
    let registered = registered.map_err(|error| {
        let help = help(&error);
        let mut failure = Failure::from(error);
        if failure.kind == FailureKind::Denied {
            failure = with_way_in(console, caller, failure, "rialto agents add");
        }
        failure.message += help;
        failure
    })?;
    operation.agent(&registered.agent);
    let mut after = agent_state(console, &registered.agent);
    if !wanted.allow {
        operation.after(after);
        return Ok((registered, None));
    }
    let object = Object::Agent(&registered.agent);
    let template = Template { wish: Wish::Allow, caller: None, object };
    let policy = policies::put_template(console, caller, &template, None, Location::default()).await;
    if let Ok(policy) = &policy {
        after["policy"] = json!(policy.listed);
    }
    operation.after(after);
    let policy = policy?;
    Ok((registered, Some(policy.listed)))
}

/// Registers an agent by its address alone, as MCP's `load_agent` does. A token is kept among the secrets, under a name made of the address.
pub async fn load(
    console: &Console,
    caller: &Caller,
    url: &str,
    card_path: Option<String>,
    token: Option<&Secret>,
) -> Result<Arc<Agent>, Failure> {
    let operation = Operation::new("agent.register", url);
    let work = load_now(console, caller, url, card_path, (token, &operation));
    console.administer(caller, Action::AdminAgents, &operation, work).await
}

async fn load_now(
    console: &Console,
    caller: &Caller,
    url: &str,
    card_path: Option<String>,
    (token, operation): (Option<&Secret>, &Operation),
) -> Result<Arc<Agent>, Failure> {
    let mut wanted = NewAgent { url: url.to_owned(), card_path, ..NewAgent::default() };
    if let Some(token) = token {
        // Secrets are the machine's, so the name keeps projects apart.
        let slug = rialto_model::name::slug(&format!("{} {} {url}", caller.scope.org, caller.scope.project));
        let hash = rialto_engine::hash_parts(&[Part::text(slug.as_str())]);
        let (begin, end) = (slug.get(..40).unwrap_or(&slug), hash.as_str().get(..12).unwrap_or_default());
        let name = format!("agent-{}-{end}", begin.trim_matches('_'));
        super::secrets::put(console, caller, &name, token).await?;
        wanted.secret = Some(format!("store:{name}"));
    }
    Ok(register_now(console, caller, &wanted, operation).await?.0.agent)
}

/// Fetches an agent's card again.
pub async fn refresh(console: &Console, caller: &Caller, key: &str) -> Result<Refreshed, Failure> {
    let operation = Operation::new("agent.refresh", key);
    console
        .administer(caller, Action::AdminAgents, &operation, async {
            let agent = find_to_change(console, caller, key, &operation)?;
            let refreshed = console.engine().registry().refresh(&agent).await?;
            operation.after(agent_state(console, refreshed.agent()));
            Ok(refreshed)
        })
        .await
}

/// Fetches the cards of these agents again, or of all. Answers how many answered, and how many did not.
pub async fn refresh_all(
    console: &Console,
    caller: &Caller,
    slugs: &[String],
) -> Result<(usize, usize), Failure> {
    let answered = refresh_each(console, caller, slugs).await?;
    let good = answered.iter().filter(|(_, came)| came.is_ok()).count();
    Ok((good, answered.len() - good))
}

/// The same, and what came of each, by slug.
pub async fn refresh_each(
    console: &Console,
    caller: &Caller,
    slugs: &[String],
) -> Result<Vec<(String, Result<Refreshed, RegistryError>)>, Failure> {
    let operation = Operation::new("agent.refresh", names(slugs));
    console
        .administer(caller, Action::AdminAgents, &operation, async {
            let registry = console.engine().registry();
            let mut agents = registry.agents(&caller.scope);
            agents.retain(|agent| slugs.is_empty() || slugs.contains(&agent.slug));
            operation.before(json!({ "agents": agents.len() }));
            let asked = futures::stream::iter(agents)
                .map(|agent| async move { (agent.slug.clone(), registry.refresh(&agent).await) });
            let answered: Vec<(String, Result<Refreshed, RegistryError>)> =
                asked.buffered(AT_ONCE).collect().await;
            let good = answered.iter().filter(|(_, came)| came.is_ok()).count();
            operation.after(json!({ "refreshed": good, "failed": answered.len() - good }));
            Ok(answered)
        })
        .await
}

/// Changes what an agent is shown at its door; nothing any more where there is none.
pub async fn set_credential(
    console: &Console,
    caller: &Caller,
    key: &str,
    wanted: Option<&Credential>,
) -> Result<Arc<Agent>, Failure> {
    let operation = Operation::new("agent.set_credential", key);
    console
        .administer(caller, Action::AdminAgents, &operation, async {
            let agent = find_to_change(console, caller, key, &operation)?;
            let credential = credential(console, caller, None, wanted)?;
            let agent = console.engine().registry().set_credential(&agent, credential).await?;
            operation.after(agent_state(console, &agent));
            Ok(agent)
        })
        .await
}

/// Forgets an agent, and the policies that are about nothing else.
pub async fn remove(console: &Console, caller: &Caller, key: &str) -> Result<Arc<Agent>, Failure> {
    let operation = Operation::new("agent.remove", key);
    console
        .administer(caller, Action::AdminAgents, &operation, async {
            let agent = find_to_change(console, caller, key, &operation)?;
            console.engine().registry().remove(&agent).await?;
            if let Err(failure) = console.office().forget_policies(&agent).await {
                tracing::error!("the policies about {} were not removed: {failure}", agent.slug);
            }
            Ok(agent)
        })
        .await
}

/// Changes how far an agent is trusted. The next call sees it.
pub async fn trust(
    console: &Console,
    caller: &Caller,
    key: &str,
    level: &str,
) -> Result<Arc<Agent>, Failure> {
    let operation = Operation::new("agent.set_trust", key);
    console
        .administer(caller, Action::AdminAgents, &operation, async {
            let agent = find_to_change(console, caller, key, &operation)?;
            let level = assignable(level)?;
            may_trust(console, caller, level)?;
            let agent = console.engine().registry().set_trust(&agent, level).await?;
            operation.after(agent_state(console, &agent));
            Ok(agent)
        })
        .await
}

/// A trusted agent may be called by everybody as the starter policy says, so trusting one takes the right to write policies.
pub(super) fn may_trust(console: &Console, caller: &Caller, level: AgentTrust) -> Result<(), Failure> {
    if level == AgentTrust::External { Ok(()) } else { console.may(caller, Action::AdminPolicies) }
}

/// Takes a changed card that was held into use.
pub async fn approve(console: &Console, caller: &Caller, key: &str) -> Result<Arc<Agent>, Failure> {
    let operation = Operation::new("agent.approve_card", key);
    console
        .administer(caller, Action::AdminAgents, &operation, async {
            let agent = find_to_change(console, caller, key, &operation)?;
            let agent = console.engine().registry().approve(&agent).await?;
            operation.after(agent_state(console, &agent));
            Ok(agent)
        })
        .await
}

/// The agent that an operation is about, noted as it is before.
fn find_to_change(
    console: &Console,
    caller: &Caller,
    key: &str,
    operation: &Operation,
) -> Result<Arc<Agent>, Failure> {
    let agent = console.engine().registry().find(&caller.scope, key)?;
    operation.name(agent.slug.as_str());
    operation.agent(&agent);
    operation.before(agent_state(console, &agent));
    Ok(agent)
}

/// The agents that are meant, in words.
pub(super) fn names(slugs: &[String]) -> String {
    if slugs.is_empty() { "all agents".to_owned() } else { slugs.join(", ") }
}

/// An agent's latest probes, newest first.
pub async fn probes(console: &Console, agent: &Agent, limit: usize) -> Result<Vec<Probe>, Failure> {
    Ok(console.engine().registry().probes(agent, limit).await?)
}

/// What changed in an agent's card, newest first.
pub async fn history(console: &Console, agent: &Agent) -> Result<Vec<Replaced>, Failure> {
    let mut after = Arc::clone(&agent.card);
    let mut changes = Vec::new();
    for old in console.engine().registry().history(agent).await? {
        let Some(before) = console.office().read_card(old.card.get()).map(Arc::new) else { continue };
        changes.push(Replaced { at: old.replaced_at, diff: CardDiff::between(&before, &after) });
        after = before;
    }
    Ok(changes)
}

/// What would change if the card that waits were approved.
pub fn pending(agent: &Agent) -> Option<CardDiff> {
    agent.pending.as_ref().map(|pending| CardDiff::between(&agent.card, &pending.card))
}

/// The health with that name.
pub(crate) fn health(name: &str) -> Option<Health> {
    let all = [Health::Unknown, Health::Healthy, Health::Degraded, Health::Unreachable];
    all.into_iter().find(|health| health.as_str() == name)
}

/// The level with that name, `system` included: it can be asked for, not given.
pub(crate) fn level(name: &str) -> Option<AgentTrust> {
    [AgentTrust::External, AgentTrust::Trusted, AgentTrust::System]
        .into_iter()
        .find(|trust| trust.as_str() == name)
}

/// The level with that name, if it can be given.
pub(super) fn assignable(level: &str) -> Result<AgentTrust, Failure> {
    AgentTrust::parse_assignable(level).ok_or_else(|| {
        let message = if level == "system" {
            "system is the platform's own level and cannot be given; use external or trusted".to_owned()
        } else {
            format!("\"{level}\" is not a level of trust; use external or trusted")
        };
        Failure::new(FailureKind::Invalid, message)
    })
}

/// The credential that is wanted, said in short or in full.
fn credential(
    console: &Console,
    caller: &Caller,
    short: Option<&str>,
    full: Option<&Credential>,
) -> Result<Option<Credential>, Failure> {
    let wanted = match (short, full) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err(Failure::new(
                FailureKind::Invalid,
                "say where the secret is once: `secret`, or `credential`",
            ));
        }
        (None, Some(full)) => full.clone(),
        (Some(text), None) => Credential::new(SecretSource::parse(text.trim()).ok_or_else(|| {
            let message =
                format!("\"{text}\" does not say where a secret is: env:NAME, file:PATH or store:NAME");
            Failure::new(FailureKind::Invalid, message)
        })?),
    };
    if !console.may_use_machine(caller) {
        let message = "these are secrets of this server's machine: use `rialto agents credential` there, or, from the org default, set [server] allow_commands_over_api";
        return Err(Failure::new(FailureKind::Denied, message));
    }
    Ok(Some(wanted))
}

/// What would help where an agent's card cannot be had.
const fn help(error: &RegistryError) -> &'static str {
    match error {
        RegistryError::Address(AddressError::Scheme(_)) => {
            "; write it like https://agents.example.com/reviewer"
        }
        RegistryError::Discovery(DiscoveryError::Status { status, .. }) => match status {
            404 => {
                "; cards are looked for at /.well-known/agent-card.json and /.well-known/agent.json below the address: see that it is the agent's, or say where its card is (card path, `--card-path`)"
            }
            401 | 403 => {
                "; it wants to know who asks: keep what it takes with `rialto secrets set NAME`, and name that when you register it (secret, `--secret store:NAME`)"
            }
            500.. => "; the trouble is at the agent: see its log, and try again",
            _ => "",
        },
        RegistryError::Discovery(DiscoveryError::Unreachable { .. }) => {
            "; see that it runs, and that this server's machine gets there"
        }
        _ => "",
    }
}

/// What is told of an address that is not taken from afar: who can have it taken anyway, and how.
pub(super) fn with_way_in(
    console: &Console,
    caller: &Caller,
    mut failure: Failure,
    command: &str,
) -> Failure {
    if !console.may_use_private_addresses(caller) {
        failure.message += &format!(
            "; whoever may do it anyway does so at the server's machine with `{command}`, or sets [server] allow_private_over_api"
        );
    }
    failure
}

/// The row with the moment it was really last seen: a probe that finds nothing new is written down, and nobody reads rows again for it.
async fn as_seen(console: &Console, agent: Arc<Agent>) -> Result<Arc<Agent>, Failure> {
    let latest =
        probes(console, &agent, 1).await?.into_iter().find(|probe| probe.health != Health::Unreachable);
    let latest = latest.map(|probe| probe.at).filter(|at| agent.last_seen_at.is_none_or(|seen| seen < *at));
    Ok(match latest {
        Some(at) => Arc::new(Agent { last_seen_at: Some(at), ..Agent::clone(&agent) }),
        None => agent,
    })
}

/// Whether the caller may see that an agent is there.
pub(crate) fn may_see(console: &Console, caller: &Caller, agent: &Arc<Agent>) -> bool {
    console.at_machine()
        || console.engine().may_discover(caller, &CallTarget { agent: Arc::clone(agent), skill: None })
}

fn has(agent: &Agent, word: &str) -> bool {
    let is_in = |text: &str| text.to_lowercase().contains(word);
    agent.slug.contains(word)
        || is_in(&agent.card.name)
        || is_in(&agent.url)
        || agent.card.skills.iter().any(|skill| is_in(skill.id.as_str()) || is_in(&skill.name))
}
