//! All policies in force: the files of this machine, and those that everybody who uses the store shares.
//!
//! Both count alike. A policy in the store stands as `store:NAME` wherever a file's name would, so the two cannot be taken
//! for each other; and what is saved on one side is checked together with the other, so that no two have the same id.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use jiff::Timestamp;
use rialto_console::host::{PolicyScope, SharedPolicies};
use rialto_model::{
    agent::Agent,
    ids::{OrgId, Scope},
    name::unused,
    policy::PolicyChange,
    store::{Store, StoreError},
};
use rialto_policy::{Policy, PolicyError, PolicySource, PolicyTemplate, is_only_about};

use super::{Policies, SaveError, Version, check_owner, file_stem, folder_of, lock};

/// Stands before the name of a policy that is kept in the store.
const STORED: &str = "store:";

/// How often a change is tried again when others change policies at the same time.
const TRIES: usize = 20;

/// How often an empty file is looked at before it counts as empty, and how long it may take to be written meanwhile.
const LOOKS: u32 = 20;
const WRITING: Duration = Duration::from_millis(10);

/// All policies in force. Cloning shares them.
#[derive(Clone)]
pub(crate) struct Book {
    files: Policies,
    store: Arc<dyn Store>,
    /// Where a new policy goes when nobody says.
    home: Shelf,
    /// Whose policies are meant, and who changes them.
    scope: PolicyScope,
}

/// Where a policy is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shelf {
    /// In a file on this machine.
    Files,
    /// In the store.
    Store,
}

/// One text of policies: whose it is, where it is kept, and its name there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PolicyKey {
    /// Where it is kept.
    pub(crate) shelf: Shelf,
    /// The org that it belongs to; none if it applies to all orgs.
    pub(crate) owner: Option<OrgId>,
    /// Its name, without an ending.
    pub(crate) stem: String,
}

/// A policy that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) key: PolicyKey,
    /// The file, where it is one.
    pub(crate) path: Option<PathBuf>,
}

// === impl Book ===

impl Book {
    /// The policies of the org `default` and those for all orgs, changed by this person.
    pub(crate) fn new(files: Policies, store: Arc<dyn Store>, home: Shelf, by: String) -> Self {
        let scope = PolicyScope { by, org: Scope::default().org, shared: SharedPolicies::Included };
        Self { files, store, home, scope }
    }

    /// Policies of another scope.
    pub(crate) fn within(&self, scope: PolicyScope) -> Self {
        Self { scope, ..self.clone() }
    }

    /// Whose policies are meant, and who changes them.
    pub(crate) const fn scope(&self) -> &PolicyScope {
        &self.scope
    }

    /// Those that are files.
    pub(crate) const fn files(&self) -> &Policies {
        &self.files
    }

    /// The texts of all orgs, the files' first.
    pub(crate) async fn sources(&self) -> Result<Result<Vec<PolicySource>, PolicyError>, StoreError> {
        let stored = self.stored().await?.1;
        Ok(self.written().await.map(|files| [files, stored].concat()))
    }

    /// The files. One that is just being written is empty for a moment, and an empty one is valid: it is looked at again before it
    /// counts.
    async fn written(&self) -> Result<Vec<PolicySource>, PolicyError> {
        for _ in 0..LOOKS {
            let files = self.files.sources()?;
            if files.iter().all(|file| !file.text.trim().is_empty()) {
                return Ok(files);
            }
            tokio::time::sleep(WRITING).await;
        }
        self.files.sources()
    }

    /// Reads and compiles them.
    pub(crate) async fn load(&self) -> Result<Result<Policy, PolicyError>, StoreError> {
        Ok(self.sources().await?.and_then(|sources| Policy::parse(&sources)))
    }

