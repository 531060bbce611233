//! Orgs and projects: lists, creation and removal.
//!
//! An org or a project exists once it was created, or once a token, an agent or a policy belongs to it. Orgs are created
//! and removed on the server's machine. Over the network, a caller sees its own org, and creates and removes its projects.

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

use super::{tokens, workflows};
use crate::{Administration, administration::store_failure, operation::AdminOperation};

/// Orgs that the caller is allowed to see: all on the server's machine, else its own.
pub async fn list(admin: &Administration, caller: &Caller) -> Result<Vec<OrgRow>, Failure> {
    admin.authorize_admin(caller, Action::AdminTokens).await?;
    let mut orgs = summaries(admin).await?;
    if !admin.is_local() {
        orgs.retain(|org, _| *org == caller.scope.org);
    }
    Ok(orgs.into_values().collect())
}

/// Creates an org. Returns the token of its first owner, if one was named.
pub async fn create(
    admin: &Administration,
    caller: &Caller,
    new: &NewOrg,
) -> Result<Option<String>, Failure> {
    let operation = AdminOperation::new("org.create", new.org.as_str());
    let work = async {
        require_local(admin, "create")?;
        let org = OrgId::from(check_slug(&new.org, "org")?);
        if summaries(admin).await?.contains_key(&org) {
            return Err(Failure::new(FailureKind::Conflict, format!("the org {org} exists already")));
        }
        operation.org(&org);
        let scope = Scope { org, ..Scope::default() };
        let tenant = created_tenant(admin, caller, scope.clone());
        admin.store().create_tenant(&tenant).await.map_err(store_failure)?;
        let owner = new.owner.as_deref().filter(|owner| !owner.trim().is_empty());
        operation.after(json!({ "org": new.org, "owner": owner }));
        let Some(owner) = owner else { return Ok(None) };
        let owner_token =
            NewToken { caller: owner.to_owned(), role: Some(TokenRole::Owner), ..Default::default() };
        let scoped_caller = Caller { scope, ..caller.clone() };
        let (_, token) = tokens::create_authorized(admin, &scoped_caller, &owner_token, &operation).await?;
        Ok(Some(token))
    };
    admin.administer(caller, Action::AdminTokens, &operation, work).await
}

/// Removes an org. An org that is not empty needs `force`: its tokens are revoked, and its agents,
/// tools, workflows, webhooks and policies are removed. Its tasks and audit records are kept until they expire.
pub async fn remove(admin: &Administration, caller: &Caller, name: &str, force: bool) -> Result<(), Failure> {
    let operation = AdminOperation::new("org.remove", name);
    let work = remove_authorized(admin, caller, name, force, &operation);
    admin.administer(caller, Action::AdminTokens, &operation, work).await
}

async fn remove_authorized(
    admin: &Administration,
    caller: &Caller,
    name: &str,
    force: bool,
    operation: &AdminOperation,
) -> Result<(), Failure> {
    require_local(admin, "remove")?;
    let orgs = summaries(admin).await?;
    let org = OrgId::from(name);
    let Some(summary) = orgs.get(&org) else { return Err(missing_org(name, &orgs)) };
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
        remove_project_contents(admin, caller, &Scope { org: org.clone(), project: project.as_str().into() })
            .await?;
    }
    for webhook in admin.store().webhooks().await.map_err(store_failure)? {
        if webhook.org == org {
            admin.store().remove_webhook(&webhook.id).await.map_err(store_failure)?;
            admin.host().remove_webhook_key(&webhook.id)?;
        }
    }
    admin.host().remove_org_policies(&org).await?;
    super::policies::publish_change(admin).await
}

/// Projects of the caller's org.
pub async fn projects(admin: &Administration, caller: &Caller) -> Result<Vec<ProjectRow>, Failure> {
    admin.authorize_admin(caller, Action::AdminAgents).await?;
    Ok(project_summaries(admin, &caller.scope.org).await?.into_values().collect())
}

/// Creates a project in the caller's org.
pub async fn create_project(
    admin: &Administration,
    caller: &Caller,
    new: &NewProject,
) -> Result<(), Failure> {
    let operation = AdminOperation::new("project.create", new.project.as_str());
    let work = async {
        let project = ProjectId::from(check_slug(&new.project, "project")?);
        if project_summaries(admin, &caller.scope.org).await?.contains_key(&project) {
            let message = format!("the project {project} exists already in the org {}", caller.scope.org);
            return Err(Failure::new(FailureKind::Conflict, message));
        }
        let tenant = created_tenant(admin, caller, Scope { org: caller.scope.org.clone(), project });
        admin.store().create_tenant(&tenant).await.map_err(store_failure)?;
        operation.after(json!({ "org": tenant.scope.org, "project": tenant.scope.project }));
        Ok(())
    };
    admin.administer(caller, Action::AdminAgents, &operation, work).await
}

/// Removes a project of the caller's org. A project that is not empty needs `force`.
pub async fn remove_project(
    admin: &Administration,
    caller: &Caller,
    name: &str,
    force: bool,
) -> Result<(), Failure> {
    let operation = AdminOperation::new("project.remove", name);
    let work = async {
        // Tokens of the project are revoked too.
        admin.authorize_admin(caller, Action::AdminTokens).await?;
        let projects = project_summaries(admin, &caller.scope.org).await?;
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
        remove_project_contents(admin, caller, &scope).await
    };
    admin.administer(caller, Action::AdminAgents, &operation, work).await
}

