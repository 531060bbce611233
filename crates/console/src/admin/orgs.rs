//! Orgs and their projects: which there are, and how they come and go.
//!
//! An org or a project exists once it was created here, or once a token, an agent or a policy belongs to it. Orgs are created
//! and removed at the machine; over the network a caller sees its own org, and creates and removes its projects.

use std::collections::BTreeMap;

use rialto_api_types::{
    tenants::{NewOrg, NewProject, OrgRow, ProjectRow},
    tokens::{NewToken, TokenRole},
};
use rialto_model::{
    agent::Agent,
    call::Caller,
    failure::{Failure, FailureKind},
    ids::{OrgId, ProjectId, Scope, is_slug},
    store::CreatedTenant,
};
use rialto_policy::Action;
use serde_json::json;

use super::{flows, tokens};
use crate::{Console, console::store_failure, operation::Operation};

/// The orgs that the caller may see: at the machine all, else its own.
pub async fn list(console: &Console, caller: &Caller) -> Result<Vec<OrgRow>, Failure> {
    console.admit(caller, Action::AdminTokens).await?;
    let mut orgs = summaries(console).await?;
    if !console.at_machine() {
        orgs.retain(|org, _| *org == caller.scope.org);
    }
    Ok(orgs.into_values().collect())
}

/// Creates an org. Answers the token of its first owner, if one was named.
pub async fn create(console: &Console, caller: &Caller, new: &NewOrg) -> Result<Option<String>, Failure> {
    let operation = Operation::new("org.create", new.org.as_str());
    let work = async {
        at_machine(console, "create")?;
        let org = OrgId::from(checked(&new.org, "org")?);
        if summaries(console).await?.contains_key(&org) {
            return Err(Failure::new(FailureKind::Conflict, format!("the org {org} exists already")));
        }
        operation.org(&org);
        let scope = Scope { org, ..Scope::default() };
        let tenant = created(console, caller, scope.clone());
        console.store().create_tenant(&tenant).await.map_err(store_failure)?;
        let owner = new.owner.as_deref().filter(|owner| !owner.trim().is_empty());
        operation.after(json!({ "org": new.org, "owner": owner }));
        let Some(owner) = owner else { return Ok(None) };
        let wanted =
            NewToken { caller: owner.to_owned(), role: Some(TokenRole::Owner), ..Default::default() };
        let there = Caller { scope, ..caller.clone() };
        let (_, token) = tokens::create_now(console, &there, &wanted, &operation).await?;
        Ok(Some(token))
    };
    console.administer(caller, Action::AdminTokens, &operation, work).await
}

/// Removes an org. One that anything belongs to is removed with all of it, if `force` says so: its tokens are revoked, its agents,
/// tools, workflows, webhooks and policies are removed. Its tasks and audit records stay until they are old.
pub async fn remove(console: &Console, caller: &Caller, name: &str, force: bool) -> Result<(), Failure> {
    let operation = Operation::new("org.remove", name);
    let work = remove_now(console, caller, name, force, &operation);
    console.administer(caller, Action::AdminTokens, &operation, work).await
}

async fn remove_now(
    console: &Console,
    caller: &Caller,
    name: &str,
    force: bool,
    operation: &Operation,
) -> Result<(), Failure> {
    at_machine(console, "remove")?;
    let orgs = summaries(console).await?;
    let org = OrgId::from(name);
    let Some(summary) = orgs.get(&org) else { return Err(no_org(name, &orgs)) };
    if org == Scope::default().org {
        return Err(Failure::new(FailureKind::Conflict, "the org default cannot be removed"));
    }
    operation.org(&org);
    operation.before(json!(summary));
    let is_empty = summary.agents + summary.tokens + summary.policies == 0;
    if !is_empty && !force {
        let message = format!(
            "the org {org} has {} agents, {} tokens and {} policies; remove it with all of them with --force",
            summary.agents, summary.tokens, summary.policies
        );
        return Err(Failure::new(FailureKind::Conflict, message));
    }
    for project in &summary.projects {
        empty_project(console, caller, &Scope { org: org.clone(), project: project.as_str().into() }).await?;
    }
    for webhook in console.store().webhooks().await.map_err(store_failure)? {
        if webhook.org == org {
            console.store().remove_webhook(&webhook.id).await.map_err(store_failure)?;
            console.office().forget_webhook_key(&webhook.id)?;
        }
    }
    console.office().forget_org_policies(&org).await?;
    super::policies::make_known(console).await
}

