//! `rialto policy …`: what is allowed, and why.

mod add;
mod decision;
mod offline_edit;
mod remote;

use std::path::PathBuf;

use rialto_api_types::policies::{PolicyList, PolicyRow, PolicyRule};
use rialto_model::ids::OrgId;
use rialto_policy::PolicyError;
use serde_json::json;

pub(crate) use self::{offline_edit::OfflinePolicyEditor, remote::run_remote as mend_there};
use crate::{
    api_client::ApiClient,
    cli::{OutputOptions, PolicyCommand, PolicyLocationOptions},
    output::{self, CommandError},
    policies::{self, PolicyFiles, PolicyLocation, PolicySaveError, PolicyStore},
};

/// Runs commands that need valid policies.
pub(crate) async fn run(api: &ApiClient, command: PolicyCommand) -> Result<(), CommandError> {
    match command {
        PolicyCommand::Test(test) => decision::test(api, &test).await,
        PolicyCommand::Explain(test) => decision::explain(api, &test).await,
        PolicyCommand::List { shelf, listing } => list(api, shelf, listing).await,
        PolicyCommand::Allow(allow) => add::allow(api, &allow).await,
        PolicyCommand::Add(add) => add::add(api, &add).await,
        PolicyCommand::Check { .. }
        | PolicyCommand::Remove { .. }
        | PolicyCommand::History { .. }
        | PolicyCommand::Restore { .. }
        | PolicyCommand::Fmt { .. }
        | PolicyCommand::Schema => Err(CommandError::usage("this command edits stored policies")),
    }
}

/// Checks files without opening anything else.
pub(crate) fn check(files: &[PathBuf]) -> Result<(), CommandError> {
    let sources: Result<Vec<_>, PolicyError> = files.iter().map(|file| policies::read_source(file)).collect();
    report_check(sources.and_then(|sources| rialto_policy::Policy::parse(&sources)))
}

/// Checks the active policies without loading them, so that invalid ones can be fixed.
pub(crate) async fn check_active(book: &PolicyStore) -> Result<(), CommandError> {
    report_check(book.load().await.map_err(PolicySaveError::from)?)
}

fn report_check(policy: Result<rialto_policy::Policy, PolicyError>) -> Result<(), CommandError> {
    let policy = policy.map_err(|error| CommandError::usage(error.to_string()))?;
    print_valid(&policy.ids());
    Ok(())
}

fn print_valid(names: &[String]) {
    output::print_line(format!("{} policies, all valid: {}", names.len(), names.join(", ")));
}

async fn list(
    api: &ApiClient,
    shelf: PolicyLocationOptions,
    listing: OutputOptions,
) -> Result<(), CommandError> {
    let PolicyList { mut policies } = api.get(&["policies"]).with_query("texts", true).read().await?;
    let is_stored = |text: &PolicyRow| text.name.starts_with(PolicyLocation::Store.prefix());
    policies.retain(|text| match shelf.shelf() {
        Some(PolicyLocation::Store) => is_stored(text),
        Some(PolicyLocation::Files) => !is_stored(text),
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
        output::print_json(&json!({ "policies": rules.collect::<Vec<_>>(), "files": files }));
        return Ok(());
    }
    let rows = rules.iter().map(|(rule, text)| {
        let org = text.org.as_ref().map_or("all", OrgId::as_str).to_owned();
        vec![rule.name.clone(), rule.effect.as_str().to_owned(), rule.summary.clone(), org, text.name.clone()]
    });
    output::print_table(&["policy", "effect", "summary", "org", "file"], rows.collect());
    if let Some(PolicyFiles::Folder(folder)) = api.local_app().map(|program| program.policies.files()) {
        output::print_note(format!("files are in {}", folder.display()));
    }
    Ok(())
}
