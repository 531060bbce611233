//! Deployments: MCP servers and functions.
//!
//! Over the network, less is allowed than on the server's machine: no private addresses, programs and secrets
//! of that machine, unless the configuration allows them.

mod rows;

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

pub use self::rows::{deployment_row, is_available, tool_names};
use super::agents::{check_may_trust, may_see, parse_assignable_trust, with_local_hint};
use crate::{
    Administration,
    administration::require_right_or_admin,
    operation::{AdminOperation, agent_state},
};

/// Deployments of the caller's project that it is allowed to see.
pub async fn list_visible(admin: &Administration, caller: &Caller) -> Result<Vec<Arc<Agent>>, Failure> {
    require_right_or_admin(caller, TokenScope::Discover)?;
    admin.engine().policies().sync().await?;
    let mut rows = deployments(admin, caller);
    rows.retain(|row| may_see(admin, caller, row));
    Ok(rows)
}

/// All deployments of the caller's project.
pub async fn list(admin: &Administration, caller: &Caller) -> Result<Vec<Arc<Agent>>, Failure> {
    admin.authorize_admin(caller, Action::AdminAgents).await?;
    Ok(deployments(admin, caller))
}

/// MCP servers and functions of the caller's project, without the workflow runner.
pub(super) fn deployments(admin: &Administration, caller: &Caller) -> Vec<Arc<Agent>> {
    let mut rows = admin.engine().registry().deployments().list(&caller.scope);
    rows.retain(|row| !matches!(row.backing, Backing::Flow(_)));
    rows
}

/// Finds a deployment by its name or the name of one of its tools.
pub async fn find(admin: &Administration, caller: &Caller, name: &str) -> Result<Arc<Agent>, Failure> {
    let rows = list(admin, caller).await?;
    let by_tool = || {
        let target = admin.engine().calls().resolve(caller, name)?;
        (!matches!(target.agent.backing, Backing::A2a)).then_some(target.agent)
    };
    find_by_name(&rows, name).or_else(by_tool).ok_or_else(|| unknown(admin, caller, name))
}

/// Deploys an MCP server or a function in the caller's project, from its description in JSON.
pub async fn deploy(admin: &Administration, caller: &Caller, described: &str) -> Result<Registered, Failure> {
    let operation = AdminOperation::new("tool.deploy", "");
    let work = deploy_authorized(admin, caller, described, &operation);
    admin.administer(caller, Action::AdminAgents, &operation, work).await
}

async fn deploy_authorized(
    admin: &Administration,
    caller: &Caller,
    described: &str,
    operation: &AdminOperation,
) -> Result<Registered, Failure> {
    let requested = admin.host().read_deployment(described, &caller.scope)?;
    let name = requested.backing.name().unwrap_or_default().to_owned();
    let known = find_by_name(&deployments(admin, caller), &name);
    if let Some(known) = &known {
        operation.before(agent_state(admin, known));
    }
    operation.name(name);
    if !admin.may_use_machine_resources(caller) {
        check_uses_no_machine_resources(&requested)?;
    }
    let trust = initial_trust(admin, caller, &requested, known.as_deref())?;
    let requested = Deployment { allow_private: admin.may_use_private_addresses(caller), trust, ..requested };
    let is_local = requested.backing.via().is_some_and(is_local_address);
    let deployed = admin.engine().registry().deployments().deploy(requested).await;
    if let Ok(deployed) = &deployed {
        operation.agent(&deployed.agent);
        operation.after(agent_state(admin, &deployed.agent));
    }
    deployed.map_err(|error| {
        let failure = Failure::from(error);
        // The MCP client reports an address that is not allowed as unreachable.
        let is_address_denied =
            failure.kind == FailureKind::Denied || is_local && failure.kind == FailureKind::PeerUnreachable;
        if is_address_denied { with_local_hint(admin, caller, failure, "rialto tools add") } else { failure }
    })
}

/// Trust level of a deployment. The starter policy allows all callers to call what is not `external`, so other levels need permission to
/// write policies; without it, a new deployment is `external`.
fn initial_trust(
    admin: &Administration,
    caller: &Caller,
    requested: &Deployment,
    known: Option<&Agent>,
) -> Result<Option<AgentTrust>, Failure> {
    match requested.trust {
        Some(level) => {
            let level = parse_assignable_trust(level.as_str())?;
            check_may_trust(admin, caller, level).map(|()| Some(level))
        }
        None if known.is_some() => Ok(None),
        None => Ok(admin.check_admin(caller, Action::AdminPolicies).is_err().then_some(AgentTrust::External)),
    }
}

/// Removes a deployment.
pub async fn remove(admin: &Administration, caller: &Caller, name: &str) -> Result<Arc<Agent>, Failure> {
    let operation = AdminOperation::new("tool.remove", name);
    admin
        .administer(caller, Action::AdminAgents, &operation, async {
            let row = find_by_name(&deployments(admin, caller), name)
                .ok_or_else(|| unknown(admin, caller, name))?;
            operation.agent(&row);
            operation.before(agent_state(admin, &row));
            admin.engine().registry().remove(&row).await?;
            if let Err(failure) = admin.host().remove_agent_policies(&row).await {
                tracing::error!(
                    "policies of the removed deployment {} could not be removed: {failure}",
                    row.slug
                );
            }
            Ok(row)
        })
        .await
}

fn find_by_name(rows: &[Arc<Agent>], name: &str) -> Option<Arc<Agent>> {
    let is_match = |row: &&Arc<Agent>| row.slug == name || row.url == name || row.id.as_str() == name;
    let found =
        rows.iter().find(is_match).or_else(|| rows.iter().find(|row| row.backing.name() == Some(name)));
    found.cloned()
}

fn unknown(admin: &Administration, caller: &Caller, name: &str) -> Failure {
    let of = admin.engine().calls().resolve(caller, name).map(|target| target.agent);
    let message = match of.filter(|agent| !agent.backing.is_agent()) {
        Some(row) => {
            format!("there is no deployment \"{name}\": it is a tool of {}; use {}", row.slug, row.slug)
        }
        None => format!("there is no MCP server or function \"{name}\"; see `rialto tools list`"),
    };
    Failure::new(FailureKind::NotFound, message)
}

/// Whether a URL names this machine or a private network, without resolving its host.
fn is_local_address(via: &BackingTransport) -> bool {
    let BackingTransport::Http(endpoint) = via else { return false };
    match url::Url::parse(&endpoint.url).ok().and_then(|url| url.host().map(|host| host.to_owned())) {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
        None => false,
    }
}

/// Fails if a deployment uses programs or secrets of the server's machine.
fn check_uses_no_machine_resources(requested: &Deployment) -> Result<(), Failure> {
    let Some(via) = requested.backing.via() else { return Ok(()) };
    let denied = |what: &str| {
        let message = format!(
            "{what}: set [server] allow_commands_over_api, or use `rialto tools add` on that machine"
        );
        Err(Failure::new(FailureKind::Denied, message))
    };
    if matches!(via, BackingTransport::Command(_)) {
        return denied("commands of the server's machine are not allowed over the network");
    }
    let is_machine_source = |piece: &SettingPiece| matches!(piece, SettingPiece::From(_));
    if via.settings().values().any(|setting| setting.pieces().iter().any(is_machine_source)) {
        return denied("secrets of the server's machine cannot be used over the network");
    }
    Ok(())
}
