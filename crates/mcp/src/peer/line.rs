//! The line to one server: a connection, or the wait until the next attempt to make one.
//!
//! An attempt goes on when nobody waits for it any more, because a program may take longer to start than any single
//! caller waits.

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

use super::{
    Key, Ports,
    connection::{Connection, ServerCompat},
};

/// How long a server may take to start and say hello. Some are downloaded first.
const START: Duration = Duration::from_secs(60);

/// The first wait after a failure; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// A connection that lasted this long was a good one: when it breaks, the next attempt is made at once.
const LASTED: Duration = Duration::from_secs(10);

/// So much later than allowed the next attempt is made.
const MARGIN: Duration = Duration::from_millis(20);

/// How long programs may take to end when they are told to.
const ENDING: Duration = Duration::from_secs(2);

/// The line to one server.
pub(super) struct Line {
    pub(super) key: Key,
    ports: Ports,
    state: Mutex<State>,
    compat: ServerCompat,
}

pub(super) type Attempt = Shared<BoxFuture<'static, Result<Arc<Connection>, String>>>;

enum State {
    /// There is none.
    Idle(Rest),
    /// It is being made.
    Making(Attempt, Rest),
    /// It is there.
    Open(Arc<Connection>, Instant, Rest),
    /// Nobody wants it any more.
    Closed,
}

/// What is known of earlier attempts.
#[derive(Clone, Default)]
struct Rest {
    failures: u32,
    /// When the next attempt may be made, and why the last one failed.
    until: Option<(Instant, String)>,
}

// === impl Line ===

impl Line {
    pub(super) fn new(key: Key, ports: Ports) -> Self {
        Self { key, ports, state: Mutex::new(State::Idle(Rest::default())), compat: ServerCompat::default() }
    }

    /// The connection, made if need be. The error says why there is none.
    pub(super) async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, String> {
        let attempt = {
            let mut state = self.state.lock();
            let rest = match &*state {
                State::Open(connection, ..) if connection.is_open() => return Ok(Arc::clone(connection)),
                State::Making(attempt, _) => Err(attempt.clone()),
                State::Open(_, since, rest) => Ok(rest.after_break(since.elapsed())),
                State::Idle(rest) => Ok(rest.clone()),
                State::Closed => return Err(format!("{} was removed", self.key.server.name)),
            };
            match rest {
                Err(attempt) => attempt,
                Ok(rest) => {
                    if let Some(why) = rest.refusal() {
                        if matches!(*state, State::Open(..)) {
                            self.revive(&rest);
                        }
                        *state = State::Idle(rest);
                        return Err(why);
                    }
                    let attempt = self.attempt();
                    *state = State::Making(attempt.clone(), rest);
                    attempt
                }
            }
        };
        attempt.await
    }

    /// The attempt to make a connection that is under way, if one is.
    pub(super) fn attempt_under_way(&self) -> Option<Attempt> {
        match &*self.state.lock() {
            State::Making(attempt, _) => Some(attempt.clone()),
            State::Idle(_) | State::Open(..) | State::Closed => None,
        }
    }

    /// Begins to make a connection, in a task of its own.
    fn attempt(self: &Arc<Self>) -> Attempt {
        let line = Arc::clone(self);
        let made = tokio::spawn(async move {
            let made = match timeout(START, Connection::open(&line.key, &line.ports, &line.compat)).await {
                Ok(made) => made.map_err(|trouble| trouble.to_string()),
                Err(_) => Err(format!("it did not start within {} s", START.as_secs())),
            };
            line.made(made)
        });
        async move { made.await.unwrap_or_else(|_| Err("the attempt to reach it was cut off".to_owned())) }
            .boxed()
            .shared()
    }

    fn made(self: &Arc<Self>, made: Result<Connection, String>) -> Result<Arc<Connection>, String> {
        let mut state = self.state.lock();
        let rest = match &*state {
            State::Making(_, rest) => rest.clone(),
            State::Closed => return Err(format!("{} was removed", self.key.server.name)),
            State::Idle(_) | State::Open(..) => Rest::default(),
        };
        match made {
            Ok(connection) => {
                let connection = Arc::new(connection);
                connection.watch(Arc::clone(self));
                *state = State::Open(Arc::clone(&connection), Instant::now(), rest);
                Ok(connection)
            }
            Err(why) => {
                let rest = rest.after_failure(why.clone());
                self.revive(&rest);
                *state = State::Idle(rest);
                Err(why)
            }
        }
    }

    /// Has the server asked again when the next attempt may be made, if anybody still wants it then.
    fn revive(self: &Arc<Self>, rest: &Rest) {
        let Some((until, _)) = &rest.until else { return };
        let (at, line) = (tokio::time::Instant::from_std(*until + MARGIN), Arc::downgrade(self));
        tokio::spawn(async move {
            tokio::time::sleep_until(at).await;
            if let Some(line) = line.upgrade() {
                line.changed();
            }
        });
    }

    /// Tells whoever wants to know that the tools may have changed, or that nobody is there any more.
    pub(super) fn changed(&self) {
        if !matches!(*self.state.lock(), State::Closed) {
            (self.ports.changed)(&self.key.scope, &self.key.url());
        }
    }

    /// What a model would say, if that is offered to this server.
    pub(super) async fn sample(&self, caller: &Caller, params: Value) -> Result<Value, String> {
        match &self.key.server.sampling {
            Some(name) => (self.ports.sampler)(caller.clone(), name.clone(), params).await,
            None => Err("no agent is configured for that".to_owned()),
        }
    }

    /// Lets go of the server.
    pub(super) fn close(&self) -> Option<Arc<Connection>> {
        match std::mem::replace(&mut *self.state.lock(), State::Closed) {
            State::Open(connection, ..) => {
                connection.close();
                Some(connection)
            }
            State::Idle(_) | State::Making(..) | State::Closed => None,
        }
    }

    /// The same, and waits until it has ended.
    pub(super) async fn closed(&self) {
        if let Some(connection) = self.close() {
            let _ = timeout(ENDING, connection.ended()).await;
        }
    }
}

// === impl Rest ===

impl Rest {
    /// Why no attempt is made now.
    fn refusal(&self) -> Option<String> {
        let (until, why) = self.until.as_ref()?;
        let wait = until.checked_duration_since(Instant::now())?;
        Some(format!("{why} (the next attempt is made in {} ms at the earliest)", wait.as_millis()))
    }

    fn after_failure(&self, why: String) -> Self {
        let wait = FIRST_WAIT.saturating_mul(1 << self.failures.min(10)).min(LONGEST_WAIT);
        Self { failures: self.failures.saturating_add(1), until: Some((Instant::now() + wait, why)) }
    }

    fn after_break(&self, lasted: Duration) -> Self {
        if lasted >= LASTED {
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
        let mut rest = Rest::default();
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
        let rest = Rest::default().after_failure("no".to_owned());
        assert!(rest.after_break(LASTED).refusal().is_none());
        assert!(rest.after_break(Duration::ZERO).refusal().is_some());
    }
}
