//! Cost of a call through Rialto: an MCP call, or a message of another A2A version, to an A2A agent, compared with the same agent
//! behind a bare proxy.
//!
//! All targets run at the same time and are measured in turn, a slice each, so that noise affects all of them. CPU time used shortly
//! after a target's slice (for audit rows, say) counts for that target.

use std::{
    fmt::{self, Display, Formatter},
    fs,
    net::SocketAddr,
    time::Duration,
};

use serde::Serialize;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::sleep;

use crate::{
    agent,
    database::{DatabaseWork, PostgresDatabase},
    duration_arg,
    error::{BenchError, context},
    governed_server::GovernedServer,
    load::{LoadClient, LoadConnection, LoadGroup, LoadResult, RequestTemplate},
    mcp_client::McpEra,
    process::{self, BenchProcess},
    program::{self, RunningServer},
    report::{BenchReport, TargetCheck, TextTable, percentile, print_checks},
};

/// Parameters of the load.
#[derive(clap::Args)]
pub(crate) struct LoadArgs {
    /// Time per target and number of connections.
    #[arg(long, default_value = "5", value_parser = duration_arg::parse_seconds)]
    seconds: Duration,
    /// Number of slices of that time.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Numbers of concurrent connections.
    #[arg(long, value_delimiter = ',', default_value = "1,64")]
    connections: Vec<usize>,
    #[command(flatten)]
    pub(crate) program: program::ProgramArgs,
}

/// Options of the measurement.
#[derive(clap::Args)]
pub(crate) struct BridgeArgs {
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    /// MCP version towards Rialto.
    #[arg(long, value_enum, default_value_t)]
    era: McpEra,
    /// Measure the agent and the proxy only.
    #[arg(long)]
    without_rialto: bool,
    /// Measure Rialto a second time with governance: a token, 100 policies, and metrics that are read every second.
    #[arg(long, conflicts_with = "without_rialto")]
    governed: bool,
    /// Measure Rialto once more with all built-in guardrails in both directions.
    #[arg(long, conflicts_with = "without_rialto")]
    guarded: bool,
    /// Measure Rialto once more with this store. PostgreSQL is started from the system's package.
    #[arg(long, value_enum, conflicts_with = "without_rialto")]
    store: Option<ExtraStore>,
}

/// A store besides the embedded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ExtraStore {
    Postgres,
}

/// Targets and protocol of a measurement.
struct BridgePlan<'a> {
    load: &'a LoadArgs,
    road: RequestProtocol,
    with_rialto: bool,
    governed: bool,
    guarded: bool,
    store: Option<ExtraStore>,
}

/// Result of the measurement.
#[derive(Serialize)]
pub(crate) struct BridgeReport {
    /// Protocol towards Rialto.
    road: RequestProtocol,
    seconds: f64,
    cores: usize,
    rows: Vec<BridgeRow>,
    ratios: Vec<CostRatio>,
    /// The CPU per call of the governed one in terms of the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    governed_cpu: Option<f64>,
    /// Work of PostgreSQL per call, if measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    postgres: Vec<PostgresCost>,
    checks: Vec<TargetCheck>,
}

/// Rialto with PostgreSQL in terms of Rialto with SQLite, and what PostgreSQL did for each call.
#[derive(Serialize)]
struct PostgresCost {
    connections: usize,
    per_second: f64,
    cpu: f64,
    postgres_cpu_us_per_call: f64,
    commits_per_call: f64,
}

/// One target at one number of connections.
#[derive(Serialize)]
struct BridgeRow {
    candidate: &'static str,
    connections: usize,
    calls: usize,
    errors: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_example: Option<String>,
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    cpu_us_per_call: f64,
    #[serde(flatten)]
    memory: process::ProcessMemory,
}

/// Rialto in terms of the proxy.
#[derive(Serialize)]
struct CostRatio {
    connections: usize,
    per_second: f64,
    cpu: f64,
}

/// Target of the load.
struct BenchTarget {
    name: &'static str,
    pid: u32,
    address: SocketAddr,
    speaks: RequestProtocol,
    token: Option<String>,
}

/// Protocol of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum RequestProtocol {
    /// A2A 0.3, as the agent itself does.
    A2a,
    /// A2A 1.0, on the endpoint of this agent.
    Relay,
    /// MCP.
    Mcp(McpEra),
}