/// The projects of the caller's org.
pub async fn projects(console: &Console, caller: &Caller) -> Result<Vec<ProjectRow>, Failure> {
    console.admit(caller, Action::AdminAgents).await?;
    Ok(project_summaries(console, &caller.scope.org).await?.into_values().collect())
}

/// Creates a project in the caller's org.
pub async fn create_project(console: &Console, caller: &Caller, new: &NewProject) -> Result<(), Failure> {
    let operation = Operation::new("project.create", new.project.as_str());
    let work = async {
        let project = ProjectId::from(checked(&new.project, "project")?);
        if project_summaries(console, &caller.scope.org).await?.contains_key(&project) {
            let message = format!("the org {} has a project {project} already", caller.scope.org);
            return Err(Failure::new(FailureKind::Conflict, message));
        }
        let tenant = created(console, caller, Scope { org: caller.scope.org.clone(), project });
        console.store().create_tenant(&tenant).await.map_err(store_failure)?;
        operation.after(json!({ "org": tenant.scope.org, "project": tenant.scope.project }));
        Ok(())
    };
    console.administer(caller, Action::AdminAgents, &operation, work).await
}

/// Removes a project of the caller's org, with all that belongs to it if `force` says so.
pub async fn remove_project(
    console: &Console,
    caller: &Caller,
    name: &str,
    force: bool,
) -> Result<(), Failure> {
    let operation = Operation::new("project.remove", name);
    let work = async {
        // Its tokens are revoked with it.
        console.admit(caller, Action::AdminTokens).await?;
        let projects = project_summaries(console, &caller.scope.org).await?;
        let scope = Scope { org: caller.scope.org.clone(), project: name.into() };
        let Some(summary) = projects.get(&scope.project) else {
            let names: Vec<_> = projects.keys().map(ProjectId::as_str).collect();
            let message =
                format!("the org {} has no project \"{name}\"; it has {}", scope.org, names.join(", "));
            return Err(Failure::new(FailureKind::NotFound, message));
        };
        operation.before(json!(summary));
        if summary.agents + summary.tokens > 0 && !force {
            let message = format!(
                "the project {name} has {} agents and {} tokens; remove it with all of them with --force",
                summary.agents, summary.tokens
            );
            return Err(Failure::new(FailureKind::Conflict, message));
        }
        empty_project(console, caller, &scope).await
    };
    console.administer(caller, Action::AdminAgents, &operation, work).await
}

/// Removes what belongs to a project, and the project.
async fn empty_project(console: &Console, caller: &Caller, scope: &Scope) -> Result<(), Failure> {
    let there = Caller { scope: scope.clone(), ..caller.clone() };
    for flow in flows::all(console, &there).await? {
        console.flows().book().remove(console.engine(), scope, &flow.name, false).await?;
    }
    for agent in console.engine().registry().all() {
        if agent.scope == *scope {
            console.engine().registry().remove(&agent).await?;
            forget_policies(console, &agent).await;
        }
    }
    let now = console.engine().now();
    for token in console.store().tokens().await.map_err(store_failure)? {
        if token.scope == *scope && token.revoked_at.is_none() {
            console.store().revoke_token(&token.id, now).await.map_err(store_failure)?;
        }
    }
    console.store().remove_tenant(scope).await.map_err(store_failure)?;
    Ok(())
}

async fn forget_policies(console: &Console, agent: &Agent) {
    if let Err(failure) = console.office().forget_policies(agent).await {
        tracing::error!("the policies about {} were not removed: {failure}", agent.slug);
    }
}

