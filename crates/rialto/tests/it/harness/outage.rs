//! A server with a function that takes its time, to take its store away meanwhile.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{http, rialto::Rialto, server::ServerProcess};

/// How long the function takes.
pub(crate) const WORK: Duration = Duration::from_secs(3);

/// A server whose store can be taken away, and what was begun there.
pub(crate) struct OutageFixture {
    pub(crate) rialto: Rialto,
    tasks: Vec<String>,
}

/// A small disk of its own for a folder.
pub(crate) struct SmallDisk(PathBuf);

// === impl SmallDisk ===

impl SmallDisk {
    /// Mounts one; none where that is not allowed.
    pub(crate) fn mount(folder: &Path) -> Option<Self> {
        fs::create_dir_all(folder).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64m,mode=0700", "tmpfs"])
            .arg(folder)
            .output()
            .ok()
            .filter(|output| output.status.success());
        if mounted.is_none() {
            eprintln!("skipped: this user may not mount a tmpfs");
        }
        mounted.map(|_| Self(folder.to_owned()))
    }

    /// Leaves no space on it.
    pub(crate) fn fill(&self) {
        let mut file = File::create(self.0.join("filler")).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    /// Has space again.
    pub(crate) fn free(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

// === impl OutageFixture ===

impl OutageFixture {
    /// A machine with the function `work`, which leaves a line for each run and must not run twice.
    pub(crate) fn new(rialto: Rialto) -> Self {
        let rialto = rialto.with("PATH", "/usr/bin:/bin");
        let runs = rialto.folder().join("runs");
        fs::write(&runs, "").unwrap();
        let script =
            format!("cat >/dev/null; echo run >>{}; sleep {}; echo done", runs.display(), WORK.as_secs());
        let text = format!(
            "[limits]\nconcurrent_calls = 0\nrequests_per_second = 0\n[[functions]]\nname = \"work\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n"
        );
        fs::write(rialto.folder().join("rialto.toml"), text).unwrap();
        Self { rialto, tasks: Vec::new() }
    }

    pub(crate) fn serve(&self) -> ServerProcess {
        self.rialto.serve(&["--allow-no-auth"])
    }

    /// Begins tasks that are acknowledged at once, and waits until all of them run.
    pub(crate) fn begin(&mut self, server: &ServerProcess, count: usize) {
        for number in 0..count {
            let answer = send(&server.url, &format!("m-{number}"), true).unwrap();
            let task = answer["result"]["task"]["id"].as_str();
            self.tasks.push(task.unwrap_or_else(|| panic!("{answer}")).to_owned());
        }
        let end = Instant::now() + Duration::from_secs(30);
        while self.runs() < count {
            assert!(Instant::now() < end, "{} of {count} run", self.runs());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends a message every 100 ms until `is_over`. Each is acknowledged, and then it is a task like the others; or it is refused, and
    /// the refusal must say that the call was not made. Answers how many were refused.
    pub(crate) fn keep_sending(&mut self, server: &str, is_over: &AtomicBool) -> usize {
        static SENT: AtomicUsize = AtomicUsize::new(0);
        let mut refused = 0;
        while !is_over.load(Ordering::Relaxed) {
            let id = format!("during-{}", SENT.fetch_add(1, Ordering::Relaxed));
            let answer = send(server, &id, true).unwrap();
            match answer["result"]["task"]["id"].as_str() {
                Some(task) => self.tasks.push(task.to_owned()),
                None => {
                    let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
                    assert!(message.contains("so it was not made"), "{answer}");
                    refused += 1;
                }
            }
            thread::sleep(Duration::from_millis(100));
        }
        refused
    }

    /// How many tasks were acknowledged.
    pub(crate) const fn acknowledged(&self) -> usize {
        self.tasks.len()
    }

    /// How often the function was run.
    pub(crate) fn runs(&self) -> usize {
        fs::read_to_string(self.rialto.folder().join("runs")).unwrap().lines().count()
    }

    /// Files with held results.
    pub(crate) fn held_files(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.rialto.data()) else { return Vec::new() };
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("held-")).collect()
    }

    /// Waits until all tasks that were begun are completed, each with its result.
    #[track_caller]
    pub(crate) fn expect_all_completed(&self, server: &ServerProcess, within: Duration) {
        let end = Instant::now() + within;
        for task in &self.tasks {
            loop {
                let answer = rpc(&server.url, "GetTask", &json!({ "id": task })).unwrap();
                let state = answer["result"]["status"]["state"].as_str().unwrap_or_default().to_owned();
                if state == "TASK_STATE_COMPLETED" {
                    assert!(answer["result"]["artifacts"].to_string().contains("done"), "{answer}");
                    break;
                }
                assert!(!state.contains("FAILED"), "{answer}");
                assert!(Instant::now() < end, "not within {within:?}: {answer}");
                thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

/// Sends a message to the function of the server at this address.
pub(crate) fn send(server: &str, id: &str, at_once: bool) -> std::io::Result<Value> {
    let params = json!({
        "message": { "messageId": id, "role": "ROLE_USER", "parts": [{ "data": {} }] },
        "configuration": { "returnImmediately": at_once },
        "metadata": { "skillId": "work" },
    });
    rpc(server, "SendMessage", &params)
}

fn rpc(server: &str, method: &str, params: &Value) -> std::io::Result<Value> {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let headers = [("content-type", "application/json"), ("a2a-version", "1.0")];
    let answer = http::try_post(&format!("{server}/a2a"), &headers, &body)?;
    serde_json::from_str(&answer.body)
        .map_err(|error| std::io::Error::other(format!("{error}: {}", answer.body)))
}
