//! Where policies are kept: Cedar files in the data folder, to read and edit with any editor.
//!
//! What is saved here is checked first, together with everything else that is in force, and nothing is written unless
//! all of it holds up. A file appears whole or not at all, and the text it replaces is kept as a version.

mod versions;

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use rialto_model::{agent::Agent, ids::fresh, name::unused};
use rialto_policy::{Object, Policy, PolicyError, Problem, STARTER, Source, Template, Wish, is_only_about};

pub(crate) use self::versions::Version;
use self::versions::Versions;

/// The starter policy's file.
const STARTER_FILE: &str = "starter.cedar";

/// Held while something is written, so that two programs do not each check what the other is about to change.
const LOCK_FILE: &str = ".lock";

/// Where policies come from.
#[derive(Clone, Debug)]
pub(crate) enum Policies {
    /// All `.cedar` files of a folder; the starter policy is written there when the folder is new.
    Folder(PathBuf),
    /// One file, instead of everything else.
    File(PathBuf),
    /// The starter policy, in memory.
    Starter,
}

/// Why policies were not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SaveError {
    /// They would not hold up.
    #[error("nothing was changed, because the policies would not be valid:\n{0}")]
    Invalid(#[from] PolicyError),
    /// They are not kept in a folder.
    #[error("these policies are not kept in a folder that could be written to")]
    NoFolder,
    /// That cannot be a file's name.
    #[error(
        "\"{0}\" cannot be the name of a policy; use letters, digits, `-`, `_` and `.`, and no `.` in front"
    )]
    Name(String),
    /// There is none with that name.
    #[error("there is no policy \"{0}\"; `rialto policy list` shows those that are")]
    NotFound(String),
    /// It stands in a file with others.
    #[error(
        "\"{name}\" is one of {count} policies in {file}; edit {path}, or name the file to remove all of it"
    )]
    Shared {
        /// The policy.
        name: String,
        /// How many there are in its file.
        count: usize,
        /// The file's name.
        file: String,
        /// The file.
        path: String,
    },
    /// There is no such version.
    #[error("\"{name}\" has no version {version}; `rialto policy history {name}` shows those it has")]
    NoVersion {
        /// The policy.
        name: String,
        /// The version.
        version: i64,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: String,
        /// Why.
        source: io::Error,
    },
}

// === impl Policies ===

