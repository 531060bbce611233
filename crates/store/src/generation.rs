//! Generation: counter by which processes notice changes of the registry.
//!
//! The truth is a counter in the database, which moves in the transaction of the change itself. What is asked on
//! every call is a copy of it in a file of eight bytes, so that asking is a look into memory ([`MmapFile`]) and no database
//! work. The copy is made after the commit and before the change is acknowledged: a reader of the new number sees the new rows. It
//! never goes back, whichever of two processes is faster, because it is only changed under a lock.

use std::{
    fs::File,
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::mmap_file::MmapFile;

/// Length of the file.
const FILE_BYTES: usize = 8;

/// A copy of the counter that is cheap to ask.
#[derive(Debug)]
pub(crate) enum GenerationCounter {
    /// Shared by all processes that use the file.
    Shared(GenerationFile),
    /// Of this process alone.
    Own(AtomicU64),
}

/// A file that holds one number, and is the lock around it.
#[derive(Debug)]
pub(crate) struct GenerationFile {
    file: Arc<File>,
    /// The number in memory, once the file has one.
    number: OnceLock<MmapFile>,
    #[cfg(not(unix))]
    turn: std::sync::Mutex<()>,
}

// === impl GenerationCounter ===

impl GenerationCounter {
    /// The number as it is now.
    pub(crate) fn get(&self) -> u64 {
        match self {
            // An open file of eight bytes does not fail to be read; if it does, zero differs from what was before.
            Self::Shared(slot) => slot.read().unwrap_or(0),
            Self::Own(number) => number.load(Ordering::Acquire),
        }
    }

    /// Runs `work` while no other process that uses the file does the same.
    pub(crate) fn with_lock<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        match self {
            Self::Shared(slot) => slot.with_lock(work),
            Self::Own(_) => Ok(work()),
        }
    }

    /// Moves it on to `number`, unless it is further already.
    pub(crate) fn advance(&self, number: u64) {
        match self {
            Self::Shared(slot) => {
                if let Err(error) = slot.advance(number) {
                    tracing::error!(%error, "other processes could not be told that the registry has changed");
                }
            }
            Self::Own(own) => {
                own.fetch_max(number, Ordering::Release);
            }
        }
    }
}

// === impl GenerationFile ===

impl GenerationFile {
    pub(crate) fn new(file: File) -> Self {
        Self {
            file: Arc::new(file),
            number: OnceLock::new(),
            #[cfg(not(unix))]
            turn: std::sync::Mutex::new(()),
        }
    }

    /// Runs `work` while no other handle of the file, here or in another process, does the same.
    pub(crate) fn with_lock<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        self.file.lock()?;
        let outcome = work();
        self.file.unlock()?;
        Ok(outcome)
    }

    /// Makes it `number`. To be called under the lock.
    pub(crate) fn set(&self, number: u64) -> io::Result<()> {
        if self.read().ok() != Some(number) {
            self.write(number)?;
        }
        // Where it cannot be mapped it is read.
        if self.number.get().is_none()
            && let Ok(mapped) = MmapFile::new(&self.file, FILE_BYTES)
        {
            let _ = self.number.set(mapped);
        }
        Ok(())
    }

    fn advance(&self, number: u64) -> io::Result<()> {
        self.with_lock(|| if self.read()? < number { self.write(number) } else { Ok(()) })?
    }

    fn read(&self) -> io::Result<u64> {
        self.number.get().and_then(MmapFile::number).map_or_else(|| self.read_file(), Ok)
    }

    fn write(&self, number: u64) -> io::Result<()> {
        let is_written = self.number.get().is_some_and(|mapped| mapped.set_number(number));
        if is_written { Ok(()) } else { self.write_file(number) }
    }
}

#[cfg(unix)]
impl GenerationFile {
    fn read_file(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        std::os::unix::fs::FileExt::read_exact_at(&*self.file, &mut bytes, 0)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn write_file(&self, number: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&*self.file, &number.to_le_bytes(), 0)
    }
}

#[cfg(not(unix))]
impl GenerationFile {
    fn read_file(&self) -> io::Result<u64> {
        use std::io::{Read, Seek};
        let _turn = self.turn.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut bytes = [0; 8];
        (&*self.file).rewind()?;
        (&*self.file).read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn write_file(&self, number: u64) -> io::Result<()> {
        use std::io::{Seek, Write};
        let _turn = self.turn.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        (&*self.file).rewind()?;
        (&*self.file).write_all(&number.to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slower_of_two_processes_does_not_turn_the_number_back() {
        let slot = GenerationFile::new(tempfile::tempfile().unwrap());
        slot.set(4).unwrap();
        slot.advance(6).unwrap();
        slot.advance(5).unwrap();
        assert_eq!(slot.read().unwrap(), 6);
    }
}
