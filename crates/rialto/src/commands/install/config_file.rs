//! A client's configuration file on disk: read, backed up once, replaced atomically, restored.
//!
//! Symlinks are written through to their target. The target keeps its mode and its owner. Beside the file, `NAME.before-rialto` is
//! the one backup, which is never overwritten, and `NAME.rialto-install` records how to undo the change byte for byte.

use std::{
    fs,
    io::{self, Write},
    ops::Range,
    path::{Path, PathBuf},
};

use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

/// A configuration file and its text.
#[derive(Debug)]
pub(super) struct ConfigFile {
    /// Path that the client reads.
    path: PathBuf,
    /// The file itself, behind all symlinks.
    target: PathBuf,
    /// None if there is no file.
    text: Option<String>,
}

/// Record for undoing a change.
#[derive(Debug, Serialize, Deserialize)]
struct InstallRecord {
    /// SHA-256 of the file as it was written.
    written: String,
    /// True if there was no file before.
    created: bool,
    /// True if there was no list of servers before.
    made_servers: bool,
    /// Changed range and its former text.
    at: usize,
    length: usize,
    replaced: String,
}

// === impl ConfigFile ===

impl ConfigFile {
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let is_link = fs::symlink_metadata(&path).is_ok_and(|about| about.is_symlink());
        let target = match fs::canonicalize(&path) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_link => {
                let to = fs::read_link(&path)?;
                let message =
                    format!("symlink to {}, which does not exist; create that file first", to.display());
                return Err(io::Error::new(io::ErrorKind::NotFound, message));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.clone(),
            Err(error) => return Err(error),
        };
        let text = match fs::read_to_string(&target) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Self { path, target, text })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    pub(super) fn exists(&self) -> bool {
        self.text.is_some()
    }

    /// The backup, if there is one.
    pub(super) fn backup(&self) -> Option<PathBuf> {
        Some(self.beside("before-rialto")).filter(|path| path.exists())
    }

    /// True if the list of servers was created for Rialto's entry.
    pub(super) fn made_servers(&self) -> bool {
        self.record().is_some_and(|record| record.made_servers)
    }

    /// Writes the text with the entry, after a backup and a record. `made_servers`: the list of servers is new.
    pub(super) fn install(&self, after: &str, made_servers: bool) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let original = self.original();
        if let Some(text) = &self.text {
            self.back_up(text)?;
        }
        let before = original.as_deref().unwrap_or_default();
        let (range, length) = difference(before, after);
        let record = InstallRecord {
            written: hash(after),
            created: original.is_none(),
            made_servers: made_servers || self.made_servers(),
            at: range.start,
            length,
            replaced: before[range].to_owned(),
        };
        self.replace(after)?;
        let record = serde_json::to_string_pretty(&record).map_err(io::Error::other)?;
        write_new(&self.beside("rialto-install"), record.as_bytes(), self.permissions())
    }

    /// Original text, if nothing else has changed since. `Some(None)`: there was no file.
    pub(super) fn restored(&self) -> Option<Option<String>> {
        let record = self.record()?;
        let text = self.text.as_deref().filter(|text| hash(text) == record.written)?;
        if record.created {
            return Some(None);
        }
        let (head, rest) = text.split_at_checked(record.at)?;
        Some(Some(format!("{head}{}{}", record.replaced, rest.get(record.length..)?)))
    }

    /// Writes the text without our entry, or removes the file that was only there for it.
    pub(super) fn uninstall(&self, after: Option<&str>) -> io::Result<()> {
        match after {
            Some(text) => self.replace(text)?,
            None => fs::remove_file(&self.target)?,
        }
        let backup = self.beside("before-rialto");
        let is_redundant = fs::read_to_string(&backup).is_ok_and(|text| Some(text.as_str()) == after);
        if is_redundant {
            fs::remove_file(backup)?;
        }
        match fs::remove_file(self.beside("rialto-install")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The file before the first of several installations in a row; none if there was none.
    fn original(&self) -> Option<String> {
        self.restored().unwrap_or_else(|| self.text.clone())
    }

    fn record(&self) -> Option<InstallRecord> {
        serde_json::from_str(&fs::read_to_string(self.beside("rialto-install")).ok()?).ok()
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".");
        name.push(suffix);
        self.path.with_file_name(name)
    }

    fn permissions(&self) -> Option<fs::Permissions> {
        fs::metadata(&self.target).ok().map(|about| about.permissions())
    }

    fn back_up(&self, text: &str) -> io::Result<()> {
        let backup = self.beside("before-rialto");
        if backup.exists() || self.restored().is_some() {
            return Ok(());
        }
        write_new(&backup, text.as_bytes(), self.permissions())
    }

    /// Replaces the target in one step, with the mode and the owner that it has.
    fn replace(&self, after: &str) -> io::Result<()> {
        let mut name = self.target.file_name().unwrap_or_default().to_owned();
        name.push(format!(".rialto-{}", std::process::id()));
        let draft = self.target.with_file_name(name);
        let written =
            write_new(&draft, after.as_bytes(), self.permissions()).and_then(|()| self.take_owner(&draft));
        match written {
            Ok(true) => fs::rename(&draft, &self.target),
            // A new file would have another owner: the bytes of the existing one are replaced.
            Ok(false) => {
                fs::remove_file(&draft)?;
                fs::write(&self.target, after)
            }
            Err(error) => {
                let _ = fs::remove_file(&draft);
                Err(error)
            }
        }
    }

    /// Gives the draft the owner of the target. False if that is not allowed.
    #[cfg(unix)]
    fn take_owner(&self, draft: &Path) -> io::Result<bool> {
        use std::os::unix::fs::{MetadataExt, chown};
        let Ok(about) = fs::metadata(&self.target) else {
            return Ok(true);
        };
        let own = fs::metadata(draft)?;
        if (own.uid(), own.gid()) == (about.uid(), about.gid()) {
            return Ok(true);
        }
        if chown(draft, Some(about.uid()), Some(about.gid())).is_err() {
            return Ok(false);
        }
        // A change of owner may clear bits of the mode.
        fs::set_permissions(draft, about.permissions())?;
        Ok(true)
    }

    #[cfg(not(unix))]
    fn take_owner(&self, _: &Path) -> io::Result<bool> {
        Ok(true)
    }
}

