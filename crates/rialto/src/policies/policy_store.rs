//! All active policies: files of this machine, and policies in the store, which all its servers share.
//!
//! Both have equal effect. A policy in the store is named `store:NAME` in place of a file name; a change in one location is
//! validated together with the other, so that ids are unique.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use jiff::Timestamp;
use rialto_admin::host::{PolicyScope, SharedPolicies};
use rialto_model::{
    agent::Agent,
    ids::{OrgId, Scope},
    name::unused,
    policy::PolicyChange,
    store::{Store, StoreError},
};
use rialto_policy::{Policy, PolicyError, PolicySource, PolicyTemplate, is_only_about};

use super::{PolicyFileVersion, PolicyFiles, PolicySaveError, check_owner, file_stem, lock, owner_folder};

/// Prefix of the name of a policy in the store.
const STORE_PREFIX: &str = "store:";

/// Maximum number of attempts if policies are changed concurrently.
const MAX_ATTEMPTS: usize = 20;

/// Maximum number of reads of an empty file, and the pause between them, for a writer to finish.
const MAX_EMPTY_READS: u32 = 20;
const EMPTY_READ_PAUSE: Duration = Duration::from_millis(10);

/// All active policies. Cloning shares them.
#[derive(Clone)]
pub(crate) struct PolicyStore {
    files: PolicyFiles,
    store: Arc<dyn Store>,
    /// Default location of new policies.
    home: PolicyLocation,
    /// Scope of the policies, and the author of changes.
    scope: PolicyScope,
}

/// Location of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PolicyLocation {
    /// In a file on this machine.
    Files,
    /// In the store.
    Store,
}

/// Key of a policy text: owner, location and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PolicyKey {
    /// Location.
    pub(crate) shelf: PolicyLocation,
    /// The org that it belongs to; none if it applies to all orgs.
    pub(crate) owner: Option<OrgId>,
    /// Its name, without an ending.
    pub(crate) stem: String,
}

/// A policy that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedPolicyText {
    pub(crate) key: PolicyKey,
    /// The file, where it is one.
    pub(crate) path: Option<PathBuf>,
}

// === impl PolicyStore ===

impl PolicyStore {
    /// The policies of the org `default` and those for all orgs, changed by this person.
    pub(crate) fn new(files: PolicyFiles, store: Arc<dyn Store>, home: PolicyLocation, by: String) -> Self {
        let scope = PolicyScope { by, org: Scope::default().org, shared: SharedPolicies::Included };
        Self { files, store, home, scope }
    }

    /// Policies of another scope.
    pub(crate) fn with_scope(&self, scope: PolicyScope) -> Self {
        Self { scope, ..self.clone() }
    }

    /// Scope of the policies, and the author of changes.
    pub(crate) const fn scope(&self) -> &PolicyScope {
        &self.scope
    }

    /// Policy files.
    pub(crate) const fn files(&self) -> &PolicyFiles {
        &self.files
    }

    /// The texts of all orgs, the files' first.
    pub(crate) async fn sources(&self) -> Result<Result<Vec<PolicySource>, PolicyError>, StoreError> {
        let stored = self.read_stored().await?.1;
        Ok(self.read_files().await.map(|files| [files, stored].concat()))
    }

    /// Reads the files. A file that is being written is empty for a moment, and an empty one is valid: it is read again before it is
    /// used.
    async fn read_files(&self) -> Result<Vec<PolicySource>, PolicyError> {
        for _ in 0..MAX_EMPTY_READS {
            let files = self.files.sources()?;
            if files.iter().all(|file| !file.text.trim().is_empty()) {
                return Ok(files);
            }
            tokio::time::sleep(EMPTY_READ_PAUSE).await;
        }
        self.files.sources()
    }

    /// Reads and compiles them.
    pub(crate) async fn load(&self) -> Result<Result<Policy, PolicyError>, StoreError> {
        Ok(self.sources().await?.and_then(|sources| Policy::parse(&sources)))
    }

    /// Adds a policy from a template, under `name` or a generated name.
    ///
    /// A generated name never replaces another policy: an existing identical one is left as it is, and a different policy with that name
    /// is retained.
    pub(crate) async fn add(
        &self,
        template: &PolicyTemplate<'_>,
        name: Option<&str>,
        shelf: Option<PolicyLocation>,
        now: Timestamp,
    ) -> Result<SavedPolicyText, PolicySaveError> {
        let shelf = shelf.unwrap_or(self.home);
        let name = name.map(file_stem).transpose()?;
        let decide = |sources: &[PolicySource]| {
            let owner = self.scope.owner();
            let holds_another = |name: &str| {
                let text = template.compile(name).text;
                sources
                    .iter()
                    .filter(|source| source.org == owner)
                    .map(|source| (PolicyKey::from_source(source), &source.text))
                    .any(|(key, known)| key.stem == name && (key.shelf != shelf || *known != text))
            };
            let stem = name.map_or_else(|| unused(&template.name(), holds_another), str::to_owned);
            let text = template.compile(&stem).text;
            Ok((PolicyKey { shelf, owner, stem }, Some(text)))
        };
        self.change(shelf, now, decide).await
    }

