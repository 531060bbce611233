//! Policies: Cedar files in the data folder, editable with any editor, and policies in the store ([`PolicyStore`]).
//!
//! A change is validated together with all active policies, and nothing is written unless the whole set is valid. Files are replaced
//! atomically, and the replaced text is stored as a version.

mod history;
mod policy_store;

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use rialto_model::{
    ids::{OrgId, fresh, is_slug},
    store::StoreError,
};
use rialto_policy::{OWNER_ADMIN, Policy, PolicyError, PolicySource, PolicySourceError, STARTER};

use self::history::PolicyFileHistory;
pub(crate) use self::{
    history::PolicyFileVersion,
    policy_store::{PolicyKey, PolicyLocation, PolicyStore, SavedPolicyText},
};

/// The policies of a fresh install, by file.
const INITIAL_POLICIES: [(&str, &str); 2] = [("starter.cedar", STARTER), ("owner.cedar", OWNER_ADMIN)];

/// Held while something is written, so that two programs do not each check what the other is about to change.
const LOCK_FILE: &str = ".lock";

/// Source of policy files.
#[derive(Clone, Debug)]
pub(crate) enum PolicyFiles {
    /// The `.cedar` files of a folder, which apply to all orgs, and those of its folders, which are named after orgs and apply
    /// to that org alone. The starter policy is written there when the folder is new.
    Folder(PathBuf),
    /// One file that replaces all others.
    File(PathBuf),
    /// The starter policy, in memory.
    Starter,
}

/// Why policies were not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PolicySaveError {
    /// The policies would be invalid.
    #[error("nothing was changed, because the policies would not be valid:\n{0}")]
    Invalid(#[from] PolicyError),
    /// The policies are not in a folder.
    #[error("these policies are not in a folder that can be written to")]
    NoFolder,
    /// That cannot be a file's name.
    #[error(
        "\"{0}\" cannot be the name of a policy; use letters, digits, `-`, `_` and `.`, and no `.` in front"
    )]
    Name(String),
    /// There is none with that name.
    #[error("there is no policy \"{0}\"; `rialto policy list` lists all")]
    NotFound(String),
    /// There is a file with that name, and one in the store.
    #[error("\"{0}\" is both a file and in the store; select one with --as-file or --store")]
    Both(String),
    /// The store did not do its part.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The policy is in a file with others.
    #[error(
        "\"{name}\" is one of {count} policies in {file}; edit {path}, or name the file to remove all of it"
    )]
    Shared {
        /// The policy.
        name: String,
        /// Number of policies in that file.
        count: usize,
        /// The file's name.
        file: String,
        /// The file.
        path: String,
    },
    /// There is no such version.
    #[error("\"{name}\" has no version {version}; `rialto policy history {name}` lists all")]
    NoVersion {
        /// The policy.
        name: String,
        /// The version.
        version: i64,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Path.
        path: String,
        /// Why.
        source: io::Error,
    },
}

// === impl PolicyFiles ===

impl PolicyFiles {
    /// Makes the folder with the starter policy, unless it is there.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        let Self::Folder(folder) = self else { return Ok(()) };
        if folder.exists() {
            return Ok(());
        }
        fs::create_dir_all(folder)?;
        INITIAL_POLICIES.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text))
    }

    /// The texts, by file name.
    pub(crate) fn sources(&self) -> Result<Vec<PolicySource>, PolicyError> {
        match self {
            Self::Starter => {
                let source = |(name, text): (&str, &str)| PolicySource {
                    name: name.to_owned(),
                    text: text.to_owned(),
                    org: None,
                };
                Ok(INITIAL_POLICIES.map(source).to_vec())
            }
            Self::File(file) => Ok(vec![read_source(file)?]),
            Self::Folder(folder) => {
                let mut sources = read_folder(folder, None)?;
                for org in list_orgs(folder)? {
                    sources.extend(read_folder(&folder.join(org.as_str()), Some(&org))?);
                }
                Ok(sources)
            }
        }
    }

    /// The texts that a file had before, newest first.
    fn versions(&self, owner: Option<&OrgId>, stem: &str) -> Result<Vec<PolicyFileVersion>, PolicySaveError> {
        PolicyFileHistory::in_folder(&owner_folder(self.folder()?, owner)).list(owner, stem)
    }

    /// Changes one file: `decide` receives the active policies, also those of other locations (`beside`), and returns the file to write
    /// and its text, or nothing.
    fn change(
        &self,
        now: Timestamp,
        beside: &[PolicySource],
        decide: impl FnOnce(&[PolicySource]) -> Result<(PolicyKey, Option<String>), PolicySaveError>,
    ) -> Result<SavedPolicyText, PolicySaveError> {
        let _lock = lock(self.folder()?)?;
        let mut sources = self.sources()?;
        sources.extend_from_slice(beside);
        let (key, text) = decide(&sources)?;
        let folder = owner_folder(self.folder()?, key.owner.as_ref());
        let path = folder.join(key.source_name());
        let kept = SavedPolicyText { key: key.clone(), path: Some(path.clone()) };
        let before = sources.iter().position(|source| PolicyKey::from_source(source) == key);
        let before = before.map(|at| sources.remove(at));
        if before.as_ref().map(|source| &source.text) == text.as_ref() {
            return Ok(kept);
        }
        sources.extend(text.clone().map(|text| key.source(text)));
        check_owner(&sources, key.owner.as_ref())?;
        if let Some(before) = before {
            PolicyFileHistory::in_folder(&folder).add(&key.stem, &before.text, now)?;
        }
        match text {
            Some(text) => {
                fs::create_dir_all(&folder).map_err(|source| file_error(&folder, source))?;
                write_atomically(&path, &text)?;
            }
            None => fs::remove_file(&path).map_err(|source| file_error(&path, source))?,
        }
        Ok(kept)
    }

    fn folder(&self) -> Result<&Path, PolicySaveError> {
        match self {
            Self::Folder(folder) => Ok(folder),
            Self::File(_) | Self::Starter => Err(PolicySaveError::NoFolder),
        }
    }
}

