//! `rialto policy add --file`, `remove`, `history`, `restore`, `fmt` on this machine.
//!
//! It needs no valid policies, so that broken ones can be mended.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rialto_admin::{
    host::{PolicyScope, SharedPolicies},
    policies::policy_rule,
};
use rialto_api_types::policies::{PolicyTextVersion, ReplacedPolicyFile, SavedPolicy, StoredPolicyText};
use rialto_model::{
    clock::{Clock, SystemClock},
    ids::OrgId,
    store::Store,
};
use rialto_policy::{PolicyError, PolicySource, PolicySummary, format};

use super::add::{print_history, print_removed, print_saved};
use crate::{
    cli::{AddPolicyOptions, OutputOptions, PolicyCommand, PolicyLocationOptions},
    output::{self, CommandError},
    policies::{self, PolicyFileVersion, PolicyLocation, PolicySaveError, PolicyStore},
};

/// Editor of policies that needs no valid policies.
pub(crate) struct OfflinePolicyEditor {
    pub(crate) policies: PolicyStore,
    /// Org of the policies.
    pub(crate) org: OrgId,
    pub(crate) store: Arc<dyn Store>,
}

// === impl OfflinePolicyEditor ===

impl OfflinePolicyEditor {
    /// The policies that a command is about.
    fn policies(&self, shelf: PolicyLocationOptions) -> PolicyStore {
        let shared = if shelf.all_orgs { SharedPolicies::Only } else { SharedPolicies::Included };
        let (by, org) = (self.policies.scope().by.clone(), self.org.clone());
        self.policies.with_scope(PolicyScope { by, org, shared })
    }

    pub(crate) async fn run(&self, command: PolicyCommand) -> Result<(), CommandError> {
        match command {
            PolicyCommand::Check { .. } => super::check_active(&self.policies).await,
            PolicyCommand::Remove { name, shelf } => {
                let kept = self.policies(shelf).remove(&name, shelf.shelf(), SystemClock.now()).await?;
                self.signal_servers(&kept).await?;
                print_removed(&kept.to_string(), &kept.name());
                Ok(())
            }
            PolicyCommand::Restore { name, version, shelf } => {
                let kept =
                    self.policies(shelf).restore(&name, version, shelf.shelf(), SystemClock.now()).await?;
                self.signal_servers(&kept).await?;
                output::print_line(format!("restored {kept}"));
                Ok(())
            }
            PolicyCommand::History { name, shelf, listing } => self.history(&name, shelf, listing).await,
            PolicyCommand::Fmt { files, check } => self.fmt(&files, check).await,
            PolicyCommand::Add(AddPolicyOptions { file: Some(file), name, shelf, listing, .. }) => {
                self.add_file(&file, name.as_deref(), shelf, listing).await
            }
            _ => Err(CommandError::usage("this command needs the active policies to be valid")),
        }
    }

    async fn add_file(
        &self,
        file: &Path,
        name: Option<&str>,
        shelf: PolicyLocationOptions,
        listing: OutputOptions,
    ) -> Result<(), CommandError> {
        let source = policies::read_source(file).map_err(|error| CommandError::usage(error.to_string()))?;
        let name = name.unwrap_or(&source.name);
        let saved = self.policies(shelf).save(name, &source.text, shelf.shelf(), SystemClock.now()).await?;
        self.print_saved(&saved, listing).await
    }

    async fn history(
        &self,
        name: &str,
        shelf: PolicyLocationOptions,
        listing: OutputOptions,
    ) -> Result<(), CommandError> {
        let versions = self.policies(shelf).history(name, shelf.shelf()).await?;
        print_history(name, &versions.into_iter().map(text_version).collect::<Vec<_>>(), listing);
        Ok(())
    }

    /// Formats files: the named ones, or all active policies.
    async fn fmt(&self, files: &[PathBuf], check: bool) -> Result<(), CommandError> {
        let changed = self.format_sources(files).await?;
        let names: Vec<&str> = changed.iter().map(|(_, source)| source.name.as_str()).collect();
        let names = names.join(", ");
        if changed.is_empty() {
            output::print_line("all policies are formatted");
            return Ok(());
        }
        if check {
            return Err(CommandError::failed(format!("not formatted: {names}; run `rialto policy fmt`")));
        }
        for (file, source) in &changed {
            match file {
                Some(file) => policies::write_atomically(file, &source.text)?,
                None => {
                    self.policies.replace(source, SystemClock.now()).await?;
                }
            }
        }
        output::print_line(format!("formatted {names}"));
        self.touch().await
    }

    /// Sources whose text would change: the file, if named, and its new text.
    async fn format_sources<'a>(
        &self,
        files: &'a [PathBuf],
    ) -> Result<Vec<(Option<&'a Path>, PolicySource)>, CommandError> {
        let invalid = |error: PolicyError| CommandError::usage(error.to_string());
        let sources: Vec<(Option<&Path>, PolicySource)> = if files.is_empty() {
            let in_force = self.policies.sources().await.map_err(PolicySaveError::from)?.map_err(invalid)?;
            in_force.into_iter().map(|source| (None, source)).collect()
        } else {
            let read = |file: &'a PathBuf| Ok((Some(file.as_path()), policies::read_source(file)?));
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

    async fn print_saved(
        &self,
        kept: &policies::SavedPolicyText,
        listing: OutputOptions,
    ) -> Result<(), CommandError> {
        self.signal_servers(kept).await?;
        let policy = self.policies.load().await.map_err(PolicySaveError::from)?;
        let policy = policy.map_err(|error| CommandError::failed(error.to_string()))?;
        let name = kept.source_name();
        let is_in = |rule: &PolicySummary| rule.file == name && rule.org == kept.key.owner;
        let rules = policy.rules().into_iter().filter(is_in);
        let saved = SavedPolicy {
            name: name.clone(),
            file: kept.to_string(),
            org: kept.key.owner.clone(),
            policies: rules.map(|rule| policy_rule(&rule)).collect(),
        };
        print_saved(&saved, listing);
        Ok(())
    }

    /// Makes every running server reload a file with its next call. Changes in the store are noticed anyway.
    async fn signal_servers(&self, kept: &policies::SavedPolicyText) -> Result<(), CommandError> {
        match kept.key.shelf {
            PolicyLocation::Files => self.touch().await,
            PolicyLocation::Store => Ok(()),
        }
    }

    async fn touch(&self) -> Result<(), CommandError> {
        self.store.touch().await.map(drop).map_err(|error| CommandError::failed(error.to_string()))
    }
}

fn text_version(version: PolicyFileVersion) -> PolicyTextVersion {
    let PolicyFileVersion { name, version, text, at, by, shelf, owner: _ } = version;
    match shelf {
        PolicyLocation::Files => {
            PolicyTextVersion::File(ReplacedPolicyFile { name, version, replaced_at: at, text })
        }
        PolicyLocation::Store => {
            PolicyTextVersion::Stored(StoredPolicyText { name, version, changed_at: at, by, text })
        }
    }
}

impl From<PolicySaveError> for CommandError {
    fn from(error: PolicySaveError) -> Self {
        let status = match &error {
            PolicySaveError::Invalid(_)
            | PolicySaveError::Name(_)
            | PolicySaveError::Shared { .. }
            | PolicySaveError::Both(_) => 2,
            PolicySaveError::NotFound(_) | PolicySaveError::NoVersion { .. } => 4,
            PolicySaveError::NoFolder | PolicySaveError::File { .. } | PolicySaveError::Store(_) => 1,
        };
        Self { status, ..Self::failed(error.to_string()) }
    }
}
