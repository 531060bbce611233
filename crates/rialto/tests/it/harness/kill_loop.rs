//! Servers are killed again and again while tasks of every kind are under way and many listen, and nobody loses
//! anything: no task that was acknowledged, none is run twice that must not be, and all hear the same end.

use std::{
    collections::BTreeMap,
    fs,
    hash::{BuildHasher, RandomState},
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    haproxy::{Haproxy, free_address},
    http,
    rialto::Rialto,
    server::ServerProcess,
    slow_agent::SlowAgent,
    store_reader::consistent_heads,
    until,
};

/// How many begin tasks at the same time. Each also waits for its task's end, twice.
const CALLERS: usize = 24;

/// What an agent of any generation is told who wants to hear of a task that is over.
const NOTHING_MORE: i64 = -32004;

/// Longer than any task takes, deaths included.
const PATIENCE: Duration = Duration::from_secs(120);

/// Who does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoopSkill {
    /// A command that must not run twice.
    Once,
    /// One that may.
    Again,
    /// An agent with tasks of its own.
    Count,
}

/// How it is asked for.
#[derive(Clone, Copy, Debug)]
enum CallStyle {
    Blocking,
    AtOnce,
    Stream,
}

/// A task, as one who listens has seen it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct TaskView {
    task: String,
    state: String,
    /// The parts of its artifacts.
    made: BTreeMap<String, Vec<Value>>,
}

/// One task from the message that begins it to its end.
struct CallRecord {
    number: usize,
    skill: LoopSkill,
    /// What those saw in the end who listened.
    views: Vec<TaskView>,
    acknowledged_at: Instant,
    over_at: Instant,
}

/// The servers, where they are just now, and what they call.
pub(crate) struct KillLoop {
    /// One for each server; two servers of one machine share it.
    machines: Vec<Rialto>,
    servers: usize,
    worker: SlowAgent,
    /// Of each server; empty while it is dead.
    urls: Mutex<Vec<String>>,
    /// A proxy in front of all of them, and where they are then.
    front: Option<(Haproxy, Vec<String>)>,
    acknowledged: AtomicUsize,
    reconnected: AtomicUsize,
}

/// How it went.
pub(crate) struct LoopOutcome {
    pub(crate) tasks: usize,
    /// For each death, how long it took until all tasks that were acknowledged before were over.
    pub(crate) recovered: Vec<Duration>,
}

// === impl LoopOutcome ===

impl LoopOutcome {
    /// The longest of these but for one in a hundred.
    pub(crate) fn p99(&self) -> Duration {
        let mut recovered = self.recovered.clone();
        recovered.sort_unstable();
        recovered[(recovered.len() * 99).div_ceil(100).max(1) - 1]
    }
}

/// Kills one of the servers at random so many times, each time during so many tasks.
pub(crate) fn killed_again_and_again(stage: &KillLoop, deaths: usize, tasks: usize) -> LoopOutcome {
    let mut servers: Vec<Option<ServerProcess>> =
        (0..stage.servers).map(|index| Some(stage.serve(index))).collect();
    stage.wait_for_front();
    let (mut stories, mut recovered) = (Vec::new(), Vec::new());
    for round in 0..deaths {
        let (next, last) = (AtomicUsize::new(round * tasks), (round + 1) * tasks);
        let fatal = round * tasks + 1 + random(tasks - 1);
        let (told, died_at) = thread::scope(|scope| {
            let callers: Vec<_> =
                (0..CALLERS.min(tasks)).map(|_| scope.spawn(|| stage.call(&next, last))).collect();
            let end = Instant::now() + PATIENCE;
            while stage.acknowledged.load(Ordering::SeqCst) < fatal {
                assert!(Instant::now() < end, "fewer than {fatal} tasks were acknowledged");
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_micros(random(20_000) as u64));
            let victim = random(stage.servers);
            stage.urls.lock().unwrap()[victim].clear();
            servers[victim].take().unwrap().kill();
            let died_at = Instant::now();
            servers[victim] = Some(stage.serve(victim));
            (callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect::<Vec<_>>(), died_at)
        });
        let before = told.iter().filter(|story| story.acknowledged_at < died_at);
        recovered.push(
            before.map(|story| story.over_at.saturating_duration_since(died_at)).max().unwrap_or_default(),
        );
        stage.check(&told);
        stories.extend(told);
    }
    for mut server in servers.into_iter().flatten() {
        assert!(server.stop().success());
    }
    stage.check_runs(&stories);
    let failed = stories.iter().filter(|story| story.views[0].state != "TASK_STATE_COMPLETED").count();
    let (tasks, again) = (stories.len(), stage.reconnected.load(Ordering::SeqCst));
    let told = LoopOutcome { tasks, recovered };
    eprintln!(
        "{tasks} tasks, {deaths} deaths, {failed} tasks ended with the reason, {again} streams that broke; all tasks that were \
         acknowledged before a death were over {:?} after it (p99)",
        told.p99()
    );
    told
}

