//! What is deployed beside the agents: MCP servers and functions.
//!
//! Somebody at another machine gets less than somebody at this one: no private addresses, and neither programs nor secrets
//! of this machine, unless the configuration says so.

mod shown;

use std::sync::Arc;

use rialto_engine::registry::{Deployment, Registered};
use rialto_model::{
    agent::{Agent, AgentTrust},
    backing::{Backing, BackingTransport, SettingPiece},
    call::Caller,
    failure::{Failure, FailureKind},
    token_scopes::TokenScope,
};
use rialto_policy::Action;

pub use self::shown::{deployment_row, is_available, names};
use super::agents::{assignable, may_see, may_trust, with_way_in};
use crate::{
    Console,
    operation::{Operation, agent_state},
};

/// What is deployed in the caller's project and may be seen by it.
pub async fn seen(console: &Console, caller: &Caller) -> Result<Vec<Arc<Agent>>, Failure> {
    Console::need(caller, TokenScope::Discover)?;
    console.engine().sync().await?;
    let mut rows = deployed(console, caller);
    rows.retain(|row| may_see(console, caller, row));
    Ok(rows)
}

/// Everything that is deployed in the caller's project.
pub async fn list(console: &Console, caller: &Caller) -> Result<Vec<Arc<Agent>>, Failure> {
    console.admit(caller, Action::AdminAgents).await?;
    Ok(deployed(console, caller))
}

/// The servers and functions of the caller's project. What runs workflows is neither: these have pages and routes of their own.
pub(super) fn deployed(console: &Console, caller: &Caller) -> Vec<Arc<Agent>> {
    let mut rows = console.engine().registry().deployed(&caller.scope);
    rows.retain(|row| !matches!(row.backing, Backing::Flow(_)));
    rows
}

/// What is deployed under this name, or has a tool of this name.
pub async fn find(console: &Console, caller: &Caller, name: &str) -> Result<Arc<Agent>, Failure> {
    let rows = list(console, caller).await?;
    let by_tool = || {
        let target = console.engine().resolve(caller, name)?;
        (!matches!(target.agent.backing, Backing::A2a)).then_some(target.agent)
    };
    named(&rows, name).or_else(by_tool).ok_or_else(|| unknown(console, caller, name))
}

/// Deploys what a program describes, in the caller's project.
pub async fn deploy(console: &Console, caller: &Caller, described: &str) -> Result<Registered, Failure> {
    let operation = Operation::new("tool.deploy", "");
    let work = deploy_now(console, caller, described, &operation);
    console.administer(caller, Action::AdminAgents, &operation, work).await
}

async fn deploy_now(
    console: &Console,
    caller: &Caller,
    described: &str,
    operation: &Operation,
) -> Result<Registered, Failure> {
    let wanted = console.office().read_deployment(described, &caller.scope)?;
    let name = wanted.backing.name().unwrap_or_default().to_owned();
    let known = named(&deployed(console, caller), &name);
    if let Some(known) = &known {
        operation.before(agent_state(console, known));
    }
    operation.name(name);
    if !console.may_use_machine(caller) {
        stays_away(&wanted)?;
    }
    let trust = trust_of(console, caller, &wanted, known.as_deref())?;
    let wanted = Deployment { allow_private: console.may_use_private_addresses(caller), trust, ..wanted };
    let is_near = wanted.backing.via().is_some_and(is_near);
    let deployed = console.engine().registry().deploy(wanted).await;
    if let Ok(deployed) = &deployed {
        operation.agent(&deployed.agent);
        operation.after(agent_state(console, &deployed.agent));
    }
    deployed.map_err(|error| {
        let failure = Failure::from(error);
        // Whoever speaks to servers tells of one that it may not go to as of one that does not answer.
        let is_barred =
            failure.kind == FailureKind::Denied || is_near && failure.kind == FailureKind::PeerUnreachable;
        if is_barred { with_way_in(console, caller, failure, "rialto tools add") } else { failure }
    })
}

/// How far something is trusted that a caller deploys. What is not `external` may be called by everybody as the starter policy says, so it
/// takes the right to write policies: without that, what is new is `external`.
fn trust_of(
    console: &Console,
    caller: &Caller,
    wanted: &Deployment,
    known: Option<&Agent>,
) -> Result<Option<AgentTrust>, Failure> {
    match wanted.trust {
        Some(level) => {
            let level = assignable(level.as_str())?;
            may_trust(console, caller, level).map(|()| Some(level))
        }
        None if known.is_some() => Ok(None),
        None => Ok(console.may(caller, Action::AdminPolicies).is_err().then_some(AgentTrust::External)),
    }
}

/// Takes one of them back.
pub async fn remove(console: &Console, caller: &Caller, name: &str) -> Result<Arc<Agent>, Failure> {
    let operation = Operation::new("tool.remove", name);
    console
        .administer(caller, Action::AdminAgents, &operation, async {
            let row =
                named(&deployed(console, caller), name).ok_or_else(|| unknown(console, caller, name))?;
            operation.agent(&row);
            operation.before(agent_state(console, &row));
            console.engine().registry().remove(&row).await?;
            if let Err(failure) = console.office().forget_policies(&row).await {
                tracing::error!("the policies about {} were not removed: {failure}", row.slug);
            }
            Ok(row)
        })
        .await
}

fn named(rows: &[Arc<Agent>], name: &str) -> Option<Arc<Agent>> {
    let is_meant = |row: &&Arc<Agent>| row.slug == name || row.url == name || row.id.as_str() == name;
    let found =
        rows.iter().find(is_meant).or_else(|| rows.iter().find(|row| row.backing.name() == Some(name)));
    found.cloned()
}

fn unknown(console: &Console, caller: &Caller, name: &str) -> Failure {
    let of = console.engine().resolve(caller, name).map(|target| target.agent);
    let message = match of.filter(|agent| !agent.backing.is_agent()) {
        Some(row) => format!("{name} is a tool of {}; name that: {}", row.slug, row.slug),
        None => format!("nothing is deployed as \"{name}\"; `rialto tools list` shows what is"),
    };
    Failure::new(FailureKind::NotFound, message)
}

/// Whether an address is one of this machine or of its network, as it is written.
fn is_near(via: &BackingTransport) -> bool {
    let BackingTransport::Http(endpoint) = via else { return false };
    match url::Url::parse(&endpoint.url).ok().and_then(|url| url.host().map(|host| host.to_owned())) {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
        None => false,
    }
}

/// Whether this uses nothing of the server's machine.
fn stays_away(wanted: &Deployment) -> Result<(), Failure> {
    let Some(via) = wanted.backing.via() else { return Ok(()) };
    let denied = |what: &str| {
        let message =
            format!("{what}: set [server] allow_commands_over_api, or use `rialto tools add` there");
        Err(Failure::new(FailureKind::Denied, message))
    };
    if matches!(via, BackingTransport::Command(_)) {
        return denied("commands run on this server's machine");
    }
    let leads_here = |piece: &SettingPiece| matches!(piece, SettingPiece::From(_));
    if via.settings().values().any(|setting| setting.pieces().iter().any(leads_here)) {
        return denied("these are secrets of this server's machine");
    }
    Ok(())
}
