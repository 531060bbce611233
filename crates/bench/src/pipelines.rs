//! Cost of small pipelines: many runs of three steps, each a call of an agent that responds at once.
//!
//! A run writes down each step before it leaves and each result before the next begins, so this measures what that takes beside the
//! calls themselves.

use std::{
    fmt::{self, Display, Formatter},
    fs,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serde::Serialize;
use serde_json::json;
use tokio::{task::JoinSet, time::sleep};

use crate::{
    agent,
    error::{BenchError, context},
    load,
    load::{LoadConnection, RequestTemplate},
    process::{self, BenchProcess},
    program,
    report::{BenchReport, TargetCheck, TextTable, percentile, print_checks},
};

/// Options of the measurement.
#[derive(clap::Args)]
pub(crate) struct PipelinesArgs {
    /// Number of pipeline runs.
    #[arg(long, default_value_t = 1_000)]
    runs: usize,
    /// Number of concurrent runs.
    #[arg(long, default_value_t = 16)]
    connections: usize,
    #[command(flatten)]
    program: program::ProgramArgs,
}

/// Result of the measurement.
#[derive(Serialize)]
pub(crate) struct PipelinesReport {
    runs: usize,
    connections: usize,
    errors: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_example: Option<String>,
    runs_per_second: f64,
    steps_per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    cpu_us_per_step: f64,
    #[serde(flatten)]
    memory: process::ProcessMemory,
    checks: Vec<TargetCheck>,
}

/// The steps of each.
const STEPS: usize = 3;

/// Time for background work to finish before CPU time is read.
const SETTLE_TIME: Duration = Duration::from_millis(500);

/// Marker of a successful run.
const COMPLETED_STATE: &str = "TASK_STATE_COMPLETED";

/// Measures.
pub(crate) async fn run(args: &PipelinesArgs) -> Result<PipelinesReport, BenchError> {
    let agent = BenchProcess::spawn_self(&["agent"], None).await?;
    let program = args.program.locate()?;
    let data = tempfile::tempdir().map_err(context("no folder for the data"))?;
    program.add_agent(&format!("http://{}", agent.said), data.path()).await?;
    let (config, pipeline) = (data.path().join("bench.toml"), data.path().join("small.json"));
    fs::write(&config, "[limits]\nconcurrent_calls = 0\nrequests_per_second = 0\n")
        .map_err(context("no settings"))?;
    fs::write(&pipeline, definition()).map_err(context("no pipeline"))?;
    let file = pipeline.to_string_lossy().into_owned();
    program.run(&["pipeline", "add", &file], data.path()).await?;
    let config = config.to_string_lossy();
    let served = program.serve_with(data.path(), &["--allow-no-auth", "--config", &config]).await?;
    // The first run opens connections and reads the definition.
    run_all(served.address, 1, 1).await?;
    let (before, begun) = (process::cpu_time(served.pid)?, Instant::now());
    let mut seen = run_all(served.address, args.runs, args.connections).await?;
    let elapsed = begun.elapsed().as_secs_f64();
    sleep(SETTLE_TIME).await;
    let cpu = process::cpu_time(served.pid)?.saturating_sub(before).as_secs_f64();
    let (runs, steps) = (seen.micros.len(), (seen.micros.len() * STEPS) as f64);
    let memory = process::memory_of(served.pid)?;
    served.stop().await?;
    Ok(PipelinesReport {
        runs,
        connections: args.connections,
        errors: seen.errors,
        error_example: seen.example,
        runs_per_second: runs as f64 / elapsed,
        steps_per_second: steps / elapsed,
        p50_ms: percentile(&mut seen.micros, 0.5) as f64 / 1e3,
        p99_ms: percentile(&mut seen.micros, 0.99) as f64 / 1e3,
        cpu_us_per_step: cpu * 1e6 / steps.max(1.0),
        memory,
        checks: Vec::new(),
    })
}

fn definition() -> String {
    let step = |at: usize| json!({ "id": format!("step{at}"), "tool": agent::tool_name() });
    let steps: Vec<_> = (0..STEPS).map(step).collect();
    json!({ "name": "small", "kind": "pipeline", "status": "active", "steps": steps }).to_string()
}

#[derive(Default)]
struct PipelineResult {
    micros: Vec<u64>,
    errors: usize,
    example: Option<String>,
}

/// Starts a number of runs, with limited concurrency.
async fn run_all(address: SocketAddr, runs: usize, connections: usize) -> Result<PipelineResult, BenchError> {
    let params = json!({
        "message": { "messageId": load::NAME_PLACEHOLDER, "role": "ROLE_USER", "parts": [{ "data": { "n": 1 } }] },
        "metadata": { "skillId": "pipeline:small" },
    });
    let next = Arc::new(AtomicUsize::new(0));
    let mut crowd = JoinSet::new();
    for _ in 0..connections {
        let mut template = RequestTemplate::new("/a2a", address, "SendMessage", &params);
        template.set_header("a2a-version", "1.0");
        crowd.spawn(run_share(address, template, runs, Arc::clone(&next)));
    }
    let mut seen = PipelineResult::default();
    while let Some(part) = crowd.join_next().await {
        let part = part.map_err(context("a connection was lost"))??;
        seen.micros.extend(part.micros);
        seen.errors += part.errors;
        seen.example = seen.example.or(part.example);
    }
    Ok(seen)
}

async fn run_share(
    address: SocketAddr,
    template: RequestTemplate,
    runs: usize,
    next: Arc<AtomicUsize>,
) -> Result<PipelineResult, BenchError> {
    let (mut connection, mut seen) = (LoadConnection::open(address).await?, PipelineResult::default());
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= runs {
            return Ok(seen);
        }
        let begun = Instant::now();
        let (_, body) = connection.send(template.request(number as u64)).await?;
        seen.micros.push(u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX));
        let text = String::from_utf8_lossy(&body);
        if !text.contains(COMPLETED_STATE) {
            seen.errors += 1;
            seen.example = Some(text.chars().take(500).collect());
        }
    }
}

// === impl PipelinesReport ===

impl BenchReport for PipelinesReport {
    fn checks(&self) -> &[TargetCheck] {
        &self.checks
    }

    fn is_broken(&self) -> bool {
        self.errors > 0 || self.runs == 0
    }
}

impl Display for PipelinesReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let headings = [
            "pipelines of 3 steps",
            "runs/s",
            "steps/s",
            "p50 ms",
            "p99 ms",
            "CPU µs/step",
            "RSS MB",
            "errors",
        ];
        let mut table = TextTable::new(&headings);
        table.add_row([
            format!("{} from {} connections", self.runs, self.connections),
            format!("{:.0}", self.runs_per_second),
            format!("{:.0}", self.steps_per_second),
            format!("{:.2}", self.p50_ms),
            format!("{:.2}", self.p99_ms),
            format!("{:.1}", self.cpu_us_per_step),
            format!("{:.1}", self.memory.rss_mb),
            self.errors.to_string(),
        ]);
        writeln!(f, "{table}")?;
        if let Some(example) = &self.error_example {
            writeln!(f, "a wrong answer: {example}")?;
        }
        print_checks(f, &self.checks)?;
        write!(f, "\n{FOOTER}")
    }
}

const FOOTER: &str = "\
How to read this: each run is a durable task, and each of its three steps another, which calls an agent that answers at once.
CPU µs/step is all that Rialto used, the run's own share and background work included.";
