//! Conditions that keep a store from taking writes.

/// Condition of a store that its operator has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreProblem {
    /// The disk has no room, or hardly any.
    Full,
    /// The database may not be written.
    ReadOnly,
    /// The data folder or the database was removed while it was in use.
    Deleted,
    /// The database is damaged.
    Damaged,
    /// The database cannot be reached or used.
    Unavailable,
}

// === impl StoreProblem ===

impl StoreProblem {
    /// The condition and its fix, without any path or address: any client may read it.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Full => {
                "the disk of the store is full: free space, or keep less with keep_tasks_hours and max_bytes under [store]; stored tasks can still be read"
            }
            Self::ReadOnly => {
                "the store may not be written: mount its disk for writing, or mend the permissions of the data folder"
            }
            Self::Deleted => {
                "the data folder was deleted or replaced while the server runs, and nothing is stored any more: stop the server, bring the folder \
                 back with `rialto restore`, and start again"
            }
            Self::Damaged => {
                "the store is damaged: stop the server, see `rialto check`, and bring a backup back with `rialto restore`"
            }
            Self::Unavailable => {
                "the store cannot be used: see that its disk works, or that the database server that [store] url names runs; the server's log says more"
            }
        }
    }
}