/// All running processes; they end when it is dropped.
struct BridgeSetup {
    candidates: Vec<BenchTarget>,
    _processes: [BenchProcess; 2],
    _rialto: Vec<(RunningServer, TempDir)>,
    _governed: Option<GovernedServer>,
    database: Option<PostgresDatabase>,
}

const AGENT: &str = "agent alone";
const PROXY: &str = "bare proxy";
const RIALTO: &str = "rialto";
const GOVERNED: &str = "rialto, governed";
const GUARDED: &str = "rialto, guarded";
const POSTGRES: &str = "rialto, PostgreSQL";

/// One caller represents many here, so the limits per caller are disabled.
const UNLIMITED: &str = "[limits]\nconcurrent_calls = 0\nrequests_per_second = 0\n";

/// All checks that need no configuration.
const GUARDRAILS: &str =
    "[guardrails]\nchecks = [{ type = \"pii\" }, { type = \"secrets\" }, { type = \"prompt-injection\" }]\n";

/// The number of connections that the targets are for.
const TARGET_CONNECTIONS: usize = 64;

/// Warm-up time per target.
const WARM_UP: Duration = Duration::from_secs(1);

/// Time after a slice that counts for its target.
const SETTLE_TIME: Duration = Duration::from_millis(200);

/// Measures MCP calls.
pub(crate) async fn run(args: &BridgeArgs) -> Result<BridgeReport, BenchError> {
    let BridgeArgs { load, era, without_rialto, governed, guarded, store } = args;
    let (road, with_rialto) = (RequestProtocol::Mcp(*era), !without_rialto);
    let plan = BridgePlan { load, road, with_rialto, governed: *governed, guarded: *guarded, store: *store };
    plan.run().await
}

/// Measures A2A 1.0 messages to the same agent of version 0.3.
pub(crate) async fn translate(load: &LoadArgs) -> Result<BridgeReport, BenchError> {
    let plan = BridgePlan {
        load,
        road: RequestProtocol::Relay,
        with_rialto: true,
        governed: false,
        guarded: false,
        store: None,
    };
    plan.run().await
}

// === impl BridgePlan ===

impl BridgePlan<'_> {
    async fn run(&self) -> Result<BridgeReport, BenchError> {
        let stage = BridgeSetup::start(self).await?;
        let (mut rows, mut postgres) = (Vec::new(), Vec::new());
        for &connections in &self.load.connections {
            let before = stage.database_work().await?;
            let measured = stage.measure(self.load, connections).await?;
            let worked = before.zip(stage.database_work().await?);
            postgres
                .extend(worked.and_then(|worked| PostgresCost::from_rows(&measured, worked, connections)));
            rows.extend(measured);
        }
        let ratios: Vec<_> = self
            .load
            .connections
            .iter()
            .filter_map(|&connections| CostRatio::from_rows(&rows, connections))
            .collect();
        let busy = target_connections(&rows);
        let governed_cpu = busy.and_then(|busy| governed_ratio(&rows, busy));
        let mut checks =
            busy.map(|busy| target_checks(&rows, &ratios, busy, governed_cpu)).unwrap_or_default();
        checks.extend(
            postgres.iter().filter(|at| busy == Some(at.connections)).flat_map(PostgresCost::targets),
        );
        if self.road == RequestProtocol::Relay {
            // The others are for MCP calls.
            checks.retain(|check| check.is_named("calls/s"));
        }
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let seconds = self.load.seconds.as_secs_f64();
        Ok(BridgeReport { road: self.road, seconds, cores, rows, ratios, governed_cpu, postgres, checks })
    }
}

// === impl BridgeSetup ===

