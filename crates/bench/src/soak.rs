//! A server under steady load for a long time: lists must not slow with the number of old tasks, and memory must not grow.
//!
//! Tasks are begun at a fixed rate, so that the run ends with a known number of them. In each of twenty periods, `ListTasks` is called two
//! hundred times beside the load, and memory is read.

use std::{
    fmt::{self, Display, Formatter},
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde::Serialize;
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep},
};

use crate::{
    bridge, duration_arg,
    error::{BenchError, context},
    load::{LoadConnection, RequestTemplate},
    mcp_client,
    process::{self, BenchProcess},
    program::{self, RunningServer},
    report::{BenchReport, TargetCheck, TextTable, percentile, print_checks},
};

/// Options of the soak.
#[derive(clap::Args)]
pub(crate) struct SoakArgs {
    /// Length of the run in seconds
    #[arg(long, default_value = "1800", value_parser = duration_arg::parse_seconds)]
    seconds: Duration,
    /// Tasks begun in a second
    #[arg(long, default_value_t = 1_700)]
    rate: u32,
    /// Connections that begin them
    #[arg(long, default_value_t = 8)]
    connections: u32,
    #[command(flatten)]
    program: program::ProgramArgs,
}

/// Measurements of all periods.
#[derive(Serialize)]
pub(crate) struct SoakReport {
    periods: Vec<SoakPeriod>,
    errors: u64,
    checks: Vec<TargetCheck>,
}

/// One period of a run.
#[derive(Clone, Copy, Serialize)]
struct SoakPeriod {
    /// Tasks that had been acknowledged at its end.
    tasks: u64,
    list_p50_ms: f64,
    list_p99_ms: f64,
    rss_mb: f64,
    database_mb: f64,
}

const PERIODS: u32 = 20;

/// Lists in each period.
const LISTS: u32 = 200;

/// Entries of a page.
const PAGE_SIZE: u32 = 50;

/// Runs the load, and measures beside it.
pub(crate) async fn run(args: &SoakArgs) -> Result<SoakReport, BenchError> {
    let agent = BenchProcess::spawn_self(&["agent"], None).await?;
    let (served, data) = bridge::serve(&args.program, &agent.said).await?;
    let end = Instant::now() + args.seconds;
    let mut senders = JoinSet::new();
    let acknowledged = Arc::new(AtomicU64::new(0));
    for _ in 0..args.connections.max(1) {
        let connection = LoadConnection::open(served.address).await?;
        let template = bridge::relay_template(served.address, false);
        let pause = Duration::from_secs(1) * args.connections.max(1) / args.rate.max(1);
        senders.spawn(send_load(connection, template, (pause, end), Arc::clone(&acknowledged)));
    }
    let mut periods = Vec::new();
    for _ in 0..PERIODS {
        let lists = measure_lists(&served, args.seconds / PERIODS).await?;
        let tasks = acknowledged.load(Ordering::Relaxed);
        let memory = process::memory_of(served.pid)?;
        periods.push(SoakPeriod {
            tasks,
            rss_mb: memory.rss_mb,
            database_mb: folder_megabytes(data.path()),
            ..lists
        });
    }
    let mut errors = 0;
    while let Some(done) = senders.join_next().await {
        errors += done.map_err(context("a sender was lost"))??;
    }
    let checks = target_checks(&periods);
    Ok(SoakReport { periods, errors, checks })
}

/// Starts a task with every tick. Returns the number of failed ones.
async fn send_load(
    mut connection: LoadConnection,
    template: RequestTemplate,
    (pause, end): (Duration, Instant),
    acknowledged: Arc<AtomicU64>,
) -> Result<u64, BenchError> {
    let (mut ticks, mut number, mut errors) = (interval(pause), 0, 0);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    while Instant::now() < end {
        ticks.tick().await;
        number += 1;
        let (head, body) = connection.send(template.request(number)).await?;
        match mcp_client::parse_response(&head, &body) {
            Ok(_) => {
                acknowledged.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => errors += 1,
        }
    }
    Ok(errors)
}

/// Reads the first page of tasks again and again, spread over a period.
async fn measure_lists(served: &RunningServer, length: Duration) -> Result<SoakPeriod, BenchError> {
    let mut connection = LoadConnection::open(served.address).await?;
    let params = json!({ "pageSize": PAGE_SIZE });
    let mut template = RequestTemplate::new("/a2a", served.address, "ListTasks", &params);
    template.set_header("a2a-version", "1.0");
    let (began, mut micros) = (Instant::now(), Vec::new());
    for number in 0..LISTS {
        let asked = Instant::now();
        let (head, body) = connection.send(template.request(u64::from(number))).await?;
        micros.push(u32::try_from(asked.elapsed().as_micros()).unwrap_or(u32::MAX));
        mcp_client::parse_response(&head, &body)?;
        sleep((length * (number + 1) / LISTS).saturating_sub(began.elapsed())).await;
    }
    let mut milliseconds = |share| f64::from(percentile(&mut micros, share)) / 1000.0;
    let (list_p50_ms, list_p99_ms) = (milliseconds(0.5), milliseconds(0.99));
    Ok(SoakPeriod { tasks: 0, list_p50_ms, list_p99_ms, rss_mb: 0.0, database_mb: 0.0 })
}

fn folder_megabytes(folder: &Path) -> f64 {
    let file = fs::metadata(folder.join("rialto.db"));
    file.map_or(0.0, |file| file.len() as f64 / 1e6)
}

fn target_checks(periods: &[SoakPeriod]) -> Vec<TargetCheck> {
    let third = (periods.len() / 3).max(1);
    let median = |some: &[SoakPeriod]| {
        let mut micros: Vec<u64> = some.iter().map(|period| (period.list_p99_ms * 1000.0) as u64).collect();
        percentile(&mut micros, 0.5).max(1) as f64
    };
    let (first, last) =
        (&periods[..third.min(periods.len())], &periods[periods.len().saturating_sub(third)..]);
    let second_half = &periods[periods.len() / 2..];
    let most = second_half.iter().map(|period| period.rss_mb).fold(0.0, f64::max);
    let least = second_half.iter().map(|period| period.rss_mb).fold(f64::INFINITY, f64::min);
    vec![
        TargetCheck::at_most(
            "p99 of ListTasks in the last third, as a multiple of the first",
            median(last) / median(first),
            1.5,
            "",
        ),
        TargetCheck::at_most(
            "most memory in the second half, as a multiple of the least",
            most / least,
            1.1,
            "",
        ),
    ]
}

// === impl SoakReport ===

impl BenchReport for SoakReport {
    fn checks(&self) -> &[TargetCheck] {
        &self.checks
    }

    fn is_broken(&self) -> bool {
        self.errors > 0 || self.periods.iter().all(|period| period.tasks == 0)
    }
}

impl Display for SoakReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut table = TextTable::new(&["tasks", "ListTasks p50 ms", "p99 ms", "RSS MB", "database MB"]);
        for period in &self.periods {
            table.add_row([
                period.tasks.to_string(),
                format!("{:.2}", period.list_p50_ms),
                format!("{:.2}", period.list_p99_ms),
                format!("{:.1}", period.rss_mb),
                format!("{:.0}", period.database_mb),
            ]);
        }
        writeln!(f, "{table}\n{} messages were not answered with a task", self.errors)?;
        print_checks(f, &self.checks)
    }
}
