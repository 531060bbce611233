//! Keeps the registry, the journal and the audit trail: the [`rialto_model::store::Store`] port on a disk.
//!
//! This crate is the only one that names a database driver. It knows rows, not protocols: a card is the text it came
//! as, and whoever opens the store says how that text is read ([`CardParser`]).

mod config;
mod fault;
mod generation;
mod mapped;
mod sqlite;
pub mod vault;

pub use config::{Config, Durability};
pub use sqlite::{CardParser, SqliteStore};