impl BridgeSetup {
    async fn start(plan: &BridgePlan<'_>) -> Result<Self, BenchError> {
        let agent = BenchProcess::spawn_self(&["agent"], None).await?;
        let proxy = BenchProcess::spawn_self(&["proxy", &agent.said], None).await?;
        let mut candidates = vec![
            BenchTarget::reference_server(AGENT, &agent)?,
            BenchTarget::reference_server(PROXY, &proxy)?,
        ];
        let program = &plan.load.program;
        let mut rialto = Vec::new();
        let wanted = [(plan.with_rialto, RIALTO, ""), (plan.guarded, GUARDED, GUARDRAILS)];
        for (_, name, more) in wanted.into_iter().filter(|(is_wanted, ..)| *is_wanted) {
            let (served, data) = serve_with(program, &agent.said, &[UNLIMITED, more].concat()).await?;
            candidates.push(BenchTarget::rialto_server(name, &served, plan.road, None));
            rialto.push((served, data));
        }
        let governed =
            if plan.governed { Some(GovernedServer::serve(program, &agent.said).await?) } else { None };
        if let Some(governed) = &governed {
            let token = Some(governed.token.clone());
            candidates.push(BenchTarget::rialto_server(GOVERNED, &governed.served, plan.road, token));
        }
        let mut database = None;
        if plan.store == Some(ExtraStore::Postgres) {
            let started = PostgresDatabase::start().await?;
            let (served, data) = serve_on(program, &agent.said, &started).await?;
            candidates.push(BenchTarget::rialto_server(POSTGRES, &served, plan.road, None));
            rialto.push((served, data));
            database = Some(started);
        }
        Ok(Self { candidates, _processes: [agent, proxy], _rialto: rialto, _governed: governed, database })
    }

    /// Work of PostgreSQL so far, if it is measured.
    async fn database_work(&self) -> Result<Option<DatabaseWork>, BenchError> {
        match &self.database {
            Some(database) => database.work().await.map(Some),
            None => Ok(None),
        }
    }

    async fn measure(&self, load: &LoadArgs, connections: usize) -> Result<Vec<BridgeRow>, BenchError> {
        let mut runs = Vec::new();
        for candidate in &self.candidates {
            let mut crowd = candidate.connect_clients(connections).await?;
            crowd.run_until(WARM_UP).await?;
            runs.push((candidate, crowd, LoadResult::default(), Duration::ZERO));
        }
        let slice = load.seconds / load.rounds.max(1);
        for _ in 0..load.rounds.max(1) {
            for (candidate, crowd, seen, cpu) in &mut runs {
                let before = process::cpu_time(candidate.pid)?;
                seen.add(crowd.run_until(slice).await?);
                sleep(SETTLE_TIME).await;
                *cpu += process::cpu_time(candidate.pid)?.saturating_sub(before);
            }
        }
        runs.into_iter()
            .map(|(candidate, _, seen, cpu)| BridgeRow::new(candidate, connections, seen, cpu))
            .collect()
    }
}

/// A Rialto that may call that agent.
pub(crate) async fn serve(
    program: &program::ProgramArgs,
    agent: &str,
) -> Result<(RunningServer, TempDir), BenchError> {
    serve_with(program, agent, UNLIMITED).await
}

/// Starts a server with these settings.
async fn serve_with(
    program: &program::ProgramArgs,
    agent: &str,
    settings: &str,
) -> Result<(RunningServer, TempDir), BenchError> {
    let program = program.locate()?;
    let data = tempfile::tempdir().map_err(context("no folder for the data"))?;
    let config = data.path().join("bench.toml");
    fs::write(&config, settings).map_err(context("the settings could not be written"))?;
    let config = config.to_string_lossy();
    program.add_agent_with(&format!("http://{agent}"), data.path(), &["--config", &config]).await?;
    Ok((program.serve_with(data.path(), &["--allow-no-auth", "--config", &config]).await?, data))
}

/// Starts a server on a shared PostgreSQL database.
pub(crate) async fn serve_on(
    program: &program::ProgramArgs,
    agent: &str,
    database: &PostgresDatabase,
) -> Result<(RunningServer, TempDir), BenchError> {
    serve_with(program, agent, &format!("{UNLIMITED}[store]\nurl = \"{}\"\n", database.url)).await
}

/// Client that makes MCP calls.
pub(crate) async fn mcp_client(address: SocketAddr, era: McpEra) -> Result<LoadClient, BenchError> {
    let mut connection = LoadConnection::open(address).await?;
    let candidate =
        BenchTarget { name: RIALTO, pid: 0, address, speaks: RequestProtocol::Mcp(era), token: None };
    let template = candidate.template(&mut connection).await?;
    Ok(LoadClient::new(connection, template))
}

// === impl BenchTarget ===

impl BenchTarget {
    fn reference_server(name: &'static str, process: &BenchProcess) -> Result<Self, BenchError> {
        let address = process.said.parse().map_err(context("a child process gave no address"))?;
        Ok(Self { name, pid: process.id()?, address, speaks: RequestProtocol::A2a, token: None })
    }

    const fn rialto_server(
        name: &'static str,
        served: &RunningServer,
        speaks: RequestProtocol,
        token: Option<String>,
    ) -> Self {
        Self { name, pid: served.pid, address: served.address, speaks, token }
    }

