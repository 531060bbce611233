//! The store as its users see it: every promise of the port, in a file and in memory, and what a file adds to them.

#![expect(clippy::unwrap_used, reason = "what cannot be set up has failed its test")]

mod backup;
mod crash;
mod file;
mod foreign;
mod write_buffer;

mod in_memory {
    use rialto_store::SqliteStore;
    use rialto_testkit::store_suite::parse_card;

    rialto_testkit::store_suite!(async { Box::new(SqliteStore::in_memory(parse_card).unwrap()) });
}

mod in_a_file {
    use super::file::Folder;

    rialto_testkit::store_suite!(async { Folder::new().into_store() });
}
