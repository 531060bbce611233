//! `rialto policy …`: what is allowed, and why.

mod ask;
mod change;

use std::path::PathBuf;

use rialto_model::ids::Scope;
use rialto_policy::{PolicyError, SCHEMA};
use serde_json::json;

pub(crate) use self::change::Desk;
use crate::{
    cli::{Listing, Policy},
    commands::agents,
    output::{self, Trouble},
    policies::{self, Book, Policies, SaveError, Shelf},
    program::Program,
};

pub(crate) async fn run(program: &Program, command: Policy) -> Result<(), Trouble> {
    match command {
        Policy::Check { files } if files.is_empty() => check_in_force(&program.policies).await,
        Policy::Check { files } => check(&files),
        Policy::Test(test) => ask::test(program, &test),
        Policy::Explain(test) => ask::explain(program, &test),
        Policy::List { shelf, listing } => list(program, shelf.shelf(), listing).await,
        Policy::Allow { agent } => {
            let agent = program.engine.registry().find(&Scope::default(), &agent)?;
            let file = agents::allow(program, &agent).await?;
            output::line(format!("everybody may call {}: {file}", agent.slug));
            Ok(())
        }
        Policy::Add(add) => change::add(program, &add).await,
        Policy::Remove { .. } | Policy::History { .. } | Policy::Restore { .. } | Policy::Fmt { .. } => {
            Desk::of(program).run(command).await
        }
        Policy::Schema => {
            output::line(SCHEMA.trim_end());
            Ok(())
        }
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
    output::line(format!("{} policies, all valid: {}", policy.ids().len(), policy.ids().join(", ")));
    Ok(())
}

async fn list(program: &Program, shelf: Option<Shelf>, listing: Listing) -> Result<(), Trouble> {
    let is_wanted = |source: &str| shelf.is_none_or(|shelf| policies::place(source).0 == shelf);
    let sources = program.policies.sources().await.map_err(SaveError::from)?;
    let sources = sources.map_err(|error| Trouble::other(error.to_string()))?;
    let rules = program.engine.policy().rules().into_iter().filter(|rule| is_wanted(&rule.file));
    if listing.json {
        let sources = sources.iter().filter(|source| is_wanted(&source.name));
        let files: Vec<_> =
            sources.map(|source| json!({ "name": source.name, "text": source.text })).collect();
        let policies = rules.map(|rule| {
            json!({
                "name": rule.name,
                "effect": rule.effect.as_str(),
                "summary": rule.summary,
                "file": rule.file,
            })
        });
        output::json(&json!({ "policies": policies.collect::<Vec<_>>(), "files": files }));
    } else {
        let rows =
            rules.map(|rule| vec![rule.name, rule.effect.as_str().to_owned(), rule.summary, rule.file]);
        output::table(&["policy", "effect", "summary", "file"], rows.collect());
        if let Policies::Folder(folder) = program.policies.files() {
            output::note(format!("files are kept in {}", folder.display()));
        }
    }
    Ok(())
}
