//! Record of a restore: the manifest of the backup, kept in the data folder until the database is first used.
//!
//! A backup is compared with its checksums while it is unpacked. Until a process writes to the restored files they must stay as they were, so damage on the way to
//! the first start is found as well.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::Path,
};

use super::{Checksum, Manifest, create_private};

/// Name of the record in a data folder.
const RECORD: &str = "restored.json";

/// Bytes read at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// Keeps the manifest of what was restored into `folder`.
pub fn keep_record(folder: &Path, manifest: &Manifest) -> io::Result<()> {
    let text = serde_json::to_string_pretty(manifest).map_err(io::Error::other)?;
    let mut file = create_private(&folder.join(RECORD))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Removes the record: from now on the files may change.
pub(crate) fn remove_record(folder: &Path) {
    let record = folder.join(RECORD);
    if let Err(error) = fs::remove_file(&record)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!("{} could not be removed: {error}", record.display());
    }
}

/// Compares restored files that nobody has used yet with their checksums: all of them, or only the one at `path`. Answers how they differ.
pub(crate) fn compare(folder: &Path, path: Option<&str>) -> Vec<String> {
    let record = folder.join(RECORD);
    let text = match fs::read_to_string(&record) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => return vec![format!("{} cannot be read: {error}", record.display())],
    };
    let manifest: Manifest = match serde_json::from_str(&text) {
        Ok(manifest) => manifest,
        Err(error) => {
            return vec![format!("{} is not what `rialto restore` wrote: {error}", record.display())];
        }
    };
    let files = manifest.files.iter().filter(|file| path.is_none_or(|path| path == file.path));
    files
        .filter_map(|file| match hash_file(&folder.join(&file.path)) {
            Ok(hash) if hash == file.sha256 => None,
            Ok(_) => Some(format!("{} has changed since it was restored", file.path)),
            Err(error) => Some(format!("{} was restored and cannot be read: {error}", file.path)),
        })
        .collect()
}

fn hash_file(path: &Path) -> io::Result<String> {
    let (mut file, mut checksum) = (File::open(path)?, Checksum::default());
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(checksum.finish()),
            read => checksum.update(&chunk[..read]),
        }
    }
}
