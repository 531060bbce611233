//! What a crossing costs: an MCP call, or a message of another A2A, to an A2A agent through Rialto, beside the same agent behind
//! a bare proxy.
//!
//! All candidates run at the same time and are asked in turn, a slice each, so that a noise hits all of them. What a
//! candidate still does a moment after its slice (writing audit rows, say) is on its bill.

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
    database::{Database, Work},
    governed::Governed,
    load::{Asker, Connection, Crowd, Seen, Template},
    mcp::Era,
    process::{self, Process},
    program::{self, Served},
    report::{Check, Table, Verdict, checks, percentile},
    seconds,
    trouble::{Trouble, during},
};

/// How much is asked, and of whom.
#[derive(clap::Args)]
pub(crate) struct Load {
    /// How long each candidate is asked, per number of connections.
    #[arg(long, default_value = "5", value_parser = seconds::parse)]
    seconds: Duration,
    /// How many slices that time is cut into.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// How many connections ask at the same time.
    #[arg(long, value_delimiter = ',', default_value = "1,64")]
    connections: Vec<usize>,
    #[command(flatten)]
    pub(crate) program: program::Args,
}

/// How to measure.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) load: Load,
    /// Which MCP is spoken to Rialto.
    #[arg(long, value_enum, default_value_t)]
    era: Era,
    /// Measure the agent and the proxy only.
    #[arg(long)]
    without_rialto: bool,
    /// Measure Rialto a second time with all it has against strangers: a token, 100 policies, and somebody who reads its
    /// metrics every second.
    #[arg(long, conflicts_with = "without_rialto")]
    governed: bool,
    /// Measure Rialto once more with all built-in guardrails looking both ways.
    #[arg(long, conflicts_with = "without_rialto")]
    guarded: bool,
    /// Measure Rialto once more with this store. PostgreSQL is started from the system's package.
    #[arg(long, value_enum, conflicts_with = "without_rialto")]
    store: Option<OtherStore>,
}

/// A store besides the embedded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum OtherStore {
    Postgres,
}

/// What is compared, over which road.
struct Plan<'a> {
    load: &'a Load,
    road: Speaks,
    with_rialto: bool,
    governed: bool,
    guarded: bool,
    store: Option<OtherStore>,
}

/// What was measured.
#[derive(Serialize)]
pub(crate) struct Report {
    /// How Rialto was spoken to.
    road: Speaks,
    seconds: f64,
    cores: usize,
    rows: Vec<Row>,
    ratios: Vec<Ratio>,
    /// The CPU per call of the governed one in terms of the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    governed_cpu: Option<f64>,
    /// What PostgreSQL did for each call, if it was measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    postgres: Vec<Postgres>,
    checks: Vec<Check>,
}

/// Rialto with PostgreSQL in terms of Rialto with SQLite, and what PostgreSQL did for each call.
#[derive(Serialize)]
struct Postgres {
    connections: usize,
    per_second: f64,
    cpu: f64,
    postgres_cpu_us_per_call: f64,
    commits_per_call: f64,
}

/// One candidate at one number of connections.
#[derive(Serialize)]
struct Row {
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
    memory: process::Memory,
}

/// Rialto in terms of the proxy.
#[derive(Serialize)]
struct Ratio {
    connections: usize,
    per_second: f64,
    cpu: f64,
}

/// Someone to ask.
struct Candidate {
    name: &'static str,
    pid: u32,
    address: SocketAddr,
    speaks: Speaks,
    token: Option<String>,
}

/// What is spoken to a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Speaks {
    /// A2A 0.3, as the agent itself does.
    A2a,
    /// A2A 1.0, by the door that leads to this one agent.
    Relay,
    /// MCP.
    Mcp(Era),
}

/// Everything that runs, until it is dropped.
struct Stage {
    candidates: Vec<Candidate>,
    _processes: [Process; 2],
    _rialto: Vec<(Served, TempDir)>,
    _governed: Option<Governed>,
    database: Option<Database>,
}

const AGENT: &str = "agent alone";
const PROXY: &str = "bare proxy";
const RIALTO: &str = "rialto";
const GOVERNED: &str = "rialto, governed";
const GUARDED: &str = "rialto, guarded";
const POSTGRES: &str = "rialto, PostgreSQL";

