//! A PostgreSQL server of a test's own, from the system's package.
//!
//! It listens on loopback, wants a password, keeps everything in a folder that goes with it, and forgets to wait for the
//! disk: nobody needs what is in it after the test. `interop/setup` installs the package.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a server that does not start has failed its test")]

use std::{
    fs::{self, File},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// What a test looks for in everything that is printed.
pub const PASSWORD: &str = "hunter2hunter2";

/// Who owns everything.
pub(crate) const USER: &str = "rialto";

/// Longer than a start takes on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a server is looked at that cannot tell by itself.
const LOOK: Duration = Duration::from_millis(20);

/// A server. It ends when this is dropped.
pub struct Server {
    folder: TempDir,
    programs: PathBuf,
    port: u16,
    child: Option<Child>,
    databases: AtomicUsize,
    settings: Vec<String>,
}

// === impl Server ===

impl Server {
    /// Starts one.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts one with these settings (`ssl=on`) besides ours.
    pub fn start_with(settings: &[String]) -> Self {
        let programs = programs();
        let folder = tempfile::Builder::new().prefix("rialto-postgres-").tempdir().unwrap();
        give_away(folder.path());
        let secret = folder.path().join("password");
        fs::write(&secret, PASSWORD).unwrap();
        give_away(&secret);
        let mut server = Self {
            folder,
            programs,
            port: 0,
            child: None,
            databases: AtomicUsize::new(0),
            settings: settings.to_vec(),
        };
        let made = server
            .program("initdb")
            .args(["--no-sync", "--encoding=UTF8", "--locale=C", "--auth=scram-sha-256", "--username", USER])
            .arg("--pwfile")
            .arg(&secret)
            .arg("--pgdata")
            .arg(server.data())
            .output()
            .unwrap();
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        server.port = free_port();
        server.restart();
        server
    }

    /// Starts it again, after [`Server::stop`].
    pub fn restart(&mut self) {
        let log = File::create(self.folder.path().join("log")).unwrap();
        let mut command = self.program("postgres");
        command.arg("-D").arg(self.data()).args(["-p", &self.port.to_string()]);
        let ours = [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "fsync=off",
            "full_page_writes=off",
            "max_connections=60",
        ];
        for setting in ours.into_iter().chain(self.settings.iter().map(String::as_str)) {
            command.args(["-c", setting]);
        }
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.child = Some(command.spawn().unwrap());
        self.wait_until_ready();
    }

    /// Ends it as nobody can prevent.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Immediately, as after a crash: a polite end would wait for those who are connected.
            let _ = Command::new("kill").args(["-s", "QUIT", &child.id().to_string()]).status();
            let _ = child.wait();
        }
    }

    /// Stops all of its processes where they are: connections stay open, and nobody answers.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// Has them go on.
    pub fn thaw(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let parent = self.child.as_ref().unwrap().id().to_string();
        let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
        let processes = processes.filter_map(|name| name.into_string().ok());
        // The name stands in parentheses; behind it come the state and the parent.
        let is_child = |process: &String| {
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
            behind.split_whitespace().nth(1) == Some(&parent)
        };
        let children: Vec<String> = processes.filter(is_child).collect();
        let _ = Command::new("kill").args(["-s", name, &parent]).args(children).status();
    }

    /// Makes an empty database, and answers its address with the password in it.
    pub fn database(&self) -> String {
        let name = format!("rialto_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// The address of a database.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}:{PASSWORD}@127.0.0.1:{}/{database}", self.port)
    }

    /// Its process id, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// The port it listens on.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Runs a statement in a database, beside whoever uses it, and answers what it prints.
    #[track_caller]
    pub fn sql(&self, database: &str, statement: &str) -> String {
        let done = self.ask(database, statement);
        assert!(done.status.success(), "{statement}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// Begins a statement in a database that goes on for as long as its process lives.
    pub fn session(&self, database: &str, statement: &str) -> Child {
        self.psql(database, statement).stdout(Stdio::null()).spawn().unwrap()
    }

    fn ask(&self, database: &str, statement: &str) -> std::process::Output {
        self.psql(database, statement).output().unwrap()
    }

    fn psql(&self, database: &str, statement: &str) -> Command {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1"]);
        psql.args(["--dbname", &self.url(database), "--command", statement]).stdin(Stdio::null());
        psql
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn wait_until_ready(&mut self) {
        let end = Instant::now() + PATIENCE;
        loop {
            let is_open = TcpStream::connect(("127.0.0.1", self.port)).is_ok();
            if is_open && self.ask("postgres", "SELECT 1").status.success() {
                return;
            }
            let ended = self.child.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)));
            if ended || Instant::now() > end {
                let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                panic!("PostgreSQL did not start:\n{log}");
            }
            thread::sleep(LOOK);
        }
    }

    /// One of its programs, as a user that is not root: it refuses to be that.
    fn program(&self, name: &str) -> Command {
        let program = self.programs.join(name);
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(self.folder.path());
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A copy of a file that only the server's user can read, as it wants of keys.
pub fn server_file(from: &Path, folder: &Path) -> PathBuf {
    let copy = folder.join(from.file_name().unwrap());
    fs::copy(from, &copy).unwrap();
    let private: fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(&copy, private).unwrap();
    give_away(folder);
    give_away(&copy);
    copy
}

/// Where the server's programs are: on the path, or where Debian puts them.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&path));
    let has_all =
        |folder: &PathBuf| ["initdb", "postgres", "psql"].iter().all(|name| folder.join(name).exists());
    folders.into_iter().find(has_all).unwrap_or_else(|| panic!("PostgreSQL is missing: run interop/setup"))
}

pub(crate) fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout.trim_ascii() == b"0"
}

pub(crate) fn give_away(path: &Path) {
    if is_root() {
        let given = Command::new("chown").arg("postgres:postgres").arg(path).status().unwrap();
        assert!(given.success(), "there is no user `postgres`: run interop/setup");
    }
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
