//! Restricts the data folder to its owner.
//!
//! New files are created for their owner alone. A folder or file that existed before may be readable by others: access is restricted
//! when the program opens the folder, and `rialto doctor` reports what was open. Systems without file modes (Windows) use the
//! permissions of the folder above: there, nothing is changed or reported.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Prefixes of the program's own names in its data folder. Other files belong to the user.
const OWN_NAME_PREFIXES: [&str; 8] =
    ["rialto.db", "generation", "daybook-", "runner-", "held-", "webhooks", "backup", "owner-token"];

/// Maximum depth and number of entries that are scanned.
const MAX_DEPTH: usize = 3;
const MAX_ENTRIES: usize = 10_000;

/// Folders of many users have this bit set; none of them is ours to close.
const STICKY_BIT: u32 = 0o1000;

/// A file or folder that others than its owner can read or change.
#[derive(Debug)]
pub struct OpenFile {
    /// Path.
    pub path: PathBuf,
    /// File mode.
    pub mode: u32,
}

/// All entries of the data folder that other users can read or change, the folder itself first.
pub fn find_open(folder: &Path) -> Vec<OpenFile> {
    let mut found = Vec::new();
    let mut left = MAX_ENTRIES;
    // Unreadable entries are reported where they are opened.
    let _ = collect_open(folder, 0, &mut left, &mut found);
    found
}

/// Makes the folder for its owner alone if it is not there, and else closes what is open in it, as far as it belongs to us.
pub fn close_to_others(folder: &Path) {
    // A folder that cannot be created is reported where it is written to.
    let _ = make_folder(folder);
    for OpenFile { path, mode } in find_open(folder) {
        if mode & STICKY_BIT != 0 {
            continue;
        }
        if let Err(error) = set_mode(&path, mode & 0o700) {
            tracing::warn!(
                "{} can be read by others, and could not be closed to them: {error}",
                path.display()
            );
        }
    }
}

/// Makes a folder, with those above it, that only its owner can open.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Makes a file that is not there yet and that only its owner can read.
pub fn create_file(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// True if other users can read or change a file.
pub fn is_open_to_others(path: &Path) -> io::Result<bool> {
    Ok(mode_of(&fs::metadata(path)?) & 0o077 != 0)
}

#[cfg(unix)]
fn mode_of(about: &fs::Metadata) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&about.permissions())
}

/// Without file modes, no file is open to others.
#[cfg(not(unix))]
const fn mode_of(_: &fs::Metadata) -> u32 {
    0
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
}

#[cfg(not(unix))]
const fn set_mode(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

fn collect_open(path: &Path, depth: usize, left: &mut usize, found: &mut Vec<OpenFile>) -> io::Result<()> {
    let Some(fewer) = left.checked_sub(1) else { return Ok(()) };
    *left = fewer;
    // A link leads elsewhere, and what is there is not ours.
    let about = fs::symlink_metadata(path)?;
    if about.is_symlink() {
        return Ok(());
    }
    let mode = mode_of(&about);
    if mode & 0o077 != 0 {
        found.push(OpenFile { path: path.to_owned(), mode });
    }
    if about.is_dir() && depth < MAX_DEPTH && mode & STICKY_BIT == 0 {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            if depth > 0 || is_own_name(&entry.file_name().to_string_lossy()) {
                collect_open(&entry.path(), depth + 1, left, found)?;
            }
        }
    }
    Ok(())
}

fn is_own_name(name: &str) -> bool {
    OWN_NAME_PREFIXES.iter().any(|ours| name.starts_with(ours))
        || Path::new(name).extension().is_some_and(|end| end == "key")
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode_at(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn everything_in_the_folder_is_closed_to_others_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (data, outside) = (folder.path().join("data"), folder.path().join("outside"));
        fs::create_dir_all(data.join("webhooks")).unwrap();
        for file in [data.join("rialto.db"), data.join("webhooks/a.key"), outside.clone()] {
            fs::write(&file, "x").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        }
        let theirs = data.join("notes.txt");
        fs::write(&theirs, "x").unwrap();
        fs::set_permissions(&theirs, fs::Permissions::from_mode(0o644)).unwrap();
        for path in [data.clone(), data.join("webhooks")] {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::os::unix::fs::symlink(&outside, data.join("rialto.db-link")).unwrap();
        assert_eq!(find_open(&data).len(), 4);
        close_to_others(&data);
        assert!(find_open(&data).is_empty());
        assert_eq!((mode_at(&data), mode_at(&data.join("rialto.db"))), (0o700, 0o600));
        assert_eq!(
            (mode_at(&outside), mode_at(&theirs)),
            (0o644, 0o644),
            "a link's target and others' files stay"
        );
    }

    #[test]
    fn a_folder_of_many_users_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        close_to_others(folder.path());
        assert_eq!(mode_at(folder.path()), 0o1777);
    }
}
