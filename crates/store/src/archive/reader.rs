//! Reads archives: compares every byte with the manifest, and unpacks.

use std::{
    fs::{self, File},
    io::{BufReader, Read, Write},
    path::{Component, Path, PathBuf},
};

use super::{
    ArchiveError, ArchivedFile, BLOCK, Checksum, FORMAT, MANIFEST, MANIFEST_CHECKSUM, Manifest, checksum_of,
    padding, writer::create_private,
};

/// Bytes copied at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// Longest manifest that is read.
const MAX_MANIFEST_BYTES: u64 = 64 << 20;

/// Reads a whole archive and compares it with its checksums.
pub fn verify(path: &Path) -> Result<Manifest, ArchiveError> {
    ArchiveSource::open(path)?.walk(&mut |_| Ok(None))
}

/// Unpacks a verified archive into `folder`. Everything is compared with its checksum again on the way. On an error, files that
/// were written before it stay; the caller removes them.
pub fn extract(
    path: &Path,
    folder: &Path,
    place: impl Fn(&str) -> PathBuf,
) -> Result<Manifest, ArchiveError> {
    let unwritten = |target: &Path, source| ArchiveError::Entry {
        path: target.display().to_string(),
        verb: "written",
        source,
    };
    ArchiveSource::open(path)?.walk(&mut |name| {
        let target = folder.join(place(name));
        if let Some(parent) = target.parent() {
            make_folder(parent).map_err(|error| unwritten(parent, error))?;
        }
        let file = create_private(&target).map_err(|error| unwritten(&target, error))?;
        Ok(Some((target, file)))
    })
}

/// Destination of an entry's content, if it is wanted.
type Sink = Option<(PathBuf, File)>;

/// Archive that is being read.
struct ArchiveSource {
    path: String,
    input: BufReader<File>,
}

/// Header of an entry.
struct EntryHeader {
    name: String,
    bytes: u64,
}

// === impl ArchiveSource ===

impl ArchiveSource {
    fn open(path: &Path) -> Result<Self, ArchiveError> {
        let shown = path.display().to_string();
        match File::open(path) {
            Ok(file) => Ok(Self { path: shown, input: BufReader::with_capacity(CHUNK_BYTES, file) }),
            Err(source) => Err(ArchiveError::File { path: shown, verb: "read", source }),
        }
    }

    /// Reads all entries, copies each to where `sink` says, and compares them with the manifest.
    fn walk(
        mut self,
        sink: &mut dyn FnMut(&str) -> Result<Sink, ArchiveError>,
    ) -> Result<Manifest, ArchiveError> {
        let (mut files, mut manifest) = (Vec::new(), None);
        while let Some(header) = self.next_header()? {
            match header.name.as_str() {
                MANIFEST if manifest.is_none() => manifest = Some(self.text(&header)?),
                MANIFEST_CHECKSUM => {
                    let expected = self.text(&header)?;
                    let text = manifest.ok_or_else(|| self.damaged("its manifest is missing"))?;
                    self.expect_end()?;
                    return self.compare(&text, &expected, &files);
                }
                name if manifest.is_none() && is_plain(name) => {
                    let target = sink(name)?;
                    files.push(self.copy(header, target)?);
                }
                name => return Err(self.damaged(format!("it has an entry {name:?}"))),
            }
        }
        Err(self.damaged("its end is missing"))
    }

    fn compare(
        &self,
        text: &[u8],
        checksum: &[u8],
        files: &[ArchivedFile],
    ) -> Result<Manifest, ArchiveError> {
        if checksum_of(text).as_bytes() != checksum {
            return Err(self.damaged("its manifest does not have the checksum that was stored"));
        }
        let manifest: Manifest = serde_json::from_slice(text)
            .map_err(|error| self.damaged(format!("its manifest cannot be read: {error}")))?;
        if manifest.format > FORMAT {
            return Err(ArchiveError::Newer { path: self.path.clone(), format: manifest.format });
        }
        if manifest.files.len() != files.len() {
            let (has, expected) = (files.len(), manifest.files.len());
            return Err(self.damaged(format!("it has {has} files, and its manifest lists {expected}")));
        }
        match manifest.files.iter().zip(files).find(|(expected, file)| expected != file) {
            Some((expected, _)) => {
                Err(self.damaged(format!("{} does not have the checksum that was stored", expected.path)))
            }
            None => Ok(manifest),
        }
    }