/// Writes a file that others may be reading: it has the old text or the new one, also after a loss of power.
pub(crate) fn write_atomically(path: &Path, text: &str) -> Result<(), PolicySaveError> {
    let draft = path.with_extension(format!("{}.draft", fresh()));
    let written = File::create(&draft)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&draft, path));
    written.map_err(|source| {
        let _ = fs::remove_file(&draft);
        file_error(path, source)
    })
}

pub(crate) fn read_source(file: &Path) -> Result<PolicySource, PolicyError> {
    let text = fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
    let name = file
        .file_name()
        .map_or_else(|| file.display().to_string(), |name| name.to_string_lossy().into_owned());
    Ok(PolicySource { name, text, org: None })
}

/// Validates the policies of one owner, independent of problems in others'.
fn check_owner(sources: &[PolicySource], owner: Option<&OrgId>) -> Result<(), PolicyError> {
    let owned: Vec<PolicySource> =
        sources.iter().filter(|source| source.org.as_ref() == owner).cloned().collect();
    Policy::parse(&owned).map(drop)
}

/// The folder that files of an owner are in.
fn owner_folder(folder: &Path, owner: Option<&OrgId>) -> PathBuf {
    owner.map_or_else(|| folder.to_owned(), |org| folder.join(org.as_str()))
}

/// The Cedar files of one folder, by name.
fn read_folder(folder: &Path, owner: Option<&OrgId>) -> Result<Vec<PolicySource>, PolicyError> {
    let is_policy =
        |path: &Path| path.extension().is_some_and(|extension| extension == "cedar") && !path.is_dir();
    let mut files: Vec<PathBuf> = list_entries(folder)?.into_iter().filter(|path| is_policy(path)).collect();
    files.sort();
    files.iter().map(|file| Ok(PolicySource { org: owner.cloned(), ..read_source(file)? })).collect()
}

/// The orgs that have a folder of their own, by name.
fn list_orgs(folder: &Path) -> Result<Vec<OrgId>, PolicyError> {
    let org = |path: PathBuf| {
        let name = path.file_name()?.to_str().filter(|name| is_slug(name))?;
        path.is_dir().then(|| OrgId::from(name))
    };
    let mut orgs: Vec<OrgId> = list_entries(folder)?.into_iter().filter_map(org).collect();
    orgs.sort();
    Ok(orgs)
}

fn list_entries(folder: &Path) -> Result<Vec<PathBuf>, PolicyError> {
    let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
    Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
}

/// A name without its ending that stays in the folder and is no hidden file.
fn file_stem(name: &str) -> Result<&str, PolicySaveError> {
    let stem = name.strip_suffix(".cedar").unwrap_or(name);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_good = !stem.is_empty() && !stem.starts_with('.') && stem.chars().all(is_plain);
    if is_good { Ok(stem) } else { Err(PolicySaveError::Name(name.to_owned())) }
}

fn lock(folder: &Path) -> Result<File, PolicySaveError> {
    let path = folder.join(LOCK_FILE);
    let held = File::create(&path).and_then(|file| file.lock().map(|()| file));
    held.map_err(|source| file_error(&path, source))
}

fn file_error(path: &Path, source: io::Error) -> PolicySaveError {
    PolicySaveError::File { path: path.display().to_string(), source }
}

fn unreadable(path: &Path, error: &io::Error) -> PolicyError {
    PolicyError(vec![PolicySourceError {
        place: path.display().to_string(),
        message: error.to_string(),
        help: None,
    }])
}

#[cfg(test)]
mod tests;
