//! The beginning of a file, as memory.
//!
//! What is written there is the system's the moment it is written, like any `write`: it survives the death of this
//! process, and readers of the file find it. But it costs no system call, and in the call pipeline there
//! are several. The file is as long as the memory before it is mapped, so that a full disk is an error then and not a
//! fault later. Where files cannot be mapped there is no such memory, and everything is read and written as usual.

use std::{fs::File, io, sync::Arc};

/// The first bytes of a file. Other processes may have the same.
#[derive(Debug)]
pub(crate) struct MmapFile(Region);

// === impl MmapFile ===

#[cfg(unix)]
type Region = vm_memory::MmapRegion;

#[cfg(unix)]
impl MmapFile {
    /// The first `length` bytes of `file`, which must be as long.
    pub(crate) fn new(file: &Arc<File>, length: usize) -> io::Result<Self> {
        if file.metadata()?.len() < length as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let all = vm_memory::FileOffset::from_arc(Arc::clone(file), 0);
        Region::from_file(all, length).map(Self).map_err(io::Error::other)
    }

    /// Writes `bytes` at this place; false when they reach past the end, and then nothing was written.
    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> bool {
        use vm_memory::{Bytes as _, VolatileMemory as _};
        let Ok(at) = usize::try_from(at) else { return false };
        let fits = at.checked_add(bytes.len()).is_some_and(|end| end <= self.0.size());
        fits && self.0.as_volatile_slice().write_slice(bytes, at).is_ok()
    }

    /// The number at the beginning, as it is at this moment.
    pub(crate) fn number(&self) -> Option<u64> {
        use vm_memory::{Bytes as _, VolatileMemory as _};
        let order = std::sync::atomic::Ordering::Acquire;
        self.0.as_volatile_slice().load(0, order).ok().map(u64::from_le)
    }

    /// Changes the number at the beginning, in one go. False when there is no room for one.
    pub(crate) fn set_number(&self, number: u64) -> bool {
        use vm_memory::{Bytes as _, VolatileMemory as _};
        let order = std::sync::atomic::Ordering::Release;
        self.0.as_volatile_slice().store(number.to_le(), 0, order).is_ok()
    }
}

#[cfg(not(unix))]
type Region = std::convert::Infallible;

#[cfg(not(unix))]
impl MmapFile {
    pub(crate) fn new(_: &Arc<File>, _: usize) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn write(&self, _: u64, _: &[u8]) -> bool {
        match self.0 {}
    }

    pub(crate) fn number(&self) -> Option<u64> {
        match self.0 {}
    }

    pub(crate) fn set_number(&self, _: u64) -> bool {
        match self.0 {}
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    fn file(length: u64) -> Arc<File> {
        let file = tempfile::tempfile().unwrap();
        file.set_len(length).unwrap();
        Arc::new(file)
    }

    #[test]
    fn what_is_written_to_it_is_in_the_file() {
        let file = file(4096);
        let mapped = MmapFile::new(&file, 4096).unwrap();
        assert!(mapped.write(10, b"noted"));
        let mut bytes = [0; 5];
        file.read_exact_at(&mut bytes, 10).unwrap();
        assert_eq!(&bytes, b"noted");
    }

    #[test]
    fn what_reaches_past_its_end_is_not_begun() {
        let file = file(16);
        let mapped = MmapFile::new(&file, 16).unwrap();
        assert!(!mapped.write(12, b"noted"));
        assert!(!mapped.write(u64::MAX, b"noted"));
        let mut bytes = [0; 16];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(bytes, [0; 16]);
    }

    #[test]
    fn a_number_is_seen_by_all_who_have_the_file() {
        let file = file(8);
        let (here, there) = (MmapFile::new(&file, 8).unwrap(), MmapFile::new(&file, 8).unwrap());
        assert!(here.set_number(7));
        assert_eq!(there.number(), Some(7));
        file.write_all_at(&9_u64.to_le_bytes(), 0).unwrap();
        assert_eq!(there.number(), Some(9));
    }

    #[test]
    fn a_file_that_is_too_short_is_not_mapped() {
        MmapFile::new(&file(4), 8).unwrap_err();
    }
}