    fn next_header(&mut self) -> Result<Option<EntryHeader>, ArchiveError> {
        let mut block = [0_u8; BLOCK];
        self.read(&mut block)?;
        if block == [0; BLOCK] {
            return Ok(None);
        }
        let bad = || self.damaged("the header of an entry does not match its checksum");
        let counted: u64 = block
            .iter()
            .enumerate()
            .map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u64::from(*byte) })
            .sum();
        // Compared as it is written, so that no other way to write the number passes.
        if field(&block, 148, 8) != format!("{counted:06o}\0 ").as_bytes() {
            return Err(bad());
        }
        let (prefix, name) = (text(field(&block, 345, 155)), text(field(&block, 0, 100)));
        let name = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        let size = field(&block, 124, 12);
        let bytes = if size.first() == Some(&0x80) {
            size.get(4..).and_then(|size| size.try_into().ok()).map(u64::from_be_bytes)
        } else {
            octal(size)
        };
        Ok(Some(EntryHeader { name, bytes: bytes.ok_or_else(bad)? }))
    }

    fn copy(&mut self, header: EntryHeader, mut target: Sink) -> Result<ArchivedFile, ArchiveError> {
        let (mut checksum, mut left) = (Checksum::default(), header.bytes);
        let mut chunk = vec![0; CHUNK_BYTES];
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
            let piece = chunk.get_mut(..most).unwrap_or_default();
            self.read(piece)?;
            checksum.update(piece);
            if let Some((path, file)) = &mut target {
                file.write_all(piece).map_err(|error| unwritten(path, error))?;
            }
            left -= most as u64;
        }
        self.skip_padding(header.bytes)?;
        if let Some((path, file)) = target {
            file.sync_all().map_err(|error| unwritten(&path, error))?;
        }
        Ok(ArchivedFile { path: header.name, bytes: header.bytes, sha256: checksum.finish() })
    }

    fn text(&mut self, header: &EntryHeader) -> Result<Vec<u8>, ArchiveError> {
        let length = usize::try_from(header.bytes).ok().filter(|_| header.bytes <= MAX_MANIFEST_BYTES);
        let mut text = vec![0; length.ok_or_else(|| self.damaged("its manifest is too long"))?];
        self.read(&mut text)?;
        self.skip_padding(header.bytes)?;
        Ok(text)
    }

    fn skip_padding(&mut self, length: u64) -> Result<(), ArchiveError> {
        let mut rest = vec![0; padding(length)];
        self.read(&mut rest)?;
        if rest.iter().any(|byte| *byte != 0) {
            return Err(self.damaged("there are bytes between two entries"));
        }
        Ok(())
    }

    /// Two empty blocks, and nothing behind them.
    fn expect_end(&mut self) -> Result<(), ArchiveError> {
        let mut rest = Vec::new();
        let most = 4 * BLOCK as u64;
        let read = Read::by_ref(&mut self.input).take(most).read_to_end(&mut rest);
        read.map_err(|source| ArchiveError::File { path: self.path.clone(), verb: "read", source })?;
        if rest.len() != 2 * BLOCK || rest.iter().any(|byte| *byte != 0) {
            return Err(self.damaged("its end is not as it was written"));
        }
        Ok(())
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<(), ArchiveError> {
        match self.input.read_exact(bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                Err(self.damaged("its end is missing"))
            }
            Err(source) => Err(ArchiveError::File { path: self.path.clone(), verb: "read", source }),
            Ok(()) => Ok(()),
        }
    }

    fn damaged(&self, why: impl Into<String>) -> ArchiveError {
        ArchiveError::Damaged { path: self.path.clone(), why: why.into() }
    }
}

/// Returns whether a name stays below the folder that it is unpacked to.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}

fn make_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn unwritten(path: &Path, source: std::io::Error) -> ArchiveError {
    ArchiveError::Entry { path: path.display().to_string(), verb: "written", source }
}

fn field(block: &[u8; BLOCK], at: usize, length: usize) -> &[u8] {
    block.get(at..at + length).unwrap_or_default()
}

fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(field.get(..end).unwrap_or_default()).into_owned()
}

fn octal(field: &[u8]) -> Option<u64> {
    let digits = text(field);
    u64::from_str_radix(digits.trim(), 8).ok()
}
