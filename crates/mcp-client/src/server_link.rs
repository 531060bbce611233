//! Link to one server: an open connection, or the backoff until the next attempt.
//!
//! A connection attempt continues when its callers have stopped waiting, because a server may take longer to start than any caller
//! waits.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use parking_lot::Mutex;
use rialto_model::call::Caller;
use serde_json::Value;
use tokio::time::timeout;

use crate::{
    McpBackendDeps, ServerKey,
    connection::{McpConnection, ServerCompat},
};

/// Timeout for starting a server and its handshake. Some are downloaded first.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Initial backoff after a failure; doubled with each further one.
const INITIAL_BACKOFF: Duration = Duration::from_millis(500);

/// Maximum backoff.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// Minimum lifetime of a healthy connection: when it breaks, the next attempt is made at once.
const MIN_HEALTHY_LIFETIME: Duration = Duration::from_secs(10);

/// Delay added to the backoff before reconnecting.
const RECONNECT_MARGIN: Duration = Duration::from_millis(20);

/// Time for child processes to exit at shutdown.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Link to one server.
pub(crate) struct ServerLink {
    pub(crate) key: ServerKey,
    ports: McpBackendDeps,
    state: Mutex<LinkState>,
    compat: ServerCompat,
}

pub(crate) type ConnectAttempt = Shared<BoxFuture<'static, Result<Arc<McpConnection>, String>>>;

enum LinkState {
    /// Not connected.
    Idle(ReconnectBackoff),
    /// Connecting.
    Making(ConnectAttempt, ReconnectBackoff),
    /// Connected.
    Open(Arc<McpConnection>, Instant, ReconnectBackoff),
    /// Closed for good.
    Closed,
}

/// Backoff state of earlier attempts.
#[derive(Clone, Default)]
struct ReconnectBackoff {
    failures: u32,
    /// Time of the next allowed attempt, and the last error.
    until: Option<(Instant, String)>,
}

// === impl ServerLink ===

impl ServerLink {
    pub(crate) fn new(key: ServerKey, ports: McpBackendDeps) -> Self {
        Self {
            key,
            ports,
            state: Mutex::new(LinkState::Idle(ReconnectBackoff::default())),
            compat: ServerCompat::default(),
        }
    }

    /// The connection, opened on demand. The error says why there is none.
    pub(crate) async fn connection(self: &Arc<Self>) -> Result<Arc<McpConnection>, String> {
        let attempt = {
            let mut state = self.state.lock();
            let rest = match &*state {
                LinkState::Open(connection, ..) if connection.is_open() => return Ok(Arc::clone(connection)),
                LinkState::Making(attempt, _) => Err(attempt.clone()),
                LinkState::Open(_, since, rest) => Ok(rest.after_break(since.elapsed())),
                LinkState::Idle(rest) => Ok(rest.clone()),
                LinkState::Closed => return Err(format!("{} was removed", self.key.server.name)),
            };
            match rest {
                Err(attempt) => attempt,
                Ok(rest) => {
                    if let Some(why) = rest.refusal() {
                        if matches!(*state, LinkState::Open(..)) {
                            self.revive(&rest);
                        }
                        *state = LinkState::Idle(rest);
                        return Err(why);
                    }
                    let attempt = self.attempt();
                    *state = LinkState::Making(attempt.clone(), rest);
                    attempt
                }
            }
        };
        attempt.await
    }

    /// The attempt that is running, if any.
    pub(crate) fn attempt_under_way(&self) -> Option<ConnectAttempt> {
        match &*self.state.lock() {
            LinkState::Making(attempt, _) => Some(attempt.clone()),
            LinkState::Idle(_) | LinkState::Open(..) | LinkState::Closed => None,
        }
    }

    /// Starts a connection attempt in a task of its own.
    fn attempt(self: &Arc<Self>) -> ConnectAttempt {
        let line = Arc::clone(self);
        let made = tokio::spawn(async move {
            let made = match timeout(START_TIMEOUT, McpConnection::open(&line.key, &line.ports, &line.compat))
                .await
            {
                Ok(made) => made.map_err(|trouble| trouble.to_string()),
                Err(_) => Err(format!("it did not start within {} s", START_TIMEOUT.as_secs())),
            };
            line.made(made)
        });
        async move { made.await.unwrap_or_else(|_| Err("the attempt to reach it was cut off".to_owned())) }
            .boxed()
            .shared()
    }

