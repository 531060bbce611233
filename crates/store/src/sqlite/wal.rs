//! Reads the write-ahead log as a file, to find damage that SQLite passes over in silence.
//!
//! SQLite reads a log up to the first frame whose checksum is wrong and forgets the rest: after a crash that is the frame that was being
//! written. A frame of the same log behind it means more than that: the end was not torn off, the middle was changed or never reached the disk, and
//! commits that were acknowledged are missing. The format is described at <https://www.sqlite.org/fileformat2.html#walformat>.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
};

/// Length of the log's own header.
const LOG_HEADER: usize = 32;

/// Length of the header of each frame.
const FRAME_HEADER: usize = 24;

/// Largest page of any database.
const MAX_PAGE: usize = 65_536;

/// State of a log file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogState {
    /// No log, or an empty one: the last process closed the database.
    Absent,
    /// All frames up to the end are valid, or a torn one is the last.
    Intact,
    /// Frames are invalid, and valid ones of the same log follow.
    Damaged {
        /// Frames before the first invalid one.
        valid_frames: u64,
        /// Frames that are lost with it.
        lost_frames: u64,
    },
    /// The header is invalid, so SQLite would ignore all frames.
    Unreadable {
        /// Frames that are lost with it.
        lost_frames: u64,
    },
}

/// Findings about a log file by itself.
struct Inspected {
    log: LogState,
    valid_frames: u64,
    salt: [u8; 8],
}

/// Running checksum over pairs of 32-bit words.
#[derive(Clone, Copy)]
struct LogChecksum {
    sums: (u32, u32),
    is_big_endian: bool,
}

// === impl LogChecksum ===

impl LogChecksum {
    fn update(&mut self, bytes: &[u8]) {
        let (pairs, _) = bytes.as_chunks::<8>();
        let (mut one, mut two) = self.sums;
        for [a, b, c, d, e, f, g, h] in pairs.iter().copied() {
            let (first, second) = if self.is_big_endian {
                (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))
            } else {
                (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]))
            };
            one = one.wrapping_add(first).wrapping_add(two);
            two = two.wrapping_add(second).wrapping_add(one);
        }
        self.sums = (one, two);
    }
}

/// Looks through the log of a database that no process has open.
///
/// The index of the log (`-shm`) outlives its processes and has the number of frames that were committed: with fewer valid ones, the
/// last commits are missing too.
pub(super) fn inspect(database: &Path) -> io::Result<LogState> {
    let state = inspect_log(&beside(database, "-wal"))?;
    let committed = committed_frames(&beside(database, "-shm"), state.salt).unwrap_or(0);
    Ok(match state.log {
        LogState::Intact if committed > state.valid_frames => LogState::Damaged {
            valid_frames: state.valid_frames,
            lost_frames: committed - state.valid_frames,
        },
        log => log,
    })
}

/// Path of a file that SQLite keeps beside a database.
pub(super) fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Number of committed frames that an index names, if it belongs to the log with this salt.
fn committed_frames(path: &Path, salt: [u8; 8]) -> Option<u64> {
    let mut header = [0_u8; 96];
    File::open(path).ok()?.read_exact(&mut header).ok()?;
    let (one, two) = header.split_at(48);
    let is_ours = one == two && one.get(32..40)? == salt;
    let frames = u32::from_ne_bytes(one.get(16..20)?.try_into().ok()?);
    is_ours.then(|| frames.into())
}

fn inspect_log(path: &Path) -> io::Result<Inspected> {
    let without = |log| Inspected { log, valid_frames: 0, salt: [0; 8] };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(without(LogState::Absent)),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    if length < (LOG_HEADER + FRAME_HEADER) as u64 {
        return Ok(without(LogState::Absent));
    }
    let mut input = BufReader::with_capacity(1 << 20, file);
    let mut header = [0; LOG_HEADER];
    input.read_exact(&mut header)?;
    inspect_frames(&mut input, &header, length)
}

