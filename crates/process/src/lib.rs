//! Child processes: started, supervised and ended here.
//!
//! A program is given a few harmless variables and those that are configured for it, never the whole environment, which holds the secrets
//! of this process. It is the first of a process group, and the group is killed when its [`ChildProcess`] is dropped. Its stderr goes to
//! the log, with its secrets masked and up to a maximum.

use std::{
    collections::VecDeque,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use rialto_model::{
    backing::{ProcessCommand, SettingPiece},
    call::{Caller, HOPS_VARIABLE},
    credential::Secret,
    secret_templates::{self, SecretResolver},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader},
    process::{ChildStderr, ChildStdin, ChildStdout},
    task::JoinHandle,
    time::timeout,
};

/// Variables of this process that every program inherits.
const INHERITED_VARIABLES: [&str; 17] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "TEMP",
    "TMP",
    "SYSTEMROOT",
    "APPDATA",
    "LOCALAPPDATA",
    "USERPROFILE",
];

/// Maximum bytes of a line of stderr; the rest is cut off.
const MAX_LINE_BYTES: u64 = 2_000;

/// Longest time that the last lines of stderr may take after a program has ended.
const STDERR_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum number of the last lines of stderr that are kept.
const MAX_TAIL_LINES: usize = 20;

/// Maximum number of lines that are logged for one program; further lines are counted.
const MAX_LOGGED_LINES: u64 = 1_000;

/// Starts child processes.
#[derive(Clone)]
pub struct Launcher {
    inherited: Arc<[(String, String)]>,
    resolve: SecretResolver,
    /// Number of calls through this server that led to the process.
    hops: Option<u8>,
}

/// Running child process and everything it has started. It is killed when this is dropped.
pub struct ChildProcess {
    inner: tokio::process::Child,
    group: ProcessGroup,
    tail: StderrTail,
    stderr_task: Option<JoinHandle<()>>,
}

/// Last lines of a program's stderr.
#[derive(Clone, Default)]
pub struct StderrTail(Arc<Mutex<VecDeque<String>>>);

/// Process group of a program.
struct ProcessGroup {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

// === impl Launcher ===

impl Launcher {
    /// Creates a launcher; `env` returns the inherited variables, and `resolve` the secrets of the others.
    pub fn new(env: impl Fn(&str) -> Option<String>, resolve: SecretResolver) -> Self {
        let inherited = INHERITED_VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), env(name)?)));
        Self { inherited: inherited.collect(), resolve, hops: None }
    }

    /// Launcher for the work of one call: the process receives how many calls led to it, and its own calls through this server continue the
    /// count.
    #[must_use]
    pub fn for_caller(&self, caller: &Caller) -> Self {
        Self { hops: Some(caller.hops.saturating_add(1)), ..self.clone() }
    }

    /// Starts a program with pipes for stdin and stdout. `name` is its name in the log.
    pub async fn start(&self, command: &ProcessCommand, name: &str) -> Result<ChildProcess, String> {
        let Some((program, args)) = command.argv.split_first() else {
            return Err("no command is given".to_owned());
        };
        let mut process = tokio::process::Command::new(program);
        process.args(args).env_clear().envs(self.inherited.iter().map(|(name, value)| (name, value)));
        let mut secrets = Vec::new();
        for (name, setting) in &command.env {
            let value = secret_templates::resolve(setting, &self.resolve).await;
            let value = value.map_err(|missing| format!("the variable {name} cannot be set: {missing}"))?;
            process.env(name, value.expose());
            if setting.pieces().iter().any(|piece| matches!(piece, SettingPiece::From(_))) {
                secrets.push(value);
            }
        }
        // Last, so that no setting lowers it.
        if let Some(hops) = self.hops {
            process.env(HOPS_VARIABLE, hops.to_string());
        }
        if let Some(folder) = &command.cwd {
            process.current_dir(folder);
        }
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        #[cfg(unix)]
        process.process_group(0);
        let mut inner =
            process.spawn().map_err(|error| format!("{program} could not be started: {error}"))?;
        let tail = StderrTail::default();
        let stderr = inner.stderr.take();
        let stderr_task =
            stderr.map(|stderr| tokio::spawn(read_stderr(stderr, tail.clone(), name.to_owned(), secrets)));
        Ok(ChildProcess { group: ProcessGroup::from_child(&inner), inner, tail, stderr_task })
    }
}

// === impl ChildProcess ===

impl ChildProcess {
    /// Takes its stdin, once.
    pub const fn stdin(&mut self) -> Option<ChildStdin> {
        self.inner.stdin.take()
    }

    /// Takes its stdout, once.
    pub const fn stdout(&mut self) -> Option<ChildStdout> {
        self.inner.stdout.take()
    }

    /// Last lines of its stderr.
    pub fn stderr_tail(&self) -> StderrTail {
        self.tail.clone()
    }

    /// Waits until it has ended and its stderr has been read. Processes it has left running are killed.
    pub async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        let status = self.inner.wait().await?;
        self.group.end();
        if let Some(stderr_task) = self.stderr_task.take() {
            let _ = timeout(STDERR_DRAIN_TIMEOUT, stderr_task).await;
        }
        Ok(status)
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.group.end();
    }
}

// === impl StderrTail ===

