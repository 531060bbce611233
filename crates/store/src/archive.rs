//! Backup archives: a plain tar file with a manifest of checksums at its end.
//!
//! The format is ustar, so any `tar` can list and unpack an archive. The last two entries are [`MANIFEST`], which names every file with
//! its length and SHA-256, and the SHA-256 of the manifest itself: a flipped byte anywhere is found before anything is restored. An archive is
//! written under a temporary name and renamed when it is complete and on disk, so a file with the final name is never a part of one.

mod reader;
pub(crate) mod restored;
mod writer;

use std::io;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub(crate) use self::writer::create_private;
pub use self::{
    reader::{extract, verify},
    restored::keep_record,
    writer::{ArchiveWriter, sibling},
};

/// Name of the entry that lists all other entries with their checksums.
pub const MANIFEST: &str = "MANIFEST.json";

/// Name of the entry with the checksum of the manifest.
const MANIFEST_CHECKSUM: &str = "MANIFEST.sha256";

/// Version of the layout; a reader refuses a higher one.
const FORMAT: u32 = 1;

/// Size of a tar block.
const BLOCK: usize = 512;

/// Table of contents of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    format: u32,
    /// Version of the program that wrote the archive.
    pub version: String,
    /// When the archive was begun: everything acknowledged before is in it.
    pub created_at: Timestamp,
    /// All files, in the order they are stored.
    pub files: Vec<ArchivedFile>,
}

/// One file of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedFile {
    /// Path relative to the data folder, with `/` between its parts.
    pub path: String,
    /// Length in bytes.
    pub bytes: u64,
    /// SHA-256 of the content, in hex.
    pub sha256: String,
}

/// Why an archive was not written or read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The archive file itself could not be read or written.
    #[error("the backup {path} could not be {verb}: {source}")]
    File {
        /// The archive.
        path: String,
        /// `read` or `written`.
        verb: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// A file that goes into the archive, or comes out of it, could not be read or written.
    #[error("{path} could not be {verb}: {source}")]
    Entry {
        /// The file.
        path: String,
        /// `read` or `written`.
        verb: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The archive is not complete or was changed.
    #[error("the backup {path} is damaged: {why}; use another backup")]
    Damaged {
        /// The archive.
        path: String,
        /// Description of the mismatch.
        why: String,
    },
    /// A newer program wrote it.
    #[error(
        "the backup {path} has format {format}, and this program reads up to {FORMAT}; update this program"
    )]
    Newer {
        /// The archive.
        path: String,
        /// Its format.
        format: u32,
    },
    /// The file exists.
    #[error("{path} exists; name another file, or replace it with --force")]
    Exists {
        /// The archive.
        path: String,
    },
}

/// Digest of content that is read piece by piece.
#[derive(Default)]
struct Checksum(Sha256);

// === impl Checksum ===

impl Checksum {
    fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn checksum_of(bytes: &[u8]) -> String {
    let mut checksum = Checksum::default();
    checksum.update(bytes);
    checksum.finish()
}

/// Zeros that fill the last block of an entry.
fn padding(length: u64) -> usize {
    let rest = usize::try_from(length % BLOCK as u64).unwrap_or(0);
    if rest == 0 { 0 } else { BLOCK - rest }
}

#[cfg(test)]
mod tests;