    /// Keeps what a template says, under `name` or under a name of its own.
    ///
    /// A name of its own never replaces anything: what is there already is left as it is, and another policy that
    /// happens to have the name keeps it.
    pub(crate) async fn add(
        &self,
        template: &PolicyTemplate<'_>,
        name: Option<&str>,
        shelf: Option<Shelf>,
        now: Timestamp,
    ) -> Result<Kept, SaveError> {
        let shelf = shelf.unwrap_or(self.home);
        let name = name.map(file_stem).transpose()?;
        let decide = |sources: &[PolicySource]| {
            let owner = self.scope.owner();
            let holds_another = |name: &str| {
                let text = template.compile(name).text;
                sources
                    .iter()
                    .filter(|source| source.org == owner)
                    .map(|source| (PolicyKey::of(source), &source.text))
                    .any(|(key, known)| key.stem == name && (key.shelf != shelf || *known != text))
            };
            let stem = name.map_or_else(|| unused(&template.name(), holds_another), str::to_owned);
            let text = template.compile(&stem).text;
            Ok((PolicyKey { shelf, owner, stem }, Some(text)))
        };
        self.change(shelf, now, decide).await
    }

    /// Keeps one text, once everything that would then be in force holds up.
    pub(crate) async fn save(
        &self,
        name: &str,
        text: &str,
        shelf: Option<Shelf>,
        now: Timestamp,
    ) -> Result<Kept, SaveError> {
        let (at, stem) = place(name);
        let shelf = shelf.unwrap_or(if at == Shelf::Store { at } else { self.home });
        let stem = file_stem(stem)?;
        let decide = |sources: &[PolicySource]| {
            let new = PolicyKey { shelf, owner: self.scope.owner(), stem: stem.to_owned() };
            // A text for all orgs that has this name is changed, unless the org has one too.
            let shared = PolicyKey { owner: None, ..new.clone() };
            let is_there = |key: &PolicyKey| sources.iter().any(|source| PolicyKey::of(source) == *key);
            let is_meant = self.scope.includes(None) && is_there(&shared) && !is_there(&new);
            Ok((if is_meant { shared } else { new }, Some(text.to_owned())))
        };
        self.change(shelf, now, decide).await
    }

    /// Takes a policy, or a text of policies, away.
    pub(crate) async fn remove(
        &self,
        name: &str,
        shelf: Option<Shelf>,
        now: Timestamp,
    ) -> Result<Kept, SaveError> {
        let found = self.find(name, shelf, &self.readable().await?)?;
        // It is looked for again under the lock: somebody else may have taken it away.
        let decide = |sources: &[PolicySource]| {
            let is_there = sources.iter().any(|source| PolicyKey::of(source) == found);
            if is_there { Ok((found.clone(), None)) } else { Err(SaveError::NotFound(name.to_owned())) }
        };
        self.change(found.shelf, now, decide).await
    }

    /// The texts that a policy had, newest first: those that were replaced in a file, and every change in the store.
    pub(crate) async fn history(&self, name: &str, shelf: Option<Shelf>) -> Result<Vec<Version>, SaveError> {
        // A name that is nobody's now may have been somebody's.
        let found = match self.find(name, shelf, &self.readable().await?) {
            Err(SaveError::NotFound(_) | SaveError::Shared { .. }) => None,
            found => Some(found?),
        };
        let (only, stem) = match &found {
            Some(key) => (Some(key.shelf), key.stem.clone()),
            None => (shelf, file_stem(place(name).1)?.to_owned()),
        };
        let owners = match found {
            Some(key) => vec![key.owner],
            None => [Some(self.scope.org.clone()), None]
                .into_iter()
                .filter(|owner| self.is_meant(owner))
                .collect(),
        };
        for owner in owners {
            let mut versions = Vec::new();
            if only != Some(Shelf::Store) && self.files.folder().is_ok() {
                versions = self.files.versions(owner.as_ref(), &stem)?;
            }
            if versions.is_empty() && only != Some(Shelf::Files) {
                let key = PolicyKey { shelf: Shelf::Store, owner, stem: stem.clone() };
                let changes = self.store.policy_history(&key.stored_name()).await?;
                versions = changes.into_iter().map(Version::from).collect();
            }
            if !versions.is_empty() {
                return Ok(versions);
            }
        }
        Ok(Vec::new())
    }

