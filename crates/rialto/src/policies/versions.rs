//! The texts that policies had before: one file each, in a hidden folder beside them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use super::{SaveError, file_error, write_whole};

/// Where they are, below the folder of policies.
const FOLDER: &str = ".history";

/// How many are kept of one file.
const KEPT: usize = 50;

/// A text that was replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// The file's name without its ending.
    pub(crate) name: String,
    /// When it was replaced, in microseconds: that is what it is called by.
    pub(crate) version: i64,
    /// The text.
    pub(crate) text: String,
}

/// All of them.
pub(super) struct Versions(PathBuf);

// === impl Versions ===

impl Versions {
    /// Those of a folder of policies.
    pub(super) fn of(policies: &Path) -> Self {
        Self(policies.join(FOLDER))
    }

    /// Keeps a text that is about to be replaced, and lets go of the oldest.
    pub(super) fn keep(&self, name: &str, text: &str, now: Timestamp) -> Result<(), SaveError> {
        fs::create_dir_all(&self.0).map_err(|source| file_error(&self.0, source))?;
        let known = self.stamps(name)?;
        // Later than every one before it, also when the clock stood still or went back.
        let version = known.first().map_or(i64::MIN, |latest| latest + 1).max(now.as_microsecond());
        write_whole(&self.file(name, version), text)?;
        for old in known.iter().skip(KEPT - 1) {
            let file = self.file(name, *old);
            fs::remove_file(&file).map_err(|source| file_error(&file, source))?;
        }
        Ok(())
    }

    /// The texts that one file had, newest first.
    pub(super) fn list(&self, name: &str) -> Result<Vec<Version>, SaveError> {
        let read = |version| {
            let file = self.file(name, version);
            let text = fs::read_to_string(&file).map_err(|source| file_error(&file, source))?;
            Ok(Version { name: name.to_owned(), version, text })
        };
        self.stamps(name)?.into_iter().map(read).collect()
    }

    /// The versions of one file, newest first.
    fn stamps(&self, name: &str) -> Result<Vec<i64>, SaveError> {
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(file_error(&self.0, error)),
        };
        let stamp = |file: String| {
            let (stem, stamp) = file.strip_suffix(".cedar")?.rsplit_once('.')?;
            stamp.parse().ok().filter(|_| stem == name)
        };
        let mut stamps: Vec<i64> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter_map(stamp)
            .collect();
        stamps.sort_unstable_by(|a, b| b.cmp(a));
        Ok(stamps)
    }

    fn file(&self, name: &str, version: i64) -> PathBuf {
        self.0.join(format!("{name}.{version}.cedar"))
    }
}

// === impl Version ===

impl Version {
    /// When it was replaced.
    pub(crate) fn replaced_at(&self) -> Timestamp {
        Timestamp::from_microsecond(self.version).unwrap_or_default()
    }
}
