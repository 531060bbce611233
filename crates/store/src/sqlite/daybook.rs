//! What was acknowledged a moment ago, on its way into the database.
//!
//! A commit writes whole pages, whatever little is in it, and a short call would cause two: one before it leaves, one
//! when its answer is there. So a new task is first noted in a file beside the database, one that is also memory; its
//! events are added there as long as it has not moved on; and many times a second what is finished is posted to the database
//! in one commit, each task as it stands by then. A task that is in the database already is written to there.
//!
//! The promise is the same as the database's: what is acknowledged survives the death of this process, because
//! whoever opens the store next posts what a dead process has left ([`orphans`]). Readers of this process have the
//! notes posted first, and those of other processes wait for it ([`neighbours`]).
//!
//! What it saves: NUMBERS (`rialto-bench bridge`, 64 connections).
//! `[store] write_buffer = false` turns it off, and so does [`Durability::Full`]. The header of each file counts what was written, so a
//! test can tell that it was used.
//!
//! [`Durability::Full`]: crate::Durability::Full

mod draft;
pub(super) mod neighbours;
pub(super) mod orphans;
mod segment;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use rialto_model::{ids::fresh, store::StoreError};
use rusqlite::Connection;

pub(super) use self::draft::{Draft, Posting};
use self::{draft::Drafts, segment::Segment};
use super::{
    meta,
    note::{About, Brief, Note, about},
};
use crate::{fault::Fault, generation::Generation};

/// Notes are posted this long after the first of them.
const MOMENT: Duration = Duration::from_millis(20);

/// A task that has begun less than this ago is kept for the next page while it is open.
const YOUNG: Duration = Duration::from_millis(250);

/// With so many bytes of notes they are posted at once.
const MANY: usize = 3 << 18;

/// So much of a page's memory is used again.
const KEPT: usize = 1 << 20;

/// With so many, what comes next is left to the database: notes are made faster than they can be posted.
const TOO_MANY: usize = 2 << 20;

/// How the files are named: this, a fresh id, and which of the two it is.
const PREFIX: &str = "daybook-";

/// The notes of this process.
pub(super) struct Daybook {
    folder: PathBuf,
    name: String,
    generation: Arc<Generation>,
    page: Mutex<Page>,
    roused: Condvar,
}

/// What became of something to write.
pub(super) enum Noted {
    /// It is noted, or refused.
    Done(Result<(), StoreError>),
    /// It must be written to the database.
    NotHere(Note),
}

/// What a new page is begun for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// To post what is finished.
    Finished,
    /// To post everything, because somebody wants to read it.
    Everything,
}

/// Notes that are not posted yet.
struct Page {
    /// One is written to while the other is being posted. They are made for the first note.
    segments: Option<[Segment; 2]>,
    current: usize,
    /// The number of the last note.
    number: u64,
    drafts: Drafts,
    /// An empty page, to be used next.
    spare: Drafts,
    bytes: usize,
    /// No task up to this one is new; whether it is there only the database knows.
    newest: String,
    /// Whether a page is on its way into the database.
    is_posting: bool,
    /// Whether to post without waiting for more.
    is_urgent: bool,
    is_closed: bool,
}

// === impl Daybook ===

impl Daybook {
    /// An empty daybook for the database in `folder`, whose newest task is `newest`.
    pub(super) fn new(folder: &Path, generation: Arc<Generation>, newest: String) -> Self {
        let page = Page {
            segments: None,
            current: 0,
            number: 0,
            drafts: Drafts::default(),
            spare: Drafts::default(),
            bytes: 0,
            newest,
            is_posting: false,
            is_urgent: false,
            is_closed: false,
        };
        let name = format!("{PREFIX}{}", fresh());
        Self { folder: folder.to_owned(), name, generation, page: Mutex::new(page), roused: Condvar::new() }
    }

    /// The name under which the database knows how far it was posted.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Where the database is.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Notes what is to be written, if it belongs here. Writing to the file is a copy in memory.
    pub(super) fn note(&self, mut note: Note) -> Noted {
        if let Err(error) = segment::seal(note.bytes_mut()) {
            return Noted::Done(Err(self.fault(error).into()));
        }
        let mut page = self.page.lock();
        segment::number(note.bytes_mut(), page.number + 1);
        let Some(about) = about(note.bytes()).filter(|about| page.takes(about)) else {
            return Noted::NotHere(note);
        };
        if let Err(refusal) = page.drafts.check(&about) {
            return Noted::Done(Err(refusal));
        }
        let is_first = page.drafts.is_empty();
        if let Err(error) = self.keep(&mut page, note.bytes(), about) {
            return Noted::Done(Err(self.fault(error).into()));
        }
        if is_first || (page.bytes >= MANY && !page.is_urgent) {
            page.is_urgent = page.bytes >= MANY;
            drop(page);
            self.roused.notify_one();
        }
        Noted::Done(Ok(()))
    }

