//! `rialto policy check`, `add --file`, `remove`, `history` and `restore`, given to a server.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    change::{Kept, show_history, show_removed, show_saved, word},
    valid,
};
use crate::{
    cli::{AddPolicy, Policy},
    desk::Desk,
    output::{self, Trouble},
    policies,
};

/// What was taken away.
#[derive(Deserialize)]
struct Gone {
    name: String,
    file: String,
}

#[derive(Deserialize)]
struct Checked {
    policies: Vec<String>,
}

#[derive(Deserialize)]
struct History {
    versions: Vec<Value>,
}

/// Changes what a server keeps, or looks at it.
pub(crate) async fn mend(desk: &Desk, command: Policy) -> Result<(), Trouble> {
    match command {
        Policy::Check { .. } => {
            let Checked { policies } = desk.get(&["policies", "check"]).read().await?;
            valid(&policies);
        }
        Policy::Remove { name, shelf } => {
            let question = desk
                .delete(&["policies", &name])
                .with_given("shelf", shelf.shelf().map(word))
                .with_given("allOrgs", shelf.all_orgs.then_some(true));
            let gone: Gone = question.read().await?;
            show_removed(&gone.file, &gone.name);
        }
        Policy::History { name, shelf, listing } => {
            let question = desk.get(&["policies", &name, "history"]);
            let History { versions } = question
                .with_given("shelf", shelf.shelf().map(word))
                .with_given("allOrgs", shelf.all_orgs.then_some(true))
                .read()
                .await?;
            show_history(&name, &versions, listing);
        }
        Policy::Restore { name, version, shelf } => {
            let question = desk.post(&["policies", &name, "restore"]).saying(&json!({ "version": version }));
            let kept: Kept = question
                .with_given("shelf", shelf.shelf().map(word))
                .with_given("allOrgs", shelf.all_orgs.then_some(true))
                .read()
                .await?;
            output::line(format!("restored {}", kept.file));
        }
        Policy::Add(AddPolicy { file: Some(file), name, shelf, listing, .. }) => {
            let source = policies::source(&file).map_err(|error| Trouble::usage(error.to_string()))?;
            let name = name.unwrap_or(source.name);
            let question = desk.put(&["policies", &name]).saying(&json!({ "text": source.text }));
            let kept: Kept = question
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
