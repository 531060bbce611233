//! Reads beside the writer: a few connections, opened when they are first needed.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use rialto_model::store::StoreError;
use rusqlite::Connection;
use tokio::{sync::Semaphore, task};

use super::connect;
use crate::error::{DatabaseError, SqliteError};

/// Maximum number of concurrent reads, and of connections kept for them.
const MAX_READERS: usize = 3;

/// The connections that read.
pub(super) struct Readers {
    permits: Arc<Semaphore>,
    pool: Arc<IdleConnections>,
}

struct IdleConnections {
    folder: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

// === impl Readers ===

impl Readers {
    pub(super) fn new(folder: PathBuf) -> Self {
        let pool = IdleConnections { folder, idle: Mutex::new(Vec::new()) };
        Self { permits: Arc::new(Semaphore::new(MAX_READERS)), pool: Arc::new(pool) }
    }

    /// Data folder.
    pub(super) fn folder(&self) -> &Path {
        &self.pool.folder
    }

    /// Runs `work` where it may block.
    pub(super) async fn run<T, F>(&self, work: F) -> Result<T, SqliteError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, SqliteError> + Send + 'static,
    {
        // The permit goes along: when the caller goes away, the work does not stop and still holds a connection.
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| closed())?;
        let pool = Arc::clone(&self.pool);
        let done = task::spawn_blocking(move || {
            let _permit = permit;
            let connection = pool.take()?;
            let outcome = work(&connection);
            pool.give_back(connection);
            outcome
        });
        done.await.map_err(|error| StoreError::from(DatabaseError::new("a read was broken off", error)))?
    }

    /// Closes the connections that are not in use.
    pub(super) fn close(&self) {
        self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

// === impl IdleConnections ===

impl IdleConnections {
    fn take(&self) -> rusqlite::Result<Connection> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| connect::reader(&self.folder), Ok)
    }

    fn give_back(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}

fn closed() -> StoreError {
    DatabaseError::closed().into()
}
