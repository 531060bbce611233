//! Throughput and cost of several nodes on one PostgreSQL server.
//!
//! All nodes, the database, the agent and the load share this machine, so calls/s cannot grow with the nodes here. The measure is the work per
//! call, of Rialto and of PostgreSQL, and whether nodes wait for each other's locks: while neither grows, nodes on machines of
//! their own add up until PostgreSQL's own machine is full.

use std::{
    fmt::{self, Display, Formatter},
    time::Duration,
};

use serde::Serialize;

use crate::{
    bridge,
    database::PostgresDatabase,
    duration_arg,
    error::BenchError,
    load::{LoadGroup, LoadResult},
    mcp_client::McpEra,
    process::{self, BenchProcess},
    program,
    report::{BenchReport, TargetCheck, TextTable, percentile, print_checks},
};

/// Options of the measurement.
#[derive(clap::Args)]
pub(crate) struct NodesArgs {
    /// Numbers of nodes that share the database.
    #[arg(long, value_delimiter = ',', default_value = "1,2,3")]
    nodes: Vec<usize>,
    /// Number of concurrent connections, of all nodes together.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Time per number of nodes.
    #[arg(long, default_value = "5", value_parser = duration_arg::parse_seconds)]
    seconds: Duration,
    #[command(flatten)]
    program: program::ProgramArgs,
}

/// Result of the measurement.
#[derive(Serialize)]
pub(crate) struct NodesReport {
    rows: Vec<NodesRow>,
    checks: Vec<TargetCheck>,
}

/// One number of nodes.
#[derive(Serialize)]
struct NodesRow {
    nodes: usize,
    connections: usize,
    calls: usize,
    errors: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_example: Option<String>,
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    cpu_us_per_call: f64,
    postgres_cpu_us_per_call: f64,
    commits_per_call: f64,
    /// Sessions of the database that wait for a lock, on average.
    lock_waits: f64,
}

/// Warm-up time.
const WARM_UP: Duration = Duration::from_secs(1);

/// Measures each number of nodes, each on a database of its own.
pub(crate) async fn run(args: &NodesArgs) -> Result<NodesReport, BenchError> {
    let agent = BenchProcess::spawn_self(&["agent"], None).await?;
    let first = PostgresDatabase::start().await?;
    let mut rows = Vec::new();
    for &nodes in &args.nodes {
        rows.push(measure(args, nodes, &first.create_another().await?, &agent.said).await?);
    }
    let checks = target_checks(&rows);
    Ok(NodesReport { rows, checks })
}

async fn measure(
    args: &NodesArgs,
    nodes: usize,
    database: &PostgresDatabase,
    agent: &str,
) -> Result<NodesRow, BenchError> {
    let mut served = Vec::new();
    for _ in 0..nodes.max(1) {
        served.push(bridge::serve_on(&args.program, agent, database).await?);
    }
    let mut askers = Vec::new();
    for number in 0..args.connections {
        let (node, _) = &served[number % served.len()];
        askers.push(bridge::mcp_client(node.address, McpEra::default()).await?);
    }
    let mut crowd = LoadGroup::new(askers);
    crowd.run_until(WARM_UP).await?;
    let used = || served.iter().map(|(node, _)| process::cpu_time(node.pid)).sum::<Result<Duration, _>>();
    let (cpu_before, before) = (used()?, database.work().await?);
    let locks = database.sample_lock_waits(args.seconds);
    let mut seen: LoadResult = crowd.run_until(args.seconds).await?;
    let lock_waits = locks.await.map_err(crate::error::context("PostgreSQL was not watched"))??;
    let (after, cpu) = (database.work().await?, used()?.saturating_sub(cpu_before));
    let calls = seen.micros.len();
    let per_call = |amount: f64| amount / calls.max(1) as f64;
    Ok(NodesRow {
        nodes,
        connections: args.connections,
        calls,
        errors: seen.errors,
        error_example: seen.example.take(),
        per_second: calls as f64 / seen.elapsed.as_secs_f64(),
        p50_ms: f64::from(percentile(&mut seen.micros, 0.5)) / 1000.0,
        p99_ms: f64::from(percentile(&mut seen.micros, 0.99)) / 1000.0,
        cpu_us_per_call: per_call(cpu.as_secs_f64() * 1e6),
        postgres_cpu_us_per_call: per_call(after.cpu.saturating_sub(before.cpu).as_secs_f64() * 1e6),
        commits_per_call: per_call((after.commits - before.commits) as f64),
        lock_waits,
    })
}

fn target_checks(rows: &[NodesRow]) -> Vec<TargetCheck> {
    let most = |of: fn(&NodesRow) -> f64| rows.iter().map(of).fold(0.0, f64::max);
    let one = rows.iter().find(|row| row.nodes == 1);
    let growth = one.map(|one| {
        let times = most(|row| row.postgres_cpu_us_per_call) / one.postgres_cpu_us_per_call;
        TargetCheck::at_most("PostgreSQL's CPU per call, as a multiple of that with one node", times, 2.0, "")
    });
    let waits = TargetCheck::at_most("sessions that wait for a lock", most(|row| row.lock_waits), 0.5, "");
    growth.into_iter().chain([waits]).collect()
}

// === impl NodesReport ===

impl BenchReport for NodesReport {
    fn checks(&self) -> &[TargetCheck] {
        &self.checks
    }

    fn is_broken(&self) -> bool {
        self.rows.iter().any(|row| row.errors > 0 || row.calls == 0)
    }
}

impl Display for NodesReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut table = TextTable::new(&[
            "nodes",
            "connections",
            "calls/s",
            "p50 ms",
            "p99 ms",
            "CPU µs/call",
            "PostgreSQL µs/call",
            "commits/call",
            "lock waits",
            "errors",
        ]);
        for row in &self.rows {
            table.add_row([
                row.nodes.to_string(),
                row.connections.to_string(),
                format!("{:.0}", row.per_second),
                format!("{:.3}", row.p50_ms),
                format!("{:.3}", row.p99_ms),
                format!("{:.1}", row.cpu_us_per_call),
                format!("{:.1}", row.postgres_cpu_us_per_call),
                format!("{:.3}", row.commits_per_call),
                format!("{:.2}", row.lock_waits),
                row.errors.to_string(),
            ]);
        }
        writeln!(f, "{table}")?;
        for (row, example) in self.rows.iter().filter_map(|row| Some((row, row.error_example.as_ref()?))) {
            writeln!(f, "a wrong answer of {} nodes: {example}", row.nodes)?;
        }
        print_checks(f, &self.checks)?;
        write!(f, "\n{FOOTER}")
    }
}

const FOOTER: &str = "\
How to read this: nodes, PostgreSQL, agent and load share this machine's cores, so calls/s does not grow with nodes here. On
machines of their own it does, for as long as the work per call does not grow and nodes do not wait for each other's
locks; PostgreSQL's CPU per call then says how many calls/s its machine can take.";