fn machine() -> Rialto {
    Rialto::fresh().with("PATH", "/usr/bin:/bin")
}

/// A number below `most`, another one each time.
fn random(most: usize) -> usize {
    usize::try_from(RandomState::new().hash_one(0) % most as u64).unwrap()
}

// === impl LoopSkill ===

impl LoopSkill {
    const fn name(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Again => "again",
            Self::Count => "worker.count",
        }
    }
}

// === impl KillLoop ===

impl KillLoop {
    /// So many servers on one machine, which share its data folder.
    pub(crate) fn one_machine(servers: usize) -> Self {
        Self::set(vec![machine()], servers, false)
    }

    /// A server on each of three machines, which share a PostgreSQL database, behind HAProxy.
    pub(crate) fn balanced(database: &str) -> Self {
        let machines: Vec<_> = (0..3).map(|_| machine().with("RIALTO_STORE_URL", database)).collect();
        let servers = machines.len();
        Self::set(machines, servers, true)
    }

    fn set(machines: Vec<Rialto>, servers: usize, is_balanced: bool) -> Self {
        let front = is_balanced.then(|| {
            let addresses: Vec<String> = (0..servers).map(|_| free_address()).collect();
            (Haproxy::in_front_of(&addresses), addresses)
        });
        let worker = SlowAgent::start();
        machines[0].trust(&worker.url);
        let stage = Self {
            machines,
            servers,
            worker,
            urls: Mutex::new(vec![String::new(); servers]),
            front,
            acknowledged: AtomicUsize::default(),
            reconnected: AtomicUsize::default(),
        };
        let function = |skill: LoopSkill| {
            let (name, runs) = (skill.name(), stage.runs(skill));
            // A server that dies before it has said what to do has asked for nothing.
            let script = format!(
                "args=$(cat); [ -n \\\"$args\\\" ] || exit 1; echo \\\"$args\\\" >>{}; sleep 0.05; echo \\\"$args\\\"",
                runs.display()
            );
            let is_repeatable = skill == LoopSkill::Again;
            format!(
                "[[functions]]\nname = \"{name}\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\nidempotent = {is_repeatable}\n"
            )
        };
        let limits = "[limits]\nconcurrent_calls = 0\nrequests_per_second = 0\n";
        let text = format!("{limits}{}{}", function(LoopSkill::Once), function(LoopSkill::Again));
        for machine in &stage.machines {
            fs::write(machine.folder().join("rialto.toml"), &text).unwrap();
        }
        stage
    }

    fn serve(&self, index: usize) -> ServerProcess {
        let machine = &self.machines[index % self.machines.len()];
        let server = match &self.front {
            Some((_, addresses)) => machine.serve_at(&addresses[index], &["--allow-no-auth"]),
            None => machine.serve(&["--allow-no-auth"]),
        };
        self.urls.lock().unwrap()[index].clone_from(&server.url);
        server
    }

    /// Waits until whatever stands before the servers lets somebody through.
    fn wait_for_front(&self) {
        if let Some((front, _)) = &self.front {
            front.wait();
        }
    }

    /// Where each run of a command leaves a line.
    fn runs(&self, skill: LoopSkill) -> PathBuf {
        self.machines[0].folder().join(format!("{}.runs", skill.name()))
    }

