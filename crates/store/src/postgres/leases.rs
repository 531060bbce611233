//! The leases of this process: what it works on is its own for as long as it renews them.
//!
//! They are renewed on a connection of their own, by a thread of their own, so that neither many calls nor a pool without a free
//! connection make a living process look dead. Whoever has lost a lease finds that its tasks are others', and writes nothing to them.

use std::{collections::HashSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use parking_lot::RwLock;
use rialto_model::ids::Runner;
use tokio::{sync::Mutex, task::AbortHandle, time};
use tokio_postgres::Client;

use super::{pooler::DatabaseEndpoint, snag::Snag, talks};
use crate::fault::Fault;

/// A process that was silent for so long is gone.
pub(super) const LEASE: Duration = Duration::from_secs(3);

/// A server that takes longer to answer than this is not there.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The processes that we are or were, and the connection that tells of them.
pub(super) struct Leases {
    endpoint: DatabaseEndpoint,
    own: OwnRunners,
    connection: Mutex<Option<Connection>>,
}

/// The numbers under which this process works or has worked.
#[derive(Clone, Default)]
pub(super) struct OwnRunners(Arc<RwLock<HashSet<u64>>>);

struct Connection {
    client: Client,
    driver: AbortHandle,
}

// === impl OwnRunners ===

impl OwnRunners {
    /// The number, if it is one of ours; else zero.
    pub(super) fn own_or_zero(&self, runner: Runner) -> i64 {
        let is_ours = runner != Runner::NOBODY && self.0.read().contains(&runner.get());
        if is_ours { runner.get().cast_signed() } else { 0 }
    }
}

// === impl Leases ===

impl Leases {
    pub(super) fn new(endpoint: DatabaseEndpoint) -> Self {
        Self { endpoint, own: OwnRunners::default(), connection: Mutex::new(None) }
    }

    /// Our numbers.
    pub(super) fn own_runners(&self) -> OwnRunners {
        self.own.clone()
    }

    /// This number is one of ours.
    pub(super) fn add_own(&self, runner: Runner) {
        self.own.0.write().insert(runner.get());
    }

    /// Renews a lease. Answers whether it was not lost.
    pub(super) async fn renew(&self, runner: Runner, until: Timestamp) -> Result<bool, Snag> {
        let mut connection = self.connection.lock().await;
        let renewing = async {
            let ready = match connection.take() {
                Some(ready) if !ready.client.is_closed() => ready,
                _ => self.connect().await?,
            };
            let is_renewed = talks::renew(&ready.client, runner, until).await?;
            // One that was given up on is not used again: it is closed when this is dropped.
            *connection = Some(ready);
            Ok(is_renewed)
        };
        let silent = || {
            Snag::Unreached(Fault::plain(
                "the PostgreSQL server does not answer; see that it runs and can be reached",
            ))
        };
        time::timeout(TIMEOUT, renewing).await.map_err(|_| silent())?
    }

    async fn connect(&self) -> Result<Connection, Snag> {
        let DatabaseEndpoint { target, tls } = &self.endpoint;
        let (client, connection) = target.connect(tls.clone()).await?;
        let driver = tokio::spawn(async move {
            // Why it ended is told to whoever uses it next.
            let _ = connection.await;
        });
        Ok(Connection { client, driver: driver.abort_handle() })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