/// One caller stands for many here, and each may have only so many calls under way.
const UNLIMITED: &str = "[limits]\nconcurrent_calls = 0\nrequests_per_second = 0\n";

/// Everything that is looked for without being told how.
const GUARDRAILS: &str =
    "[guardrails]\nchecks = [{ type = \"pii\" }, { type = \"secrets\" }, { type = \"prompt-injection\" }]\n";

/// The number of connections that the targets are for.
const BUSY: usize = 64;

/// How long each candidate is asked before anything is measured.
const WARM_UP: Duration = Duration::from_secs(1);

/// How long a candidate may tidy up after a slice at its own cost.
const SETTLE: Duration = Duration::from_millis(200);

/// Measures MCP calls.
pub(crate) async fn run(args: &Args) -> Result<Report, Trouble> {
    let Args { load, era, without_rialto, governed, guarded, store } = args;
    let (road, with_rialto) = (Speaks::Mcp(*era), !without_rialto);
    let plan = Plan { load, road, with_rialto, governed: *governed, guarded: *guarded, store: *store };
    plan.carry_out().await
}

/// Measures messages of A2A 1.0 to the same agent of 0.3.
pub(crate) async fn translate(load: &Load) -> Result<Report, Trouble> {
    let plan =
        Plan { load, road: Speaks::Relay, with_rialto: true, governed: false, guarded: false, store: None };
    plan.carry_out().await
}

// === impl Plan ===

impl Plan<'_> {
    async fn carry_out(&self) -> Result<Report, Trouble> {
        let stage = Stage::set(self).await?;
        let (mut rows, mut postgres) = (Vec::new(), Vec::new());
        for &connections in &self.load.connections {
            let before = stage.work().await?;
            let measured = stage.measure(self.load, connections).await?;
            let worked = before.zip(stage.work().await?);
            postgres.extend(worked.and_then(|worked| Postgres::of(&measured, worked, connections)));
            rows.extend(measured);
        }
        let ratios: Vec<_> =
            self.load.connections.iter().filter_map(|&connections| Ratio::of(&rows, connections)).collect();
        let busy = busiest(&rows);
        let governed_cpu = busy.and_then(|busy| governed(&rows, busy));
        let mut checks = busy.map(|busy| targets(&rows, &ratios, busy, governed_cpu)).unwrap_or_default();
        checks.extend(postgres.iter().filter(|at| busy == Some(at.connections)).flat_map(Postgres::targets));
        if self.road == Speaks::Relay {
            // The others are for MCP calls.
            checks.retain(|check| check.is_about("calls/s"));
        }
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let seconds = self.load.seconds.as_secs_f64();
        Ok(Report { road: self.road, seconds, cores, rows, ratios, governed_cpu, postgres, checks })
    }
}

// === impl Stage ===

impl Stage {
    async fn set(plan: &Plan<'_>) -> Result<Self, Trouble> {
        let agent = Process::again(&["agent"], None).await?;
        let proxy = Process::again(&["proxy", &agent.said], None).await?;
        let mut candidates = vec![Candidate::ours(AGENT, &agent)?, Candidate::ours(PROXY, &proxy)?];
        let program = &plan.load.program;
        let mut rialto = Vec::new();
        let wanted = [(plan.with_rialto, RIALTO, ""), (plan.guarded, GUARDED, GUARDRAILS)];
        for (_, name, more) in wanted.into_iter().filter(|(is_wanted, ..)| *is_wanted) {
            let (served, data) = serve_with(program, &agent.said, &[UNLIMITED, more].concat()).await?;
            candidates.push(Candidate::served(name, &served, plan.road, None));
            rialto.push((served, data));
        }
        let governed = if plan.governed { Some(Governed::serve(program, &agent.said).await?) } else { None };
        if let Some(governed) = &governed {
            let token = Some(governed.token.clone());
            candidates.push(Candidate::served(GOVERNED, &governed.served, plan.road, token));
        }
        let mut database = None;
        if plan.store == Some(OtherStore::Postgres) {
            let started = Database::start().await?;
            let (served, data) = serve_on(program, &agent.said, &started).await?;
            candidates.push(Candidate::served(POSTGRES, &served, plan.road, None));
            rialto.push((served, data));
            database = Some(started);
        }
        Ok(Self { candidates, _processes: [agent, proxy], _rialto: rialto, _governed: governed, database })
    }