    fn made(self: &Arc<Self>, made: Result<McpConnection, String>) -> Result<Arc<McpConnection>, String> {
        let mut state = self.state.lock();
        let rest = match &*state {
            LinkState::Making(_, rest) => rest.clone(),
            LinkState::Closed => return Err(format!("{} was removed", self.key.server.name)),
            LinkState::Idle(_) | LinkState::Open(..) => ReconnectBackoff::default(),
        };
        match made {
            Ok(connection) => {
                let connection = Arc::new(connection);
                connection.watch(Arc::clone(self));
                *state = LinkState::Open(Arc::clone(&connection), Instant::now(), rest);
                Ok(connection)
            }
            Err(why) => {
                let rest = rest.after_failure(why.clone());
                self.revive(&rest);
                *state = LinkState::Idle(rest);
                Err(why)
            }
        }
    }

    /// Triggers a refresh when the next attempt is allowed, so that the server is probed again.
    fn revive(self: &Arc<Self>, rest: &ReconnectBackoff) {
        let Some((until, _)) = &rest.until else { return };
        let (at, line) = (tokio::time::Instant::from_std(*until + RECONNECT_MARGIN), Arc::downgrade(self));
        tokio::spawn(async move {
            tokio::time::sleep_until(at).await;
            if let Some(line) = line.upgrade() {
                line.changed();
            }
        });
    }

    /// Reports that the tools may have changed, or that the server is gone.
    pub(crate) fn changed(&self) {
        if !matches!(*self.state.lock(), LinkState::Closed) {
            (self.ports.changed)(&self.key.scope, &self.key.url());
        }
    }

    /// Answers a sampling request, if sampling is configured for this server.
    pub(crate) async fn sample(&self, caller: &Caller, params: Value) -> Result<Value, String> {
        match &self.key.server.sampling {
            Some(name) => (self.ports.sampler)(caller.clone(), name.clone(), params).await,
            None => Err("no agent is configured for that".to_owned()),
        }
    }

    /// Closes the link.
    pub(crate) fn close(&self) -> Option<Arc<McpConnection>> {
        match std::mem::replace(&mut *self.state.lock(), LinkState::Closed) {
            LinkState::Open(connection, ..) => {
                connection.close();
                Some(connection)
            }
            LinkState::Idle(_) | LinkState::Making(..) | LinkState::Closed => None,
        }
    }

    /// Closes the link and waits until the connection has ended.
    pub(crate) async fn closed(&self) {
        if let Some(connection) = self.close() {
            let _ = timeout(EXIT_TIMEOUT, connection.ended()).await;
        }
    }
}

// === impl ReconnectBackoff ===

impl ReconnectBackoff {
    /// Error while the backoff lasts.
    fn refusal(&self) -> Option<String> {
        let (until, why) = self.until.as_ref()?;
        let wait = until.checked_duration_since(Instant::now())?;
        Some(format!("{why} (the next attempt is made in {} ms at the earliest)", wait.as_millis()))
    }

    fn after_failure(&self, why: String) -> Self {
        let wait = INITIAL_BACKOFF.saturating_mul(1 << self.failures.min(10)).min(MAX_BACKOFF);
        Self { failures: self.failures.saturating_add(1), until: Some((Instant::now() + wait, why)) }
    }

    fn after_break(&self, lasted: Duration) -> Self {
        if lasted >= MIN_HEALTHY_LIFETIME {
            Self::default()
        } else {
            self.after_failure("it ended soon after it had started".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wait_is_twice_as_long_up_to_a_minute() {
        let mut rest = ReconnectBackoff::default();
        let mut waits = Vec::new();
        for _ in 0..9 {
            let before = Instant::now();
            rest = rest.after_failure("no".to_owned());
            waits.push(rest.until.as_ref().unwrap().0.duration_since(before).as_millis() / 500);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 120, 120]);
        assert!(rest.refusal().unwrap().starts_with("no (the next attempt"));
    }

    #[test]
    fn a_connection_that_lasted_is_made_anew_at_once() {
        let rest = ReconnectBackoff::default().after_failure("no".to_owned());
        assert!(rest.after_break(MIN_HEALTHY_LIFETIME).refusal().is_none());
        assert!(rest.after_break(Duration::ZERO).refusal().is_some());
    }
}
