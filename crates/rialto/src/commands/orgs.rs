//! `rialto orgs …` and `rialto projects …`: tenants of this server.

use rialto_api_types::tenants::{CreatedOrg, NewOrg, NewProject, OrgList, OrgRow, ProjectList, ProjectRow};
use rialto_model::json::Json;

use crate::{
    api_client::{ApiClient, parse_response},
    cli::{CreateOrgOptions, OrgsCommand, OutputOptions, ProjectsCommand, TenantsCommand},
    output::{self, CommandError},
};

pub(crate) async fn run(api: &ApiClient, command: TenantsCommand) -> Result<(), CommandError> {
    match command {
        TenantsCommand::Orgs(command) => run_orgs(api, command).await,
        TenantsCommand::Projects(command) => run_projects(api, command).await,
    }
}

async fn run_orgs(api: &ApiClient, command: OrgsCommand) -> Result<(), CommandError> {
    match command {
        OrgsCommand::List(listing) => list_orgs(api, listing).await,
        OrgsCommand::Create(new) => create_org(api, &new).await,
        OrgsCommand::Remove { org, force } => {
            api.delete(&["orgs", &org])
                .with_optional_query("force", force.then_some(true))
                .send_unit()
                .await?;
            output::print_line(format!("removed org {org}"));
            Ok(())
        }
    }
}

async fn run_projects(api: &ApiClient, command: ProjectsCommand) -> Result<(), CommandError> {
    match command {
        ProjectsCommand::List(listing) => list_projects(api, listing).await,
        ProjectsCommand::Create { name } => {
            let created = api.post(&["projects"]).with_json(&NewProject { project: name.clone() });
            created.read::<Json>().await?;
            output::print_line(format!("created project {name}"));
            Ok(())
        }
        ProjectsCommand::Remove { name, force } => {
            api.delete(&["projects", &name])
                .with_optional_query("force", force.then_some(true))
                .send_unit()
                .await?;
            output::print_line(format!("removed project {name}"));
            Ok(())
        }
    }
}

async fn list_orgs(api: &ApiClient, listing: OutputOptions) -> Result<(), CommandError> {
    let OrgList::<Json> { orgs } = api.get(&["orgs"]).read().await?;
    if listing.json {
        output::print_json(&orgs);
        return Ok(());
    }
    let row = |org: &Json| {
        let row: OrgRow = parse_response(org)?;
        let counts = [row.agents, row.tokens, row.policies].map(|count| count.to_string());
        Ok([vec![row.org, row.projects.into_iter().collect::<Vec<_>>().join(" ")], counts.to_vec()].concat())
    };
    let rows: Vec<_> = orgs.iter().map(row).collect::<Result<_, CommandError>>()?;
    output::print_table(&["org", "projects", "agents", "tokens", "policies"], rows);
    Ok(())
}

async fn create_org(api: &ApiClient, new: &CreateOrgOptions) -> Result<(), CommandError> {
    let body = NewOrg { org: new.name.clone(), owner: new.owner.clone() };
    let created: Json = api.post(&["orgs"]).with_json(&body).read().await?;
    if new.listing.json {
        output::print_json(&created);
        return Ok(());
    }
    let name = &new.name;
    match (parse_response::<CreatedOrg>(&created)?.token, &new.owner) {
        (Some(token), Some(owner)) => {
            output::print_line(token);
            output::print_note(format!(
                "Created org {name}. This token is for its owner {owner}; it is not stored and not shown again."
            ));
        }
        _ => {
            output::print_line(format!("created org {name}"));
            output::print_note(format!(
                "To create a token for its owner: rialto tokens create NAME --role owner --org {name}"
            ));
        }
    }
    Ok(())
}

async fn list_projects(api: &ApiClient, listing: OutputOptions) -> Result<(), CommandError> {
    let ProjectList::<Json> { projects } = api.get(&["projects"]).read().await?;
    if listing.json {
        output::print_json(&projects);
        return Ok(());
    }
    let row = |project: &Json| {
        let row: ProjectRow = parse_response(project)?;
        Ok(vec![row.project, row.agents.to_string(), row.tokens.to_string()])
    };
    let rows: Vec<_> = projects.iter().map(row).collect::<Result<_, CommandError>>()?;
    output::print_table(&["project", "agents", "tokens"], rows);
    Ok(())
}