    /// Saves one text, if all active policies are then valid.
    pub(crate) async fn save(
        &self,
        name: &str,
        text: &str,
        shelf: Option<PolicyLocation>,
        now: Timestamp,
    ) -> Result<SavedPolicyText, PolicySaveError> {
        let (at, stem) = parse_source_name(name);
        let shelf = shelf.unwrap_or(if at == PolicyLocation::Store { at } else { self.home });
        let stem = file_stem(stem)?;
        let decide = |sources: &[PolicySource]| {
            let new = PolicyKey { shelf, owner: self.scope.owner(), stem: stem.to_owned() };
            // A text for all orgs that has this name is changed, unless the org has one too.
            let shared = PolicyKey { owner: None, ..new.clone() };
            let is_there =
                |key: &PolicyKey| sources.iter().any(|source| PolicyKey::from_source(source) == *key);
            let is_meant = self.scope.includes(None) && is_there(&shared) && !is_there(&new);
            Ok((if is_meant { shared } else { new }, Some(text.to_owned())))
        };
        self.change(shelf, now, decide).await
    }

    /// Takes a policy, or a text of policies, away.
    pub(crate) async fn remove(
        &self,
        name: &str,
        shelf: Option<PolicyLocation>,
        now: Timestamp,
    ) -> Result<SavedPolicyText, PolicySaveError> {
        let found = self.find_text(name, shelf, &self.readable_sources().await?)?;
        // Searched again under the lock: it may have been removed concurrently.
        let decide = |sources: &[PolicySource]| {
            let is_there = sources.iter().any(|source| PolicyKey::from_source(source) == found);
            if is_there { Ok((found.clone(), None)) } else { Err(PolicySaveError::NotFound(name.to_owned())) }
        };
        self.change(found.shelf, now, decide).await
    }

    /// The texts that a policy had, newest first: those that were replaced in a file, and every change in the store.
    pub(crate) async fn history(
        &self,
        name: &str,
        shelf: Option<PolicyLocation>,
    ) -> Result<Vec<PolicyFileVersion>, PolicySaveError> {
        // A name without an owner now may have had one before.
        let found = match self.find_text(name, shelf, &self.readable_sources().await?) {
            Err(PolicySaveError::NotFound(_) | PolicySaveError::Shared { .. }) => None,
            found => Some(found?),
        };
        let (only, stem) = match &found {
            Some(key) => (Some(key.shelf), key.stem.clone()),
            None => (shelf, file_stem(parse_source_name(name).1)?.to_owned()),
        };
        let owners = match found {
            Some(key) => vec![key.owner],
            None => [Some(self.scope.org.clone()), None]
                .into_iter()
                .filter(|owner| self.is_in_scope(owner))
                .collect(),
        };
        for owner in owners {
            let mut versions = Vec::new();
            if only != Some(PolicyLocation::Store) && self.files.folder().is_ok() {
                versions = self.files.versions(owner.as_ref(), &stem)?;
            }
            if versions.is_empty() && only != Some(PolicyLocation::Files) {
                let key = PolicyKey { shelf: PolicyLocation::Store, owner, stem: stem.clone() };
                let changes = self.store.policy_history(&key.stored_name()).await?;
                versions = changes.into_iter().map(PolicyFileVersion::from).collect();
            }
            if !versions.is_empty() {
                return Ok(versions);
            }
        }
        Ok(Vec::new())
    }

    /// Restores a previous version.
    pub(crate) async fn restore(
        &self,
        name: &str,
        version: i64,
        shelf: Option<PolicyLocation>,
        now: Timestamp,
    ) -> Result<SavedPolicyText, PolicySaveError> {
        let known = self.history(name, shelf).await?;
        let none = || PolicySaveError::NoVersion { name: name.to_owned(), version };
        let found = known.into_iter().find(|known| known.version == version).ok_or_else(none)?;
        let text = found.text.ok_or_else(none)?;
        let key = PolicyKey { shelf: found.shelf, owner: found.owner, stem: found.name };
        self.change(key.shelf, now, |_| Ok((key.clone(), Some(text.clone())))).await
    }

