//! Opens whatever the configuration says everything is kept in.

use std::{path::Path, sync::Arc};

use rialto_model::{
    card::Card,
    store::{Store, StoreError},
};

use crate::{config::Config, postgres::PostgresStore, sqlite::SqliteStore};

/// Reads a card's text. The error says what is wrong with it.
pub type CardParser = fn(&str) -> Result<Card, String>;

/// Opens the store: the PostgreSQL database if there is one, or else the file in `folder`; without a folder, one that is gone
/// with its process.
pub async fn open(
    config: &Config,
    folder: Option<&Path>,
    parse: CardParser,
) -> Result<Arc<dyn Store>, StoreError> {
    match (folder, &config.url) {
        (None, _) => Ok(Arc::new(SqliteStore::in_memory(parse)?)),
        (Some(_), Some(url)) => Ok(Arc::new(PostgresStore::open(url, config, parse).await?)),
        (Some(folder), None) => Ok(Arc::new(SqliteStore::open(folder, config, parse)?)),
    }
}
