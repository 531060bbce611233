//! Connection pools of one rule, one for each runtime.
//!
//! A connection is driven by the runtime that opened it, and `rialto serve` has a runtime on each of its threads. With one pool for all, a request
//! is often sent on a connection of another thread, which has to be woken for the request and wakes this one for the response.

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::client::legacy::{Builder, Client};
use parking_lot::RwLock;
use rialto_model::maps::FastMap;
use tokio::runtime::{Handle, Id};

use crate::connect::Connector;

/// Connections of one runtime.
pub(super) type Pool = Client<Connector, Full<Bytes>>;

/// Pools by the runtime that drives their connections; outside of any runtime there is one more.
pub(super) struct RuntimePools {
    builder: Builder,
    connector: Connector,
    pools: RwLock<FastMap<Option<Id>, Pool>>,
}

// === impl RuntimePools ===

impl RuntimePools {
    pub(super) fn new(builder: Builder, connector: Connector) -> Self {
        Self { builder, connector, pools: RwLock::default() }
    }

    /// Pool of the runtime that this is called on.
    pub(super) fn current(&self) -> Pool {
        let runtime = Handle::try_current().ok().map(|handle| handle.id());
        if let Some(pool) = self.pools.read().get(&runtime) {
            return pool.clone();
        }
        let build = || self.builder.build(self.connector.clone());
        self.pools.write().entry(runtime).or_insert_with(build).clone()
    }
}