    /// Whether there are notes that the database does not have yet.
    pub(super) fn is_ahead(&self) -> bool {
        let page = self.page.lock();
        page.is_posting || !page.drafts.is_empty()
    }

    /// Begins a new page and hands the full one over; none when nothing is on it. Tasks that will soon be over are kept
    /// for the new page, unless somebody wants to read them.
    pub(super) fn turn(&self, what: Turn) -> Option<Posting> {
        let mut page = self.page.lock();
        if page.drafts.is_empty() {
            return None;
        }
        let spare = std::mem::take(&mut page.spare);
        let mut drafts = std::mem::replace(&mut page.drafts, spare);
        let up_to = page.number;
        page.current ^= 1;
        (page.bytes, page.is_urgent, page.is_posting) = (0, false, true);
        if let (Turn::Finished, Some(moment)) = (what, Instant::now().checked_sub(YOUNG)) {
            drafts.take_young(moment, &mut page.drafts);
            if let Err(error) = page.copy() {
                // They stand on the old page, which is not cleared before they are posted.
                tracing::warn!("a page of {} could not be begun: {error}", self.name);
                page.bytes = 0;
                drafts.take_back(&std::mem::take(&mut page.drafts));
            }
        }
        if let Some(newest) = drafts.newest().filter(|newest| **newest > *page.newest) {
            page.newest = newest.to_owned();
        }
        Some(drafts.into_posting(up_to))
    }

    /// A copy of the page that notes are made on.
    pub(super) fn copy_page(&self) -> Posting {
        let page = self.page.lock();
        let mut copy = Drafts::default();
        copy.take_back(&page.drafts);
        copy.into_posting(page.number)
    }

    /// Forgets the page that was handed over: it is in the database. Its memory serves the next one.
    pub(super) fn posted(&self, posting: Posting) {
        let spare = posting.emptied(KEPT);
        let mut page = self.page.lock();
        page.spare = spare;
        let old = page.current ^ 1;
        if let Some(segments) = &mut page.segments {
            segments[old].clear();
        }
        page.is_posting = false;
    }

    /// Waits until there is something to post, and then a moment longer for more. False when all is over.
    pub(super) fn wait(&self) -> bool {
        let mut page = self.page.lock();
        self.roused.wait_while(&mut page, |page| page.drafts.is_empty() && !page.is_closed);
        self.roused.wait_while_for(&mut page, |page| !page.is_urgent && !page.is_closed, MOMENT);
        !page.is_closed
    }

    /// Takes no more notes.
    pub(super) fn close(&self) {
        self.page.lock().is_closed = true;
        self.roused.notify_one();
    }

    /// Removes the files and what the database knows of them. To be called when everything is posted and nothing more is
    /// noted. Should it not work out, the next process finds them and has nothing to post.
    pub(super) fn remove(&self, connection: &Connection) {
        let mut page = self.page.lock();
        if !page.drafts.is_empty() || page.is_posting || page.segments.take().is_none() {
            return;
        }
        let removed = segment::remove(&self.folder, &self.name).map_err(|error| error.to_string());
        let forget = || meta::forget_daybook(connection, &self.name).map_err(|error| error.to_string());
        if let Err(error) = removed.and_then(|()| forget()) {
            tracing::debug!("{} is left to the next process: {error}", self.name);
        }
    }

    fn keep(&self, page: &mut Page, note: &[u8], about: About<'_>) -> io::Result<()> {
        let segments = match &mut page.segments {
            Some(segments) => segments,
            // Nobody may look for dead processes' files between the making of ours and their lock.
            none => none.insert(self.generation.locked(|| segment::create(&self.folder, &self.name))??),
        };
        segments[page.current].write(note)?;
        page.number += 1;
        page.bytes += note.len();
        page.drafts.add(note, Some(about));
        Ok(())
    }

    fn fault(&self, error: io::Error) -> Fault {
        let what = format!(
            "{} in {} could not be written; see what is wrong with the disk",
            self.name,
            self.folder.display()
        );
        Fault::new(what, error)
    }
}

// === impl Page ===

impl Page {
    fn takes(&self, about: &About<'_>) -> bool {
        let has_room = !self.is_closed && self.bytes < TOO_MANY;
        match about {
            About::Open(Brief { task, .. }) => {
                has_room && (**task > *self.newest || self.drafts.has(task)) && self.drafts.has_room(task)
            }
            // However full the page is: the database does not know a task that stands here.
            About::Append(Brief { task, .. }, _) => self.drafts.has(task),
            About::Audit => has_room,
        }
    }

    /// Writes what is kept from the page before to the new one, under new numbers.
    fn copy(&mut self) -> io::Result<()> {
        self.drafts.change(|note| {
            self.number += 1;
            segment::number(note, self.number);
        });
        self.bytes = 0;
        for note in self.drafts.notes() {
            self.bytes += note.len();
            if let Some(segments) = &mut self.segments {
                segments[self.current].write(note)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
