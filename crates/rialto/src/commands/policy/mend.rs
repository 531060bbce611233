//! `rialto policy add --file`, `remove`, `history`, `restore`, `fmt` at this machine: what is changed is checked first, and kept.
//!
//! It needs no valid policies, so that broken ones can be mended.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rialto_api_types::policies::{PolicyTextVersion, ReplacedPolicyFile, SavedPolicy, StoredPolicyText};
use rialto_console::{
    admin::policies::policy_rule,
    host::{PolicyScope, SharedPolicies},
};
use rialto_model::{
    clock::{Clock, SystemClock},
    ids::OrgId,
    store::Store,
};
use rialto_policy::{PolicyError, PolicySource, PolicySummary, format};

use super::change::{show_history, show_removed, show_saved};
use crate::{
    cli::{AddPolicy, Listing, OnShelf, Policy},
    output::{self, Trouble},
    policies::{self, Book, SaveError, Shelf, Version},
};

/// What policies are changed with here.
pub(crate) struct Mender {
    pub(crate) policies: Book,
    /// The org whose policies are meant.
    pub(crate) org: OrgId,
    pub(crate) store: Arc<dyn Store>,
}

// === impl Mender ===

impl Mender {
    /// The policies that a command is about.
    fn policies(&self, shelf: OnShelf) -> Book {
        let shared = if shelf.all_orgs { SharedPolicies::Only } else { SharedPolicies::Included };
        let (by, org) = (self.policies.scope().by.clone(), self.org.clone());
        self.policies.within(PolicyScope { by, org, shared })
    }

    pub(crate) async fn run(&self, command: Policy) -> Result<(), Trouble> {
        match command {
            Policy::Check { .. } => super::check_in_force(&self.policies).await,
            Policy::Remove { name, shelf } => {
                let kept = self.policies(shelf).remove(&name, shelf.shelf(), SystemClock.now()).await?;
                self.tell(&kept).await?;
                show_removed(&kept.to_string(), &kept.name());
                Ok(())
            }
            Policy::Restore { name, version, shelf } => {
                let kept =
                    self.policies(shelf).restore(&name, version, shelf.shelf(), SystemClock.now()).await?;
                self.tell(&kept).await?;
                output::line(format!("restored {kept}"));
                Ok(())
            }
            Policy::History { name, shelf, listing } => self.history(&name, shelf, listing).await,
            Policy::Fmt { files, check } => self.fmt(&files, check).await,
            Policy::Add(AddPolicy { file: Some(file), name, shelf, listing, .. }) => {
                self.add_file(&file, name.as_deref(), shelf, listing).await
            }
            _ => Err(Trouble::usage("this command needs the policies in force to be valid")),
        }
    }

    async fn add_file(
        &self,
        file: &Path,
        name: Option<&str>,
        shelf: OnShelf,
        listing: Listing,
    ) -> Result<(), Trouble> {
        let source = policies::source(file).map_err(|error| Trouble::usage(error.to_string()))?;
        let name = name.unwrap_or(&source.name);
        let saved = self.policies(shelf).save(name, &source.text, shelf.shelf(), SystemClock.now()).await?;
        self.saved(&saved, listing).await
    }

    async fn history(&self, name: &str, shelf: OnShelf, listing: Listing) -> Result<(), Trouble> {
        let versions = self.policies(shelf).history(name, shelf.shelf()).await?;
        show_history(name, &versions.into_iter().map(text_version).collect::<Vec<_>>(), listing);
        Ok(())
    }

    /// Lays files out alike: those that are named, or all that are in force.
    async fn fmt(&self, files: &[PathBuf], check: bool) -> Result<(), Trouble> {
        let changed = self.laid_out(files).await?;
        let names: Vec<&str> = changed.iter().map(|(_, source)| source.name.as_str()).collect();
        let names = names.join(", ");
        if changed.is_empty() {
            output::line("everything is laid out well");
            return Ok(());
        }
        if check {
            return Err(Trouble::other(format!("not laid out well: {names}; `rialto policy fmt` does it")));
        }
        for (file, source) in &changed {
            match file {
                Some(file) => policies::write_whole(file, &source.text)?,
                None => {
                    self.policies.replace(source, SystemClock.now()).await?;
                }
            }
        }
        output::line(format!("laid out {names}"));
        self.touch().await
    }

    /// What would look different: the file, when it was named, and its new text.
    async fn laid_out<'a>(
        &self,
        files: &'a [PathBuf],
    ) -> Result<Vec<(Option<&'a Path>, PolicySource)>, Trouble> {
        let invalid = |error: PolicyError| Trouble::usage(error.to_string());
        let sources: Vec<(Option<&Path>, PolicySource)> = if files.is_empty() {
            let in_force = self.policies.sources().await.map_err(SaveError::from)?.map_err(invalid)?;
            in_force.into_iter().map(|source| (None, source)).collect()
        } else {
            let read = |file: &'a PathBuf| Ok((Some(file.as_path()), policies::source(file)?));
            files.iter().map(read).collect::<Result<_, _>>().map_err(invalid)?
        };
        let mut changed = Vec::new();
        for (file, source) in sources {
            let text = format(&source).map_err(invalid)?;
            if text != source.text {
                changed.push((file, PolicySource { text, ..source }));
            }
        }
        Ok(changed)
    }

    async fn saved(&self, kept: &policies::Kept, listing: Listing) -> Result<(), Trouble> {
        self.tell(kept).await?;
        let policy = self.policies.load().await.map_err(SaveError::from)?;
        let policy = policy.map_err(|error| Trouble::other(error.to_string()))?;
        let name = kept.source_name();
        let is_in = |rule: &PolicySummary| rule.file == name && rule.org == kept.key.owner;
        let rules = policy.rules().into_iter().filter(is_in);
        let saved = SavedPolicy {
            name: name.clone(),
            file: kept.to_string(),
            org: kept.key.owner.clone(),
            policies: rules.map(|rule| policy_rule(&rule)).collect(),
        };
        show_saved(&saved, listing);
        Ok(())
    }

    /// Makes every running server look at a file with its next call. A change in the store is one that they see anyway.
    async fn tell(&self, kept: &policies::Kept) -> Result<(), Trouble> {
        match kept.key.shelf {
            Shelf::Files => self.touch().await,
            Shelf::Store => Ok(()),
        }
    }

    async fn touch(&self) -> Result<(), Trouble> {
        self.store.touch().await.map(drop).map_err(|error| Trouble::other(error.to_string()))
    }
}

fn text_version(version: Version) -> PolicyTextVersion {
    let Version { name, version, text, at, by, shelf, owner: _ } = version;
    match shelf {
        Shelf::Files => PolicyTextVersion::File(ReplacedPolicyFile { name, version, replaced_at: at, text }),
        Shelf::Store => {
            PolicyTextVersion::Stored(StoredPolicyText { name, version, changed_at: at, by, text })
        }
    }
}

impl From<SaveError> for Trouble {
    fn from(error: SaveError) -> Self {
        let status = match &error {
            SaveError::Invalid(_) | SaveError::Name(_) | SaveError::Shared { .. } | SaveError::Both(_) => 2,
            SaveError::NotFound(_) | SaveError::NoVersion { .. } => 4,
            SaveError::NoFolder | SaveError::File { .. } | SaveError::Store(_) => 1,
        };
        Self { status, ..Self::other(error.to_string()) }
    }
}
