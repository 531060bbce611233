//! What tasks cost that are acknowledged before they are done, and what it costs to let many listen to one.
//!
//! The first part sends messages that want no waiting, from many connections, to an agent that answers at once, and is over when
//! the last task is. The second has one task that does not end, lets many listen to it, ends it, and waits until the last of
//! them has heard so.

use std::{
    fmt::{self, Display, Formatter},
    time::{Duration, Instant},
};

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    agent, bridge,
    load::{Asker, Connection, Crowd, Template},
    mcp,
    process::{self, Process},
    program::{self, Served},
    report::{Check, Table, Verdict, checks, percentile},
    seconds,
    trouble::{Trouble, during},
};

/// How to measure.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How long tasks are begun.
    #[arg(long, default_value = "5", value_parser = seconds::parse)]
    seconds: Duration,
    /// How many connections begin tasks at the same time.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// How many listen to one task.
    #[arg(long, default_value_t = 1_000)]
    subscribers: usize,
    #[command(flatten)]
    program: program::Args,
}

/// What was measured.
#[derive(Serialize)]
pub(crate) struct Report {
    tasks: Tasks,
    subscribers: Subscribers,
    checks: Vec<Check>,
}

/// Tasks that are acknowledged before they are done.
#[derive(Serialize)]
struct Tasks {
    connections: usize,
    /// How many were acknowledged, and are completed now.
    tasks: u64,
    /// How many were not acknowledged, and how many ended otherwise.
    errors: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_example: Option<String>,
    /// From the first message to the end of the last task.
    per_second: f64,
    /// How long the last task took behind the last acknowledgement.
    behind_ms: f64,
    acknowledged_p50_ms: f64,
    acknowledged_p99_ms: f64,
    cpu_us_per_task: f64,
    #[serde(flatten)]
    memory: process::Memory,
}

/// Those who listen to one task.
#[derive(Serialize)]
struct Subscribers {
    subscribers: usize,
    kb_each: f64,
    /// From the moment the agent was told to answer until so many had heard the end.
    heard_p50_ms: f64,
    heard_all_ms: f64,
    cpu_us_each: f64,
    #[serde(flatten)]
    memory: process::Memory,
}

/// How long tasks may take to end, and subscribers to hear it.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often to look whether all tasks are over.
const LOOK: Duration = Duration::from_millis(20);

/// How long a process is given to come to rest before its memory is looked at.
const REST: Duration = Duration::from_millis(500);

/// Stands in every acknowledgement.
const ACKNOWLEDGED: &str = r#""task""#;

/// Stands in the last event of a stream.
const OVER: &str = "TASK_STATE_COMPLETED";

/// Measures both.
pub(crate) async fn run(args: &Args) -> Result<Report, Trouble> {
    let tasks = many_tasks(args).await?;
    let subscribers = many_subscribers(args).await?;
    let checks = vec![
        Check::at_most(
            "time until all subscribers have heard the end",
            subscribers.heard_all_ms,
            1_000.0,
            "ms",
        ),
        Check::at_most("memory per subscriber", subscribers.kb_each, 64.0, "KB"),
    ];
    Ok(Report { tasks, subscribers, checks })
}

async fn many_tasks(args: &Args) -> Result<Tasks, Trouble> {
    let agent = Process::again(&["agent"], None).await?;
    let (served, _data) = bridge::serve(&args.program, &agent.said).await?;
    let mut askers = Vec::new();
    for _ in 0..args.connections {
        let connection = Connection::open(served.address).await?;
        askers.push(Asker::new(connection, bridge::relay(served.address, true)).expecting(ACKNOWLEDGED));
    }
    let (before, begun) = (process::cpu(served.pid)?, Instant::now());
    let mut seen = Crowd::new(askers).ask(args.seconds).await?;
    let acknowledged = begun.elapsed();
    all_over(&served).await?;
    let elapsed = begun.elapsed();
    sleep(REST).await;
    let cpu = process::cpu(served.pid)?.saturating_sub(before);
    let (tasks, begun) = (count(&served, Some(OVER)).await?, seen.micros.len() as u64);
    Ok(Tasks {
        connections: args.connections,
        tasks,
        errors: seen.errors + begun.abs_diff(tasks),
        error_example: seen.example,
        per_second: tasks as f64 / elapsed.as_secs_f64(),
        behind_ms: (elapsed - acknowledged).as_secs_f64() * 1e3,
        acknowledged_p50_ms: f64::from(percentile(&mut seen.micros, 0.5)) / 1000.0,
        acknowledged_p99_ms: f64::from(percentile(&mut seen.micros, 0.99)) / 1000.0,
        cpu_us_per_task: cpu.as_secs_f64() * 1e6 / tasks.max(1) as f64,
        memory: process::memory(served.pid)?,
    })
}

/// Waits until no task is open.
async fn all_over(served: &Served) -> Result<(), Trouble> {
    let waited = async {
        for state in ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"] {
            while count(served, Some(state)).await? > 0 {
                sleep(LOOK).await;
            }
        }
        Ok(())
    };
    timeout(PATIENCE, waited).await.map_err(during("tasks do not end"))?
}

/// How many tasks there are, in that state.
async fn count(served: &Served, state: Option<&str>) -> Result<u64, Trouble> {
    let mut params = json!({"pageSize": 1});
    if let Some(state) = state {
        params["status"] = json!(state);
    }
    let list = ask(served, "ListTasks", &params).await?;
    list["totalSize"].as_u64().ok_or_else(|| Trouble::new(format!("a list without its size: {list}")))
}

