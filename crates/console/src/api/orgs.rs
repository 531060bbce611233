//! `/api/v1/orgs` and `/api/v1/projects`.

use axum::response::Response;
use http::StatusCode;
use rialto_api_types::tenants::{CreatedOrg, CreatedProject, NewOrg, NewProject, OrgList, ProjectList};
use rialto_model::failure::Failure;

use super::{asking::Asking, done, good, told};
use crate::admin::orgs;

pub(super) async fn list(asking: Asking) -> Result<Response, Failure> {
    good(&OrgList { orgs: orgs::list(&asking.console, &asking.caller).await? })
}

pub(super) async fn create(asking: Asking) -> Result<Response, Failure> {
    let new: NewOrg = asking.json()?;
    let token = orgs::create(&asking.console, &asking.caller, &new).await?;
    Ok(told(StatusCode::CREATED, &CreatedOrg { org: new.org, owner: new.owner, token }))
}

pub(super) async fn remove(asking: Asking) -> Result<Response, Failure> {
    orgs::remove(&asking.console, &asking.caller, asking.part("org"), asking.is_set("force")).await?;
    done()
}

pub(super) async fn projects(asking: Asking) -> Result<Response, Failure> {
    good(&ProjectList { projects: orgs::projects(&asking.console, &asking.caller).await? })
}

pub(super) async fn create_project(asking: Asking) -> Result<Response, Failure> {
    let new: NewProject = asking.json()?;
    orgs::create_project(&asking.console, &asking.caller, &new).await?;
    let org = asking.caller.scope.org.clone();
    Ok(told(StatusCode::CREATED, &CreatedProject { org, project: new.project.into() }))
}

pub(super) async fn remove_project(asking: Asking) -> Result<Response, Failure> {
    let (console, caller, name) = (&asking.console, &asking.caller, asking.part("project"));
    orgs::remove_project(console, caller, name, asking.is_set("force")).await?;
    done()
}