    /// What PostgreSQL has done so far, if it is there.
    async fn work(&self) -> Result<Option<Work>, Trouble> {
        match &self.database {
            Some(database) => database.work().await.map(Some),
            None => Ok(None),
        }
    }

    async fn measure(&self, load: &Load, connections: usize) -> Result<Vec<Row>, Trouble> {
        let mut runs = Vec::new();
        for candidate in &self.candidates {
            let mut crowd = candidate.crowd(connections).await?;
            crowd.ask(WARM_UP).await?;
            runs.push((candidate, crowd, Seen::default(), Duration::ZERO));
        }
        let slice = load.seconds / load.rounds.max(1);
        for _ in 0..load.rounds.max(1) {
            for (candidate, crowd, seen, cpu) in &mut runs {
                let before = process::cpu(candidate.pid)?;
                seen.add(crowd.ask(slice).await?);
                sleep(SETTLE).await;
                *cpu += process::cpu(candidate.pid)?.saturating_sub(before);
            }
        }
        runs.into_iter()
            .map(|(candidate, _, seen, cpu)| Row::new(candidate, connections, seen, cpu))
            .collect()
    }
}

/// A Rialto that may call that agent.
pub(crate) async fn serve(program: &program::Args, agent: &str) -> Result<(Served, TempDir), Trouble> {
    serve_with(program, agent, UNLIMITED).await
}

/// The same with these settings.
async fn serve_with(
    program: &program::Args,
    agent: &str,
    settings: &str,
) -> Result<(Served, TempDir), Trouble> {
    let program = program.find()?;
    let data = tempfile::tempdir().map_err(during("no folder for the data"))?;
    let config = data.path().join("bench.toml");
    fs::write(&config, settings).map_err(during("the settings could not be written"))?;
    let config = config.to_string_lossy();
    program.add_agent_with(&format!("http://{agent}"), data.path(), &["--config", &config]).await?;
    Ok((program.serve_with(data.path(), &["--allow-no-auth", "--config", &config]).await?, data))
}

/// One that shares a PostgreSQL database with others.
pub(crate) async fn serve_on(
    program: &program::Args,
    agent: &str,
    database: &Database,
) -> Result<(Served, TempDir), Trouble> {
    serve_with(program, agent, &format!("{UNLIMITED}[store]\nurl = \"{}\"\n", database.url)).await
}

/// Somebody who makes MCP calls.
pub(crate) async fn asker(address: SocketAddr, era: Era) -> Result<Asker, Trouble> {
    let mut connection = Connection::open(address).await?;
    let candidate = Candidate { name: RIALTO, pid: 0, address, speaks: Speaks::Mcp(era), token: None };
    let template = candidate.template(&mut connection).await?;
    Ok(Asker::new(connection, template))
}

// === impl Candidate ===

impl Candidate {
    fn ours(name: &'static str, process: &Process) -> Result<Self, Trouble> {
        let address = process.said.parse().map_err(during("a child process gave no address"))?;
        Ok(Self { name, pid: process.id()?, address, speaks: Speaks::A2a, token: None })
    }

    const fn served(name: &'static str, served: &Served, speaks: Speaks, token: Option<String>) -> Self {
        Self { name, pid: served.pid, address: served.address, speaks, token }
    }

    async fn crowd(&self, connections: usize) -> Result<Crowd, Trouble> {
        let mut askers = Vec::new();
        for _ in 0..connections {
            let mut connection = Connection::open(self.address).await?;
            let template = self.template(&mut connection).await?;
            askers.push(Asker::new(connection, template));
        }
        Ok(Crowd::new(askers))
    }

    async fn template(&self, connection: &mut Connection) -> Result<Template, Trouble> {
        match self.speaks {
            Speaks::A2a => Ok(Template::new("/", self.address, "message/send", &agent::send_params())),
            Speaks::Relay => Ok(relay(self.address, false)),
            Speaks::Mcp(era) => {
                let tool = agent::tool();
                let params = json!({"name": tool, "arguments": agent::arguments()});
                let token = self.token.as_deref();
                era.prepare(connection, (self.address, token), ("tools/call", Some(&tool)), params).await
            }
        }
    }
}

