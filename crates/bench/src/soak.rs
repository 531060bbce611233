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
    bridge,
    load::{Connection, Template},
    mcp,
    process::{self, Process},
    program::{self, Served},
    report::{Check, Table, Verdict, checks, percentile},
    seconds,
    trouble::{Trouble, during},
};

/// Options of the soak.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Length of the run in seconds
    #[arg(long, default_value = "1800", value_parser = seconds::parse)]
    seconds: Duration,
    /// Tasks begun in a second
    #[arg(long, default_value_t = 1_700)]
    rate: u32,
    /// Connections that begin them
    #[arg(long, default_value_t = 8)]
    connections: u32,
    #[command(flatten)]
    program: program::Args,
}

/// Measurements of all periods.
#[derive(Serialize)]
pub(crate) struct Report {
    periods: Vec<Period>,
    errors: u64,
    checks: Vec<Check>,
}

/// One of the periods of a run.
#[derive(Clone, Copy, Serialize)]
struct Period {
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
pub(crate) async fn run(args: &Args) -> Result<Report, Trouble> {
    let agent = Process::again(&["agent"], None).await?;
    let (served, data) = bridge::serve(&args.program, &agent.said).await?;
    let end = Instant::now() + args.seconds;
    let mut senders = JoinSet::new();
    let acknowledged = Arc::new(AtomicU64::new(0));
    for _ in 0..args.connections.max(1) {
        let connection = Connection::open(served.address).await?;
        let template = bridge::relay(served.address, false);
        let pause = Duration::from_secs(1) * args.connections.max(1) / args.rate.max(1);
        senders.spawn(send(connection, template, (pause, end), Arc::clone(&acknowledged)));
    }
    let mut periods = Vec::new();
    for _ in 0..PERIODS {
        let lists = list(&served, args.seconds / PERIODS).await?;
        let tasks = acknowledged.load(Ordering::Relaxed);
        let memory = process::memory(served.pid)?;
        periods.push(Period { tasks, rss_mb: memory.rss_mb, database_mb: size_mb(data.path()), ..lists });
    }
    let mut errors = 0;
    while let Some(done) = senders.join_next().await {
        errors += done.map_err(during("a sender was lost"))??;
    }
    let checks = checks_of(&periods);
    Ok(Report { periods, errors, checks })
}

/// Begins a task with every tick. Answers how many were not acknowledged.
async fn send(
    mut connection: Connection,
    template: Template,
    (pause, end): (Duration, Instant),
    acknowledged: Arc<AtomicU64>,
) -> Result<u64, Trouble> {
    let (mut ticks, mut number, mut errors) = (interval(pause), 0, 0);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    while Instant::now() < end {
        ticks.tick().await;
        number += 1;
        let (head, body) = connection.send(template.request(number)).await?;
        match mcp::answer(&head, &body) {
            Ok(_) => {
                acknowledged.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => errors += 1,
        }
    }
    Ok(errors)
}

/// Reads the first page of tasks again and again, spread over a period.
async fn list(served: &Served, length: Duration) -> Result<Period, Trouble> {
    let mut connection = Connection::open(served.address).await?;
    let params = json!({ "pageSize": PAGE_SIZE });
    let mut template = Template::new("/a2a", served.address, "ListTasks", &params);
    template.set("a2a-version", "1.0");
    let (began, mut micros) = (Instant::now(), Vec::new());
    for number in 0..LISTS {
        let asked = Instant::now();
        let (head, body) = connection.send(template.request(u64::from(number))).await?;
        micros.push(u32::try_from(asked.elapsed().as_micros()).unwrap_or(u32::MAX));
        mcp::answer(&head, &body)?;
        sleep((length * (number + 1) / LISTS).saturating_sub(began.elapsed())).await;
    }
    let mut milliseconds = |share| f64::from(percentile(&mut micros, share)) / 1000.0;
    let (list_p50_ms, list_p99_ms) = (milliseconds(0.5), milliseconds(0.99));
    Ok(Period { tasks: 0, list_p50_ms, list_p99_ms, rss_mb: 0.0, database_mb: 0.0 })
}

fn size_mb(folder: &Path) -> f64 {
    let file = fs::metadata(folder.join("rialto.db"));
    file.map_or(0.0, |file| file.len() as f64 / 1e6)
}

fn checks_of(periods: &[Period]) -> Vec<Check> {
    let third = (periods.len() / 3).max(1);
    let median = |some: &[Period]| {
        let mut micros: Vec<u64> = some.iter().map(|period| (period.list_p99_ms * 1000.0) as u64).collect();
        percentile(&mut micros, 0.5).max(1) as f64
    };
    let (first, last) =
        (&periods[..third.min(periods.len())], &periods[periods.len().saturating_sub(third)..]);
    let second_half = &periods[periods.len() / 2..];
    let most = second_half.iter().map(|period| period.rss_mb).fold(0.0, f64::max);
    let least = second_half.iter().map(|period| period.rss_mb).fold(f64::INFINITY, f64::min);
    vec![
        Check::at_most(
            "p99 of ListTasks in the last third, as a multiple of the first",
            median(last) / median(first),
            1.5,
            "",
        ),
        Check::at_most("most memory in the second half, as a multiple of the least", most / least, 1.1, ""),
    ]
}

// === impl Report ===

impl Verdict for Report {
    fn checks(&self) -> &[Check] {
        &self.checks
    }

    fn is_broken(&self) -> bool {
        self.errors > 0 || self.periods.iter().all(|period| period.tasks == 0)
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&["tasks", "ListTasks p50 ms", "p99 ms", "RSS MB", "database MB"]);
        for period in &self.periods {
            table.row([
                period.tasks.to_string(),
                format!("{:.2}", period.list_p50_ms),
                format!("{:.2}", period.list_p99_ms),
                format!("{:.1}", period.rss_mb),
                format!("{:.0}", period.database_mb),
            ]);
        }
        writeln!(f, "{table}\n{} messages were not answered with a task", self.errors)?;
        checks(f, &self.checks)
    }
}
