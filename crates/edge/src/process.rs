//! Programs that are started to do somebody's work.
//!
//! A program is given a few harmless variables and those that were named for it, never our whole environment, in which
//! our own secrets are. It is the first of a process group of its own, and the group ends with the [`Child`] that stands
//! for it. What it says on stderr goes to our log, a little at a time, with its secrets masked.

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
};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader},
    process::{ChildStderr, ChildStdin, ChildStdout},
    task::JoinHandle,
    time::timeout,
};

use crate::settings::{Resolver, fill};

/// Variables of ours that a program may see.
const HARMLESS: [&str; 17] = [
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

/// A line of stderr is cut after so many bytes.
const LONGEST_LINE: u64 = 2_000;

/// How long the last words of a program that has ended may take to arrive.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// So many lines of stderr are remembered, the last.
const REMEMBERED: usize = 20;

/// So many lines of one program are logged; the rest is counted.
const LOGGED: u64 = 1_000;

/// Starts programs.
#[derive(Clone)]
pub struct Launcher {
    harmless: Arc<[(String, String)]>,
    resolve: Resolver,
    /// How many calls through us lead to what is started.
    hops: Option<u8>,
}

/// A program that runs, and everything it has started. It ends when this is dropped.
pub struct Child {
    inner: tokio::process::Child,
    group: Group,
    said: Said,
    hearing: Option<JoinHandle<()>>,
}

/// What a program said on stderr, the last of it.
#[derive(Clone, Default)]
pub struct Said(Arc<Mutex<VecDeque<String>>>);

/// The processes of a program.
struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

// === impl Launcher ===

impl Launcher {
    /// A launcher that asks `env` for the variables that every program may see, and `resolve` for the others.
    pub fn new(env: impl Fn(&str) -> Option<String>, resolve: Resolver) -> Self {
        let harmless = HARMLESS.iter().filter_map(|name| Some(((*name).to_owned(), env(name)?)));
        Self { harmless: harmless.collect(), resolve, hops: None }
    }

    /// The same for work that one call asks for: what is started is told how many calls led to it, and its own calls through us go on
    /// counting from there.
    #[must_use]
    pub fn for_caller(&self, caller: &Caller) -> Self {
        Self { hops: Some(caller.hops.saturating_add(1)), ..self.clone() }
    }

    /// Starts a program with pipes for stdin and stdout. `name` is what the log calls it.
    pub async fn start(&self, command: &ProcessCommand, name: &str) -> Result<Child, String> {
        let Some((program, args)) = command.argv.split_first() else {
            return Err("no command is given".to_owned());
        };
        let mut wanted = tokio::process::Command::new(program);
        wanted.args(args).env_clear().envs(self.harmless.iter().map(|(name, value)| (name, value)));
        let mut secrets = Vec::new();
        for (name, setting) in &command.env {
            let value = fill(setting, &self.resolve).await;
            let value = value.map_err(|missing| format!("the variable {name} cannot be set: {missing}"))?;
            wanted.env(name, value.expose());
            if setting.pieces().iter().any(|piece| matches!(piece, SettingPiece::From(_))) {
                secrets.push(value);
            }
        }
        // Last, so that no setting lowers it.
        if let Some(hops) = self.hops {
            wanted.env(HOPS_VARIABLE, hops.to_string());
        }
        if let Some(folder) = &command.cwd {
            wanted.current_dir(folder);
        }
        wanted.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        #[cfg(unix)]
        wanted.process_group(0);
        let mut inner = wanted.spawn().map_err(|error| format!("{program} could not be started: {error}"))?;
        let said = Said::default();
        let stderr = inner.stderr.take();
        let hearing = stderr.map(|stderr| tokio::spawn(hear(stderr, said.clone(), name.to_owned(), secrets)));
        Ok(Child { group: Group::of(&inner), inner, said, hearing })
    }
}

// === impl Child ===

impl Child {
    /// Where it reads from, once.
    pub const fn stdin(&mut self) -> Option<ChildStdin> {
        self.inner.stdin.take()
    }

    /// Where it writes to, once.
    pub const fn stdout(&mut self) -> Option<ChildStdout> {
        self.inner.stdout.take()
    }

    /// What it said on stderr.
    pub fn said(&self) -> Said {
        self.said.clone()
    }

    /// Waits for its end, and until its last words were heard. Whatever it has left running ends too.
    pub async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        let status = self.inner.wait().await?;
        self.group.end();
        if let Some(hearing) = self.hearing.take() {
            let _ = timeout(LAST_WORDS, hearing).await;
        }
        Ok(status)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.group.end();
    }
}

// === impl Said ===

impl Said {
    /// Its last lines, at most so many.
    pub fn last(&self, lines: usize) -> String {
        let said = self.0.lock();
        let last: Vec<&str> =
            said.iter().skip(said.len().saturating_sub(lines)).map(String::as_str).collect();
        last.join("\n")
    }

    fn add(&self, line: String) {
        let mut said = self.0.lock();
        if said.len() >= REMEMBERED {
            said.pop_front();
        }
        said.push_back(line);
    }
}

// === impl Group ===

impl Group {
    #[cfg(unix)]
    fn of(child: &tokio::process::Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok());
        Self { leader: leader.and_then(rustix::process::Pid::from_raw) }
    }

    #[cfg(not(unix))]
    const fn of(_: &tokio::process::Child) -> Self {
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

/// Takes in what a program says until it says no more.
async fn hear(stderr: ChildStderr, said: Said, name: String, secrets: Vec<Secret>) {
    let mut reader = BufReader::new(stderr);
    let mut lines = 0_u64;
    while let Some(line) = next_line(&mut reader).await {
        let line = masked(line, &secrets);
        lines += 1;
        if lines <= LOGGED {
            tracing::debug!("{name}: {line}");
        }
        said.add(line);
    }
    if lines > LOGGED {
        tracing::debug!("{name}: {} more lines were not logged", lines - LOGGED);
    }
}

/// The next line, or the beginning of one that is too long.
async fn next_line<R: AsyncRead + Unpin>(reader: &mut BufReader<R>) -> Option<String> {
    let mut line = Vec::new();
    let read = (&mut *reader).take(LONGEST_LINE).read_until(b'\n', &mut line).await.ok()?;
    if read == 0 {
        return None;
    }
    Some(String::from_utf8_lossy(&line).trim_end().to_owned())
}

fn masked(mut line: String, secrets: &[Secret]) -> String {
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

    async fn output(mut child: Child) -> String {
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
    async fn a_program_is_told_how_many_calls_led_to_it() {
        let caller = Caller { hops: 2, ..Caller::user("ann") };
        let child = launcher().for_caller(&caller).start(&shell("echo $RIALTO_HOPS"), "test").await.unwrap();
        assert_eq!(output(child).await, "3\n");
        let child = launcher().start(&shell("echo ${RIALTO_HOPS-none}"), "test").await.unwrap();
        assert_eq!(output(child).await, "none\n", "what no call asks for counts nothing");
    }

    #[tokio::test]
    async fn what_it_says_is_remembered_without_its_secrets() {
        let child = launcher().start(&shell("echo no $TOKEN here >&2; echo bye >&2"), "test").await.unwrap();
        let said = child.said();
        output(child).await;
        assert_eq!(said.last(5), "no [secret] here\nbye");
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
