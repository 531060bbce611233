//! Tasks as they stand on a page: what was noted of each is put together.

use std::collections::HashMap;

use jiff::Timestamp;
use rialto_model::{ids::TaskId, store::StoreError, task::TaskHead};
use serde_json::value::RawValue;

use crate::sqlite::{
    audit::AuditRow,
    tasks::{After, TaskWrite},
};

/// What is on a page.
#[derive(Default)]
pub(super) struct Drafts {
    places: HashMap<TaskId, usize>,
    tasks: Vec<Draft>,
    audit: Vec<AuditRow>,
}

/// A page that leaves for the database.
pub(in crate::sqlite) struct Posting {
    /// The tasks, in the order they were opened.
    pub(in crate::sqlite) tasks: Vec<Draft>,
    /// The announcements, in the order they were made.
    pub(in crate::sqlite) audit: Vec<AuditRow>,
    /// The number of the last note on it.
    pub(in crate::sqlite) up_to: u64,
}

/// A task that the database does not know yet.
pub(in crate::sqlite) struct Draft {
    /// As it stands.
    pub(in crate::sqlite) head: TaskHead,
    /// What has happened to it.
    pub(in crate::sqlite) batches: Vec<Batch>,
}

/// Events that were noted together.
pub(in crate::sqlite) struct Batch {
    /// The number of the last of them.
    pub(in crate::sqlite) seq: u64,
    /// When they happened.
    pub(in crate::sqlite) at: Timestamp,
    /// A JSON array.
    pub(in crate::sqlite) events: Box<RawValue>,
}

// === impl Drafts ===

impl Drafts {
    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.audit.is_empty()
    }

    pub(super) fn has(&self, task: &TaskId) -> bool {
        self.places.contains_key(task)
    }

    /// The task that sorts last.
    pub(super) fn newest(&self) -> Option<&str> {
        self.tasks.iter().map(|draft| draft.head.id.as_str()).max()
    }

    /// Whether it may be added, as the database would see it.
    pub(super) fn check(&self, write: &TaskWrite) -> Result<(), StoreError> {
        match write {
            TaskWrite::Open { head, .. } if self.has(&head.id) => {
                Err(StoreError::Taken(format!("the task id {}", head.id)))
            }
            TaskWrite::Append { after, expected, .. } => {
                let draft = self.places.get(&after.id).and_then(|place| self.tasks.get(*place));
                if draft.is_some_and(|draft| draft.head.version == *expected) {
                    Ok(())
                } else {
                    Err(StoreError::Conflict)
                }
            }
            TaskWrite::Open { .. } | TaskWrite::Audit(_) => Ok(()),
        }
    }

    /// Adds what was checked.
    pub(super) fn add(&mut self, write: TaskWrite) {
        match write {
            TaskWrite::Open { head, audit } => {
                self.places.insert(head.id.clone(), self.tasks.len());
                self.tasks.push(Draft { head, batches: Vec::new() });
                self.audit.extend(audit);
            }
            TaskWrite::Append { after, expected, more, events, at, audit } => {
                let place = self.places.get(&after.id).copied();
                if let Some(draft) = place.and_then(|place| self.tasks.get_mut(place)) {
                    draft.move_on(after, expected + more as u64);
                    if more > 0 {
                        draft.batches.push(Batch { seq: draft.head.version, at, events });
                    }
                    self.audit.extend(audit);
                }
            }
            TaskWrite::Audit(audit) => self.audit.extend(audit),
        }
    }

    pub(super) fn into_posting(self, up_to: u64) -> Posting {
        Posting { tasks: self.tasks, audit: self.audit, up_to }
    }
}

// === impl Draft ===

impl Draft {
    /// Takes over what an append changes, and nothing else.
    fn move_on(&mut self, after: After, version: u64) {
        self.head.state = after.state;
        self.head.version = version;
        self.head.remote = after.remote;
        self.head.updated_at = after.updated_at;
    }
}
