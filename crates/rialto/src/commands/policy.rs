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
    policies::{self, Policies},
    program::Program,
};

pub(crate) async fn run(program: &Program, command: Policy) -> Result<(), Trouble> {
    match command {
        Policy::Check { files } => check(&program.policies, &files),
        Policy::Test(test) => ask::test(program, &test),
        Policy::Explain(test) => ask::explain(program, &test),
        Policy::List(listing) => list(program, listing),
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

/// Checks files without opening anything else, so that broken policies can be mended.
pub(crate) fn check(in_force: &Policies, files: &[PathBuf]) -> Result<(), Trouble> {
    let checked = if files.is_empty() {
        in_force.load()
    } else {
        let sources: Result<Vec<_>, PolicyError> = files.iter().map(|file| policies::source(file)).collect();
        sources.and_then(|sources| rialto_policy::Policy::parse(&sources))
    };
    let policy = checked.map_err(|error| Trouble::usage(error.to_string()))?;
    output::line(format!("{} policies, all valid: {}", policy.ids().len(), policy.ids().join(", ")));
    Ok(())
}

fn list(program: &Program, listing: Listing) -> Result<(), Trouble> {
    let sources = program.policies.sources().map_err(|error| Trouble::other(error.to_string()))?;
    let rules = program.engine.policy().rules();
    if listing.json {
        let files: Vec<_> =
            sources.iter().map(|source| json!({ "name": source.name, "text": source.text })).collect();
        let policies = rules.iter().map(|rule| {
            json!({
                "name": rule.name,
                "effect": rule.effect.as_str(),
                "summary": rule.summary,
                "file": rule.file,
            })
        });
        output::json(&json!({ "policies": policies.collect::<Vec<_>>(), "files": files }));
    } else {
        let rows = rules
            .into_iter()
            .map(|rule| vec![rule.name, rule.effect.as_str().to_owned(), rule.summary, rule.file]);
        output::table(&["policy", "effect", "summary", "file"], rows.collect());
        if let Policies::Folder(folder) = &program.policies {
            output::note(format!("kept in {}", folder.display()));
        }
    }
    Ok(())
}