/// A message of A2A 1.0 to the agent.
pub(crate) fn relay(host: SocketAddr, at_once: bool) -> Template {
    let mut template = Template::new(&agent::relay(), host, "SendMessage", &agent::relay_params(at_once));
    template.set("a2a-version", "1.0");
    template
}

// === impl Row ===

impl Row {
    fn new(
        candidate: &Candidate,
        connections: usize,
        mut seen: Seen,
        cpu: Duration,
    ) -> Result<Self, Trouble> {
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
            memory: process::memory(candidate.pid)?,
        })
    }
}

// === impl Postgres ===

impl Postgres {
    fn of(rows: &[Row], (before, after): (Work, Work), connections: usize) -> Option<Self> {
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

    fn targets(&self) -> [Check; 3] {
        let at = format!("with PostgreSQL at {} connections", self.connections);
        [
            Check::at_least(format!("calls/s {at}, as a share of SQLite's"), self.per_second, 0.35, ""),
            Check::at_most(format!("CPU per call {at}, as a multiple of SQLite's"), self.cpu, 2.0, ""),
            Check::at_most(format!("commits per call {at}"), self.commits_per_call, 0.1, ""),
        ]
    }
}

// === impl Ratio ===

impl Ratio {
    fn of(rows: &[Row], connections: usize) -> Option<Self> {
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
fn busiest(rows: &[Row]) -> Option<usize> {
    let ours = rows.iter().filter(|row| row.candidate == RIALTO).map(|row| row.connections);
    ours.max_by_key(|&connections| (connections == BUSY, connections))
}

/// What the governed one costs in terms of the other.
fn governed(rows: &[Row], busy: usize) -> Option<f64> {
    let cpu = |name| {
        let row = rows.iter().find(|row| row.candidate == name && row.connections == busy);
        row.map(|row| row.cpu_us_per_call)
    };
    Some(cpu(GOVERNED)? / cpu(RIALTO)?)
}

fn targets(rows: &[Row], ratios: &[Ratio], busy: usize, governed: Option<f64>) -> Vec<Check> {
    let ours = || rows.iter().filter(|row| row.candidate == RIALTO);
    let cpu = ours().filter(|row| row.connections == busy).map(|row| {
        Check::at_most(format!("CPU per call at {busy} connections"), row.cpu_us_per_call, 120.0, "µs")
    });
    let speed = ratios.iter().filter(|ratio| ratio.connections == busy).map(|ratio| {
        let what = format!("calls/s at {busy} connections, as a share of the bare proxy's");
        Check::at_least(what, ratio.per_second, 0.35, "")
    });
    let memory = ours().map(|row| row.memory.rss_mb).reduce(f64::max);
    let memory = memory.map(|mb| Check::at_most("memory held", mb, 64.0, "MB"));
    let governed = governed.map(|times| {
        Check::at_most("CPU per call when it is governed, as a multiple of when it is not", times, 1.3, "")
    });
    cpu.chain(speed).chain(memory).chain(governed).collect()
}

// === impl Report ===

impl Verdict for Report {
    fn checks(&self) -> &[Check] {
        &self.checks
    }

    fn is_broken(&self) -> bool {
        self.rows.iter().any(|row| row.errors > 0 || row.calls == 0)
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&[
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
            table.row([
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
        for Ratio { connections, per_second, cpu } in &self.ratios {
            writeln!(
                f,
                "rialto : proxy at {connections} connections: {per_second:.2} of its calls/s, {cpu:.1} times its CPU"
            )?;
        }
        if let Some(times) = self.governed_cpu {
            writeln!(f, "rialto, governed : rialto: {times:.2} times its CPU")?;
        }
        for Postgres { connections, per_second, cpu, postgres_cpu_us_per_call, commits_per_call } in
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
        checks(f, &self.checks)?;
        write!(f, "\n{FOOTER}")
    }
}

const FOOTER: &str = "\
How to read this: agent, proxy, Rialto and the load share this machine's cores, so calls/s tells what all of them cost
together: compare it only within one run. CPU µs/call is user + kernel time of that one process, background work
included; it moves far less with what else the machine does, but compare it with the proxy's all the same. At one
connection it is mostly threads falling asleep and waking up. 'agent alone' is the floor. Bodies are about 1 KB each
way; Rialto runs with policy and audit on, its data in the temporary folder (TMPDIR).";