impl Policies {
    /// Makes the folder with the starter policy, unless it is there.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        let Self::Folder(folder) = self else { return Ok(()) };
        if folder.exists() {
            return Ok(());
        }
        fs::create_dir_all(folder)?;
        fs::write(folder.join(STARTER_FILE), STARTER)
    }

    /// Reads and compiles them.
    pub(crate) fn load(&self) -> Result<Policy, PolicyError> {
        Policy::parse(&self.sources()?)
    }

    /// The texts, by file name.
    pub(crate) fn sources(&self) -> Result<Vec<Source>, PolicyError> {
        match self {
            Self::Starter => Ok(vec![Source { name: STARTER_FILE.to_owned(), text: STARTER.to_owned() }]),
            Self::File(file) => Ok(vec![source(file)?]),
            Self::Folder(folder) => {
                let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
                let mut files: Vec<PathBuf> = entries
                    .filter_map(|entry| Some(entry.ok()?.path()))
                    .filter(|path| path.extension().is_some_and(|extension| extension == "cedar"))
                    .collect();
                files.sort();
                files.iter().map(|file| source(file)).collect()
            }
        }
    }

    /// Writes what a template says, under `name` or under a name of its own. Answers the file.
    ///
    /// A name of its own never replaces anything: what is there already is left as it is, and another policy that
    /// happens to have the name keeps it.
    pub(crate) fn add(
        &self,
        template: &Template<'_>,
        name: Option<&str>,
        now: Timestamp,
    ) -> Result<PathBuf, SaveError> {
        let name = name.map(file_stem).transpose()?;
        self.change(now, |sources| {
            let holds_another = |name: &str| {
                let wanted = template.compile(name);
                sources.iter().any(|known| known.name == wanted.name && known.text != wanted.text)
            };
            let name = name.map_or_else(|| unused(&template.name(), holds_another), str::to_owned);
            let text = template.compile(&name).text;
            Ok((name, Some(text)))
        })
    }

    /// Writes one file, once everything that would then be in force holds up. Answers the file.
    pub(crate) fn save(&self, name: &str, text: &str, now: Timestamp) -> Result<PathBuf, SaveError> {
        let name = file_stem(name)?;
        self.change(now, |_| Ok((name.to_owned(), Some(text.to_owned()))))
    }

    /// Takes a policy, or a file of policies, away. Answers the file.
    pub(crate) fn remove(&self, name: &str, now: Timestamp) -> Result<PathBuf, SaveError> {
        self.change(now, |sources| Ok((self.stem_of(name, sources)?, None)))
    }

    /// The texts that a file had before, newest first.
    pub(crate) fn history(&self, name: &str) -> Result<Vec<Version>, SaveError> {
        let versions = Versions::of(self.folder()?);
        // A name that is nobody's now may have been somebody's.
        let stem = match self.sources().ok().map(|sources| self.stem_of(name, &sources)) {
            Some(Ok(stem)) => stem,
            _ => file_stem(name)?.to_owned(),
        };
        versions.list(&stem)
    }

    /// Makes an older text the one in force.
    pub(crate) fn restore(&self, name: &str, version: i64, now: Timestamp) -> Result<PathBuf, SaveError> {
        let found = self.history(name)?.into_iter().find(|known| known.version == version);
        let found = found.ok_or_else(|| SaveError::NoVersion { name: name.to_owned(), version })?;
        self.save(&found.name, &found.text, now)
    }

    /// Writes a permit for every skill of an agent. Answers the file.
    pub(crate) fn allow(&self, agent: &Agent, now: Timestamp) -> Result<PathBuf, SaveError> {
        let template = Template { wish: Wish::Allow, caller: None, object: Object::Agent(agent) };
        self.add(&template, None, now)
    }

    /// Takes away the policies that are about nothing but an agent that is gone.
    pub(crate) fn forget(&self, agent: &Agent, now: Timestamp) -> Result<(), SaveError> {
        let Self::Folder(_) = self else { return Ok(()) };
        let sources = self.sources()?;
        for source in sources.iter().filter(|source| is_only_about(&source.text, &agent.id)) {
            self.remove(&source.name, now)?;
        }
        Ok(())
    }

    /// Changes one file: `decide` sees what is in force and says which file shall hold what, or nothing.
    fn change(
        &self,
        now: Timestamp,
        decide: impl FnOnce(&[Source]) -> Result<(String, Option<String>), SaveError>,
    ) -> Result<PathBuf, SaveError> {
        let folder = self.folder()?;
        let _lock = lock(folder)?;
        let mut sources = self.sources()?;
        let (stem, text) = decide(&sources)?;
        let file_name = format!("{stem}.cedar");
        let path = folder.join(&file_name);
        let before = sources.iter().position(|source| source.name == file_name).map(|at| sources.remove(at));
        if before.as_ref().map(|source| &source.text) == text.as_ref() {
            return Ok(path);
        }
        sources.extend(text.clone().map(|text| Source { name: file_name, text }));
        Policy::parse(&sources)?;
        if let Some(before) = before {
            Versions::of(folder).keep(&stem, &before.text, now)?;
        }
        match text {
            Some(text) => write_whole(&path, &text)?,
            None => fs::remove_file(&path).map_err(|source| file_error(&path, source))?,
        }
        Ok(path)
    }

    fn folder(&self) -> Result<&Path, SaveError> {
        match self {
            Self::Folder(folder) => Ok(folder),
            Self::File(_) | Self::Starter => Err(SaveError::NoFolder),
        }
    }

    /// The file that is meant by its name, or by the name of the one policy in it.
    fn stem_of(&self, name: &str, sources: &[Source]) -> Result<String, SaveError> {
        let stem = name.strip_suffix(".cedar").unwrap_or(name);
        if sources.iter().any(|source| source.name.strip_suffix(".cedar") == Some(stem)) {
            return Ok(stem.to_owned());
        }
        let not_found = || SaveError::NotFound(name.to_owned());
        let rules = Policy::parse(sources).map_err(|_| not_found())?.rules();
        let rule = rules.iter().find(|rule| rule.name == name).ok_or_else(not_found)?;
        match rules.iter().filter(|other| other.file == rule.file).count() {
            1 => Ok(rule.file.trim_end_matches(".cedar").to_owned()),
            count => Err(SaveError::Shared {
                name: name.to_owned(),
                count,
                file: rule.file.clone(),
                path: self.folder()?.join(&rule.file).display().to_string(),
            }),
        }
    }
}

/// Writes a file that others may be reading: it has the old text or the new one, also after a loss of power.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<(), SaveError> {
    let draft = path.with_extension(format!("{}.draft", fresh()));
    let written = File::create(&draft)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&draft, path));
    written.map_err(|source| {
        let _ = fs::remove_file(&draft);
        file_error(path, source)
    })
}

pub(crate) fn source(file: &Path) -> Result<Source, PolicyError> {
    let text = fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
    let name = file
        .file_name()
        .map_or_else(|| file.display().to_string(), |name| name.to_string_lossy().into_owned());
    Ok(Source { name, text })
}

/// A name without its ending that stays in the folder and is no hidden file.
fn file_stem(name: &str) -> Result<&str, SaveError> {
    let stem = name.strip_suffix(".cedar").unwrap_or(name);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_good = !stem.is_empty() && !stem.starts_with('.') && stem.chars().all(is_plain);
    if is_good { Ok(stem) } else { Err(SaveError::Name(name.to_owned())) }
}

fn lock(folder: &Path) -> Result<File, SaveError> {
    let path = folder.join(LOCK_FILE);
    let held = File::create(&path).and_then(|file| file.lock().map(|()| file));
    held.map_err(|source| file_error(&path, source))
}

fn file_error(path: &Path, source: io::Error) -> SaveError {
    SaveError::File { path: path.display().to_string(), source }
}

fn unreadable(path: &Path, error: &io::Error) -> PolicyError {
    PolicyError(vec![Problem { place: path.display().to_string(), message: error.to_string(), help: None }])
}

#[cfg(test)]
mod tests;