    /// Where one of the servers is, any of them; waits while all are dead.
    fn url(&self) -> String {
        if let Some((front, _)) = &self.front {
            return format!("{}/a2a", front.url);
        }
        until("a server is back", || {
            let urls = self.urls.lock().unwrap();
            let alive: Vec<&String> = urls.iter().filter(|url| !url.is_empty()).collect();
            (!alive.is_empty()).then(|| format!("{}/a2a", alive[random(alive.len())]))
        })
    }

    /// Tells stories until there are enough.
    fn call(&self, next: &AtomicUsize, last: usize) -> Vec<CallRecord> {
        let mut stories = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::SeqCst);
            if number >= last {
                return stories;
            }
            stories.push(self.tell(number));
        }
    }

    fn tell(&self, number: usize) -> CallRecord {
        let skill = [LoopSkill::Once, LoopSkill::Again, LoopSkill::Count][number % 3];
        let manner = [CallStyle::Blocking, CallStyle::AtOnce, CallStyle::Stream][number / 3 % 3];
        let end = Instant::now() + PATIENCE;
        // Whoever got no answer does not know whether it was heard, and says the same again.
        let begun = loop {
            if let Some(view) = self.say(number, skill, manner) {
                break view;
            }
            assert!(Instant::now() < end, "message {number} was never answered");
        };
        self.acknowledged.fetch_add(1, Ordering::SeqCst);
        let acknowledged_at = Instant::now();
        let task = begun.task.clone();
        let views = thread::scope(|scope| {
            let second = scope.spawn(|| self.watch(&task));
            let first = if begun.is_over() { begun } else { self.watch(&task) };
            vec![first, second.join().unwrap()]
        });
        CallRecord { number, skill, views, acknowledged_at, over_at: Instant::now() }
    }

    /// Says it, and listens for as long as somebody talks. None when the task's name was not heard.
    fn say(&self, number: usize, skill: LoopSkill, manner: CallStyle) -> Option<TaskView> {
        let message = json!({
            "messageId": format!("m-{number}"),
            "role": "ROLE_USER",
            "parts": [{ "data": { "number": number } }],
        });
        let at_once = matches!(manner, CallStyle::AtOnce);
        let params = json!({
            "message": message,
            "configuration": { "returnImmediately": at_once },
            "metadata": { "skillId": skill.name() },
        });
        let method = if matches!(manner, CallStyle::Stream) { "SendStreamingMessage" } else { "SendMessage" };
        let view =
            self.listen(method, &params).unwrap_or_else(|code| panic!("message {number}: error {code}"));
        Some(view).filter(|view| !view.task.is_empty())
    }

    /// Listens until the task is over, as often as it takes.
    fn watch(&self, task: &str) -> TaskView {
        let end = Instant::now() + PATIENCE;
        let id = json!({ "id": task });
        loop {
            let view = match self.listen("SubscribeToTask", &id) {
                Ok(view) => view,
                Err(NOTHING_MORE) => self.listen("GetTask", &id).unwrap(),
                Err(code) => panic!("{task} is lost: error {code}"),
            };
            if view.is_over() {
                return view;
            }
            self.reconnected.fetch_add(1, Ordering::SeqCst);
            assert!(Instant::now() < end, "{task} does not end; it was last seen as {view:?}");
        }
    }

    /// What is answered, as far as it comes; or the code of the error.
    fn listen(&self, method: &str, params: &Value) -> Result<TaskView, i64> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let mut view = TaskView::default();
        let Ok(lines) = http::lines_of(&self.url(), &body) else { return Ok(view) };
        for line in lines {
            // An answer that was cut off in the middle of a line says nothing.
            let text = line.strip_prefix("data:").unwrap_or(&line);
            let Ok(answer) = serde_json::from_str::<Value>(text) else { continue };
            if let Some(code) = answer["error"]["code"].as_i64() {
                return Err(code);
            }
            view.hear(&answer["result"]);
        }
        Ok(view)
    }

    /// All who listened saw the same end, and it is the one that is still there.
    fn check(&self, stories: &[CallRecord]) {
        for CallRecord { number, skill, views, .. } in stories {
            let task = &views[0].task;
            let kept = self.listen("GetTask", &json!({ "id": task })).unwrap();
            assert!(kept.is_over(), "message {number}: {kept:?}");
            for view in views {
                assert_eq!(*view, kept, "message {number}, {skill:?}");
            }
            let parts: Vec<&Value> = kept.made.values().flatten().collect();
            match (kept.state.as_str(), skill) {
                ("TASK_STATE_COMPLETED", LoopSkill::Count) => {
                    let texts: Vec<&str> = parts.iter().map(|part| part["text"].as_str().unwrap()).collect();
                    assert_eq!(texts, SlowAgent::whole(), "message {number}");
                }
                ("TASK_STATE_COMPLETED", _) => assert_eq!(parts[0]["data"], json!({ "number": number })),
                ("TASK_STATE_FAILED", LoopSkill::Once | LoopSkill::Count) => {}
                (state, _) => panic!("message {number} to {skill:?} is {state}"),
            }
        }
    }

    /// What must not run twice did not, and whatever is said to be done was done.
    fn check_runs(&self, stories: &[CallRecord]) {
        let mut runs: BTreeMap<usize, usize> = BTreeMap::new();
        for skill in [LoopSkill::Once, LoopSkill::Again] {
            let lines = fs::read_to_string(self.runs(skill)).unwrap();
            for line in lines.lines() {
                let args: Value =
                    serde_json::from_str(line).unwrap_or_else(|_| panic!("not a run: {line:?}"));
                *runs.entry(usize::try_from(args["number"].as_u64().unwrap()).unwrap()).or_default() += 1;
            }
        }
        for message in self.worker.heard() {
            *runs.entry(message.strip_prefix("m-").unwrap().parse().unwrap()).or_default() += 1;
        }
        for story in stories {
            let count = runs.get(&story.number).copied().unwrap_or_default();
            let is_done = story.views[0].state == "TASK_STATE_COMPLETED";
            let number = story.number;
            assert!(!is_done || count > 0, "message {number} is said to be done, and nobody did it");
            assert!(story.skill == LoopSkill::Again || count < 2, "message {number} was done {count} times");
        }
    }

    /// One task for each message, all of them over, none with a gap in what happened to it.
    pub(crate) fn check_file(&self, count: usize) {
        let heads = consistent_heads(&self.machines[0].data());
        let mut by_message: BTreeMap<&str, &str> = BTreeMap::new();
        for head in heads.values() {
            assert!(head.state.is_terminal(), "{} is {}", head.id, head.state);
            let twin = by_message.insert(head.message.as_deref().unwrap(), head.id.as_str());
            assert_eq!(twin, None, "{} began with the same message", head.id);
        }
        assert_eq!(by_message.len(), count);
        self.check_trail();
    }

    /// The audit trail is as it was written.
    pub(crate) fn check_trail(&self) {
        let verified = self.machines[0].json(&["audit", "verify", "--json"]);
        assert_eq!(verified["sound"], true, "{verified}");
    }
}

// === impl TaskView ===

impl TaskView {
    fn is_over(&self) -> bool {
        let over =
            ["TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"];
        over.contains(&self.state.as_str())
    }

    /// Takes in an answer, or one event of a stream.
    fn hear(&mut self, result: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let of = |name: &str| result.get(name).filter(|value| value.is_object());
        if let Some(update) = of("statusUpdate") {
            self.state = text(&update["status"]["state"]);
            self.task = text(&update["taskId"]);
        } else if let Some(update) = of("artifactUpdate") {
            let made = self.made.entry(text(&update["artifact"]["artifactId"])).or_default();
            if update["append"] != true {
                made.clear();
            }
            made.extend(update["artifact"]["parts"].as_array().unwrap().iter().cloned());
        } else {
            let task = of("task").unwrap_or(result);
            self.state = text(&task["status"]["state"]);
            self.task = text(&task["id"]);
            let artifacts = task["artifacts"].as_array().into_iter().flatten();
            self.made = artifacts
                .map(|artifact| {
                    (text(&artifact["artifactId"]), artifact["parts"].as_array().unwrap().clone())
                })
                .collect();
        }
    }
}
