//! A PgBouncer of a test's own before a [`Server`], with the configuration of `deploy/pgbouncer.ini`: in transaction mode.
//!
//! `interop/setup` installs the package.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a pooler that does not start has failed its test")]

use std::{
    fs,
    net::TcpStream,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::postgres::{PASSWORD, Server, USER, free_port, give_away, is_root};

const CONFIG: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/pgbouncer.ini"));

/// Longer than a start takes on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(30);

/// A pooler. It ends when this is dropped.
pub struct PgBouncer {
    folder: TempDir,
    port: u16,
    child: Child,
}

// === impl PgBouncer ===

impl PgBouncer {
    /// Starts one that leads to every database of a server. It has so many connections to each, and closes those that nobody uses: a server
    /// has only so many.
    pub fn start(server: &Server, connections: usize) -> Self {
        let folder = tempfile::Builder::new().prefix("rialto-pgbouncer-").tempdir().unwrap();
        let port = free_port();
        let users = folder.path().join("userlist.txt");
        fs::write(&users, format!("\"{USER}\" \"{PASSWORD}\"\n")).unwrap();
        let log = folder.path().join("log").display().to_string();
        let mut config = CONFIG.to_owned();
        for (place, new) in [
            (
                "rialto = host=10.0.0.9 port=5432 dbname=rialto",
                format!("* = host=127.0.0.1 port={}", server.port()),
            ),
            (
                "listen_port = 6432",
                format!("listen_port = {port}\nunix_socket_dir =\nlogfile = {log}\nserver_idle_timeout = 1"),
            ),
            ("auth_file = /etc/pgbouncer/userlist.txt", format!("auth_file = {}", users.display())),
            ("default_pool_size = 20", format!("default_pool_size = {connections}")),
        ] {
            assert_eq!(config.matches(place).count(), 1, "{place}");
            config = config.replace(place, &new);
        }
        let file = folder.path().join("pgbouncer.ini");
        fs::write(&file, config).unwrap();
        [folder.path(), &users, &file].into_iter().for_each(give_away);
        let program =
            if fs::exists("/usr/sbin/pgbouncer").unwrap() { "/usr/sbin/pgbouncer" } else { "pgbouncer" };
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", program]);
            command
        } else {
            Command::new(program)
        };
        command.arg("--quiet").arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| panic!("PgBouncer: {error}: run interop/setup"));
        let pooler = Self { folder, port, child };
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "PgBouncer did not start:\n{}", pooler.log());
            thread::sleep(Duration::from_millis(20));
        }
        pooler
    }

    /// The address of a database by way of the pooler.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}:{PASSWORD}@127.0.0.1:{}/{database}", self.port)
    }

    /// The address of a database of the server, with this pooler between.
    pub fn around(&self, url: &str) -> String {
        self.url(url.rsplit('/').next().unwrap())
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
