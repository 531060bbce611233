//! A foreign agent: real software of other people, started by `interop/run`.

use std::process::Command;

use super::{interop, process::ChildProcess};

/// A foreign agent that answers.
pub(crate) struct ForeignAgent {
    /// Its base URL.
    pub(crate) url: String,
    name: &'static str,
    args: Vec<String>,
    process: ChildProcess,
}

// === impl ForeignAgent ===

impl ForeignAgent {
    /// Starts it on a free port and waits until it answers.
    pub(crate) fn start(name: &'static str, args: &[&str]) -> Self {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        let (process, url) = run(name, &args, "0");
        Self { url, name, args, process }
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again where it was.
    pub(crate) fn revive(&mut self) {
        let port = self.url.rsplit(':').next().unwrap().to_owned();
        let (process, url) = run(self.name, &self.args, &port);
        assert_eq!(url, self.url);
        self.process = process;
    }
}

fn run(name: &str, args: &[String], port: &str) -> (ChildProcess, String) {
    let process =
        ChildProcess::start(name, Command::new(interop()).arg(name).args(args).args(["--port", port]));
    let line = process.line().unwrap_or_else(|| panic!("{name} ended before it was ready"));
    let url = line.strip_prefix("READY ").unwrap_or_else(|| panic!("{name} is not ready: {line}"));
    (process, url.to_owned())
}
