//! `rialto orgs …` and `rialto projects …`: tenants of this server.

use rialto_api_types::tenants::{CreatedOrg, NewOrg, NewProject, OrgList, OrgRow, ProjectList, ProjectRow};
use rialto_model::json::Json;

use crate::{
    cli::{CreateOrg, Listing, Orgs, Projects, Tenants},
    desk::{Desk, read},
    output::{self, Trouble},
};

pub(crate) async fn run(desk: &Desk, command: Tenants) -> Result<(), Trouble> {
    match command {
        Tenants::Orgs(command) => run_orgs(desk, command).await,
        Tenants::Projects(command) => run_projects(desk, command).await,
    }
}

async fn run_orgs(desk: &Desk, command: Orgs) -> Result<(), Trouble> {
    match command {
        Orgs::List(listing) => list_orgs(desk, listing).await,
        Orgs::Create(new) => create_org(desk, &new).await,
        Orgs::Remove { org, force } => {
            desk.delete(&["orgs", &org]).with_given("force", force.then_some(true)).done().await?;
            output::line(format!("removed org {org}"));
            Ok(())
        }
    }
}

async fn run_projects(desk: &Desk, command: Projects) -> Result<(), Trouble> {
    match command {
        Projects::List(listing) => list_projects(desk, listing).await,
        Projects::Create { name } => {
            let created = desk.post(&["projects"]).saying(&NewProject { project: name.clone() });
            created.read::<Json>().await?;
            output::line(format!("created project {name}"));
            Ok(())
        }
        Projects::Remove { name, force } => {
            desk.delete(&["projects", &name]).with_given("force", force.then_some(true)).done().await?;
            output::line(format!("removed project {name}"));
            Ok(())
        }
    }
}

async fn list_orgs(desk: &Desk, listing: Listing) -> Result<(), Trouble> {
    let OrgList::<Json> { orgs } = desk.get(&["orgs"]).read().await?;
    if listing.json {
        output::json(&orgs);
        return Ok(());
    }
    let row = |org: &Json| {
        let row: OrgRow = read(org)?;
        let counts = [row.agents, row.tokens, row.policies].map(|count| count.to_string());
        Ok([vec![row.org, row.projects.into_iter().collect::<Vec<_>>().join(" ")], counts.to_vec()].concat())
    };
    let rows: Vec<_> = orgs.iter().map(row).collect::<Result<_, Trouble>>()?;
    output::table(&["org", "projects", "agents", "tokens", "policies"], rows);
    Ok(())
}

async fn create_org(desk: &Desk, new: &CreateOrg) -> Result<(), Trouble> {
    let body = NewOrg { org: new.name.clone(), owner: new.owner.clone() };
    let created: Json = desk.post(&["orgs"]).saying(&body).read().await?;
    if new.listing.json {
        output::json(&created);
        return Ok(());
    }
    let name = &new.name;
    match (read::<CreatedOrg>(&created)?.token, &new.owner) {
        (Some(token), Some(owner)) => {
            output::line(token);
            output::note(format!(
                "Created org {name}. This token is for its owner {owner}; it is not kept and not shown again."
            ));
        }
        _ => {
            output::line(format!("created org {name}"));
            output::note(format!("To let its owner in: rialto tokens create NAME --role owner --org {name}"));
        }
    }
    Ok(())
}

async fn list_projects(desk: &Desk, listing: Listing) -> Result<(), Trouble> {
    let ProjectList::<Json> { projects } = desk.get(&["projects"]).read().await?;
    if listing.json {
        output::json(&projects);
        return Ok(());
    }
    let row = |project: &Json| {
        let row: ProjectRow = read(project)?;
        Ok(vec![row.project, row.agents.to_string(), row.tokens.to_string()])
    };
    let rows: Vec<_> = projects.iter().map(row).collect::<Result<_, Trouble>>()?;
    output::table(&["project", "agents", "tokens"], rows);
    Ok(())
}
