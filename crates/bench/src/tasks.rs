//! Cost of tasks that are acknowledged before they are done, and of many subscribers to one task.
//!
//! The first part sends messages without waiting, from many connections, to an agent that responds at once, and ends with the last
//! task. The second part starts one task, subscribes many clients to it, ends it, and waits until the last client received the
//! end.

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
    agent, bridge, duration_arg,
    error::{BenchError, context},
    load::{LoadClient, LoadConnection, LoadGroup, RequestTemplate},
    mcp_client,
    process::{self, BenchProcess},
    program::{self, RunningServer},
    report::{BenchReport, TargetCheck, TextTable, percentile, print_checks},
};

/// Options of the measurement.
#[derive(clap::Args)]
pub(crate) struct TasksArgs {
    /// Time during which tasks are started.
    #[arg(long, default_value = "5", value_parser = duration_arg::parse_seconds)]
    seconds: Duration,
    /// Number of concurrent connections that start tasks.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Number of subscribers of one task.
    #[arg(long, default_value_t = 1_000)]
    subscribers: usize,
    #[command(flatten)]
    program: program::ProgramArgs,
}

/// Result of the measurement.
#[derive(Serialize)]
pub(crate) struct TasksReport {
    tasks: TaskLoadResults,
    subscribers: SubscriberLoadResults,
    checks: Vec<TargetCheck>,
}

/// Tasks that are acknowledged before they are done.
#[derive(Serialize)]
struct TaskLoadResults {
    connections: usize,
    /// Number of acknowledged tasks that completed.
    tasks: u64,
    /// Number of tasks without acknowledgement, and with another end.
    errors: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_example: Option<String>,
    /// From the first message to the end of the last task.
    per_second: f64,
    /// Time from the last acknowledgement to the end of the last task.
    behind_ms: f64,
    acknowledged_p50_ms: f64,
    acknowledged_p99_ms: f64,
    cpu_us_per_task: f64,
    #[serde(flatten)]
    memory: process::ProcessMemory,
}

/// Subscribers of one task.
#[derive(Serialize)]
struct SubscriberLoadResults {
    subscribers: usize,
    kb_each: f64,
    /// Time from the release of the response until all subscribers received the end.
    heard_p50_ms: f64,
    heard_all_ms: f64,
    cpu_us_each: f64,
    #[serde(flatten)]
    memory: process::ProcessMemory,
}

/// Timeout for tasks to end, and for subscribers to receive it.
const TASK_TIMEOUT: Duration = Duration::from_secs(60);

/// Interval at which open tasks are counted.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Time for background work to finish before memory is read.
const SETTLE_TIME: Duration = Duration::from_millis(500);

/// Marker of every acknowledgement.
const ACKNOWLEDGED: &str = r#""task""#;

/// Marker of the last event of a stream.
const COMPLETED_STATE: &str = "TASK_STATE_COMPLETED";

/// Measures both.
pub(crate) async fn run(args: &TasksArgs) -> Result<TasksReport, BenchError> {
    let tasks = measure_tasks(args).await?;
    let subscribers = measure_subscribers(args).await?;
    let checks = vec![
        TargetCheck::at_most(
            "time until all subscribers have heard the end",
            subscribers.heard_all_ms,
            1_000.0,
            "ms",
        ),
        TargetCheck::at_most("memory per subscriber", subscribers.kb_each, 64.0, "KB"),
    ];
    Ok(TasksReport { tasks, subscribers, checks })
}

async fn measure_tasks(args: &TasksArgs) -> Result<TaskLoadResults, BenchError> {
    let agent = BenchProcess::spawn_self(&["agent"], None).await?;
    let (served, _data) = bridge::serve(&args.program, &agent.said).await?;
    let mut askers = Vec::new();
    for _ in 0..args.connections {
        let connection = LoadConnection::open(served.address).await?;
        askers.push(
            LoadClient::new(connection, bridge::relay_template(served.address, true)).with_mark(ACKNOWLEDGED),
        );
    }
    let (before, begun) = (process::cpu_time(served.pid)?, Instant::now());
    let mut seen = LoadGroup::new(askers).run_until(args.seconds).await?;
    let acknowledged = begun.elapsed();
    wait_until_finished(&served).await?;
    let elapsed = begun.elapsed();
    sleep(SETTLE_TIME).await;
    let cpu = process::cpu_time(served.pid)?.saturating_sub(before);
    let (tasks, begun) = (count_tasks(&served, Some(COMPLETED_STATE)).await?, seen.micros.len() as u64);
    Ok(TaskLoadResults {
        connections: args.connections,
        tasks,
        errors: seen.errors + begun.abs_diff(tasks),
        error_example: seen.example,
        per_second: tasks as f64 / elapsed.as_secs_f64(),
        behind_ms: (elapsed - acknowledged).as_secs_f64() * 1e3,
        acknowledged_p50_ms: f64::from(percentile(&mut seen.micros, 0.5)) / 1000.0,
        acknowledged_p99_ms: f64::from(percentile(&mut seen.micros, 0.99)) / 1000.0,
        cpu_us_per_task: cpu.as_secs_f64() * 1e6 / tasks.max(1) as f64,
        memory: process::memory_of(served.pid)?,
    })
}

/// Waits until no task is open.
async fn wait_until_finished(served: &RunningServer) -> Result<(), BenchError> {
    let waited = async {
        for state in ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"] {
            while count_tasks(served, Some(state)).await? > 0 {
                sleep(POLL_INTERVAL).await;
            }
        }
        Ok(())
    };
    timeout(TASK_TIMEOUT, waited).await.map_err(context("tasks do not end"))?
}

