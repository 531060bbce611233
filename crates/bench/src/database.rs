//! PostgreSQL server that several Rialto servers share, with its statistics.

use std::{fs, sync::Arc, time::Duration};

use rialto_testkit::postgres::Server;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::{
    error::{BenchError, context},
    process,
};

/// A server with one database. It ends when the last of these is dropped.
#[derive(Clone)]
pub(crate) struct PostgresDatabase {
    server: Arc<Server>,
    /// Its address, with the password in it.
    pub(crate) url: String,
    name: String,
}

/// Work of a database so far.
#[derive(Clone, Copy)]
pub(crate) struct DatabaseWork {
    pub(crate) commits: u64,
    pub(crate) cpu: Duration,
}

/// As a person would run it: it waits for its disk.
const SETTINGS: [&str; 3] = ["fsync=on", "full_page_writes=on", "synchronous_commit=on"];

// === impl PostgresDatabase ===

impl PostgresDatabase {
    /// Starts a server.
    pub(crate) async fn start() -> Result<Self, BenchError> {
        let starting = spawn_blocking(|| Server::start_with(&SETTINGS.map(str::to_owned)));
        let server = Arc::new(starting.await.map_err(context("PostgreSQL did not start"))?);
        Self::create_on(server).await
    }

    /// Creates another database on this server.
    pub(crate) async fn create_another(&self) -> Result<Self, BenchError> {
        Self::create_on(Arc::clone(&self.server)).await
    }

    async fn create_on(server: Arc<Server>) -> Result<Self, BenchError> {
        let asked = Arc::clone(&server);
        let url = spawn_blocking(move || asked.database()).await.map_err(context("no database"))?;
        let name = url.rsplit('/').next().unwrap_or_default().to_owned();
        Ok(Self { server, url, name })
    }

    /// Reads the work so far. PostgreSQL's statistics are a second late, so this waits.
    pub(crate) async fn work(&self) -> Result<DatabaseWork, BenchError> {
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        let select = format!("SELECT xact_commit FROM pg_stat_database WHERE datname = '{}'", self.name);
        let commits = self.query(select).await?.parse().map_err(context("PostgreSQL counts no commits"))?;
        Ok(DatabaseWork { commits, cpu: self.cpu_time()? })
    }

    /// Samples the mean number of sessions that wait for a lock.
    pub(crate) fn sample_lock_waits(&self, seconds: Duration) -> JoinHandle<Result<f64, BenchError>> {
        let database = self.clone();
        let look = format!(
            "CREATE FUNCTION pg_temp.look() RETURNS float LANGUAGE plpgsql AS $$
             DECLARE waiting bigint := 0; looks bigint := 0; ends timestamptz := clock_timestamp() + interval '{} ms';
             BEGIN
                 WHILE clock_timestamp() < ends LOOP
                     PERFORM pg_stat_clear_snapshot();
                     waiting := waiting + (SELECT count(*) FROM pg_stat_activity
                         WHERE datname = current_database() AND wait_event_type = 'Lock');
                     looks := looks + 1;
                     PERFORM pg_sleep(0.01);
                 END LOOP;
                 RETURN waiting::float / greatest(looks, 1);
             END $$; SELECT pg_temp.look()",
            seconds.as_millis()
        );
        tokio::spawn(async move {
            database.query(look).await?.parse().map_err(context("PostgreSQL says nothing about its locks"))
        })
    }

    async fn query(&self, statement: String) -> Result<String, BenchError> {
        let (server, name) = (Arc::clone(&self.server), self.name.clone());
        spawn_blocking(move || server.sql(&name, &statement))
            .await
            .map_err(context("PostgreSQL did not answer"))
    }

    /// The CPU time of all its processes.
    fn cpu_time(&self) -> Result<Duration, BenchError> {
        let server = self.server.id().ok_or_else(|| BenchError::new("PostgreSQL has ended"))?;
        let mut all = process::cpu_time(server)?;
        let names = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.file_name());
        for pid in names.filter_map(|name| name.to_str()?.parse::<u32>().ok()) {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let parent =
                stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
            if parent == Some(server) {
                // One that has just ended used next to nothing.
                all += process::cpu_time(pid).unwrap_or_default();
            }
        }
        Ok(all)
    }
}