    /// Takes away the policies that are about nothing but an agent that is gone.
    pub(crate) async fn remove_for_agent(
        &self,
        agent: &Agent,
        now: Timestamp,
    ) -> Result<(), PolicySaveError> {
        let (_, stored) = self.read_stored().await?;
        let files = if self.files.folder().is_ok() { self.files.sources()? } else { Vec::new() };
        for source in files.iter().chain(&stored).filter(|source| is_only_about(&source.text, &agent.id)) {
            self.remove_text(&PolicyKey::from_source(source), now).await?;
        }
        Ok(())
    }

    /// Changes the text of a policy in any location, of any owner.
    pub(crate) async fn replace(
        &self,
        source: &PolicySource,
        now: Timestamp,
    ) -> Result<SavedPolicyText, PolicySaveError> {
        let key = PolicyKey::from_source(source);
        self.change(key.shelf, now, |_| Ok((key.clone(), Some(source.text.clone())))).await
    }

    /// Removes all policies of an org.
    pub(crate) async fn remove_for_org(&self, org: &OrgId, now: Timestamp) -> Result<usize, PolicySaveError> {
        let owned =
            self.readable_sources().await?.into_iter().filter(|source| source.org.as_ref() == Some(org));
        let keys: Vec<PolicyKey> = owned.map(|source| PolicyKey::from_source(&source)).collect();
        for key in &keys {
            self.remove_text(key, now).await?;
        }
        Ok(keys.len())
    }

    async fn remove_text(&self, key: &PolicyKey, now: Timestamp) -> Result<(), PolicySaveError> {
        self.change(key.shelf, now, |_| Ok((key.clone(), None))).await.map(drop)
    }

    fn is_in_scope(&self, owner: &Option<OrgId>) -> bool {
        self.scope.includes(owner.as_ref())
    }

    /// Changes one text: `decide` receives the active policies and returns the text to write, or nothing.
    async fn change(
        &self,
        shelf: PolicyLocation,
        now: Timestamp,
        decide: impl Fn(&[PolicySource]) -> Result<(PolicyKey, Option<String>), PolicySaveError>,
    ) -> Result<SavedPolicyText, PolicySaveError> {
        match shelf {
            PolicyLocation::Files => {
                let (_, beside) = self.read_stored().await?;
                self.files.change(now, &beside, decide)
            }
            PolicyLocation::Store => {
                self.change_stored(now, decide).await.map(|key| SavedPolicyText { key, path: None })
            }
        }
    }

