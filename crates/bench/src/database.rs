//! A PostgreSQL server that several Rialtos share, and what it says about its own work.

use std::{fs, sync::Arc, time::Duration};

use rialto_testkit::postgres::Server;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::{
    process,
    trouble::{Trouble, during},
};

/// A server with one database. It ends when the last of these is dropped.
#[derive(Clone)]
pub(crate) struct Database {
    server: Arc<Server>,
    /// Its address, with the password in it.
    pub(crate) url: String,
    name: String,
}

/// What a database has done so far.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    pub(crate) commits: u64,
    pub(crate) cpu: Duration,
}

/// As a person would run it: it waits for its disk.
const SETTINGS: [&str; 3] = ["fsync=on", "full_page_writes=on", "synchronous_commit=on"];

// === impl Database ===

impl Database {
    /// Starts a server.
    pub(crate) async fn start() -> Result<Self, Trouble> {
        let starting = spawn_blocking(|| Server::start_with(&SETTINGS.map(str::to_owned)));
        let server = Arc::new(starting.await.map_err(during("PostgreSQL did not start"))?);
        Self::on(server).await
    }

    /// Another database on the same server.
    pub(crate) async fn another(&self) -> Result<Self, Trouble> {
        Self::on(Arc::clone(&self.server)).await
    }

    async fn on(server: Arc<Server>) -> Result<Self, Trouble> {
        let asked = Arc::clone(&server);
        let url = spawn_blocking(move || asked.database()).await.map_err(during("no database"))?;
        let name = url.rsplit('/').next().unwrap_or_default().to_owned();
        Ok(Self { server, url, name })
    }

    /// What it has done so far. Its own books are a second late, so this waits.
    pub(crate) async fn work(&self) -> Result<Work, Trouble> {
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        let select = format!("SELECT xact_commit FROM pg_stat_database WHERE datname = '{}'", self.name);
        let commits = self.ask(select).await?.parse().map_err(during("PostgreSQL counts no commits"))?;
        Ok(Work { commits, cpu: self.cpu()? })
    }

    /// How many of its sessions wait for a lock on average, looked at for so long.
    pub(crate) fn watch_locks(&self, seconds: Duration) -> JoinHandle<Result<f64, Trouble>> {
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
            database.ask(look).await?.parse().map_err(during("PostgreSQL says nothing about its locks"))
        })
    }

    async fn ask(&self, statement: String) -> Result<String, Trouble> {
        let (server, name) = (Arc::clone(&self.server), self.name.clone());
        spawn_blocking(move || server.sql(&name, &statement))
            .await
            .map_err(during("PostgreSQL did not answer"))
    }

    /// The CPU time of all its processes.
    fn cpu(&self) -> Result<Duration, Trouble> {
        let server = self.server.id().ok_or_else(|| Trouble::new("PostgreSQL has ended"))?;
        let mut all = process::cpu(server)?;
        let names = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.file_name());
        for pid in names.filter_map(|name| name.to_str()?.parse::<u32>().ok()) {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let parent =
                stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
            if parent == Some(server) {
                // One that has just ended used next to nothing.
                all += process::cpu(pid).unwrap_or_default();
            }
        }
        Ok(all)
    }
}