impl StderrTail {
    /// Last lines, at most this number.
    pub fn last(&self, lines: usize) -> String {
        let tail = self.0.lock();
        let last: Vec<&str> =
            tail.iter().skip(tail.len().saturating_sub(lines)).map(String::as_str).collect();
        last.join("\n")
    }

    fn add(&self, line: String) {
        let mut tail = self.0.lock();
        if tail.len() >= MAX_TAIL_LINES {
            tail.pop_front();
        }
        tail.push_back(line);
    }
}

// === impl ProcessGroup ===

impl ProcessGroup {
    #[cfg(unix)]
    fn from_child(child: &tokio::process::Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok());
        Self { leader: leader.and_then(rustix::process::Pid::from_raw) }
    }

    #[cfg(not(unix))]
    const fn from_child(_: &tokio::process::Child) -> Self {
        Self {}
    }

    #[cfg(unix)]
    fn end(&mut self) {
        if let Some(leader) = self.leader.take() {
            // It may have ended by itself, with all that it had started.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }

    #[cfg(not(unix))]
    const fn end(&mut self) {}
}

/// Reads the stderr of a program until it ends.
async fn read_stderr(stderr: ChildStderr, tail: StderrTail, name: String, secrets: Vec<Secret>) {
    let mut reader = BufReader::new(stderr);
    let mut lines = 0_u64;
    while let Some(line) = next_line(&mut reader).await {
        let line = mask_secrets(line, &secrets);
        lines += 1;
        if lines <= MAX_LOGGED_LINES {
            tracing::debug!("{name}: {line}");
        }
        tail.add(line);
    }
    if lines > MAX_LOGGED_LINES {
        tracing::debug!("{name}: {} more lines were not logged", lines - MAX_LOGGED_LINES);
    }
}

/// The next line, or the beginning of one that is too long.
async fn next_line<R: AsyncRead + Unpin>(reader: &mut BufReader<R>) -> Option<String> {
    let mut line = Vec::new();
    let read = (&mut *reader).take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await.ok()?;
    if read == 0 {
        return None;
    }
    Some(String::from_utf8_lossy(&line).trim_end().to_owned())
}

fn mask_secrets(mut line: String, secrets: &[Secret]) -> String {
    for secret in secrets.iter().map(Secret::expose).filter(|secret| !secret.is_empty()) {
        if line.contains(secret) {
            line = line.replace(secret, "[secret]");
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use rialto_model::{backing::TransportSetting, credential::SecretSource};
    use tokio::time::sleep;

    use super::*;

    fn launcher() -> Launcher {
        let env = |name: &str| (name == "PATH").then(|| "/usr/bin:/bin".to_owned());
        Launcher::new(env, Arc::new(|_| async { Ok(Secret::from("hunter2")) }.boxed()))
    }

    fn shell(script: &str) -> ProcessCommand {
        let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
        let env = [("TOKEN".to_owned(), TransportSetting::From(SecretSource::Env("T".into())))].into();
        ProcessCommand { argv, env, ..ProcessCommand::default() }
    }

    async fn output(mut child: ChildProcess) -> String {
        let mut text = String::new();
        child.stdout().unwrap().read_to_string(&mut text).await.unwrap();
        child.wait().await.unwrap();
        text
    }

    #[tokio::test]
    async fn a_program_sees_what_was_named_for_it_and_little_else() {
        let child = launcher().start(&shell("env | sort | cut -d= -f1"), "test").await.unwrap();
        let mut names: Vec<String> = output(child).await.lines().map(str::to_owned).collect();
        names.retain(|name| !matches!(name.as_str(), "PWD" | "OLDPWD" | "SHLVL" | "_"));
        assert_eq!(names, ["PATH", "TOKEN"]);
    }

    #[tokio::test]
    async fn a_program_receives_the_number_of_calls_that_led_to_it() {
        let caller = Caller { hops: 2, ..Caller::user("ann") };
        let child = launcher().for_caller(&caller).start(&shell("echo $RIALTO_HOPS"), "test").await.unwrap();
        assert_eq!(output(child).await, "3\n");
        let child = launcher().start(&shell("echo ${RIALTO_HOPS-none}"), "test").await.unwrap();
        assert_eq!(output(child).await, "none\n", "what no call asks for counts nothing");
    }

    #[tokio::test]
    async fn the_stderr_of_a_program_is_kept_without_its_secrets() {
        let child = launcher().start(&shell("echo no $TOKEN here >&2; echo bye >&2"), "test").await.unwrap();
        let tail = child.stderr_tail();
        output(child).await;
        assert_eq!(tail.last(5), "no [secret] here\nbye");
    }

    #[tokio::test]
    async fn everything_it_started_ends_with_it() {
        let mut child = launcher().start(&shell("sleep 600 & echo $!; wait"), "test").await.unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout().unwrap()).read_line(&mut line).await.unwrap();
        let grandchild: i32 = line.trim().parse().unwrap();
        let is_there = || {
            let stat = std::fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
            // An orphan that nobody waits for is dead all the same.
            !stat.is_empty() && !stat.contains(") Z ")
        };
        assert!(is_there());
        drop(child);
        let gone = async {
            while is_there() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(10), gone).await.unwrap();
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named() {
        let command = ProcessCommand { argv: vec!["/no/such/program".into()], ..ProcessCommand::default() };
        let error = launcher().start(&command, "test").await.err().unwrap();
        assert!(error.starts_with("/no/such/program could not be started"), "{error}");
    }
}