    async fn change_stored(
        &self,
        now: Timestamp,
        decide: impl Fn(&[PolicySource]) -> Result<(PolicyKey, Option<String>), PolicySaveError>,
    ) -> Result<PolicyKey, PolicySaveError> {
        if matches!(self.files, PolicyFiles::File(_)) {
            return Err(PolicySaveError::NoFolder);
        }
        // Files of this machine cannot change meanwhile. Files of another machine may: a set that is invalid there is not loaded there, and
        // the error is logged.
        let _lock = self.files.folder().ok().map(lock).transpose()?;
        for _ in 0..MAX_ATTEMPTS {
            let (version, stored) = self.read_stored().await?;
            let mut sources = [self.files.sources()?, stored].concat();
            let (key, text) = decide(&sources)?;
            let before = sources.iter().position(|source| PolicyKey::from_source(source) == key);
            if before.map(|at| sources.remove(at).text) == text {
                return Ok(key);
            }
            sources.extend(text.clone().map(|text| key.source(text)));
            check_owner(&sources, key.owner.as_ref())?;
            let change = PolicyChange { name: key.stored_name(), text, at: now, by: self.scope.by.clone() };
            match self.store.change_policy(&change, version).await {
                Ok(_) => return Ok(key),
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(StoreError::Conflict.into())
    }

    /// The texts in the store, and the number of the last change. One file instead of everything else has nothing beside it.
    async fn read_stored(&self) -> Result<(u64, Vec<PolicySource>), StoreError> {
        if matches!(self.files, PolicyFiles::File(_)) {
            return Ok((0, Vec::new()));
        }
        let set = self.store.policies().await?;
        let source = |name: &str, text| {
            let (owner, stem) = stored_name(name);
            PolicyKey { shelf: PolicyLocation::Store, owner, stem }.source(text)
        };
        let sources = set.policies.into_iter().map(|kept| source(&kept.name, kept.text)).collect();
        Ok((set.version, sources))
    }

    /// The texts that can be read, to find one by its name.
    async fn readable_sources(&self) -> Result<Vec<PolicySource>, StoreError> {
        let (_, stored) = self.read_stored().await?;
        Ok([self.files.sources().unwrap_or_default(), stored].concat())
    }

    /// The text that is meant by its name, or by the name of the one policy in it: the org's own before one for all orgs.
    fn find_text(
        &self,
        name: &str,
        shelf: Option<PolicyLocation>,
        sources: &[PolicySource],
    ) -> Result<PolicyKey, PolicySaveError> {
        let owned = self.find_owned_text(name, shelf, sources, Some(&self.scope.org));
        match owned {
            Err(PolicySaveError::NotFound(_)) => self.find_owned_text(name, shelf, sources, None),
            found => found,
        }
    }

    fn find_owned_text(
        &self,
        name: &str,
        shelf: Option<PolicyLocation>,
        sources: &[PolicySource],
        owner: Option<&OrgId>,
    ) -> Result<PolicyKey, PolicySaveError> {
        let not_found = || PolicySaveError::NotFound(name.to_owned());
        if !self.scope.includes(owner) {
            return Err(not_found());
        }
        let (at, stem) = parse_source_name(name);
        let shelf = shelf.or((at == PolicyLocation::Store).then_some(at));
        let sources: Vec<PolicySource> =
            sources.iter().filter(|source| source.org.as_ref() == owner).cloned().collect();
        let fits = |key: &PolicyKey| shelf.is_none_or(|shelf| shelf == key.shelf);
        let mut named =
            sources.iter().map(PolicyKey::from_source).filter(|key| fits(key) && key.stem == stem);
        match (named.next(), named.next()) {
            (Some(key), None) => return Ok(key),
            (Some(_), Some(_)) => return Err(PolicySaveError::Both(name.to_owned())),
            (None, _) => {}
        }
        let rules = Policy::parse(&sources).map_err(|_| not_found())?.rules();
        let rule = rules.iter().find(|rule| rule.name == stem).ok_or_else(not_found)?;
        let (shelf, stem) = parse_source_name(&rule.file);
        let key = PolicyKey { shelf, owner: owner.cloned(), stem: stem.to_owned() };
        match rules.iter().filter(|other| other.file == rule.file).count() {
            _ if !fits(&key) => Err(not_found()),
            1 => Ok(key),
            count => Err(PolicySaveError::Shared {
                name: name.to_owned(),
                count,
                file: rule.file.clone(),
                path: self.source_path(&key),
            }),
        }
    }

    fn source_path(&self, key: &PolicyKey) -> String {
        match (key.shelf, self.files.folder()) {
            (PolicyLocation::Files, Ok(folder)) => {
                owner_folder(folder, key.owner.as_ref()).join(key.source_name()).display().to_string()
            }
            _ => key.source_name(),
        }
    }
}

// === impl PolicyLocation ===

impl PolicyLocation {
    /// Prefix of names in this location.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::Files => "",
            Self::Store => STORE_PREFIX,
        }
    }

    /// Name of a text in this location, as used in place of a file name.
    pub(crate) fn source_name(self, stem: &str) -> String {
        match self {
            Self::Files => format!("{stem}.cedar"),
            Self::Store => format!("{STORE_PREFIX}{stem}"),
        }
    }
}

// === impl PolicyKey ===

impl PolicyKey {
    /// The key of a text.
    pub(crate) fn from_source(source: &PolicySource) -> Self {
        let (shelf, stem) = parse_source_name(&source.name);
        Self { shelf, owner: source.org.clone(), stem: stem.to_owned() }
    }

    /// Source name in the policies of this text.
    pub(crate) fn source_name(&self) -> String {
        self.shelf.source_name(&self.stem)
    }

    pub(super) fn source(&self, text: String) -> PolicySource {
        PolicySource { name: self.source_name(), text, org: self.owner.clone() }
    }

    /// Its name in the store, where the policies of all orgs are beside each other. Names of texts have no slash.
    fn stored_name(&self) -> String {
        self.owner.as_ref().map_or_else(|| self.stem.clone(), |org| format!("{org}/{}", self.stem))
    }
}

/// The owner and the name of a text that has this name in the store.
pub(super) fn stored_name(name: &str) -> (Option<OrgId>, String) {
    match name.split_once('/') {
        Some((org, stem)) => (Some(OrgId::from(org)), stem.to_owned()),
        None => (None, name.to_owned()),
    }
}

// === impl SavedPolicyText ===

impl SavedPolicyText {
    /// Source name in the policies of this text.
    pub(crate) fn source_name(&self) -> String {
        self.key.source_name()
    }

    /// Its name.
    pub(crate) fn name(&self) -> String {
        self.key.stem.clone()
    }
}

impl fmt::Display for SavedPolicyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => path.display().fmt(f),
            None => write!(f, "{STORE_PREFIX}{}", self.key.stem),
        }
    }
}

/// Location and name in a source name.
fn parse_source_name(source: &str) -> (PolicyLocation, &str) {
    match source.strip_prefix(STORE_PREFIX) {
        Some(name) => (PolicyLocation::Store, name),
        None => (PolicyLocation::Files, source.strip_suffix(".cedar").unwrap_or(source)),
    }
}