    async fn connect_clients(&self, connections: usize) -> Result<LoadGroup, BenchError> {
        let mut askers = Vec::new();
        for _ in 0..connections {
            let mut connection = LoadConnection::open(self.address).await?;
            let template = self.template(&mut connection).await?;
            askers.push(LoadClient::new(connection, template));
        }
        Ok(LoadGroup::new(askers))
    }

    async fn template(&self, connection: &mut LoadConnection) -> Result<RequestTemplate, BenchError> {
        match self.speaks {
            RequestProtocol::A2a => {
                Ok(RequestTemplate::new("/", self.address, "message/send", &agent::send_params()))
            }
            RequestProtocol::Relay => Ok(relay_template(self.address, false)),
            RequestProtocol::Mcp(era) => {
                let tool = agent::tool_name();
                let params = json!({"name": tool, "arguments": agent::sample_arguments()});
                let token = self.token.as_deref();
                era.prepare(connection, (self.address, token), ("tools/call", Some(&tool)), params).await
            }
        }
    }
}

/// A message of A2A 1.0 to the agent.
pub(crate) fn relay_template(host: SocketAddr, at_once: bool) -> RequestTemplate {
    let mut template =
        RequestTemplate::new(&agent::relay_url(), host, "SendMessage", &agent::relay_params(at_once));
    template.set_header("a2a-version", "1.0");
    template
}

// === impl BridgeRow ===

impl BridgeRow {
    fn new(
        candidate: &BenchTarget,
        connections: usize,
        mut seen: LoadResult,
        cpu: Duration,
    ) -> Result<Self, BenchError> {
        let calls = seen.micros.len();
        Ok(Self {
            candidate: candidate.name,
            connections,
            calls,
            errors: seen.errors,
            error_example: seen.example,
            per_second: calls as f64 / seen.elapsed.as_secs_f64(),
            p50_ms: f64::from(percentile(&mut seen.micros, 0.5)) / 1000.0,
            p99_ms: f64::from(percentile(&mut seen.micros, 0.99)) / 1000.0,
            cpu_us_per_call: cpu.as_secs_f64() * 1e6 / calls.max(1) as f64,
            memory: process::memory_of(candidate.pid)?,
        })
    }
}

// === impl PostgresCost ===

impl PostgresCost {
    fn from_rows(
        rows: &[BridgeRow],
        (before, after): (DatabaseWork, DatabaseWork),
        connections: usize,
    ) -> Option<Self> {
        let row = |name| rows.iter().find(|row| row.candidate == name);
        let (postgres, sqlite) = (row(POSTGRES)?, row(RIALTO)?);
        let per_call = |amount: f64| amount / postgres.calls.max(1) as f64;
        Some(Self {
            connections,
            per_second: postgres.per_second / sqlite.per_second,
            cpu: postgres.cpu_us_per_call / sqlite.cpu_us_per_call,
            postgres_cpu_us_per_call: per_call(after.cpu.saturating_sub(before.cpu).as_secs_f64() * 1e6),
            commits_per_call: per_call(after.commits.saturating_sub(before.commits) as f64),
        })
    }

    fn targets(&self) -> [TargetCheck; 3] {
        let at = format!("with PostgreSQL at {} connections", self.connections);
        [
            TargetCheck::at_least(format!("calls/s {at}, as a share of SQLite's"), self.per_second, 0.35, ""),
            TargetCheck::at_most(format!("CPU per call {at}, as a multiple of SQLite's"), self.cpu, 2.0, ""),
            TargetCheck::at_most(format!("commits per call {at}"), self.commits_per_call, 0.1, ""),
        ]
    }
}

// === impl CostRatio ===

impl CostRatio {
    fn from_rows(rows: &[BridgeRow], connections: usize) -> Option<Self> {
        let row = |name| rows.iter().find(|row| row.candidate == name && row.connections == connections);
        let (rialto, proxy) = (row(RIALTO)?, row(PROXY)?);
        Some(Self {
            connections,
            per_second: rialto.per_second / proxy.per_second,
            cpu: rialto.cpu_us_per_call / proxy.cpu_us_per_call,
        })
    }
}

/// The targets are for a busy gateway: 64 connections, or the most that were asked for.
fn target_connections(rows: &[BridgeRow]) -> Option<usize> {
    let ours = rows.iter().filter(|row| row.candidate == RIALTO).map(|row| row.connections);
    ours.max_by_key(|&connections| (connections == TARGET_CONNECTIONS, connections))
}

