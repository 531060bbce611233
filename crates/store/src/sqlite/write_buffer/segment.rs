//! One of the two files of a write buffer: records, one after the other.
//!
//! A record has a header (length and checksum of its content, and its number) and the content. The writer's death can cut
//! off the last one, which was not acknowledged then; a power cut can leave anything. Reading ends at the first record
//! that is not whole, or older than the one before it.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{mmap_file::MmapFile, sqlite::journal_record::HEADER_BYTES};

/// The two files' endings. The process that has the first one locked is alive and writes.
const FILE_SUFFIXES: [&str; 2] = [".a", ".b"];

/// Mapped length of a file: a batch when it is flushed, and some more.
const MAPPED_BYTES: usize = 896 << 10;

/// A record behind a damaged one has a number at most this much higher.
const MAX_NUMBER_GAP: u64 = 1 << 24;

/// A file that records are written to, one behind the other, until it is begun anew.
///
/// It is not made shorter then: writing over pages that are there costs half of what new ones do. Old records that are
/// still behind the new ones have smaller numbers.
pub(super) struct Segment {
    file: Arc<File>,
    mapped: Option<MmapFile>,
    end: u64,
}

/// A record and its number.
pub(super) struct BufferRecord<'a> {
    pub(super) number: u64,
    pub(super) bytes: &'a [u8],
}

// === impl Segment ===

impl Segment {
    /// Adds records.
    pub(super) fn write(&mut self, records: &[u8]) -> io::Result<()> {
        let is_written = self.mapped.as_ref().is_some_and(|mapped| mapped.write(self.end, records));
        if !is_written {
            write_at(&self.file, self.end, records)?;
        }
        self.end += records.len() as u64;
        Ok(())
    }

    /// Makes its beginning memory, if that is possible.
    fn map(&mut self) -> io::Result<()> {
        // Zeros are no record. They are written, not left out, so that the disk has room for all that comes there.
        write_at(&self.file, 0, &vec![0; MAPPED_BYTES])?;
        self.mapped = MmapFile::new(&self.file, MAPPED_BYTES).ok();
        Ok(())
    }

    /// Begins anew.
    pub(super) const fn clear(&mut self) {
        self.end = 0;
    }
}

#[cfg(unix)]
fn write_at(file: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(not(unix))]
fn write_at(file: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;
    let mut file = file;
    file.seek(io::SeekFrom::Start(at))?;
    file.write_all(bytes)
}

/// Fills in the header of a record except its number.
pub(super) fn write_header(record_bytes: &mut [u8]) -> io::Result<()> {
    let text = record_bytes.get(HEADER_BYTES..).unwrap_or_default();
    let length = u32::try_from(text.len()).map_err(io::Error::other)?;
    let checksum = crc32fast::hash(text);
    copy_at(record_bytes, 0, &length.to_le_bytes());
    copy_at(record_bytes, 4, &checksum.to_le_bytes());
    Ok(())
}

/// Gives a record its number.
pub(super) fn write_number(record_bytes: &mut [u8], number: u64) {
    copy_at(record_bytes, 8, &number.to_le_bytes());
}

/// The whole records at the beginning of `bytes`.
pub(super) fn parse_records(mut bytes: &[u8]) -> Vec<BufferRecord<'_>> {
    let mut records: Vec<BufferRecord<'_>> = Vec::new();
    while let Some((record, rest)) = parse_first(bytes)
        && records.last().is_none_or(|before| before.number < record.number)
    {
        records.push(record);
        bytes = rest;
    }
    records
}

