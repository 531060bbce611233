//! Waits until the other processes know of a change.
//!
//! A client that changes a permission or a name and then calls another process must find the change there: so a change is acknowledged
//! when all processes have read it, at no cost per call. Each process publishes the last generation it has read as an advisory lock. Locks of
//! a connection that ends are gone with it, and nothing is written. One that stands still is waited for once and not again until
//! it moves: a laptop that sleeps holds up nobody for long.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::{self, Instant};
use tokio_postgres::{Client, types::Type};

use super::super::error::PostgresError;

/// Maximum wait for acknowledgements. A process that misses the notification reads the number before that.
const ACK_TIMEOUT: Duration = Duration::from_secs(2);

/// First and longest delay between two polls.
const POLL_DELAYS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

/// Locks have 32 bits for a number, one of them for its sign.
const KEY_RANGE: u64 = 1 << 31;

/// The lock's first half is the table, so that others in the same database may do the same.
const LOCK_SHARED: &str = "SELECT pg_advisory_lock_shared('generation'::regclass::oid::int4, $1)";
const UNLOCK_SHARED: &str = "SELECT pg_advisory_unlock_shared('generation'::regclass::oid::int4, $1)";
const SELECT_HELD: &str = "SELECT pid, objid::int8 FROM pg_locks \
    WHERE locktype = 'advisory' AND objsubid = 2 AND classid = 'generation'::regclass::oid AND pid <> $1 \
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// Acknowledgement of this process, held as an advisory lock by the listening connection.
pub(super) struct Acknowledger<'a> {
    client: &'a Client,
    held: Option<i32>,
}

/// The other processes at the database.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct AckBarrier {
    /// Backend id of our own listening connection; zero before there is one.
    own: Arc<AtomicI32>,
    /// Processes that did not acknowledge in time, with the number they had then.
    slow: Arc<Mutex<HashMap<i32, i64>>>,
}

// === impl AckBarrier ===

impl AckBarrier {
    /// Begins to acknowledge generations.
    pub(super) async fn join<'a>(
        &self,
        client: &'a Client,
        number: u64,
    ) -> Result<Acknowledger<'a>, PostgresError> {
        let row = client.query_typed_one("SELECT pg_backend_pid()", &[]).await?;
        self.own.store(row.try_get(0)?, Ordering::Relaxed);
        let mut notice = Acknowledger { client, held: None };
        notice.acknowledge(number).await?;
        Ok(notice)
    }

    /// Waits until all other processes have read this change, which is committed either way.
    pub(in super::super) async fn wait(&self, client: &Client, number: u64) {
        if let Err(failure) = self.try_wait(client, number).await {
            let fault = failure.fault();
            tracing::warn!("it is not known whether other processes have heard of a change yet: {fault}");
        }
    }

    async fn try_wait(&self, client: &Client, number: u64) -> Result<(), PostgresError> {
        let end = Instant::now() + ACK_TIMEOUT;
        let [mut pause, longest] = POLL_DELAYS;
        loop {
            let find_lagging = self.find_lagging(client, number).await?;
            if find_lagging.is_empty() {
                return Ok(());
            }
            if Instant::now() >= end {
                tracing::warn!(
                    "{} other processes at the database have not heard of a change yet; they go by it when they do",
                    find_lagging.len()
                );
                self.slow.lock().extend(find_lagging);
                return Ok(());
            }
            time::sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
    }

    /// Processes that lag behind, with their numbers, except those that have not moved since they timed out.
    async fn find_lagging(&self, client: &Client, number: u64) -> Result<HashMap<i32, i64>, PostgresError> {
        let rows =
            client.query_typed(SELECT_HELD, &[(&self.own.load(Ordering::Relaxed), Type::INT4)]).await?;
        let held = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
        let held = held.collect::<Result<Vec<(i32, i64)>, PostgresError>>()?;
        // For a moment, who moves on holds two.
        let is_lagging =
            |process| !held.iter().any(|held| held.0 == process && has_acknowledged(held.1, number));
        let mut find_lagging: HashMap<_, _> =
            held.iter().copied().filter(|held| is_lagging(held.0)).collect();
        let mut slow = self.slow.lock();
        slow.retain(|process, acknowledged| find_lagging.get(process) == Some(acknowledged));
        find_lagging.retain(|process, _| !slow.contains_key(process));
        Ok(find_lagging)
    }
}

// === impl Acknowledger ===

impl Acknowledger<'_> {
    /// Acknowledges all generations up to this one.
    pub(super) async fn acknowledge(&mut self, number: u64) -> Result<(), PostgresError> {
        let new = key(number);
        if self.held == Some(new) {
            return Ok(());
        }
        // The new one first: a process without a lock is not waited for.
        self.client.execute_typed(LOCK_SHARED, &[(&new, Type::INT4)]).await?;
        if let Some(old) = self.held.replace(new) {
            self.client.execute_typed(UNLOCK_SHARED, &[(&old, Type::INT4)]).await?;
        }
        Ok(())
    }
}

fn key(number: u64) -> i32 {
    i32::try_from(number % KEY_RANGE).unwrap_or_default()
}

/// Returns whether the holder of this lock has read that change; numbers wrap around after a long time.
fn has_acknowledged(lock: i64, number: u64) -> bool {
    let ahead = (u64::try_from(lock).unwrap_or_default() + KEY_RANGE - number % KEY_RANGE) % KEY_RANGE;
    ahead < KEY_RANGE / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_heard_is_known_also_where_numbers_begin_anew() {
        for number in [0, 7, KEY_RANGE - 1, KEY_RANGE, 5 * KEY_RANGE + 3] {
            let lock = |other: u64| i64::from(key(other));
            assert!(has_acknowledged(lock(number), number), "{number}");
            assert!(has_acknowledged(lock(number + 1), number), "{number}");
            assert!(has_acknowledged(lock(number + 1_000), number), "{number}");
            assert!(!has_acknowledged(lock(number), number + 1), "{number}");
            assert!(!has_acknowledged(lock(number), number + 1_000), "{number}");
        }
    }
}
