//! All policies in force: the files of this machine, and those that everybody who uses the store shares.
//!
//! Both count alike. A policy in the store stands as `store:NAME` wherever a file's name would, so the two cannot be taken
//! for each other; and what is saved on one side is checked together with the other, so that no two have the same id.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use jiff::Timestamp;
use rialto_model::{
    agent::Agent,
    name::unused,
    policy::PolicyChange,
    store::{Store, StoreError},
};
use rialto_policy::{Policy, PolicyError, Source, Template, is_only_about};

use super::{Policies, SaveError, Version, file_stem, lock};

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
    /// Who changes them.
    by: String,
}

/// Where a policy is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shelf {
    /// In a file on this machine.
    Files,
    /// In the store.
    Store,
}

/// A policy that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// The file.
    File(PathBuf),
    /// Its name in the store.
    Store(String),
}

// === impl Book ===

impl Book {
    pub(crate) fn new(files: Policies, store: Arc<dyn Store>, home: Shelf, by: String) -> Self {
        Self { files, store, home, by }
    }

    /// The same, changed by this person.
    pub(crate) fn changed_by(&self, by: &str) -> Self {
        Self { by: by.to_owned(), ..self.clone() }
    }

    /// Who changes them.
    pub(crate) fn by(&self) -> &str {
        &self.by
    }

    /// Those that are files.
    pub(crate) const fn files(&self) -> &Policies {
        &self.files
    }

    /// All texts, the files' first.
    pub(crate) async fn sources(&self) -> Result<Result<Vec<Source>, PolicyError>, StoreError> {
        let stored = self.stored().await?.1;
        Ok(self.written().await.map(|files| [files, stored].concat()))
    }

