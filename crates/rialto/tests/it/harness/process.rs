//! A process that ends with the test that started it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread::{self, JoinHandle},
    time::Instant,
};

use super::{PATIENCE, until};

/// A process with all three pipes in our hands.
pub(crate) struct ChildProcess {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Receiver<String>,
    stderr: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

// === impl ChildProcess ===

impl ChildProcess {
    /// Starts it. `name` is what a failed test calls it.
    pub(crate) fn start(name: impl Into<String>, command: &mut Command) -> Self {
        let name = name.into();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{name} did not start: {error}"));
        let (tell, stdout) = mpsc::channel();
        let stderr = Arc::<Mutex<String>>::default();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let kept = Arc::clone(&stderr);
        let readers = vec![
            thread::spawn(move || each_line(out, |line| drop(tell.send(line)))),
            thread::spawn(move || each_line(err, |line| *kept.lock().unwrap() += &(line + "\n"))),
        ];
        let stdin = child.stdin.take();
        Self { name, child, stdin, stdout, stderr, readers }
    }

    /// Writes a line to its stdin.
    pub(crate) fn say(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line).and_then(|()| stdin.write_all(b"\n")).and_then(|()| stdin.flush()).unwrap();
    }

    /// Tells it that there will be no more input.
    pub(crate) fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// The next line of its stdout; none when there will be no more.
    #[track_caller]
    pub(crate) fn line(&self) -> Option<String> {
        self.line_by(Instant::now() + PATIENCE)
    }

    /// The next line of its stdout, if it comes in time; none when there will be no more.
    #[track_caller]
    pub(crate) fn line_by(&self, end: Instant) -> Option<String> {
        self.line_until(end).unwrap_or_else(|_| panic!("{} said nothing more", self.name))
    }

    /// The same for those who can go on without it.
    pub(crate) fn line_until(&self, end: Instant) -> Result<Option<String>, RecvTimeoutError> {
        match self.stdout.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(late @ RecvTimeoutError::Timeout) => Err(late),
        }
    }

    /// A line that is already there.
    pub(crate) fn line_now(&self) -> Option<String> {
        self.stdout.try_recv().ok()
    }

    /// What it has said on stderr.
    pub(crate) fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    /// Waits until it has ended by itself. All it said can be read afterwards.
    #[track_caller]
    pub(crate) fn end(&mut self) -> ExitStatus {
        let status = until(&format!("{} ends", self.name), || self.child.try_wait().unwrap());
        let all_read = || self.readers.iter().all(JoinHandle::is_finished).then_some(());
        until(&format!("nobody holds the pipes of {}", self.name), all_read);
        status
    }

    /// Its number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal: `TERM`, `INT`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Ends it as nobody can prevent: SIGKILL.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            let said = self.stderr();
            eprintln!("--- stderr of {} ---\n{}", self.name, said.trim_end());
        }
    }
}

/// Reads to the end, whatever the bytes are.
fn each_line(pipe: impl Read, mut tell: impl FnMut(String)) {
    let mut pipe = BufReader::new(pipe);
    let mut line = Vec::new();
    while pipe.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        tell(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned());
        line.clear();
    }
}
