//! Child processes and their resource usage.
//!
//! Each child holds the reading end of a pipe whose other end is ours: when this process ends, however it ends, the pipe
//! closes and the child goes too.

use std::{ffi::OsStr, fs, path::Path, process::Stdio, time::Duration};

use serde::Serialize;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdin, Command},
    time::timeout,
};

use crate::error::{BenchError, context};

/// Running child that has written its line.
pub(crate) struct BenchProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    /// Its first line on standard output.
    pub(crate) said: String,
}

/// Memory of a process.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct ProcessMemory {
    /// Now.
    pub(crate) rss_mb: f64,
    /// At its worst.
    pub(crate) peak_mb: f64,
}

/// Timeout for a child's line.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// The kernel's number for "clock ticks per second" among the facts it gives a new program.
const AT_CLKTCK: u64 = 17;

// === impl BenchProcess ===

impl BenchProcess {
    /// Starts this very program again with other arguments; its standard error goes to `log`, or to ours.
    pub(crate) async fn spawn_self<S: AsRef<OsStr>>(
        args: &[S],
        log: Option<&Path>,
    ) -> Result<Self, BenchError> {
        let us = std::env::current_exe().map_err(context("this program cannot find itself"))?;
        let stderr = match log {
            None => Stdio::inherit(),
            Some(path) => fs::File::create(path).map_err(context("no log file could be made"))?.into(),
        };
        let mut child = Command::new(us)
            .args(args)
            // One caller sends more than any real one may.
            .env("RIALTO_LIMITS__REQUESTS_PER_SECOND", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .map_err(context("a child process could not be started"))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().ok_or_else(|| BenchError::new("a child process has no output"))?;
        let line = timeout(START_TIMEOUT, BufReader::new(stdout).lines().next_line()).await;
        let said = line
            .map_err(context("a child process says nothing"))?
            .map_err(context("a child process was lost"))?;
        let said = said.ok_or_else(|| BenchError::new("a child process ended before it was ready"))?;
        Ok(Self { child, stdin, said })
    }

    /// Its process id.
    pub(crate) fn id(&self) -> Result<u32, BenchError> {
        self.child.id().ok_or_else(|| BenchError::new("a child process has ended"))
    }

    /// Lets it end and waits until it has.
    pub(crate) async fn stop(mut self) -> Result<(), BenchError> {
        drop(self.stdin.take());
        self.child.wait().await.map(drop).map_err(context("a child process does not end"))
    }
}

/// The CPU time a process has used so far, in user and kernel mode, by all its threads.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration, BenchError> {
    let stat =
        fs::read_to_string(format!("/proc/{pid}/stat")).map_err(context(format!("process {pid} is gone")))?;
    // The second field is a file name in parentheses and may hold anything; after it come numbers.
    let numbers = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 =
        numbers.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Ok(Duration::from_nanos(ticks.saturating_mul(1_000_000_000 / ticks_per_second())))
}

/// Reads the memory of a process.
pub(crate) fn memory_of(pid: u32) -> Result<ProcessMemory, BenchError> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))
        .map_err(context(format!("process {pid} is gone")))?;
    Ok(ProcessMemory {
        rss_mb: status_megabytes(&status, "VmRSS:"),
        peak_mb: status_megabytes(&status, "VmHWM:"),
    })
}

fn status_megabytes(status: &str, name: &str) -> f64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    let kilobytes = line.split_whitespace().next().and_then(|number| number.parse::<f64>().ok());
    kilobytes.unwrap_or_default() / 1024.0
}

fn ticks_per_second() -> u64 {
    let facts = fs::read("/proc/self/auxv").unwrap_or_default();
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
    let facts = facts.chunks_exact(16).map(|pair| pair.split_at(8));
    facts
        .map(|(name, value)| (word(name), word(value)))
        .find(|(name, _)| *name == AT_CLKTCK)
        .map_or(100, |(_, n)| n.max(1))
}
