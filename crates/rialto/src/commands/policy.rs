//! `rialto policy …`: what is allowed, and why.

mod ask;
mod change;
mod mend;
mod there;

use std::path::PathBuf;

use rialto_api_types::policies::{PolicyList, PolicyRow, PolicyRule};
use rialto_model::ids::OrgId;
use rialto_policy::PolicyError;
use serde_json::json;

pub(crate) use self::{mend::Mender, there::mend as mend_there};
use crate::{
    cli::{Listing, OnShelf, Policy},
    desk::Desk,
    output::{self, Trouble},
    policies::{self, Book, Policies, SaveError, Shelf},
};

/// What needs the policies in force to be valid.
pub(crate) async fn run(desk: &Desk, command: Policy) -> Result<(), Trouble> {
    match command {
        Policy::Test(test) => ask::test(desk, &test).await,
        Policy::Explain(test) => ask::explain(desk, &test).await,
        Policy::List { shelf, listing } => list(desk, shelf, listing).await,
        Policy::Allow(allow) => change::allow(desk, &allow).await,
        Policy::Add(add) => change::add(desk, &add).await,
        Policy::Check { .. }
        | Policy::Remove { .. }
        | Policy::History { .. }
        | Policy::Restore { .. }
        | Policy::Fmt { .. }
        | Policy::Schema => Err(Trouble::usage("this command is about the policies as they are kept")),
    }
}

/// Checks files without opening anything else.
pub(crate) fn check(files: &[PathBuf]) -> Result<(), Trouble> {
    let sources: Result<Vec<_>, PolicyError> = files.iter().map(|file| policies::source(file)).collect();
    checked(sources.and_then(|sources| rialto_policy::Policy::parse(&sources)))
}

/// Checks those in force, so that broken ones can be mended.
pub(crate) async fn check_in_force(book: &Book) -> Result<(), Trouble> {
    checked(book.load().await.map_err(SaveError::from)?)
}

fn checked(policy: Result<rialto_policy::Policy, PolicyError>) -> Result<(), Trouble> {
    let policy = policy.map_err(|error| Trouble::usage(error.to_string()))?;
    valid(&policy.ids());
    Ok(())
}

fn valid(names: &[String]) {
    output::line(format!("{} policies, all valid: {}", names.len(), names.join(", ")));
}

async fn list(desk: &Desk, shelf: OnShelf, listing: Listing) -> Result<(), Trouble> {
    let PolicyList { mut policies } = desk.get(&["policies"]).with("texts", true).read().await?;
    let is_stored = |text: &PolicyRow| text.name.starts_with(Shelf::Store.prefix());
    policies.retain(|text| match shelf.shelf() {
        Some(Shelf::Store) => is_stored(text),
        Some(Shelf::Files) => !is_stored(text),
        None => true,
    });
    policies.retain(|text| !shelf.all_orgs || text.org.is_none());
    let rules = policies.iter().flat_map(|text| text.rules.iter().map(move |rule| (rule, text)));
    let mut rules: Vec<(&PolicyRule, &PolicyRow)> = rules.collect();
    rules.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
    if listing.json {
        let files: Vec<_> = policies
            .iter()
            .map(|text| json!({ "name": text.name, "org": text.org, "createdBy": text.created_by, "text": text.text }))
            .collect();
        let rules = rules.iter().map(|(rule, text)| {
            json!({
                "name": rule.name,
                "effect": rule.effect,
                "summary": rule.summary,
                "file": text.name,
                "org": text.org,
            })
        });
        output::json(&json!({ "policies": rules.collect::<Vec<_>>(), "files": files }));
        return Ok(());
    }
    let rows = rules.iter().map(|(rule, text)| {
        let org = text.org.as_ref().map_or("all", OrgId::as_str).to_owned();
        vec![rule.name.clone(), rule.effect.as_str().to_owned(), rule.summary.clone(), org, text.name.clone()]
    });
    output::table(&["policy", "effect", "summary", "org", "file"], rows.collect());
    if let Some(Policies::Folder(folder)) = desk.program().map(|program| program.policies.files()) {
        output::note(format!("files are kept in {}", folder.display()));
    }
    Ok(())
}
