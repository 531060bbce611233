//! One of the two files of a daybook: records, one after the other.
//!
//! A record is the length of its text, a checksum of it, the note's number, and the text. The writer's death can cut
//! off the last one, which nobody was told about then; a power cut can leave anything. Reading ends at the first record
//! that is not whole.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    path::{Path, PathBuf},
};

use crate::sqlite::tasks::TaskWrite;

/// Length, checksum, number.
const HEAD: usize = 4 + 4 + 8;

/// The two files' endings. Whoever has the first one locked is alive and writes.
const ENDINGS: [&str; 2] = [".a", ".b"];

/// A file of records that only grows until it is cleared.
pub(super) struct Segment {
    file: File,
    length: u64,
}

/// A note and its number.
pub(super) struct Record<'a> {
    pub(super) number: u64,
    text: &'a [u8],
}

// === impl Segment ===

impl Segment {
    /// Adds a record as a whole, or nothing.
    pub(super) fn write(&mut self, record: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(record) {
            // What got there must not stand in front of the next record.
            self.file.set_len(self.length)?;
            return Err(error);
        }
        self.length += record.len() as u64;
        Ok(())
    }

    /// Begins anew.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.length = 0;
        Ok(())
    }
}

// === impl Record ===

impl Record<'_> {
    /// What was noted.
    pub(super) fn read(&self) -> Result<TaskWrite, serde_json::Error> {
        serde_json::from_slice(self.text)
    }
}

/// A note as a record; its number is still missing.
pub(super) fn record(write: &TaskWrite) -> Result<Vec<u8>, serde_json::Error> {
    let mut record = Vec::with_capacity(2048);
    record.extend_from_slice(&[0; HEAD]);
    serde_json::to_writer(&mut record, write)?;
    let text = record.get(HEAD..).unwrap_or_default();
    let length = u32::try_from(text.len()).map_err(serde::ser::Error::custom)?;
    let checksum = crc32fast::hash(text);
    put(&mut record, 0, &length.to_le_bytes());
    put(&mut record, 4, &checksum.to_le_bytes());
    Ok(record)
}

/// Gives a record its number.
pub(super) fn number(record: &mut [u8], number: u64) {
    put(record, 8, &number.to_le_bytes());
}

/// The whole records at the beginning of `bytes`.
pub(super) fn records(mut bytes: &[u8]) -> Vec<Record<'_>> {
    let mut records = Vec::new();
    while let Some((record, rest)) = first(bytes) {
        records.push(record);
        bytes = rest;
    }
    records
}

/// Makes both files of a daybook, empty and locked.
pub(super) fn create(folder: &Path, name: &str) -> io::Result<[Segment; 2]> {
    let [first, second] = paths(folder, name).map(|path| open(&path, true));
    let (first, second) = (first?, second?);
    first.file.lock()?;
    Ok([first, second])
}

/// Opens both files of a daybook, if its writer is dead.
pub(super) fn open_orphan(folder: &Path, name: &str) -> io::Result<Option<[Segment; 2]>> {
    let [first, second] = paths(folder, name).map(|path| open(&path, true));
    let (first, second) = (first?, second?);
    match first.file.try_lock() {
        Ok(()) => Ok(Some([first, second])),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whether the writer of a daybook is dead.
pub(super) fn is_orphan(folder: &Path, name: &str) -> io::Result<bool> {
    let [first, _] = paths(folder, name);
    match open(&first, false)?.file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// What both files hold.
pub(super) fn read(folder: &Path, name: &str) -> io::Result<[Vec<u8>; 2]> {
    let [first, second] = paths(folder, name).map(|path| {
        let mut bytes = Vec::new();
        let mut file = open(&path, false)?.file;
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(bytes)
    });
    Ok([first?, second?])
}

/// Removes both files. One that cannot be removed is found empty, or posted, by whoever looks next.
pub(super) fn remove(folder: &Path, name: &str) {
    // The locked one goes last: as long as it is there, nobody else touches the other.
    for path in paths(folder, name).iter().rev() {
        if let Err(error) = std::fs::remove_file(path) {
            tracing::debug!("{} stays for now: {error}", path.display());
        }
    }
}

/// The names of all daybooks in `folder`.
pub(super) fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let file = entry?.file_name();
        let name = file.to_str().and_then(|file| file.strip_suffix(ENDINGS[0]));
        names.extend(name.filter(|name| name.starts_with(super::PREFIX)).map(str::to_owned));
    }
    Ok(names)
}

fn paths(folder: &Path, name: &str) -> [PathBuf; 2] {
    ENDINGS.map(|ending| folder.join(format!("{name}{ending}")))
}

fn open(path: &Path, create: bool) -> io::Result<Segment> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(create);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    let length = file.metadata()?.len();
    Ok(Segment { file, length })
}

fn first(bytes: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let length = u32::from_le_bytes(head.get(0..4)?.try_into().ok()?);
    let checksum = u32::from_le_bytes(head.get(4..8)?.try_into().ok()?);
    let number = u64::from_le_bytes(head.get(8..16)?.try_into().ok()?);
    let (text, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    let is_whole = length > 0 && crc32fast::hash(text) == checksum;
    is_whole.then_some((Record { number, text }, rest))
}

fn put(record: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = record.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}