async fn ask(served: &Served, method: &str, params: &Value) -> Result<Value, Trouble> {
    let mut connection = Connection::open(served.address).await?;
    let request = Template::new("/a2a", served.address, method, params).request(1);
    let (head, body) = connection.send(request).await?;
    mcp::answer(&head, &body)
}

async fn many_subscribers(args: &Args) -> Result<Subscribers, Trouble> {
    let agent = Process::again(&["agent", "--holding"], None).await?;
    let (served, _data) = bridge::serve(&args.program, &agent.said).await?;
    let mut first = Connection::open(served.address).await?;
    let (head, body) = first.send(bridge::relay(served.address, true).request(1)).await?;
    let id = mcp::answer(&head, &body)?["task"]["id"].clone();
    sleep(REST).await;
    let before = process::memory(served.pid)?;
    let mut streams = Vec::new();
    for _ in 0..args.subscribers {
        let mut connection = Connection::open(served.address).await?;
        let request = Template::new("/a2a", served.address, "SubscribeToTask", &json!({"id": id}));
        let stream = connection.open_stream(request.request(1)).await?;
        streams.push((connection, stream));
    }
    sleep(REST).await;
    let (memory, cpu) = (process::memory(served.pid)?, process::cpu(served.pid)?);
    let mut listening: JoinSet<Result<Instant, Trouble>> = streams.into_iter().map(listen).collect();
    let agent_address = agent.said.parse().map_err(during("a child process gave no address"))?;
    let finished = Instant::now();
    program::get(agent_address, agent::FINISH).await?;
    let mut heard = Vec::new();
    while let Some(done) =
        timeout(PATIENCE, listening.join_next()).await.map_err(during("a subscriber never heard the end"))?
    {
        let at = done.map_err(during("a subscriber was lost"))??;
        heard.push(u64::try_from(at.duration_since(finished).as_micros()).unwrap_or(u64::MAX));
    }
    sleep(REST).await;
    let cpu = process::cpu(served.pid)?.saturating_sub(cpu);
    let each = args.subscribers.max(1) as f64;
    Ok(Subscribers {
        subscribers: heard.len(),
        kb_each: (memory.rss_mb - before.rss_mb) * 1024.0 / each,
        heard_p50_ms: percentile(&mut heard, 0.5) as f64 / 1e3,
        heard_all_ms: percentile(&mut heard, 1.0) as f64 / 1e3,
        cpu_us_each: cpu.as_secs_f64() * 1e6 / each,
        memory,
    })
}

/// Listens until the stream ends, and answers when that was. The end must have been told.
async fn listen((connection, mut stream): (Connection, Incoming)) -> Result<Instant, Trouble> {
    let mut last = String::new();
    while let Some(frame) = stream.frame().await {
        let frame = frame.map_err(during("a stream broke off"))?;
        if let Some(data) = frame.data_ref() {
            last = String::from_utf8_lossy(data).into_owned();
        }
    }
    drop(connection);
    if last.contains(OVER) {
        return Ok(Instant::now());
    }
    Err(Trouble::new(format!("a stream ended with something else: {last}")))
}

// === impl Report ===

impl Verdict for Report {
    fn checks(&self) -> &[Check] {
        &self.checks
    }

    fn is_broken(&self) -> bool {
        self.tasks.errors > 0 || self.tasks.tasks == 0
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Tasks { connections, tasks, errors, per_second, behind_ms, memory, .. } = &self.tasks;
        let mut table = Table::new(&[
            "durable tasks",
            "tasks/s",
            "acknowledged p50 ms",
            "p99 ms",
            "last end behind ms",
            "CPU µs/task",
            "RSS MB",
            "errors",
        ]);
        table.row([
            format!("{tasks} from {connections} connections"),
            format!("{per_second:.0}"),
            format!("{:.3}", self.tasks.acknowledged_p50_ms),
            format!("{:.3}", self.tasks.acknowledged_p99_ms),
            format!("{behind_ms:.0}"),
            format!("{:.1}", self.tasks.cpu_us_per_task),
            format!("{:.1}", memory.rss_mb),
            errors.to_string(),
        ]);
        writeln!(f, "{table}")?;
        let Subscribers { subscribers, kb_each, heard_p50_ms, heard_all_ms, cpu_us_each, memory } =
            &self.subscribers;
        let mut table =
            Table::new(&["subscribers", "KB each", "half heard ms", "all heard ms", "CPU µs each", "RSS MB"]);
        table.row([
            subscribers.to_string(),
            format!("{kb_each:.1}"),
            format!("{heard_p50_ms:.1}"),
            format!("{heard_all_ms:.1}"),
            format!("{cpu_us_each:.1}"),
            format!("{:.1}", memory.rss_mb),
        ]);
        writeln!(f, "{table}")?;
        if let Some(example) = &self.tasks.error_example {
            writeln!(f, "a wrong answer: {example}")?;
        }
        checks(f, &self.checks)?;
        write!(f, "\n{FOOTER}")
    }
}

const FOOTER: &str = "\
How to read this: each task is in the store before it is acknowledged, and the agent answers at once; tasks/s counts from
the first message to the end of the last task, CPU µs/task is all that Rialto used, background work included. Subscribers
listen over a connection each; the time is from the moment the agent was told to answer until the stream was read to its
end.";
