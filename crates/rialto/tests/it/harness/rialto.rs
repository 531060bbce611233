//! The program, with a home of its own.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use tempfile::TempDir;

use super::{client::McpTransport, process::ChildProcess, server::ServerProcess, stdio::StdioServer};

/// The binary under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_rialto");

/// A fresh installation: an empty data folder and an environment without surprises.
pub(crate) struct Rialto {
    folder: TempDir,
    variables: Vec<(String, String)>,
    program: String,
}

/// What one command came to.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

// === impl Rialto ===

impl Rialto {
    /// Nothing is installed yet. Tools have their canonical names and calls fail with S0's codes, which most tests read.
    pub(crate) fn fresh() -> Self {
        Self::with_defaults()
            .with("RIALTO_MCP__TOOL_NAMES", "canonical")
            .with("RIALTO_MCP__TOOL_ERRORS", "protocol")
    }

    /// The same without any option, as users have it.
    pub(crate) fn with_defaults() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data").display().to_string();
        let variables = vec![("RIALTO_DATA".to_owned(), data)];
        Self { folder, variables, program: PROGRAM.to_owned() }
    }

    /// The same, with a variable set.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs another binary from now on, such as one of the version before.
    pub(crate) fn set_program(&mut self, program: &str) {
        program.clone_into(&mut self.program);
    }

    /// The folder the program starts in.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder everything is kept in.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Runs a command to its end.
    #[track_caller]
    pub(crate) fn cli(&self, args: &[&str]) -> CommandOutput {
        self.cli_fed(args, "")
    }

    /// Runs a command that reads `input`.
    #[track_caller]
    pub(crate) fn cli_fed(&self, args: &[&str], input: &str) -> CommandOutput {
        let mut process = self.start(args);
        if !input.is_empty() {
            process.say(input.as_bytes());
        }
        process.hang_up();
        let status = process.end().code().unwrap_or(-1);
        let lines = std::iter::from_fn(|| process.line_now());
        CommandOutput { status, out: lines.map(|line| line + "\n").collect(), err: process.stderr() }
    }

    /// Runs a command that succeeds and prints JSON.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        self.cli(args).ok().json()
    }

    /// Registers an agent, trusted, and answers its slug.
    #[track_caller]
    pub(crate) fn trust(&self, url: &str) -> String {
        let agent = self.json(&["agents", "add", url, "--trust", "trusted", "--json"]);
        agent["slug"].as_str().unwrap().to_owned()
    }

    /// Starts a server on a free port and waits until it answers.
    #[track_caller]
    pub(crate) fn serve(&self, args: &[&str]) -> ServerProcess {
        let args = [&["serve", "--addr", "127.0.0.1:0"], args].concat();
        ServerProcess::ready(self.start(&args))
    }

    /// Starts a server with more variables than other commands have.
    #[track_caller]
    pub(crate) fn serve_with(&self, variables: &[(&str, &str)], args: &[&str]) -> ServerProcess {
        let args = [&["serve", "--addr", "127.0.0.1:0"], args].concat();
        let mut command = Command::new(&self.program);
        command.args(&args);
        let own = self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let all: Vec<_> = own.chain(variables.iter().copied()).collect();
        command.current_dir(self.folder()).env_clear().env("HOME", self.folder()).envs(all);
        ServerProcess::ready(ChildProcess::start("rialto serve", &mut command))
    }

    /// Starts a server at this address and waits until it answers.
    #[track_caller]
    pub(crate) fn serve_at(&self, address: &str, args: &[&str]) -> ServerProcess {
        ServerProcess::ready(self.start(&[&["serve", "--addr", address], args].concat()))
    }

    /// Starts a server that may have no more than this number of files open.
    #[track_caller]
    pub(crate) fn serve_within(&self, files: usize) -> ServerProcess {
        let script = format!("ulimit -n {files} && exec {} serve --addr 127.0.0.1:0", self.program);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &script]);
        ServerProcess::ready(self.start_command("rialto serve with few files", command))
    }

    /// Starts an MCP server on stdin and stdout.
    pub(crate) fn mcp(&self, args: &[&str]) -> StdioServer {
        StdioServer::new(self.start(&[&["mcp"], args].concat()))
    }

    /// The door of clients that start an MCP server on stdin and stdout themselves.
    pub(crate) fn stdio(&self, args: &[&str]) -> McpTransport {
        let words = [self.program.as_str(), "mcp"].into_iter().chain(args.iter().copied());
        let command = words.map(str::to_owned).collect();
        McpTransport::Stdio { command, variables: self.variables.clone() }
    }

    /// Starts a command.
    pub(crate) fn start(&self, args: &[&str]) -> ChildProcess {
        let mut command = Command::new(&self.program);
        command.args(args);
        self.start_command(&format!("rialto {}", args.join(" ")), command)
    }

    /// Starts a command in this installation's folder and environment.
    fn start_command(&self, name: &str, mut command: Command) -> ChildProcess {
        let variables = self.variables.iter().map(|(name, value)| (name, value));
        command.current_dir(self.folder()).env_clear().env("HOME", self.folder()).envs(variables);
        ChildProcess::start(name, &mut command)
    }
}

// === impl CommandOutput ===

impl CommandOutput {
    /// It went well.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        self.exit(0)
    }

    /// It ended with this status.
    #[track_caller]
    pub(crate) fn exit(self, status: i32) -> Self {
        assert_eq!(self.status, status, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// What it printed, as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}