/// Writes a file that only its owner can read, then gives it its permissions.
fn write_new(path: &Path, bytes: &[u8], permissions: Option<fs::Permissions>) -> io::Result<()> {
    let _ = fs::remove_file(path);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    permissions.map_or(Ok(()), |permissions| fs::set_permissions(path, permissions))
}

/// Changed range of `before`, and the length of its replacement in `after`.
fn difference(before: &str, after: &str) -> (Range<usize>, usize) {
    let same = |a: &mut dyn Iterator<Item = (char, char)>| -> usize {
        a.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
    };
    let head = same(&mut before.chars().zip(after.chars()));
    let tail = same(&mut before[head..].chars().rev().zip(after[head..].chars().rev()));
    (head..before.len() - tail, after.len() - tail - head)
}

fn hash(text: &str) -> String {
    digest(&SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: Option<&str>) -> (tempfile::TempDir, ConfigFile) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        if let Some(text) = text {
            fs::write(&path, text).unwrap();
        }
        let file = ConfigFile::open(path).unwrap();
        (folder, file)
    }

    fn reopen(file: &ConfigFile) -> ConfigFile {
        ConfigFile::open(file.path.clone()).unwrap()
    }

    #[test]
    fn two_installations_in_a_row_are_undone_at_once() {
        let (_folder, file) = file(Some("ä{1}"));
        file.install("ä{1,2}", false).unwrap();
        reopen(&file).install("ä{1,2,3}", false).unwrap();
        let file = reopen(&file);
        assert_eq!(file.restored(), Some(Some("ä{1}".to_owned())));
        assert_eq!(fs::read_to_string(file.backup().unwrap()).unwrap(), "ä{1}");
        file.uninstall(Some("ä{1}")).unwrap();
        assert!(file.backup().is_none() && reopen(&file).record().is_none());
    }

    #[test]
    fn a_file_that_has_changed_since_is_not_restored() {
        let (_folder, file) = file(Some("a"));
        file.install("ab", false).unwrap();
        fs::write(&file.path, "abc").unwrap();
        assert_eq!(reopen(&file).restored(), None);
    }

    #[test]
    fn a_backup_is_never_overwritten() {
        let (_folder, file) = file(Some("first"));
        file.install("first+", false).unwrap();
        fs::write(&file.path, "second").unwrap();
        fs::remove_file(file.beside("rialto-install")).unwrap();
        let file = reopen(&file);
        file.install("second+", false).unwrap();
        assert_eq!(fs::read_to_string(file.backup().unwrap()).unwrap(), "first");
        assert_eq!(reopen(&file).restored(), Some(Some("second".to_owned())));
    }

    #[test]
    fn a_file_that_was_made_is_removed() {
        let (_folder, file) = file(None);
        file.install("x", false).unwrap();
        let file = reopen(&file);
        assert_eq!(file.restored(), Some(None));
        file.uninstall(None).unwrap();
        assert_eq!(fs::read_dir(file.path.parent().unwrap()).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn a_symlink_stays_one_and_its_target_keeps_its_mode() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("dotfiles.json"), folder.path().join("settings.json"));
        fs::write(&real, "a").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("dotfiles.json", &link).unwrap();
        let file = ConfigFile::open(link.clone()).unwrap();
        file.install("ab", false).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "ab");
        for path in [&real, &file.backup().unwrap(), &file.beside("rialto-install")] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o640, "{path:?}");
        }
        fs::remove_file(&real).unwrap();
        assert!(ConfigFile::open(link).unwrap_err().to_string().contains("symlink to dotfiles.json"));
    }
}
