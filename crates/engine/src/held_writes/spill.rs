//! File with a copy of held results, so that they outlive the process that holds them.
//!
//! Each process has one file of its own in the data folder, readable by its owner alone and locked while the process lives. A
//! record is its length, a checksum and one entry as JSON; a torn one at the end is where the process died. The file is removed
//! once everything in it is in the store. A process that finds a file without a lock writes what is in it to the store: an
//! entry that is there already, or whose task somebody else has, changes nothing.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use rialto_model::{
    audit_event::AuditEvent, clock::Timestamp, event::Event, ids::fresh, store::TaskAppend, task::TaskHead,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Names of the files begin with this.
pub(super) const PREFIX: &str = "held-";

/// Bytes of a record's length and checksum.
const FRAME_BYTES: usize = 4 + CHECKSUM_BYTES;
const CHECKSUM_BYTES: usize = 8;

/// The file of this process, if it has a folder for one.
#[derive(Default)]
pub(super) struct Spill {
    folder: OnceLock<PathBuf>,
    file: Arc<Mutex<Option<SpillFile>>>,
    has_failed: Arc<AtomicBool>,
}

struct SpillFile {
    path: PathBuf,
    file: File,
    /// Length up to the end of the last whole record.
    len: u64,
}

/// File of a process that is gone. It is locked for as long as this lives.
pub(super) struct AbandonedFile {
    path: PathBuf,
    text: Vec<u8>,
    _lock: File,
}

/// An entry as it was read from a file.
pub(super) struct SpilledEntry(pub(super) TaskAppend);

#[derive(Serialize)]
struct WrittenEntry<'a> {
    head: &'a TaskHead,
    expected: u64,
    events: &'a [Event],
    at: Timestamp,
    audit: &'a [AuditEvent],
}

#[derive(Deserialize)]
struct ReadEntry {
    head: TaskHead,
    expected: u64,
    events: Vec<Event>,
    at: Timestamp,
    audit: Vec<AuditEvent>,
}

// === impl Spill ===

impl Spill {
    pub(super) fn set_folder(&self, folder: PathBuf) {
        if self.folder.set(folder).is_err() {
            tracing::warn!("the folder for held results was set before and stays");
        }
    }

    /// Adds records to the file. Answers whether they are there.
    pub(super) async fn append(&self, records: Vec<u8>) -> bool {
        let Some(folder) = self.folder.get().cloned() else { return false };
        let file = Arc::clone(&self.file);
        let work = tokio::task::spawn_blocking(move || {
            let mut file = file.lock();
            let spill = match &mut *file {
                Some(spill) => spill,
                none => none.insert(SpillFile::create(&folder)?),
            };
            spill.append(&records)
        });
        match work.await.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(()) => {
                self.has_failed.store(false, Ordering::Relaxed);
                true
            }
            Err(error) => {
                if !self.has_failed.swap(true, Ordering::Relaxed) {
                    tracing::error!(
                        "results that wait for the store are held in memory only, the end of this process would lose them: \
                         their file could not be written: {error}"
                    );
                }
                false
            }
        }
    }

    /// Removes the file: everything in it is in the store.
    pub(super) async fn clear(&self) {
        let Some(spill) = self.file.lock().take() else { return };
        let removed = tokio::task::spawn_blocking(move || fs::remove_file(&spill.path)).await;
        if let Err(error) = removed.unwrap_or_else(|error| Err(io::Error::other(error))) {
            tracing::warn!("the file of held results could not be removed: {error}");
        }
    }

    /// Files of processes that are gone.
    pub(super) async fn find_abandoned(&self) -> Vec<AbandonedFile> {
        let Some(folder) = self.folder.get().cloned() else { return Vec::new() };
        let own = self.file.lock().as_ref().map(|spill| spill.path.clone());
        let found = tokio::task::spawn_blocking(move || find_abandoned(&folder, own.as_deref())).await;
        found.unwrap_or_default()
    }
}

// === impl SpillFile ===