/// Removes a project and everything in it.
async fn remove_project_contents(
    admin: &Administration,
    caller: &Caller,
    scope: &Scope,
) -> Result<(), Failure> {
    let scoped_caller = Caller { scope: scope.clone(), ..caller.clone() };
    for flow in workflows::list_definitions(admin, &scoped_caller).await? {
        admin.workflows().definitions().remove(admin.engine(), scope, &flow.name, false).await?;
    }
    for agent in admin.engine().registry().all() {
        if agent.scope == *scope {
            admin.engine().registry().remove(&agent).await?;
            remove_agent_policies(admin, &agent).await;
        }
    }
    let now = admin.engine().now();
    for token in admin.store().tokens().await.map_err(store_failure)? {
        if token.scope == *scope && token.revoked_at.is_none() {
            admin.store().revoke_token(&token.id, now).await.map_err(store_failure)?;
        }
    }
    admin.store().remove_tenant(scope).await.map_err(store_failure)?;
    Ok(())
}

async fn remove_agent_policies(admin: &Administration, agent: &Agent) {
    if let Err(failure) = admin.host().remove_agent_policies(agent).await {
        tracing::error!("policies of the removed agent {} could not be removed: {failure}", agent.slug);
    }
}

/// All orgs. The org `default` always exists.
async fn summaries(admin: &Administration) -> Result<BTreeMap<OrgId, OrgRow>, Failure> {
    let mut orgs: BTreeMap<OrgId, OrgRow> = BTreeMap::new();
    let mut add_scope = |scope: &Scope| {
        let summary = orgs.entry(scope.org.clone()).or_default();
        summary.org = scope.org.to_string();
        summary.projects.insert(scope.project.to_string());
    };
    add_scope(&Scope::default());
    let tenants = admin.store().tenants().await.map_err(store_failure)?;
    tenants.iter().for_each(|tenant| add_scope(&tenant.scope));
    let (tokens, agents) = (active_token_scopes(admin).await?, admin.engine().registry().all());
    tokens.iter().for_each(&mut add_scope);
    agents.iter().for_each(|agent| add_scope(&agent.scope));
    let sources = admin.host().policy_sources().await?;
    let owners = || sources.iter().filter_map(|source| source.org.clone());
    owners().for_each(|org| add_scope(&Scope { org, ..Scope::default() }));
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
    admin: &Administration,
    org: &OrgId,
) -> Result<BTreeMap<ProjectId, ProjectRow>, Failure> {
    let mut projects: BTreeMap<ProjectId, ProjectRow> = BTreeMap::new();
    projects.entry(Scope::default().project).or_default();
    for agent in admin.engine().registry().all().iter().filter(|agent| agent.scope.org == *org) {
        projects.entry(agent.scope.project.clone()).or_default().agents += 1;
    }
    for scope in active_token_scopes(admin).await?.into_iter().filter(|scope| scope.org == *org) {
        projects.entry(scope.project).or_default().tokens += 1;
    }
    for tenant in admin.store().tenants().await.map_err(store_failure)? {
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

/// Scopes of all active tokens.
async fn active_token_scopes(admin: &Administration) -> Result<Vec<Scope>, Failure> {
    let now = admin.engine().now();
    let tokens = admin.store().tokens().await.map_err(store_failure)?;
    Ok(tokens.into_iter().filter(|token| tokens::is_active(token, now)).map(|token| token.scope).collect())
}

/// Path prefix of a project. It is empty for the default one.
pub fn project_path(scope: &Scope) -> String {
    if *scope == Scope::default() { String::new() } else { format!("/{}/{}", scope.org, scope.project) }
}

fn created_tenant(admin: &Administration, caller: &Caller, scope: Scope) -> CreatedTenant {
    let created_by = if admin.is_local() { admin.host().operator_name() } else { caller.id.to_string() };
    CreatedTenant { scope, created_at: admin.engine().now(), created_by }
}

fn require_local(admin: &Administration, verb: &str) -> Result<(), Failure> {
    if admin.is_local() {
        return Ok(());
    }
    let message = format!("orgs are {verb}d on the server's machine, with `rialto orgs {verb} NAME`");
    Err(Failure::new(FailureKind::Denied, message))
}

fn check_slug<'a>(name: &'a str, what: &str) -> Result<&'a str, Failure> {
    if is_slug(name) {
        return Ok(name);
    }
    let message = format!(
        "{what}: \"{name}\" is not a valid name; use letters, digits, `-` and `_`, at most 64 of them, a letter or digit first"
    );
    Err(Failure::new(FailureKind::Invalid, message))
}

fn missing_org(name: &str, orgs: &BTreeMap<OrgId, OrgRow>) -> Failure {
    let names: Vec<_> = orgs.keys().map(OrgId::as_str).collect();
    Failure::new(FailureKind::NotFound, format!("there is no org \"{name}\"; there are {}", names.join(", ")))
}