    /// The files. One that is just being written is empty for a moment, and an empty one is valid: it is looked at again before it
    /// counts.
    async fn written(&self) -> Result<Vec<Source>, PolicyError> {
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
        template: &Template<'_>,
        name: Option<&str>,
        shelf: Option<Shelf>,
        now: Timestamp,
    ) -> Result<Kept, SaveError> {
        let shelf = shelf.unwrap_or(self.home);
        let name = name.map(file_stem).transpose()?;
        let decide = |sources: &[Source]| {
            let holds_another = |name: &str| {
                let text = template.compile(name).text;
                sources
                    .iter()
                    .map(|source| (place(&source.name), &source.text))
                    .any(|((at, stem), known)| stem == name && (at != shelf || *known != text))
            };
            let name = name.map_or_else(|| unused(&template.name(), holds_another), str::to_owned);
            let text = template.compile(&name).text;
            Ok((name, Some(text)))
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
        self.change(shelf, now, |_| Ok((stem.to_owned(), Some(text.to_owned())))).await
    }

    /// Takes a policy, or a text of policies, away.
    pub(crate) async fn remove(
        &self,
        name: &str,
        shelf: Option<Shelf>,
        now: Timestamp,
    ) -> Result<Kept, SaveError> {
        let (at, stem) = self.find(name, shelf, &self.readable().await?)?;
        // It is looked for again under the lock: somebody else may have taken it away.
        let decide =
            |sources: &[Source]| self.find(&at.spell(&stem), Some(at), sources).map(|(_, stem)| (stem, None));
        self.change(at, now, decide).await
    }

    /// The texts that a policy had, newest first: those that were replaced in a file, and every change in the store.
    pub(crate) async fn history(&self, name: &str, shelf: Option<Shelf>) -> Result<Vec<Version>, SaveError> {
        // A name that is nobody's now may have been somebody's.
        let found = match self.find(name, shelf, &self.readable().await?) {
            Err(SaveError::NotFound(_) | SaveError::Shared { .. }) => None,
            found => Some(found?),
        };
        let (only, stem) = match found {
            Some((at, stem)) => (Some(at), stem),
            None => (shelf, file_stem(place(name).1)?.to_owned()),
        };
        let mut versions = Vec::new();
        if only != Some(Shelf::Store) && self.files.folder().is_ok() {
            versions = self.files.versions(&stem)?;
        }
        if versions.is_empty() && only != Some(Shelf::Files) {
            let changes = self.store.policy_history(&stem).await?;
            versions = changes.into_iter().map(Version::from).collect();
        }
        Ok(versions)
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
        self.save(&found.name, &text, Some(found.shelf), now).await
    }

    /// Takes away the policies that are about nothing but an agent that is gone.
    pub(crate) async fn forget(&self, agent: &Agent, now: Timestamp) -> Result<(), SaveError> {
        let (_, stored) = self.stored().await?;
        let files = if self.files.folder().is_ok() { self.files.sources()? } else { Vec::new() };
        for source in files.iter().chain(&stored).filter(|source| is_only_about(&source.text, &agent.id)) {
            self.remove(&source.name, Some(place(&source.name).0), now).await?;
        }
        Ok(())
    }

    /// Changes one text: `decide` sees what is in force and says which shall say what, or nothing.
    async fn change(
        &self,
        shelf: Shelf,
        now: Timestamp,
        decide: impl Fn(&[Source]) -> Result<(String, Option<String>), SaveError>,
    ) -> Result<Kept, SaveError> {
        match shelf {
            Shelf::Files => {
                let (_, beside) = self.stored().await?;
                self.files.change(now, &beside, decide).map(Kept::File)
            }
            Shelf::Store => self.change_stored(now, decide).await.map(Kept::Store),
        }
    }

    async fn change_stored(
        &self,
        now: Timestamp,
        decide: impl Fn(&[Source]) -> Result<(String, Option<String>), SaveError>,
    ) -> Result<String, SaveError> {
        if matches!(self.files, Policies::File(_)) {
            return Err(SaveError::NoFolder);
        }
        // Nobody on this machine changes a file meanwhile. Another machine may: what then does not hold up together is not
        // taken there, and told.
        let _lock = self.files.folder().ok().map(lock).transpose()?;
        for _ in 0..TRIES {
            let (version, stored) = self.stored().await?;
            let mut sources = [self.files.sources()?, stored].concat();
            let (name, text) = decide(&sources)?;
            let spelt = Shelf::Store.spell(&name);
            let before = sources.iter().position(|source| source.name == spelt).map(|at| sources.remove(at));
            if before.map(|source| source.text) == text {
                return Ok(name);
            }
            sources.extend(text.clone().map(|text| Source { name: spelt, text }));
            Policy::parse(&sources)?;
            let change = PolicyChange { name: name.clone(), text, at: now, by: self.by.clone() };
            match self.store.change_policy(&change, version).await {
                Ok(_) => return Ok(name),
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(StoreError::Conflict.into())
    }

    /// The texts in the store, and the number of the last change. One file instead of everything else has nothing beside it.
    async fn stored(&self) -> Result<(u64, Vec<Source>), StoreError> {
        if matches!(self.files, Policies::File(_)) {
            return Ok((0, Vec::new()));
        }
        let set = self.store.policies().await?;
        let source = |name: &str, text| Source { name: Shelf::Store.spell(name), text };
        let sources = set.policies.into_iter().map(|kept| source(&kept.name, kept.text)).collect();
        Ok((set.version, sources))
    }

    /// The texts that can be read, to find one by its name.
    async fn readable(&self) -> Result<Vec<Source>, StoreError> {
        let (_, stored) = self.stored().await?;
        Ok([self.files.sources().unwrap_or_default(), stored].concat())
    }

    /// The text that is meant by its name, or by the name of the one policy in it.
    fn find(
        &self,
        name: &str,
        shelf: Option<Shelf>,
        sources: &[Source],
    ) -> Result<(Shelf, String), SaveError> {
        let (at, stem) = place(name);
        let shelf = shelf.or((at == Shelf::Store).then_some(at));
        let fits = |at: Shelf| shelf.is_none_or(|shelf| shelf == at);
        let mut named = sources
            .iter()
            .map(|source| place(&source.name))
            .filter(|(at, known)| fits(*at) && *known == stem);
        match (named.next(), named.next()) {
            (Some((at, stem)), None) => return Ok((at, stem.to_owned())),
            (Some(_), Some(_)) => return Err(SaveError::Both(name.to_owned())),
            (None, _) => {}
        }
        let not_found = || SaveError::NotFound(name.to_owned());
        let rules = Policy::parse(sources).map_err(|_| not_found())?.rules();
        let rule = rules.iter().find(|rule| rule.name == stem).ok_or_else(not_found)?;
        let (at, stem) = place(&rule.file);
        match rules.iter().filter(|other| other.file == rule.file).count() {
            _ if !fits(at) => Err(not_found()),
            1 => Ok((at, stem.to_owned())),
            count => Err(SaveError::Shared {
                name: name.to_owned(),
                count,
                file: rule.file.clone(),
                path: self.path(&rule.file),
            }),
        }
    }

    fn path(&self, source: &str) -> String {
        match (place(source).0, self.files.folder()) {
            (Shelf::Files, Ok(folder)) => folder.join(source).display().to_string(),
            _ => source.to_owned(),
        }
    }
}

// === impl Shelf ===

impl Shelf {
    /// How a text on this shelf is called where a file's name would stand.
    pub(crate) fn spell(self, stem: &str) -> String {
        match self {
            Self::Files => format!("{stem}.cedar"),
            Self::Store => format!("{STORED}{stem}"),
        }
    }
}

// === impl Kept ===

impl Kept {
    /// What policies of this text say where they are kept.
    pub(crate) fn source_name(&self) -> String {
        match self {
            Self::File(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            Self::Store(name) => Shelf::Store.spell(name),
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::File(path) => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            Self::Store(name) => name.clone(),
        }
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Store(name) => write!(f, "{STORED}{name}"),
        }
    }
}

/// The shelf and the name of a text that is called like this.
pub(crate) fn place(source: &str) -> (Shelf, &str) {
    match source.strip_prefix(STORED) {
        Some(name) => (Shelf::Store, name),
        None => (Shelf::Files, source.strip_suffix(".cedar").unwrap_or(source)),
    }
}