fn inspect_frames(input: &mut impl Read, header: &[u8; LOG_HEADER], length: u64) -> io::Result<Inspected> {
    let magic = word(header, 0);
    let page = usize::try_from(word(header, 8)).unwrap_or(0);
    let mut checksum = LogChecksum { sums: (0, 0), is_big_endian: magic & 1 == 1 };
    checksum.update(header.get(..24).unwrap_or_default());
    let is_valid = magic & !1 == 0x377f_0682
        && page.is_power_of_two()
        && (512..=MAX_PAGE).contains(&page)
        && checksum.sums == (word(header, 24), word(header, 28));
    if !is_valid {
        // Zeros are a log that was made and not begun.
        let is_empty = header.iter().all(|byte| *byte == 0);
        let lost_frames = length / (FRAME_HEADER as u64 + 4096);
        let log = if is_empty { LogState::Intact } else { LogState::Unreadable { lost_frames } };
        return Ok(Inspected { log, valid_frames: 0, salt: [0; 8] });
    }
    let salt: [u8; 8] = header.get(16..24).and_then(|salt| salt.try_into().ok()).unwrap_or_default();
    let mut frame = vec![0; FRAME_HEADER + page];
    let (mut valid_frames, mut passed, mut lost_frames, mut is_broken) = (0, 0, 0, false);
    while read_whole(input, &mut frame)? {
        let is_ours = frame.get(8..16) == Some(&salt[..]);
        if is_broken {
            passed += 1;
            if is_ours && word(&frame, 0) != 0 {
                lost_frames = passed;
            }
            continue;
        }
        let mut after = checksum;
        after.update(frame.get(..8).unwrap_or_default());
        after.update(frame.get(FRAME_HEADER..).unwrap_or_default());
        if is_ours && after.sums == (word(&frame, 16), word(&frame, 20)) {
            (checksum, valid_frames) = (after, valid_frames + 1);
        } else {
            is_broken = true;
            passed = 1;
        }
    }
    let log =
        if lost_frames > 0 { LogState::Damaged { valid_frames, lost_frames } } else { LogState::Intact };
    Ok(Inspected { log, valid_frames, salt })
}

/// Fills `bytes`; false when less is left.
fn read_whole(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rusqlite::Connection;
    use tempfile::TempDir;

    use super::*;

    /// A log of ten commits with its index, copied while its database is open.
    fn log() -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let database = Connection::open(folder.path().join("a.db")).unwrap();
        database.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (a)").unwrap();
        for number in 0..10 {
            database.execute("INSERT INTO t VALUES (?1)", [number]).unwrap();
        }
        let copy = folder.path().join("copy");
        for ending in ["-wal", "-shm"] {
            fs::copy(beside(&folder.path().join("a.db"), ending), beside(&copy, ending)).unwrap();
        }
        drop(database);
        (folder, copy)
    }

    #[test]
    fn a_log_as_sqlite_wrote_it_is_intact() {
        let (folder, database) = log();
        assert_eq!(inspect(&database).unwrap(), LogState::Intact);
        assert_eq!(inspect(&folder.path().join("none")).unwrap(), LogState::Absent);
    }

    #[test]
    fn a_torn_frame_at_the_end_is_no_damage_unless_it_was_committed() {
        let (_folder, database) = log();
        let log = beside(&database, "-wal");
        let bytes = fs::read(&log).unwrap();
        let torn = [&bytes[..], &bytes[bytes.len() - 1000..]].concat();
        fs::write(&log, torn).unwrap();
        assert_eq!(inspect(&database).unwrap(), LogState::Intact);
        fs::write(&log, &bytes[..bytes.len() - 100]).unwrap();
        assert!(matches!(inspect(&database).unwrap(), LogState::Damaged { lost_frames: 1, .. }));
    }

    #[test]
    fn a_flipped_byte_anywhere_is_found() {
        let (_folder, database) = log();
        let log = beside(&database, "-wal");
        let bytes = fs::read(&log).unwrap();
        assert!(bytes.len() > LOG_HEADER + 5 * 4096, "several commits");
        for at in (0..LOG_HEADER).chain((LOG_HEADER..bytes.len()).step_by(97)) {
            let mut bent = bytes.clone();
            bent[at] ^= 1;
            fs::write(&log, &bent).unwrap();
            let state = inspect(&database).unwrap();
            assert!(!matches!(state, LogState::Intact | LogState::Absent), "byte {at}: {state:?}");
        }
    }

    #[test]
    fn frames_of_an_earlier_log_behind_the_present_one_are_no_damage() {
        let folder = tempfile::tempdir().unwrap();
        let database = Connection::open(folder.path().join("a.db")).unwrap();
        database.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (a)").unwrap();
        for _ in 0..20 {
            database.execute("INSERT INTO t VALUES (1)", []).unwrap();
        }
        database.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
        database.execute("INSERT INTO t VALUES (2)", []).unwrap();
        assert_eq!(inspect(&folder.path().join("a.db")).unwrap(), LogState::Intact);
    }
}