impl SpillFile {
    fn create(folder: &Path) -> io::Result<Self> {
        let name = format!("{PREFIX}{}", fresh());
        let (path, unlocked) = (folder.join(&name), folder.join(format!(".{name}")));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unlocked)?;
        // It gets its name once it is locked: one without a lock would be taken for a dead process's.
        file.try_lock().map_err(io::Error::from)?;
        fs::rename(&unlocked, &path)?;
        Ok(Self { path, file, len: 0 })
    }

    fn append(&mut self, records: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(records).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // A part of a record must not stand before whole ones.
            self.file.set_len(self.len)?;
            io::Seek::seek(&mut self.file, io::SeekFrom::Start(self.len))?;
            return Err(error);
        }
        self.len += u64::try_from(records.len()).unwrap_or(u64::MAX);
        Ok(())
    }
}

// === impl AbandonedFile ===

impl AbandonedFile {
    /// Its entries in order, up to where its process died. Damaged records are left out and logged.
    pub(super) fn entries(&self) -> impl Iterator<Item = SpilledEntry> {
        let mut rest = &*self.text;
        let records = std::iter::from_fn(move || {
            let (record, behind) = next_record(rest)?;
            rest = behind;
            Some(record)
        });
        records.filter_map(|record| {
            let entry = decode(record);
            if entry.is_none() {
                tracing::error!("a held result in {} is damaged and cannot be recorded", self.path.display());
            }
            entry
        })
    }

    /// Removes it: what was in it is in the store.
    pub(super) fn remove(self) {
        if let Err(error) = fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("{} could not be removed: {error}", self.path.display());
        }
    }
}

/// One record.
pub(super) fn encode(entry: &TaskAppend) -> Vec<u8> {
    let written = WrittenEntry {
        head: &entry.head,
        expected: entry.expected,
        events: &entry.events,
        at: entry.at,
        audit: &entry.audit,
    };
    // All of it is JSON that was read before, so this cannot fail; a record that is missing is better than none of them.
    let Ok(text) = serde_json::to_vec(&written) else { return Vec::new() };
    let Ok(len) = u32::try_from(text.len()) else { return Vec::new() };
    let mut record = Vec::with_capacity(FRAME_BYTES + text.len());
    record.extend_from_slice(&len.to_le_bytes());
    record.extend_from_slice(&checksum(&text));
    record.extend_from_slice(&text);
    record
}

/// The first record without its length, and what stands behind it; none when it is not whole.
fn next_record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
    rest.split_at_checked(CHECKSUM_BYTES.checked_add(len)?)
}

/// The entry of a record, if its checksum is right.
fn decode(record: &[u8]) -> Option<SpilledEntry> {
    let (sum, text) = record.split_first_chunk::<CHECKSUM_BYTES>()?;
    if checksum(text) != *sum {
        return None;
    }
    let ReadEntry { head, expected, events, at, audit } = serde_json::from_slice(text).ok()?;
    Some(SpilledEntry(TaskAppend { head, expected, events, at, audit }))
}

fn checksum(text: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let hash = Sha256::digest(text);
    let mut sum = [0; CHECKSUM_BYTES];
    for (byte, hashed) in sum.iter_mut().zip(hash) {
        *byte = hashed;
    }
    sum
}

fn find_abandoned(folder: &Path, own: Option<&Path>) -> Vec<AbandonedFile> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    let mut paths: Vec<PathBuf> = paths.map(|entry| entry.path()).collect();
    paths.sort();
    let is_other = |path: &PathBuf| own != Some(path.as_path());
    paths
        .into_iter()
        .filter(is_other)
        .filter_map(|path| open_abandoned(path).transpose())
        .filter_map(log_unread)
        .collect()
}

/// A file whose process is gone; none while the process lives.
fn open_abandoned(path: PathBuf) -> io::Result<Option<AbandonedFile>> {
    let mut file = File::open(&path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok(Some(AbandonedFile { path, text, _lock: file }))
}

fn log_unread(found: io::Result<AbandonedFile>) -> Option<AbandonedFile> {
    found.inspect_err(|error| tracing::error!("a file of held results could not be read: {error}")).ok()
}
