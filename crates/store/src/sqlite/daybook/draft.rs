//! Tasks as they stand on a page: which notes belong to which.
//!
//! The notes of a page are copied into a few large pieces of memory, which are used again for a later page: what many threads
//! have made note by note would otherwise be given back note by note by the one that writes.

use std::{hash::BuildHasher, time::Instant};

use rialto_model::{maps::FastMap, store::StoreError};

use crate::sqlite::note::{About, Brief, about};

/// How large a piece of memory is, unless a single note needs more.
const PIECE: usize = 1 << 17;

/// What is on a page.
#[derive(Default)]
pub(super) struct Drafts {
    /// Notes, one behind the other. A piece does not grow: that would copy it.
    pieces: Vec<Vec<u8>>,
    /// The piece that is being filled. Those behind it are empty.
    current: usize,
    notes: Vec<Kept>,
    /// Drafts by the hash of their tasks' ids. Of two tasks with one hash only the first is here.
    places: FastMap<u64, usize>,
    drafts: Vec<Draft>,
}

/// A page that leaves for the database.
pub(in crate::sqlite) struct Posting {
    page: Drafts,
    /// The number of the last note on it.
    pub(in crate::sqlite) up_to: u64,
}

/// A task that the database does not know yet.
pub(in crate::sqlite) struct Draft {
    first: usize,
    last: usize,
    version: u64,
    is_open: bool,
    begun: Instant,
}

/// Where a note is.
#[derive(Clone, Copy)]
struct Kept {
    piece: usize,
    begin: usize,
    end: usize,
    /// The next one of the same task.
    next: Option<usize>,
}

// === impl Drafts ===

impl Drafts {
    pub(super) fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    pub(super) fn has(&self, task: &str) -> bool {
        self.place(task).is_some()
    }

    /// The task that sorts last.
    pub(super) fn newest(&self) -> Option<&str> {
        self.drafts.iter().filter_map(|draft| self.task(draft)).max()
    }

    /// Whether there is room for this task: its hash is nobody else's.
    pub(super) fn has_room(&self, task: &str) -> bool {
        !self.places.contains_key(&self.hash(task)) || self.has(task)
    }

    /// Whether it may be added, as the database would see it.
    pub(super) fn check(&self, about: &About<'_>) -> Result<(), StoreError> {
        match about {
            About::Open(brief) if self.has(brief.task) => {
                Err(StoreError::Taken(format!("the task id {}", brief.task)))
            }
            About::Append(brief, expected) => {
                let draft = self.place(brief.task).and_then(|place| self.drafts.get(place));
                if draft.is_some_and(|draft| draft.version == *expected) {
                    Ok(())
                } else {
                    Err(StoreError::Conflict)
                }
            }
            About::Open(_) | About::Audit => Ok(()),
        }
    }

    /// Adds what was checked.
    pub(super) fn add(&mut self, note: &[u8], about: Option<About<'_>>) {
        self.add_at(note, about, Instant::now());
    }

    /// Takes out the tasks that will soon be over, open ones that have begun after `moment`, to be kept for the next
    /// page, which is `young`.
    pub(super) fn take_young(&mut self, moment: Instant, young: &mut Self) {
        let is_young = |draft: &Draft| draft.is_open && draft.begun > moment;
        let mut moving: Vec<(usize, Instant)> = Vec::new();
        for draft in self.drafts.iter().filter(|draft| is_young(draft)) {
            moving.extend(self.places_of(draft).map(|at| (at, draft.begun)));
        }
        moving.sort_unstable();
        for (at, begun) in moving {
            let note = self.note(at);
            young.add_at(note, about(note), begun);
            if let Some(kept) = self.notes.get_mut(at) {
                (kept.begin, kept.end) = (0, 0);
            }
        }
        self.drafts.retain(|draft| !is_young(draft));
    }

    /// Takes all of another page.
    pub(super) fn take_back(&mut self, young: &Self) {
        for note in young.notes() {
            self.add(note, about(note));
        }
    }

    /// Shows each note to `change`, in order.
    pub(super) fn change(&mut self, mut change: impl FnMut(&mut [u8])) {
        for kept in &self.notes {
            let piece = self.pieces.get_mut(kept.piece);
            if let Some(note) = piece.and_then(|piece| piece.get_mut(kept.begin..kept.end)) {
                change(note);
            }
        }
    }