    /// Makes an older text the one in force.
    pub(crate) async fn restore(
        &self,
        name: &str,
        version: i64,
        shelf: Option<Shelf>,
        now: Timestamp,
    ) -> Result<Kept, SaveError> {
        let known = self.history(name, shelf).await?;
        let none = || SaveError::NoVersion { name: name.to_owned(), version };
        let found = known.into_iter().find(|known| known.version == version).ok_or_else(none)?;
        let text = found.text.ok_or_else(none)?;
        let key = PolicyKey { shelf: found.shelf, owner: found.owner, stem: found.name };
        self.change(key.shelf, now, |_| Ok((key.clone(), Some(text.clone())))).await
    }

    /// Takes away the policies that are about nothing but an agent that is gone.
    pub(crate) async fn forget(&self, agent: &Agent, now: Timestamp) -> Result<(), SaveError> {
        let (_, stored) = self.stored().await?;
        let files = if self.files.folder().is_ok() { self.files.sources()? } else { Vec::new() };
        for source in files.iter().chain(&stored).filter(|source| is_only_about(&source.text, &agent.id)) {
            self.drop_text(&PolicyKey::of(source), now).await?;
        }
        Ok(())
    }

    /// Changes the text of a policy, wherever it is kept and whosever it is.
    pub(crate) async fn replace(&self, source: &PolicySource, now: Timestamp) -> Result<Kept, SaveError> {
        let key = PolicyKey::of(source);
        self.change(key.shelf, now, |_| Ok((key.clone(), Some(source.text.clone())))).await
    }

    /// Removes all policies of an org.
    pub(crate) async fn forget_org(&self, org: &OrgId, now: Timestamp) -> Result<usize, SaveError> {
        let owned = self.readable().await?.into_iter().filter(|source| source.org.as_ref() == Some(org));
        let keys: Vec<PolicyKey> = owned.map(|source| PolicyKey::of(&source)).collect();
        for key in &keys {
            self.drop_text(key, now).await?;
        }
        Ok(keys.len())
    }

    async fn drop_text(&self, key: &PolicyKey, now: Timestamp) -> Result<(), SaveError> {
        self.change(key.shelf, now, |_| Ok((key.clone(), None))).await.map(drop)
    }

    fn is_meant(&self, owner: &Option<OrgId>) -> bool {
        self.scope.includes(owner.as_ref())
    }

    /// Changes one text: `decide` sees what is in force and says which shall say what, or nothing.
    async fn change(
        &self,
        shelf: Shelf,
        now: Timestamp,
        decide: impl Fn(&[PolicySource]) -> Result<(PolicyKey, Option<String>), SaveError>,
    ) -> Result<Kept, SaveError> {
        match shelf {
            Shelf::Files => {
                let (_, beside) = self.stored().await?;
                self.files.change(now, &beside, decide)
            }
            Shelf::Store => self.change_stored(now, decide).await.map(|key| Kept { key, path: None }),
        }
    }

