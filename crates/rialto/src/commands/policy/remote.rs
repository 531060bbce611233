//! `rialto policy check`, `add --file`, `remove`, `history` and `restore`, given to a server.

use rialto_api_types::policies::{
    PolicyHistory, PolicyNames, PolicyRestoration, PolicyText, RemovedPolicy, SavedPolicy,
};

use super::{
    add::{location_word, print_history, print_removed, print_saved},
    print_valid,
};
use crate::{
    api_client::ApiClient,
    cli::{AddPolicyOptions, PolicyCommand},
    output::{self, CommandError},
    policies,
};

/// Changes or reads policies on a server.
pub(crate) async fn run_remote(api: &ApiClient, command: PolicyCommand) -> Result<(), CommandError> {
    match command {
        PolicyCommand::Check { .. } => {
            let PolicyNames { policies } = api.get(&["policies", "check"]).read().await?;
            print_valid(&policies);
        }
        PolicyCommand::Remove { name, shelf } => {
            let question = api
                .delete(&["policies", &name])
                .with_optional_query("shelf", shelf.shelf().map(location_word))
                .with_optional_query("allOrgs", shelf.all_orgs.then_some(true));
            let gone: RemovedPolicy = question.read().await?;
            print_removed(&gone.file, &gone.name);
        }
        PolicyCommand::History { name, shelf, listing } => {
            let question = api.get(&["policies", &name, "history"]);
            let PolicyHistory { versions } = question
                .with_optional_query("shelf", shelf.shelf().map(location_word))
                .with_optional_query("allOrgs", shelf.all_orgs.then_some(true))
                .read()
                .await?;
            print_history(&name, &versions, listing);
        }
        PolicyCommand::Restore { name, version, shelf } => {
            let question =
                api.post(&["policies", &name, "restore"]).with_json(&PolicyRestoration { version });
            let kept: SavedPolicy = question
                .with_optional_query("shelf", shelf.shelf().map(location_word))
                .with_optional_query("allOrgs", shelf.all_orgs.then_some(true))
                .read()
                .await?;
            output::print_line(format!("restored {}", kept.file));
        }
        PolicyCommand::Add(AddPolicyOptions { file: Some(file), name, shelf, listing, .. }) => {
            let source =
                policies::read_source(&file).map_err(|error| CommandError::usage(error.to_string()))?;
            let name = name.unwrap_or(source.name);
            let question = api
                .put(&["policies", &name])
                .with_json(&PolicyText { name: String::new(), text: source.text });
            let kept: SavedPolicy = question
                .with_optional_query("shelf", shelf.shelf().map(location_word))
                .with_optional_query("allOrgs", shelf.all_orgs.then_some(true))
                .read()
                .await?;
            print_saved(&kept, listing);
        }
        _ => return Err(CommandError::usage("this command runs on this machine only; omit --server")),
    }
    Ok(())
}
