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

use super::{PolicyLocation, PolicySaveError, file_error, policy_store::stored_name, write_atomically};

/// Folder of versions, below the folder of policies.
const HISTORY_FOLDER: &str = ".history";

/// Maximum number of versions of a file.
const MAX_VERSIONS: usize = 50;

/// A text that a policy had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PolicyFileVersion {
    /// The policy's name: of a file, without its ending.
    pub(crate) name: String,
    /// Version number: of a file, the time of its replacement in microseconds; in the store, the number of the change.
    pub(crate) version: i64,
    /// The text; none where the policy was taken away.
    pub(crate) text: Option<String>,
    /// Time: of a file, of its replacement; in the store, of the change.
    pub(crate) at: Timestamp,
    /// Author, if known.
    pub(crate) by: Option<String>,
    /// Location.
    pub(crate) shelf: PolicyLocation,
    /// The org that the policy belongs to; none if it applies to all orgs.
    pub(crate) owner: Option<OrgId>,
}

/// Versions of all files in a folder.
pub(super) struct PolicyFileHistory(PathBuf);

// === impl PolicyFileHistory ===

impl PolicyFileHistory {
    /// Versions of a folder of policies.
    pub(super) fn in_folder(policies: &Path) -> Self {
        Self(policies.join(HISTORY_FOLDER))
    }

    /// Stores a text that is about to be replaced, and deletes the oldest versions.
    pub(super) fn add(&self, name: &str, text: &str, now: Timestamp) -> Result<(), PolicySaveError> {
        fs::create_dir_all(&self.0).map_err(|source| file_error(&self.0, source))?;
        let known = self.list_stamps(name)?;
        // Later than every one before it, also when the clock stood still or went back.
        let version = known.first().map_or(i64::MIN, |latest| latest + 1).max(now.as_microsecond());
        write_atomically(&self.version_path(name, version), text)?;
        for old in known.iter().skip(MAX_VERSIONS - 1) {
            let file = self.version_path(name, *old);
            fs::remove_file(&file).map_err(|source| file_error(&file, source))?;
        }
        Ok(())
    }

    /// The texts that one file had, newest first.
    pub(super) fn list(
        &self,
        owner: Option<&OrgId>,
        name: &str,
    ) -> Result<Vec<PolicyFileVersion>, PolicySaveError> {
        let read = |version| {
            let file = self.version_path(name, version);
            let text = fs::read_to_string(&file).map_err(|source| file_error(&file, source))?;
            let at = Timestamp::from_microsecond(version).unwrap_or_default();
            let (name, text) = (name.to_owned(), Some(text));
            Ok(PolicyFileVersion {
                name,
                version,
                text,
                at,
                by: None,
                shelf: PolicyLocation::Files,
                owner: owner.cloned(),
            })
        };
        self.list_stamps(name)?.into_iter().map(read).collect()
    }

    /// The versions of one file, newest first.
    fn list_stamps(&self, name: &str) -> Result<Vec<i64>, PolicySaveError> {
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

    fn version_path(&self, name: &str, version: i64) -> PathBuf {
        self.0.join(format!("{name}.{version}.cedar"))
    }
}

// === impl PolicyFileVersion ===

impl From<RecordedPolicyChange> for PolicyFileVersion {
    fn from(made: RecordedPolicyChange) -> Self {
        let PolicyChange { name, text, at, by } = made.change;
        let version = i64::try_from(made.version).unwrap_or(i64::MAX);
        let (owner, name) = stored_name(&name);
        Self { name, version, text, at, by: Some(by), shelf: PolicyLocation::Store, owner }
    }
}