    async fn change_stored(
        &self,
        now: Timestamp,
        decide: impl Fn(&[PolicySource]) -> Result<(PolicyKey, Option<String>), SaveError>,
    ) -> Result<PolicyKey, SaveError> {
        if matches!(self.files, Policies::File(_)) {
            return Err(SaveError::NoFolder);
        }
        // Nobody on this machine changes a file meanwhile. Another machine may: what then does not hold up together is not
        // taken there, and told.
        let _lock = self.files.folder().ok().map(lock).transpose()?;
        for _ in 0..TRIES {
            let (version, stored) = self.stored().await?;
            let mut sources = [self.files.sources()?, stored].concat();
            let (key, text) = decide(&sources)?;
            let before = sources.iter().position(|source| PolicyKey::of(source) == key);
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
    async fn stored(&self) -> Result<(u64, Vec<PolicySource>), StoreError> {
        if matches!(self.files, Policies::File(_)) {
            return Ok((0, Vec::new()));
        }
        let set = self.store.policies().await?;
        let source = |name: &str, text| {
            let (owner, stem) = stored_name(name);
            PolicyKey { shelf: Shelf::Store, owner, stem }.source(text)
        };
        let sources = set.policies.into_iter().map(|kept| source(&kept.name, kept.text)).collect();
        Ok((set.version, sources))
    }

    /// The texts that can be read, to find one by its name.
    async fn readable(&self) -> Result<Vec<PolicySource>, StoreError> {
        let (_, stored) = self.stored().await?;
        Ok([self.files.sources().unwrap_or_default(), stored].concat())
    }

    /// The text that is meant by its name, or by the name of the one policy in it: the org's own before one for all orgs.
    fn find(
        &self,
        name: &str,
        shelf: Option<Shelf>,
        sources: &[PolicySource],
    ) -> Result<PolicyKey, SaveError> {
        let owned = self.find_owned(name, shelf, sources, Some(&self.scope.org));
        match owned {
            Err(SaveError::NotFound(_)) => self.find_owned(name, shelf, sources, None),
            found => found,
        }
    }

    fn find_owned(
        &self,
        name: &str,
        shelf: Option<Shelf>,
        sources: &[PolicySource],
        owner: Option<&OrgId>,
    ) -> Result<PolicyKey, SaveError> {
        let not_found = || SaveError::NotFound(name.to_owned());
        if !self.scope.includes(owner) {
            return Err(not_found());
        }
        let (at, stem) = place(name);
        let shelf = shelf.or((at == Shelf::Store).then_some(at));
        let sources: Vec<PolicySource> =
            sources.iter().filter(|source| source.org.as_ref() == owner).cloned().collect();
        let fits = |key: &PolicyKey| shelf.is_none_or(|shelf| shelf == key.shelf);
        let mut named = sources.iter().map(PolicyKey::of).filter(|key| fits(key) && key.stem == stem);
        match (named.next(), named.next()) {
            (Some(key), None) => return Ok(key),
            (Some(_), Some(_)) => return Err(SaveError::Both(name.to_owned())),
            (None, _) => {}
        }
        let rules = Policy::parse(&sources).map_err(|_| not_found())?.rules();
        let rule = rules.iter().find(|rule| rule.name == stem).ok_or_else(not_found)?;
        let (shelf, stem) = place(&rule.file);
        let key = PolicyKey { shelf, owner: owner.cloned(), stem: stem.to_owned() };
        match rules.iter().filter(|other| other.file == rule.file).count() {
            _ if !fits(&key) => Err(not_found()),
            1 => Ok(key),
            count => Err(SaveError::Shared {
                name: name.to_owned(),
                count,
                file: rule.file.clone(),
                path: self.path(&key),
            }),
        }
    }

    fn path(&self, key: &PolicyKey) -> String {
        match (key.shelf, self.files.folder()) {
            (Shelf::Files, Ok(folder)) => {
                folder_of(folder, key.owner.as_ref()).join(key.source_name()).display().to_string()
            }
            _ => key.source_name(),
        }
    }
}

// === impl Shelf ===

impl Shelf {
    /// What stands before the name of a text on this shelf.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::Files => "",
            Self::Store => STORED,
        }
    }

    /// How a text on this shelf is called where a file's name would stand.
    pub(crate) fn spell(self, stem: &str) -> String {
        match self {
            Self::Files => format!("{stem}.cedar"),
            Self::Store => format!("{STORED}{stem}"),
        }
    }
}

// === impl PolicyKey ===

impl PolicyKey {
    /// The key of a text.
    pub(crate) fn of(source: &PolicySource) -> Self {
        let (shelf, stem) = place(&source.name);
        Self { shelf, owner: source.org.clone(), stem: stem.to_owned() }
    }

    /// What policies of this text say where they are kept.
    pub(crate) fn source_name(&self) -> String {
        self.shelf.spell(&self.stem)
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

// === impl Kept ===

impl Kept {
    /// What policies of this text say where they are kept.
    pub(crate) fn source_name(&self) -> String {
        self.key.source_name()
    }

    /// Its name.
    pub(crate) fn name(&self) -> String {
        self.key.stem.clone()
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => path.display().fmt(f),
            None => write!(f, "{STORED}{}", self.key.stem),
        }
    }
}

/// The shelf and the name of a text that is called like this.
fn place(source: &str) -> (Shelf, &str) {
    match source.strip_prefix(STORED) {
        Some(name) => (Shelf::Store, name),
        None => (Shelf::Files, source.strip_suffix(".cedar").unwrap_or(source)),
    }
}
