//! Writes an archive entry by entry.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use rialto_model::ids::fresh;

use super::{
    ArchiveError, ArchivedFile, BLOCK, Checksum, FORMAT, MANIFEST, MANIFEST_CHECKSUM, Manifest, checksum_of,
    padding,
};

/// Bytes copied at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// Longest length that fits the octal field of a header; longer ones are stored in base 256.
const MAX_OCTAL_LENGTH: u64 = 0o77_777_777_777;

/// Archive under construction. It has its final name only after [`ArchiveWriter::finish`]; dropped before, it leaves nothing.
pub struct ArchiveWriter {
    target: PathBuf,
    partial: PathBuf,
    out: Option<BufWriter<File>>,
    manifest: Manifest,
}

// === impl ArchiveWriter ===

impl ArchiveWriter {
    /// Begins an archive that is named `target` when it is complete. An existing file is refused unless `replace` is set.
    pub fn create(target: &Path, created_at: Timestamp, replace: bool) -> Result<Self, ArchiveError> {
        if !replace && target.exists() {
            return Err(ArchiveError::Exists { path: target.display().to_string() });
        }
        let partial = sibling(target, "partial");
        let out = create_private(&partial).map_err(|error| not_written(target, error))?;
        let manifest = Manifest {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            created_at,
            files: Vec::new(),
        };
        Ok(Self { target: target.to_owned(), partial, out: Some(BufWriter::new(out)), manifest })
    }

    /// Adds the file at `source` under a name.
    pub fn add_file(&mut self, name: &str, source: &Path) -> Result<(), ArchiveError> {
        let unread = |source_error| ArchiveError::Entry {
            path: source.display().to_string(),
            verb: "read",
            source: source_error,
        };
        let mut file = File::open(source).map_err(unread)?;
        let length = file.metadata().map_err(unread)?.len();
        self.write(&header(name, length).map_err(|error| not_written(&self.target, error))?)?;
        let (mut checksum, mut left) = (Checksum::default(), length);
        let mut chunk = vec![0; CHUNK_BYTES];
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
            let piece = chunk.get_mut(..most).unwrap_or_default();
            file.read_exact(piece).map_err(unread)?;
            checksum.update(piece);
            let piece = chunk.get(..most).unwrap_or_default();
            self.write(piece)?;
            left -= most as u64;
        }
        self.end_entry(name, length, checksum.finish())
    }

    /// Adds the manifest, puts everything on disk and gives the archive its name.
    pub fn finish(mut self) -> Result<Manifest, ArchiveError> {
        let text = serde_json::to_vec_pretty(&self.manifest)
            .map_err(|error| not_written(&self.target, io::Error::other(error)))?;
        let checksum = checksum_of(&text);
        for (name, bytes) in [(MANIFEST, text.as_slice()), (MANIFEST_CHECKSUM, checksum.as_bytes())] {
            let length = bytes.len() as u64;
            self.write(&header(name, length).map_err(|error| not_written(&self.target, error))?)?;
            self.write(bytes)?;
            self.write(&vec![0; padding(length)])?;
        }
        self.write(&[0; 2 * BLOCK])?;
        let failed = |error| not_written(&self.target, error);
        if let Some(out) = self.out.take() {
            let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
            file.sync_all().map_err(failed)?;
        }
        fs::rename(&self.partial, &self.target).map_err(failed)?;
        sync_folder(&self.target).map_err(failed)?;
        Ok(self.manifest.clone())
    }

    fn end_entry(&mut self, name: &str, bytes: u64, sha256: String) -> Result<(), ArchiveError> {
        self.write(&vec![0; padding(bytes)])?;
        self.manifest.files.push(ArchivedFile { path: name.to_owned(), bytes, sha256 });
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        let written = self.out.as_mut().map_or(Ok(()), |out| out.write_all(bytes));
        written.map_err(|error| not_written(&self.target, error))
    }
}

impl Drop for ArchiveWriter {
    fn drop(&mut self) {
        // After a rename there is nothing left to remove.
        let _ = fs::remove_file(&self.partial);
    }
}

/// A hidden name in the same folder that nothing else has.
pub fn sibling(path: &Path, what: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{what}-{}", fresh()))
}

/// Makes a new file that only its owner can read.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Puts the name of a new file on disk.
fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

fn not_written(target: &Path, source: io::Error) -> ArchiveError {
    ArchiveError::File { path: target.display().to_string(), verb: "written", source }
}

/// Header block of an entry, as POSIX describes ustar.
fn header(name: &str, length: u64) -> io::Result<[u8; BLOCK]> {
    let mut block = [0_u8; BLOCK];
    let (prefix, name) = split_name(name)?;
    put(&mut block, 0, name.as_bytes());
    put(&mut block, 100, b"0000600\0");
    put(&mut block, 108, b"0000000\0");
    put(&mut block, 116, b"0000000\0");
    if length <= MAX_OCTAL_LENGTH {
        put(&mut block, 124, format!("{length:011o}\0").as_bytes());
    } else {
        put(&mut block, 124, &[0x80, 0, 0, 0]);
        put(&mut block, 128, &length.to_be_bytes());
    }
    put(&mut block, 136, b"00000000000\0");
    put(&mut block, 148, b"        ");
    put(&mut block, 156, b"0");
    put(&mut block, 257, b"ustar\x0000");
    put(&mut block, 345, prefix.as_bytes());
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    put(&mut block, 148, format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

/// The two fields that a name is stored in: up to 155 bytes of folders, and up to 100 bytes.
fn split_name(name: &str) -> io::Result<(&str, &str)> {
    if name.len() <= 100 {
        return Ok(("", name));
    }
    let cuts = name.match_indices('/').map(|(at, _)| name.split_at(at));
    let mut parts = cuts.map(|(prefix, rest)| (prefix, rest.trim_start_matches('/')));
    parts.find(|(prefix, rest)| prefix.len() <= 155 && !rest.is_empty() && rest.len() <= 100).ok_or_else(
        || io::Error::other(format!("the file name {name} is too long for an archive; shorten it")),
    )
}

fn put(block: &mut [u8; BLOCK], at: usize, bytes: &[u8]) {
    if let Some(place) = block.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}
