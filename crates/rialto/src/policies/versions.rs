//! The texts that policies had before: one file each, in a hidden folder beside them. Those in the store have a history there.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use rialto_model::{
    ids::OrgId,
    policy::{PolicyChange, RecordedPolicyChange},
};

use super::{SaveError, Shelf, book::stored_name, file_error, write_whole};

/// Where they are, below the folder of policies.
const FOLDER: &str = ".history";

/// How many are kept of one file.
const KEPT: usize = 50;

/// A text that a policy had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// The policy's name: of a file, without its ending.
    pub(crate) name: String,
    /// What it is called by: of a file, when it was replaced, in microseconds; in the store, the number of the change.
    pub(crate) version: i64,
    /// The text; none where the policy was taken away.
    pub(crate) text: Option<String>,
    /// When: of a file, when it was replaced; in the store, when it was made.
    pub(crate) at: Timestamp,
    /// Who made it, where that is known.
    pub(crate) by: Option<String>,
    /// Where it is kept.
    pub(crate) shelf: Shelf,
    /// The org that the policy belongs to; none if it applies to all orgs.
    pub(crate) owner: Option<OrgId>,
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
    pub(super) fn list(&self, owner: Option<&OrgId>, name: &str) -> Result<Vec<Version>, SaveError> {
        let read = |version| {
            let file = self.file(name, version);
            let text = fs::read_to_string(&file).map_err(|source| file_error(&file, source))?;
            let at = Timestamp::from_microsecond(version).unwrap_or_default();
            let (name, text) = (name.to_owned(), Some(text));
            Ok(Version { name, version, text, at, by: None, shelf: Shelf::Files, owner: owner.cloned() })
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

impl From<RecordedPolicyChange> for Version {
    fn from(made: RecordedPolicyChange) -> Self {
        let PolicyChange { name, text, at, by } = made.change;
        let version = i64::try_from(made.version).unwrap_or(i64::MAX);
        let (owner, name) = stored_name(&name);
        Self { name, version, text, at, by: Some(by), shelf: Shelf::Store, owner }
    }
}
