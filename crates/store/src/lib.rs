//! Keeps the registry, the journal and the audit log: the [`rialto_model::store::Store`] port, in a SQLite file or in a
//! PostgreSQL database.
//!
//! This crate is the only one that names a database driver. It knows rows, not protocols: a card is the text it came
//! as, and the opener of the store passes the parser of that text ([`CardParser`]).

pub mod archive;
mod audit_chain;
pub mod check;
mod config;
mod error;
mod generation;
mod mmap_file;
mod nodes;
mod open;
mod postgres;
mod sqlite;
pub mod vault;

pub use config::{Config, Durability, StoreUrl};
pub use open::{CardParser, open};
pub use postgres::PostgresStore;
pub use sqlite::{CopyProgress, SqliteStore, check_folder};