/// Cost of the governed server relative to the plain one.
fn governed_ratio(rows: &[BridgeRow], busy: usize) -> Option<f64> {
    let cpu = |name| {
        let row = rows.iter().find(|row| row.candidate == name && row.connections == busy);
        row.map(|row| row.cpu_us_per_call)
    };
    Some(cpu(GOVERNED)? / cpu(RIALTO)?)
}

fn target_checks(
    rows: &[BridgeRow],
    ratios: &[CostRatio],
    busy: usize,
    governed: Option<f64>,
) -> Vec<TargetCheck> {
    let ours = || rows.iter().filter(|row| row.candidate == RIALTO);
    let cpu = ours().filter(|row| row.connections == busy).map(|row| {
        TargetCheck::at_most(format!("CPU per call at {busy} connections"), row.cpu_us_per_call, 120.0, "µs")
    });
    let speed = ratios.iter().filter(|ratio| ratio.connections == busy).map(|ratio| {
        let what = format!("calls/s at {busy} connections, as a share of the bare proxy's");
        TargetCheck::at_least(what, ratio.per_second, 0.35, "")
    });
    let memory = ours().map(|row| row.memory.rss_mb).reduce(f64::max);
    let memory = memory.map(|mb| TargetCheck::at_most("memory held", mb, 64.0, "MB"));
    let governed = governed.map(|times| {
        TargetCheck::at_most(
            "CPU per call when it is governed, as a multiple of when it is not",
            times,
            1.3,
            "",
        )
    });
    cpu.chain(speed).chain(memory).chain(governed).collect()
}

// === impl BridgeReport ===

impl BenchReport for BridgeReport {
    fn checks(&self) -> &[TargetCheck] {
        &self.checks
    }

    fn is_broken(&self) -> bool {
        self.rows.iter().any(|row| row.errors > 0 || row.calls == 0)
    }
}

impl Display for BridgeReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut table = TextTable::new(&[
            "",
            "connections",
            "calls/s",
            "p50 ms",
            "p99 ms",
            "CPU µs/call",
            "RSS MB",
            "peak MB",
            "errors",
        ]);
        for row in &self.rows {
            table.add_row([
                row.candidate.to_owned(),
                row.connections.to_string(),
                format!("{:.0}", row.per_second),
                format!("{:.3}", row.p50_ms),
                format!("{:.3}", row.p99_ms),
                format!("{:.1}", row.cpu_us_per_call),
                format!("{:.1}", row.memory.rss_mb),
                format!("{:.1}", row.memory.peak_mb),
                row.errors.to_string(),
            ]);
        }
        writeln!(f, "{table}")?;
        for CostRatio { connections, per_second, cpu } in &self.ratios {
            writeln!(
                f,
                "rialto : proxy at {connections} connections: {per_second:.2} of its calls/s, {cpu:.1} times its CPU"
            )?;
        }
        if let Some(times) = self.governed_cpu {
            writeln!(f, "rialto, governed : rialto: {times:.2} times its CPU")?;
        }
        for PostgresCost { connections, per_second, cpu, postgres_cpu_us_per_call, commits_per_call } in
            &self.postgres
        {
            writeln!(
                f,
                "PostgreSQL : SQLite at {connections} connections: {per_second:.2} of its calls/s, {cpu:.2} times its CPU; \
                 {commits_per_call:.3} commits and {postgres_cpu_us_per_call:.1} µs of PostgreSQL's CPU per call"
            )?;
        }
        for (row, example) in self.rows.iter().filter_map(|row| Some((row, row.error_example.as_ref()?))) {
            writeln!(f, "a wrong answer of {} at {} connections: {example}", row.candidate, row.connections)?;
        }
        print_checks(f, &self.checks)?;
        write!(f, "\n{FOOTER}")
    }
}

const FOOTER: &str = "\
How to read this: agent, proxy, Rialto and the load share this machine's cores, so calls/s tells what all of them cost
together: compare it only within one run. CPU µs/call is user + kernel time of that one process, background work
included; it moves far less with what else the machine does, but compare it with the proxy's all the same. At one
connection it is mostly threads falling asleep and waking up. 'agent alone' is the floor. Bodies are about 1 KB each
way; Rialto runs with policy and audit on, its data in the temporary folder (TMPDIR).";
