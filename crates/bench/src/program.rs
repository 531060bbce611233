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
    error::{BenchError, context},
    load::LoadConnection,
    process::BenchProcess,
};

/// Path of `rialto`, and options of the server.
#[derive(clap::Args)]
#[group(skip)]
pub(crate) struct ProgramArgs {
    /// The program under test; the one next to this program when not given.
    #[arg(long, value_name = "PATH")]
    rialto: Option<PathBuf>,
}

/// A `rialto` that can be run.
pub(crate) struct RialtoBinary(PathBuf);

/// A running `rialto serve`.
pub(crate) struct RunningServer {
    guard: BenchProcess,
    /// Address it listens on.
    pub(crate) address: SocketAddr,
    /// Its own process id, not its guard's.
    pub(crate) pid: u32,
    /// Time from exec to healthy.
    pub(crate) ready: Duration,
}

/// Timeout for `serve` to become healthy.
const HEALTHY_TIMEOUT: Duration = Duration::from_secs(60);

// === impl ProgramArgs ===

impl ProgramArgs {
    /// Finds the program.
    pub(crate) fn locate(&self) -> Result<RialtoBinary, BenchError> {
        let beside = || std::env::current_exe().map(|us| us.with_file_name("rialto"));
        let path = self
            .rialto
            .clone()
            .map_or_else(beside, Ok)
            .map_err(context("this program cannot find itself"))?;
        if path.is_file() {
            Ok(RialtoBinary(path))
        } else {
            Err(BenchError::new(format!("there is no {}; build it or give --rialto PATH", path.display())))
        }
    }
}

// === impl RialtoBinary ===

impl RialtoBinary {
    /// Path of the program.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Runs a command to its end and returns its output, or an error if it fails.
    pub(crate) async fn run<S: AsRef<OsStr>>(&self, args: &[S], data: &Path) -> Result<String, BenchError> {
        let mut command = Command::new(&self.0);
        command.args(args).arg("--data").arg(data).stdin(Stdio::null()).kill_on_drop(true);
        let output =
            command.output().await.map_err(context(format!("{} could not be run", self.0.display())))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let args: Vec<_> = args.iter().map(|arg| arg.as_ref().to_string_lossy()).collect();
        let said = String::from_utf8_lossy(&output.stderr);
        Err(BenchError::new(format!("rialto {} failed: {}", args.join(" "), said.trim())))
    }

    /// Registers one agent that may be called.
    pub(crate) async fn add_agent(&self, url: &str, data: &Path) -> Result<(), BenchError> {
        self.add_agent_with(url, data, &[]).await
    }

    /// Registers an agent with further arguments. One that another node has registered already is fine.
    pub(crate) async fn add_agent_with(
        &self,
        url: &str,
        data: &Path,
        more: &[&str],
    ) -> Result<(), BenchError> {
        let known = self.run(&[&["agents", "list", "--json"], more].concat(), data).await?;
        if known.contains(url) {
            return Ok(());
        }
        self.run(&[&["agents", "add", url, "--trust", "trusted"], more].concat(), data).await.map(drop)
    }

    /// Makes a bearer token.
    pub(crate) async fn create_token(&self, data: &Path) -> Result<String, BenchError> {
        let said = self.run(&["tokens", "create", "bench", "--json"], data).await?;
        let made: serde_json::Value =
            serde_json::from_str(&said).map_err(context("tokens create does not say JSON"))?;
        let token = made["token"].as_str().map(str::to_owned);
        token.ok_or_else(|| BenchError::new("tokens create made no token"))
    }

    /// Serves a data folder without tokens on a free port and waits until it is healthy.
    pub(crate) async fn serve(&self, data: &Path) -> Result<RunningServer, BenchError> {
        self.serve_with(data, &["--allow-no-auth"]).await
    }

    /// Serves with further arguments.
    pub(crate) async fn serve_with(&self, data: &Path, more: &[&str]) -> Result<RunningServer, BenchError> {
        let address = free_address().await?;
        let log = data.join("bench-serve.log");
        let listen = address.to_string();
        let head = [OsStr::new("guard"), OsStr::new("--"), self.0.as_os_str(), OsStr::new("serve")];
        let tail = [OsStr::new("--addr"), OsStr::new(&listen), OsStr::new("--data"), data.as_os_str()];
        let args: Vec<_> = head.into_iter().chain(tail).chain(more.iter().map(OsStr::new)).collect();
        let begun = Instant::now();
        let guard = BenchProcess::spawn_self(&args, Some(&log)).await?;
        let pid = guard.said.parse().map_err(context("the guard gave no process id"))?;
        while !is_healthy(address).await {
            if begun.elapsed() > HEALTHY_TIMEOUT || !Path::new(&format!("/proc/{pid}")).exists() {
                let said = fs::read_to_string(&log).unwrap_or_default();
                return Err(BenchError::new(format!(
                    "rialto serve did not become healthy; it said:\n{said}"
                )));
            }
            sleep(Duration::from_millis(5)).await;
        }
        Ok(RunningServer { guard, address, pid, ready: begun.elapsed() })
    }
}

// === impl RunningServer ===

impl RunningServer {
    /// Ends it.
    pub(crate) async fn stop(self) -> Result<(), BenchError> {
        self.guard.stop().await
    }
}

async fn free_address() -> Result<SocketAddr, BenchError> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(context("no free loopback port"))?;
    listener.local_addr().map_err(context("the port has no address"))
}

async fn is_healthy(address: SocketAddr) -> bool {
    get_page(address, "/healthz").await.is_ok()
}

/// Asks a server for a page, which it must have.
pub(crate) async fn get_page(address: SocketAddr, path: &str) -> Result<Bytes, BenchError> {
    let mut connection = LoadConnection::open(address).await?;
    let request = Request::get(path).header("host", address.to_string()).body(Full::<Bytes>::default());
    let (head, body) = connection.send(request.map_err(context("no request"))?).await?;
    if head.status == StatusCode::OK {
        Ok(body)
    } else {
        Err(BenchError::new(format!("{path} is answered with {}", head.status)))
    }
}