    /// All notes, in order.
    pub(super) fn notes(&self) -> impl Iterator<Item = &[u8]> {
        self.notes.iter().filter_map(|kept| self.at(kept))
    }

    pub(super) const fn into_posting(self, up_to: u64) -> Posting {
        Posting { page: self, up_to }
    }

    fn add_at(&mut self, note: &[u8], about: Option<About<'_>>, begun: Instant) {
        let at = self.notes.len();
        match about {
            Some(About::Open(Brief { task, version, is_open })) => {
                self.places.insert(self.hash(task), self.drafts.len());
                self.drafts.push(Draft { first: at, last: at, version, is_open, begun });
            }
            Some(About::Append(Brief { task, version, is_open }, _)) => {
                let place = self.place(task);
                if let Some(draft) = place.and_then(|place| self.drafts.get_mut(place)) {
                    if let Some(before) = self.notes.get_mut(draft.last) {
                        before.next = Some(at);
                    }
                    (draft.last, draft.version, draft.is_open) = (at, version, is_open);
                }
            }
            Some(About::Audit) | None => {}
        }
        let kept = self.copy(note);
        self.notes.push(kept);
    }

    /// Copies a note to where there is room for it.
    fn copy(&mut self, note: &[u8]) -> Kept {
        let fits = |piece: &Vec<u8>| piece.capacity() - piece.len() >= note.len();
        if !self.pieces.get(self.current).is_some_and(fits) {
            let next = self.pieces.iter().position(|piece| piece.is_empty() && fits(piece));
            self.current = next.unwrap_or_else(|| {
                self.pieces.push(Vec::with_capacity(note.len().max(PIECE)));
                self.pieces.len() - 1
            });
        }
        let mut kept = Kept { piece: self.current, begin: 0, end: 0, next: None };
        if let Some(piece) = self.pieces.get_mut(self.current) {
            kept.begin = piece.len();
            piece.extend_from_slice(note);
            kept.end = piece.len();
        }
        kept
    }

    /// Where the draft of a task is.
    fn place(&self, task: &str) -> Option<usize> {
        let place = *self.places.get(&self.hash(task))?;
        let draft = self.drafts.get(place)?;
        (self.task(draft) == Some(task)).then_some(place)
    }

    fn hash(&self, task: &str) -> u64 {
        self.places.hasher().hash_one(task)
    }

    fn task(&self, draft: &Draft) -> Option<&str> {
        about(self.note(draft.first))?.task()
    }

    fn note(&self, at: usize) -> &[u8] {
        self.notes.get(at).and_then(|kept| self.at(kept)).unwrap_or_default()
    }

    fn at(&self, kept: &Kept) -> Option<&[u8]> {
        self.pieces.get(kept.piece)?.get(kept.begin..kept.end)
    }

    fn places_of(&self, draft: &Draft) -> impl Iterator<Item = usize> + Clone + '_ {
        std::iter::successors(Some(draft.first), |at| self.notes.get(*at)?.next)
    }

    /// Forgets everything, and keeps memory for so many bytes of notes.
    fn clear(&mut self, most: usize) {
        self.pieces.retain(|piece| piece.capacity() == PIECE);
        self.pieces.truncate(most / PIECE);
        self.pieces.iter_mut().for_each(Vec::clear);
        self.current = 0;
        self.notes.clear();
        self.places.clear();
        self.drafts.clear();
    }
}

// === impl Posting ===

impl Posting {
    /// All notes, in order.
    pub(in crate::sqlite) fn notes(&self) -> impl Iterator<Item = &[u8]> {
        self.page.notes()
    }

    /// The tasks, in the order they were opened.
    pub(in crate::sqlite) fn drafts(&self) -> &[Draft] {
        &self.page.drafts
    }

    /// The id of a task.
    pub(in crate::sqlite) fn task(&self, draft: &Draft) -> &str {
        self.page.task(draft).unwrap_or_default()
    }

    /// The notes of a task, in order.
    pub(in crate::sqlite) fn notes_of(&self, draft: &Draft) -> impl Iterator<Item = &[u8]> + Clone {
        self.page.places_of(draft).map(|at| self.page.note(at))
    }

    /// An empty page in the same memory, or in so much of it.
    pub(super) fn emptied(mut self, most: usize) -> Drafts {
        self.page.clear(most);
        self.page
    }
}
