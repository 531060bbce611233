//! The program under test, driven the way a person would: by its command line.

use std::{
    ffi::OsStr,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use tokio::{net::TcpListener, process::Command, time::sleep};

use crate::{
    load::Connection,
    process::Process,
    trouble::{Trouble, during},
};

/// Where `rialto` is, and how it is asked for.
#[derive(clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// The program under test; the one next to this program when not given.
    #[arg(long, value_name = "PATH")]
    rialto: Option<PathBuf>,
}

/// A `rialto` that can be run.
pub(crate) struct Program(PathBuf);

/// A running `rialto serve`.
pub(crate) struct Served {
    guard: Process,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Its own process id, not its guard's.
    pub(crate) pid: u32,
    /// How long it took from exec to healthy.
    pub(crate) ready: Duration,
}

/// How long `serve` may take to become healthy.
const PATIENCE: Duration = Duration::from_secs(60);

// === impl Args ===

impl Args {
    /// Finds the program.
    pub(crate) fn find(&self) -> Result<Program, Trouble> {
        let beside = || std::env::current_exe().map(|us| us.with_file_name("rialto"));
        let path =
            self.rialto.clone().map_or_else(beside, Ok).map_err(during("this program cannot find itself"))?;
        if path.is_file() {
            Ok(Program(path))
        } else {
            Err(Trouble::new(format!("there is no {}; build it or give --rialto PATH", path.display())))
        }
    }
}

// === impl Program ===

impl Program {
    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Runs a command to its end and answers what it said; when it fails, that is the trouble.
    pub(crate) async fn run<S: AsRef<OsStr>>(&self, args: &[S], data: &Path) -> Result<String, Trouble> {
        let mut command = Command::new(&self.0);
        command.args(args).arg("--data").arg(data).stdin(Stdio::null()).kill_on_drop(true);
        let output =
            command.output().await.map_err(during(format!("{} could not be run", self.0.display())))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let args: Vec<_> = args.iter().map(|arg| arg.as_ref().to_string_lossy()).collect();
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Trouble::new(format!("rialto {} failed: {}", args.join(" "), said.trim())))
    }

    /// Registers one agent that may be called.
    pub(crate) async fn add_agent(&self, url: &str, data: &Path) -> Result<(), Trouble> {
        self.add_agent_with(url, data, &[]).await
    }

    /// The same with these arguments. One that another node has registered is there already.
    pub(crate) async fn add_agent_with(&self, url: &str, data: &Path, more: &[&str]) -> Result<(), Trouble> {
        let known = self.run(&[&["agents", "list", "--json"], more].concat(), data).await?;
        if known.contains(url) {
            return Ok(());
        }
        self.run(&[&["agents", "add", url, "--trust", "trusted"], more].concat(), data).await.map(drop)
    }

    /// Makes a bearer token.
    pub(crate) async fn make_token(&self, data: &Path) -> Result<String, Trouble> {
        let said = self.run(&["tokens", "create", "bench", "--json"], data).await?;
        let made: serde_json::Value =
            serde_json::from_str(&said).map_err(during("tokens create does not say JSON"))?;
        let token = made["token"].as_str().map(str::to_owned);
        token.ok_or_else(|| Trouble::new("tokens create made no token"))
    }

    /// Serves that data folder to everybody on a free port and waits until it is healthy.
    pub(crate) async fn serve(&self, data: &Path) -> Result<Served, Trouble> {
        self.serve_with(data, &["--allow-no-auth"]).await
    }

    /// The same, with these arguments.
    pub(crate) async fn serve_with(&self, data: &Path, more: &[&str]) -> Result<Served, Trouble> {
        let address = free_address().await?;
        let log = data.join("bench-serve.log");
        let listen = address.to_string();
        let head = [OsStr::new("guard"), OsStr::new("--"), self.0.as_os_str(), OsStr::new("serve")];
        let tail = [OsStr::new("--addr"), OsStr::new(&listen), OsStr::new("--data"), data.as_os_str()];
        let args: Vec<_> = head.into_iter().chain(tail).chain(more.iter().map(OsStr::new)).collect();
        let begun = Instant::now();
        let guard = Process::again(&args, Some(&log)).await?;
        let pid = guard.said.parse().map_err(during("the guard gave no process id"))?;
        while !is_healthy(address).await {
            if begun.elapsed() > PATIENCE || !Path::new(&format!("/proc/{pid}")).exists() {
                let said = fs::read_to_string(&log).unwrap_or_default();
                return Err(Trouble::new(format!("rialto serve did not become healthy; it said:\n{said}")));
            }
            sleep(Duration::from_millis(5)).await;
        }
        Ok(Served { guard, address, pid, ready: begun.elapsed() })
    }
}

// === impl Served ===

impl Served {
    /// Ends it.
    pub(crate) async fn stop(self) -> Result<(), Trouble> {
        self.guard.stop().await
    }
}

async fn free_address() -> Result<SocketAddr, Trouble> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(during("no free loopback port"))?;
    listener.local_addr().map_err(during("the port has no address"))
}

async fn is_healthy(address: SocketAddr) -> bool {
    get(address, "/healthz").await.is_ok()
}

/// Asks a server for a page, which it must have.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Result<Bytes, Trouble> {
    let mut connection = Connection::open(address).await?;
    let request = Request::get(path).header("host", address.to_string()).body(Full::<Bytes>::default());
    let (head, body) = connection.send(request.map_err(during("no request"))?).await?;
    if head.status == StatusCode::OK {
        Ok(body)
    } else {
        Err(Trouble::new(format!("{path} is answered with {}", head.status)))
    }
}
