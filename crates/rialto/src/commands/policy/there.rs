//! `rialto policy check`, `add --file`, `remove`, `history` and `restore`, given to a server.

use rialto_api_types::policies::{
    PolicyHistory, PolicyNames, PolicyRestoration, PolicyText, RemovedPolicy, SavedPolicy,
};

use super::{
    change::{show_history, show_removed, show_saved, word},
    valid,
};
use crate::{
    cli::{AddPolicy, Policy},
    desk::Desk,
    output::{self, Trouble},
    policies,
};

/// Changes what a server keeps, or looks at it.
pub(crate) async fn mend(desk: &Desk, command: Policy) -> Result<(), Trouble> {
    match command {
        Policy::Check { .. } => {
            let PolicyNames { policies } = desk.get(&["policies", "check"]).read().await?;
            valid(&policies);
        }
        Policy::Remove { name, shelf } => {
            let question = desk
                .delete(&["policies", &name])
                .with_given("shelf", shelf.shelf().map(word))
                .with_given("allOrgs", shelf.all_orgs.then_some(true));
            let gone: RemovedPolicy = question.read().await?;
            show_removed(&gone.file, &gone.name);
        }
        Policy::History { name, shelf, listing } => {
            let question = desk.get(&["policies", &name, "history"]);
            let PolicyHistory { versions } = question
                .with_given("shelf", shelf.shelf().map(word))
                .with_given("allOrgs", shelf.all_orgs.then_some(true))
                .read()
                .await?;
            show_history(&name, &versions, listing);
        }
        Policy::Restore { name, version, shelf } => {
            let question = desk.post(&["policies", &name, "restore"]).saying(&PolicyRestoration { version });
            let kept: SavedPolicy = question
                .with_given("shelf", shelf.shelf().map(word))
                .with_given("allOrgs", shelf.all_orgs.then_some(true))
                .read()
                .await?;
            output::line(format!("restored {}", kept.file));
        }
        Policy::Add(AddPolicy { file: Some(file), name, shelf, listing, .. }) => {
            let source = policies::source(&file).map_err(|error| Trouble::usage(error.to_string()))?;
            let name = name.unwrap_or(source.name);
            let question =
                desk.put(&["policies", &name]).saying(&PolicyText { name: String::new(), text: source.text });
            let kept: SavedPolicy = question
                .with_given("shelf", shelf.shelf().map(word))
                .with_given("allOrgs", shelf.all_orgs.then_some(true))
                .read()
                .await?;
            show_saved(&kept, listing);
        }
        _ => return Err(Trouble::usage("this command is about this machine; leave --server out")),
    }
    Ok(())
}