/// All orgs. The org `default` always exists.
async fn summaries(console: &Console) -> Result<BTreeMap<OrgId, OrgRow>, Failure> {
    let mut orgs: BTreeMap<OrgId, OrgRow> = BTreeMap::new();
    let mut place = |scope: &Scope| {
        let summary = orgs.entry(scope.org.clone()).or_default();
        summary.org = scope.org.to_string();
        summary.projects.insert(scope.project.to_string());
    };
    place(&Scope::default());
    let tenants = console.store().tenants().await.map_err(store_failure)?;
    tenants.iter().for_each(|tenant| place(&tenant.scope));
    let (tokens, agents) = (live_tokens(console).await?, console.engine().registry().all());
    tokens.iter().for_each(&mut place);
    agents.iter().for_each(|agent| place(&agent.scope));
    let sources = console.office().policies().await?;
    let owners = || sources.iter().filter_map(|source| source.org.clone());
    owners().for_each(|org| place(&Scope { org, ..Scope::default() }));
    for summary in orgs.values_mut() {
        let is_of = |org: &OrgId| org.as_str() == summary.org;
        summary.agents = agents.iter().filter(|agent| is_of(&agent.scope.org)).count();
        summary.tokens = tokens.iter().filter(|scope| is_of(&scope.org)).count();
        summary.policies = owners().filter(is_of).count();
        let created = tenants.iter().filter(|tenant| is_of(&tenant.scope.org)).min_by_key(|it| it.created_at);
        summary.created_at = created.map(|tenant| tenant.created_at);
        summary.created_by = created.map(|tenant| tenant.created_by.clone());
    }
    Ok(orgs)
}

async fn project_summaries(
    console: &Console,
    org: &OrgId,
) -> Result<BTreeMap<ProjectId, ProjectRow>, Failure> {
    let mut projects: BTreeMap<ProjectId, ProjectRow> = BTreeMap::new();
    projects.entry(Scope::default().project).or_default();
    for agent in console.engine().registry().all().iter().filter(|agent| agent.scope.org == *org) {
        projects.entry(agent.scope.project.clone()).or_default().agents += 1;
    }
    for scope in live_tokens(console).await?.into_iter().filter(|scope| scope.org == *org) {
        projects.entry(scope.project).or_default().tokens += 1;
    }
    for tenant in console.store().tenants().await.map_err(store_failure)? {
        if tenant.scope.org == *org {
            let summary = projects.entry(tenant.scope.project).or_default();
            summary.created_at = Some(tenant.created_at);
            summary.created_by = Some(tenant.created_by);
        }
    }
    for (name, summary) in &mut projects {
        summary.project = name.to_string();
    }
    Ok(projects)
}

/// Where the tokens belong that still let callers in.
async fn live_tokens(console: &Console) -> Result<Vec<Scope>, Failure> {
    let now = console.engine().now();
    let tokens = console.store().tokens().await.map_err(store_failure)?;
    Ok(tokens.into_iter().filter(|token| tokens::is_active(token, now)).map(|token| token.scope).collect())
}

fn created(console: &Console, caller: &Caller, scope: Scope) -> CreatedTenant {
    let created_by = if console.at_machine() { console.office().operator() } else { caller.id.to_string() };
    CreatedTenant { scope, created_at: console.engine().now(), created_by }
}

fn at_machine(console: &Console, verb: &str) -> Result<(), Failure> {
    if console.at_machine() {
        return Ok(());
    }
    let message = format!("orgs are {verb}d at the server's machine, with `rialto orgs {verb} NAME`");
    Err(Failure::new(FailureKind::Denied, message))
}

fn checked<'a>(name: &'a str, what: &str) -> Result<&'a str, Failure> {
    if is_slug(name) {
        return Ok(name);
    }
    let message = format!(
        "{what}: \"{name}\" cannot be a name; use letters, digits, `-` and `_`, at most 64 of them, a letter or digit first"
    );
    Err(Failure::new(FailureKind::Invalid, message))
}

fn no_org(name: &str, orgs: &BTreeMap<OrgId, OrgRow>) -> Failure {
    let names: Vec<_> = orgs.keys().map(OrgId::as_str).collect();
    Failure::new(FailureKind::NotFound, format!("there is no org \"{name}\"; there are {}", names.join(", ")))
}
