//! Tasks as they stand on a page: which notes belong to which.

use std::time::Instant;

use rialto_model::{maps::FastMap, store::StoreError};

use crate::sqlite::note::{About, Note};

/// What is on a page.
#[derive(Default)]
pub(super) struct Drafts {
    notes: Vec<Note>,
    places: FastMap<String, usize>,
    drafts: Vec<Draft>,
}

/// A page that leaves for the database.
pub(in crate::sqlite) struct Posting {
    /// All notes, in order.
    pub(in crate::sqlite) notes: Vec<Note>,
    /// The tasks, in the order they were opened.
    pub(in crate::sqlite) drafts: Vec<Draft>,
    /// The number of the last note on it.
    pub(in crate::sqlite) up_to: u64,
}

/// A task that the database does not know yet.
pub(in crate::sqlite) struct Draft {
    pub(in crate::sqlite) task: String,
    /// Where its notes are, in order.
    pub(in crate::sqlite) notes: Vec<usize>,
    version: u64,
    is_open: bool,
    begun: Instant,
}

// === impl Drafts ===

impl Drafts {
    pub(super) fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    pub(super) fn has(&self, task: &str) -> bool {
        self.places.contains_key(task)
    }

    /// The task that sorts last.
    pub(super) fn newest(&self) -> Option<&str> {
        self.drafts.iter().map(|draft| draft.task.as_str()).max()
    }

    /// Whether it may be added, as the database would see it.
    pub(super) fn check(&self, note: &Note) -> Result<(), StoreError> {
        match note.about() {
            Some(About::Open(brief)) if self.has(brief.task) => {
                Err(StoreError::Taken(format!("the task id {}", brief.task)))
            }
            Some(About::Append(brief, expected)) => {
                let draft = self.places.get(brief.task).and_then(|place| self.drafts.get(*place));
                if draft.is_some_and(|draft| draft.version == expected) {
                    Ok(())
                } else {
                    Err(StoreError::Conflict)
                }
            }
            Some(About::Open(_) | About::Audit) | None => Ok(()),
        }
    }

    /// Adds what was checked.
    pub(super) fn add(&mut self, note: Note) {
        self.add_at(note, Instant::now());
    }

    /// Takes out the tasks that will soon be over, open ones that have begun after `moment`, to be kept for the next
    /// page.
    pub(super) fn take_young(&mut self, moment: Instant) -> Self {
        let is_young = |draft: &Draft| draft.is_open && draft.begun > moment;
        let mut moving: Vec<(usize, Instant)> = Vec::new();
        for draft in self.drafts.iter().filter(|draft| is_young(draft)) {
            moving.extend(draft.notes.iter().map(|at| (*at, draft.begun)));
        }
        moving.sort_unstable();
        let mut young = Self::default();
        for (at, begun) in moving {
            if let Some(note) = self.notes.get_mut(at) {
                young.add_at(std::mem::replace(note, Note::blank()), begun);
            }
        }
        self.drafts.retain(|draft| !is_young(draft));
        young
    }

    /// All notes, in order.
    pub(super) fn notes(&mut self) -> &mut [Note] {
        &mut self.notes
    }

    fn add_at(&mut self, note: Note, begun: Instant) {
        let at = self.notes.len();
        match note.about() {
            Some(About::Open(brief)) => {
                let task = brief.task.to_owned();
                self.places.insert(task.clone(), self.drafts.len());
                let (version, is_open) = (brief.version, brief.is_open);
                self.drafts.push(Draft { task, notes: vec![at], version, is_open, begun });
            }
            Some(About::Append(brief, _)) => {
                let place = self.places.get(brief.task).copied();
                if let Some(draft) = place.and_then(|place| self.drafts.get_mut(place)) {
                    draft.notes.push(at);
                    (draft.version, draft.is_open) = (brief.version, brief.is_open);
                }
            }
            Some(About::Audit) | None => {}
        }
        self.notes.push(note);
    }

    pub(super) fn into_notes(self) -> Vec<Note> {
        self.notes
    }

    pub(super) fn into_posting(self, up_to: u64) -> Posting {
        Posting { notes: self.notes, drafts: self.drafts, up_to }
    }
}