/// Returns whether a record that is whole stands behind the end of `bytes` as they are read, under a number that was given after the
/// last one that can be read, and after `flushed`: then something before it was damaged. Records of earlier batches are behind those of the
/// present one, and all of them are flushed.
pub(super) fn is_damaged(bytes: &[u8], posted: u64) -> bool {
    let (mut rest, mut last) = (bytes, None);
    while let Some((record, behind)) = parse_first(rest)
        && last.is_none_or(|last| last < record.number)
    {
        // Numbers of one batch follow each other without a gap.
        if last.is_some_and(|last| last + 1 != record.number) {
            return true;
        }
        (last, rest) = (Some(record.number), behind);
    }
    let newest = last.unwrap_or(0).max(posted);
    let is_newer = |number: u64| number > newest && number - newest < MAX_NUMBER_GAP;
    let is_record = |at: &[u8]| {
        let number = at.get(8..16).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
        number.is_some_and(is_newer) && parse_header(at).is_some()
    };
    (1..rest.len()).filter_map(|at| rest.get(at..)).any(is_record)
}

/// Makes both files of a write buffer, empty and locked.
pub(super) fn create_files(folder: &Path, name: &str) -> io::Result<[Segment; 2]> {
    let [first, second] = file_paths(folder, name).map(|path| open(&path, true));
    let (mut first, mut second) = (first?, second?);
    first.file.lock()?;
    first.map()?;
    second.map()?;
    Ok([first, second])
}

/// Opens both files of a write buffer, if its writer is dead.
pub(super) fn open_orphan(folder: &Path, name: &str) -> io::Result<Option<[Segment; 2]>> {
    let [first, second] = file_paths(folder, name).map(|path| open(&path, true));
    let (first, second) = (first?, second?);
    match first.file.try_lock() {
        Ok(()) => Ok(Some([first, second])),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Returns whether the writer of a write buffer is dead.
pub(super) fn is_orphaned(folder: &Path, name: &str) -> io::Result<bool> {
    let [first, _] = file_paths(folder, name);
    match open(&first, false)?.file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Reads both files.
pub(super) fn read_files(folder: &Path, name: &str) -> io::Result<[Vec<u8>; 2]> {
    let [first, second] = file_paths(folder, name).map(|path| {
        let mut bytes = Vec::new();
        let file = open(&path, false)?.file;
        let mut file = &*file;
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(bytes)
    });
    Ok([first?, second?])
}

/// Removes both files. What the database knows of them may be forgotten only then: records in a file that is still there
/// would otherwise be flushed once more.
pub(super) fn remove_files(folder: &Path, name: &str) -> io::Result<()> {
    // The locked one goes last: as long as it is there, nobody else touches the other.
    for path in file_paths(folder, name).iter().rev() {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The names of all write buffers in `folder`.
pub(super) fn list_buffers(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let file = entry?.file_name();
        let name = file.to_str().and_then(|file| file.strip_suffix(FILE_SUFFIXES[0]));
        names.extend(name.filter(|name| name.starts_with(super::FILE_PREFIX)).map(str::to_owned));
    }
    Ok(names)
}

pub(super) fn file_paths(folder: &Path, name: &str) -> [PathBuf; 2] {
    FILE_SUFFIXES.map(|ending| folder.join(format!("{name}{ending}")))
}

fn open(path: &Path, create: bool) -> io::Result<Segment> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(create).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    Ok(Segment { file: Arc::new(options.open(path)?), mapped: None, end: 0 })
}

fn parse_first(bytes: &[u8]) -> Option<(BufferRecord<'_>, &[u8])> {
    let (number, whole) = parse_header(bytes)?;
    let (record_bytes, rest) = bytes.split_at_checked(whole)?;
    Some((BufferRecord { number, bytes: record_bytes }, rest))
}

/// The number and the length of the first record, if it is whole.
fn parse_header(bytes: &[u8]) -> Option<(u64, usize)> {
    let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
    let length = u32::from_le_bytes(header.get(0..4)?.try_into().ok()?);
    let checksum = u32::from_le_bytes(header.get(4..8)?.try_into().ok()?);
    let number = u64::from_le_bytes(header.get(8..16)?.try_into().ok()?);
    let text = rest.get(..usize::try_from(length).ok()?)?;
    let is_whole = length > 0 && crc32fast::hash(text) == checksum;
    is_whole.then_some((number, HEADER_BYTES + text.len()))
}

fn copy_at(record_bytes: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = record_bytes.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}
