//! Generation: counter by which processes notice changes.
//!
//! The truth is a counter in the database, which moves in the transaction of the change itself. What is asked on every call
//! is a copy of it in memory. Our own changes move the copy before they are acknowledged; those of other processes wake a
//! connection that listens, which reads the number then. It reads it every second too, and after every new connection, so that a
//! lost notification costs a moment and a lost connection is noticed. Behind a pooler nobody can listen, and the number is polled. A change of permissions or names waits for these copies ([`ack_barrier`]).

mod ack_barrier;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt, stream};
use rialto_model::clock::{Clock, SystemClock};
use tokio::{sync::mpsc, time};
use tokio_postgres::{AsyncMessage, Client, Connection, Socket};

pub(super) use self::ack_barrier::AckBarrier;
use super::{
    connection::GenericClient, error::PostgresError, pooler::DatabaseEndpoint, server_clock::ServerClock,
    sql, tls::Encrypted,
};
use crate::{audit_chain::number, error::DatabaseError};

/// Notification channel of changes.
const CHANNEL: &str = "rialto_generation";

/// Interval of reads without a notification.
const READ_INTERVAL: Duration = Duration::from_secs(1);

/// Interval of polls behind a pooler, where notifications do not arrive.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Time until other processes have polled a change: one interval and the time to read.
const POLL_WAIT: Duration = Duration::from_millis(250);

/// A server that takes longer to answer than this is not there.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Delay before a lost connection is opened again.
const RECONNECT_DELAY: Duration = Duration::from_millis(500);

/// The copy in memory.
#[derive(Clone, Debug, Default)]
pub(super) struct GenerationCopy(Arc<AtomicU64>);

/// Mechanism that notices changes of other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeNotice {
    /// A connection listens.
    Listen,
    /// The number is polled.
    Poll,
}

/// Follows what other processes change.
pub(super) struct Listener {
    pub(super) endpoint: DatabaseEndpoint,
    pub(super) notice: ChangeNotice,
    pub(super) generation: GenerationCopy,
    pub(super) ack_barrier: AckBarrier,
    pub(super) clock: ServerClock,
}

// === impl ChangeNotice ===

impl ChangeNotice {
    /// Waits until other processes that poll know of a change. Which ones there are is not known.
    pub(super) async fn wait_for_polls(self) {
        if self == Self::Poll {
            time::sleep(POLL_WAIT).await;
        }
    }
}

// === impl GenerationCopy ===

impl GenerationCopy {
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Moves it on to `number`, unless it is further already.
    pub(super) fn advance(&self, number: u64) {
        self.0.fetch_max(number, Ordering::Release);
    }
}

/// The number as it is in the database. What its clock shows is taken down too.
pub(super) async fn read(client: &Client, clock: &ServerClock) -> Result<u64, PostgresError> {
    let select =
        "SELECT number, (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint FROM generation";
    let before = SystemClock.now();
    let row = client.query_typed_one(select, &[]).await?;
    clock.update(before, row.try_get(1)?, SystemClock.now());
    Ok(number(row.try_get(0)?))
}

/// Counts one more change. It belongs into the transaction that makes the change; listeners are notified when that is
/// committed.
pub(super) async fn next(client: &impl GenericClient) -> Result<u64, PostgresError> {
    let row = sql::row(client, "UPDATE generation SET number = number + 1 RETURNING number", &[]).await?;
    sql::execute(client, "SELECT pg_notify($1, '')", &[&CHANNEL]).await?;
    Ok(number(row.try_get(0)?))
}

// === impl Listener ===

impl Listener {
    /// Follows for ever. A connection that is lost is made again.
    pub(super) async fn run(self) {
        let mut is_lost = false;
        loop {
            let Err(failure) = self.follow(&mut is_lost).await;
            if !is_lost {
                let fault = failure.fault();
                tracing::error!("changes by other processes are not heard of: {fault}");
            }
            is_lost = true;
            time::sleep(RECONNECT_DELAY).await;
        }
    }

    async fn follow(&self, is_lost: &mut bool) -> Result<std::convert::Infallible, PostgresError> {
        let DatabaseEndpoint { target, tls } = &self.endpoint;
        let (client, connection) = in_time(target.connect(tls.clone())).await?;
        let (wake, mut woken) = mpsc::channel(1);
        let driver = tokio::spawn(drive(connection, wake));
        let _ended_with_us = AbortOnDrop(driver.abort_handle());
        if self.notice == ChangeNotice::Poll {
            return self.poll(&client, is_lost).await;
        }
        // What is committed from here on waits for us: said before the number is read.
        let joining = self.ack_barrier.join(&client, self.generation.get());
        let mut notice = in_time(joining).await?;
        in_time(client.batch_execute(&format!("LISTEN {CHANNEL}"))).await?;
        log_recovery(is_lost);
        loop {
            let number = in_time(read(&client, &self.clock)).await?;
            self.generation.advance(number);
            in_time(notice.acknowledge(number)).await?;
            // Woken or not, it is read again: if the connection is gone, that says why.
            let _ = time::timeout(READ_INTERVAL, woken.recv()).await;
        }
    }

    /// Reads the number in short intervals.
    async fn poll(
        &self,
        client: &Client,
        is_lost: &mut bool,
    ) -> Result<std::convert::Infallible, PostgresError> {
        loop {
            let number = in_time(read(client, &self.clock)).await?;
            log_recovery(is_lost);
            self.generation.advance(number);
            time::sleep(POLL_INTERVAL).await;
        }
    }
}

fn log_recovery(is_lost: &mut bool) {
    if std::mem::take(is_lost) {
        tracing::info!("changes by other processes are heard of again");
    }
}

/// Ends a task together with its waiter.
struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Drives a connection and wakes the waiter for notifications. Several notifications wake once.
async fn drive(mut connection: Connection<Socket, Encrypted<Socket>>, wake: mpsc::Sender<()>) {
    let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
    while let Some(Ok(message)) = messages.next().await {
        if matches!(message, AsyncMessage::Notification(_)) {
            // A full channel is as good: a read is about to happen.
            let _ = wake.try_send(());
        }
    }
}

async fn in_time<T, E: Into<PostgresError>>(
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, PostgresError> {
    time::timeout(ANSWER_TIMEOUT, work).await.map_err(|_| silent())?.map_err(Into::into)
}

fn silent() -> PostgresError {
    PostgresError::Unreached(DatabaseError::plain(
        "the PostgreSQL server does not answer; see that it runs and can be reached",
    ))
}