/// Number of tasks in a state.
async fn count_tasks(served: &RunningServer, state: Option<&str>) -> Result<u64, BenchError> {
    let mut params = json!({"pageSize": 1});
    if let Some(state) = state {
        params["status"] = json!(state);
    }
    let list = call_method(served, "ListTasks", &params).await?;
    list["totalSize"].as_u64().ok_or_else(|| BenchError::new(format!("a list without its size: {list}")))
}

async fn call_method(served: &RunningServer, method: &str, params: &Value) -> Result<Value, BenchError> {
    let mut connection = LoadConnection::open(served.address).await?;
    let request = RequestTemplate::new("/a2a", served.address, method, params).request(1);
    let (head, body) = connection.send(request).await?;
    mcp_client::parse_response(&head, &body)
}

async fn measure_subscribers(args: &TasksArgs) -> Result<SubscriberLoadResults, BenchError> {
    let agent = BenchProcess::spawn_self(&["agent", "--holding"], None).await?;
    let (served, _data) = bridge::serve(&args.program, &agent.said).await?;
    let mut first = LoadConnection::open(served.address).await?;
    let (head, body) = first.send(bridge::relay_template(served.address, true).request(1)).await?;
    let id = mcp_client::parse_response(&head, &body)?["task"]["id"].clone();
    sleep(SETTLE_TIME).await;
    let before = process::memory_of(served.pid)?;
    let mut streams = Vec::new();
    for _ in 0..args.subscribers {
        let mut connection = LoadConnection::open(served.address).await?;
        let request = RequestTemplate::new("/a2a", served.address, "SubscribeToTask", &json!({"id": id}));
        let stream = connection.open_stream(request.request(1)).await?;
        streams.push((connection, stream));
    }
    sleep(SETTLE_TIME).await;
    let (memory, cpu) = (process::memory_of(served.pid)?, process::cpu_time(served.pid)?);
    let mut listening: JoinSet<Result<Instant, BenchError>> = streams.into_iter().map(wait_for_end).collect();
    let agent_address = agent.said.parse().map_err(context("a child process gave no address"))?;
    let finished = Instant::now();
    program::get_page(agent_address, agent::FINISH).await?;
    let mut heard = Vec::new();
    while let Some(done) = timeout(TASK_TIMEOUT, listening.join_next())
        .await
        .map_err(context("a subscriber never heard the end"))?
    {
        let at = done.map_err(context("a subscriber was lost"))??;
        heard.push(u64::try_from(at.duration_since(finished).as_micros()).unwrap_or(u64::MAX));
    }
    sleep(SETTLE_TIME).await;
    let cpu = process::cpu_time(served.pid)?.saturating_sub(cpu);
    let each = args.subscribers.max(1) as f64;
    Ok(SubscriberLoadResults {
        subscribers: heard.len(),
        kb_each: (memory.rss_mb - before.rss_mb) * 1024.0 / each,
        heard_p50_ms: percentile(&mut heard, 0.5) as f64 / 1e3,
        heard_all_ms: percentile(&mut heard, 1.0) as f64 / 1e3,
        cpu_us_each: cpu.as_secs_f64() * 1e6 / each,
        memory,
    })
}

/// Reads the stream to its end and returns that time. The end must have been received.
async fn wait_for_end((connection, mut stream): (LoadConnection, Incoming)) -> Result<Instant, BenchError> {
    let mut last = String::new();
    while let Some(frame) = stream.frame().await {
        let frame = frame.map_err(context("a stream broke off"))?;
        if let Some(data) = frame.data_ref() {
            last = String::from_utf8_lossy(data).into_owned();
        }
    }
    drop(connection);
    if last.contains(COMPLETED_STATE) {
        return Ok(Instant::now());
    }
    Err(BenchError::new(format!("a stream ended with something else: {last}")))
}

// === impl TasksReport ===

impl BenchReport for TasksReport {
    fn checks(&self) -> &[TargetCheck] {
        &self.checks
    }

    fn is_broken(&self) -> bool {
        self.tasks.errors > 0 || self.tasks.tasks == 0
    }
}

impl Display for TasksReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let TaskLoadResults { connections, tasks, errors, per_second, behind_ms, memory, .. } = &self.tasks;
        let mut table = TextTable::new(&[
            "durable tasks",
            "tasks/s",
            "acknowledged p50 ms",
            "p99 ms",
            "last end behind ms",
            "CPU µs/task",
            "RSS MB",
            "errors",
        ]);
        table.add_row([
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
        let SubscriberLoadResults { subscribers, kb_each, heard_p50_ms, heard_all_ms, cpu_us_each, memory } =
            &self.subscribers;
        let mut table = TextTable::new(&[
            "subscribers",
            "KB each",
            "half heard ms",
            "all heard ms",
            "CPU µs each",
            "RSS MB",
        ]);
        table.add_row([
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
        print_checks(f, &self.checks)?;
        write!(f, "\n{FOOTER}")
    }
}

const FOOTER: &str = "\
How to read this: each task is in the store before it is acknowledged, and the agent answers at once; tasks/s counts from
the first message to the end of the last task, CPU µs/task is all that Rialto used, background work included. Subscribers
listen over a connection each; the time is from the moment the agent was told to answer until the stream was read to its
end.";
