//! Cost of lists: pages of `tools/list` with a growing registry.

use std::{
    fmt::Write as _,
    fmt::{self, Display, Formatter},
    fs,
    net::SocketAddr,
    path::Path,
    time::{Duration, Instant},
};

use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    duration_arg,
    error::{BenchError, context},
    fleet,
    load::LoadConnection,
    mcp_client::{self, McpEra},
    process::{self, BenchProcess},
    program::{self, RialtoBinary, RunningServer},
    report::{BenchReport, TargetCheck, TextTable, percentile, print_checks},
};

/// Options of the measurement.
#[derive(clap::Args)]
pub(crate) struct ListArgs {
    /// Numbers of skills.
    #[arg(long, value_delimiter = ',', default_value = "1,1000,100000")]
    skills: Vec<usize>,
    /// Minimum number of pages to read; the list is read repeatedly.
    #[arg(long, default_value_t = 200)]
    pages: usize,
    /// Pause between the first page and the rest, for background work after the start.
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = duration_arg::parse_seconds)]
    settle: Duration,
    #[command(flatten)]
    program: program::ProgramArgs,
}

/// Result of the measurement.
#[derive(Serialize)]
pub(crate) struct ListReport {
    rows: Vec<ListRow>,
    checks: Vec<TargetCheck>,
}

/// One size of the registry.
#[derive(Serialize)]
struct ListRow {
    skills: usize,
    agents: usize,
    tools_listed: usize,
    pages: usize,
    first_page_ms: f64,
    page_p50_ms: f64,
    page_max_ms: f64,
    page_kb: f64,
    cpu_us_per_page: f64,
    /// CPU use of one core without requests.
    idle_cpu_percent: f64,
    import_seconds: f64,
    ready_ms: f64,
    #[serde(flatten)]
    memory: process::ProcessMemory,
}

/// One page.
struct ListPage {
    took: Duration,
    bytes: usize,
    tools: usize,
    next: Option<String>,
}

/// Pages that were read.
#[derive(Default)]
struct ListRead {
    times: Vec<Duration>,
    bytes: usize,
    tools: usize,
}

/// Number of skills per agent, for large registries.
const SKILLS_EACH: usize = 10;

/// Time over which idle CPU use is measured.
const IDLE: Duration = Duration::from_secs(3);

/// Measures.
pub(crate) async fn run(args: &ListArgs) -> Result<ListReport, BenchError> {
    let program = args.program.locate()?;
    let mut rows = Vec::new();
    for &skills in &args.skills {
        rows.push(Box::pin(measure(&program, skills.max(1), args)).await?);
    }
    let largest = rows.iter().max_by_key(|row| row.skills);
    let page = largest.map(|row| {
        TargetCheck::at_most(format!("a page of {} skills", row.skills), row.page_p50_ms, 5.0, "ms")
    });
    Ok(ListReport { checks: page.into_iter().collect(), rows })
}

async fn measure(program: &RialtoBinary, skills: usize, args: &ListArgs) -> Result<ListRow, BenchError> {
    let fleet = fleet::FleetArgs { agents: skills.div_ceil(SKILLS_EACH), skills: SKILLS_EACH.min(skills) };
    let ships = ["fleet", "--agents", &fleet.agents.to_string(), "--skills", &fleet.skills.to_string()];
    let ships = BenchProcess::spawn_self(&ships, None).await?;
    let at = ships.said.parse().map_err(context("the fleet gave no address"))?;
    let data = tempfile::tempdir().map_err(context("no folder for the data"))?;
    let begun = Instant::now();
    import_fleet(program, at, fleet.agents, data.path()).await?;
    let import_seconds = begun.elapsed().as_secs_f64();
    let served = program.serve(data.path()).await?;
    let row = measure_list(&served, fleet, args).await?;
    served.stop().await?;
    ships.stop().await?;
    Ok(ListRow { import_seconds, ..row })
}

/// Registers the whole fleet.
async fn import_fleet(
    program: &RialtoBinary,
    at: SocketAddr,
    agents: usize,
    data: &Path,
) -> Result<(), BenchError> {
    let list = data.join("bench-fleet.txt");
    let urls = (0..agents).fold(String::new(), |mut urls, agent| {
        // Writing to a string cannot fail.
        let _ = writeln!(urls, "{}", fleet::agent_url(at, agent));
        urls
    });
    fs::write(&list, urls).map_err(context("the list of agents could not be written"))?;
    let list = list.to_string_lossy();
    program.run(&["agents", "import", &*list, "--trust", "trusted"], data).await.map(drop)
}

async fn measure_list(
    served: &RunningServer,
    fleet: fleet::FleetArgs,
    args: &ListArgs,
) -> Result<ListRow, BenchError> {
    let mut connection = LoadConnection::open(served.address).await?;
    let first = read_page(&mut connection, served.address, json!({})).await?.took;
    sleep(args.settle).await;
    let before = process::cpu_time(served.pid)?;
    let mut all = read_all_pages(&mut connection, served.address).await?;
    let (tools_listed, pages_each) = (all.tools, all.times.len());
    let expected = fleet.agents * fleet.skills;
    if tools_listed != expected {
        return Err(BenchError::new(format!("{tools_listed} tools of the fleet are listed, not {expected}")));
    }
    while all.times.len() < args.pages {
        all.add(read_all_pages(&mut connection, served.address).await?);
    }
    let cpu = process::cpu_time(served.pid)?.saturating_sub(before);
    sleep(IDLE).await;
    let idle = process::cpu_time(served.pid)?.saturating_sub(before + cpu);
    let count = f64::from(u32::try_from(all.times.len()).unwrap_or(u32::MAX));
    let bytes = all.bytes as f64;
    Ok(ListRow {
        skills: expected,
        agents: fleet.agents,
        tools_listed,
        pages: pages_each,
        first_page_ms: millis(first),
        page_p50_ms: millis(percentile(&mut all.times, 0.5)),
        page_max_ms: millis(percentile(&mut all.times, 1.0)),
        page_kb: bytes / 1024.0 / count,
        cpu_us_per_page: cpu.as_secs_f64() * 1e6 / count,
        idle_cpu_percent: idle.as_secs_f64() * 100.0 / IDLE.as_secs_f64(),
        import_seconds: 0.0,
        ready_ms: millis(served.ready),
        memory: process::memory_of(served.pid)?,
    })
}

/// Reads the list from its first page to its last.
async fn read_all_pages(connection: &mut LoadConnection, host: SocketAddr) -> Result<ListRead, BenchError> {
    let mut read = ListRead::default();
    let mut params = json!({});
    loop {
        let page = read_page(connection, host, params).await?;
        read.times.push(page.took);
        read.bytes += page.bytes;
        read.tools += page.tools;
        match page.next {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return Ok(read),
        }
    }
}

async fn read_page(
    connection: &mut LoadConnection,
    host: SocketAddr,
    params: Value,
) -> Result<ListPage, BenchError> {
    let template = McpEra::Modern.prepare(connection, (host, None), ("tools/list", None), params).await?;
    let begun = Instant::now();
    let (head, body) = connection.send(template.request(1)).await?;
    let took = begun.elapsed();
    let result = mcp_client::parse_response(&head, &body)?;
    let tools = result.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let names = tools.iter().filter_map(|tool| tool.get("name")?.as_str());
    let tools = names.filter(|name| name.starts_with(fleet::PREFIX)).count();
    let next = result.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
    Ok(ListPage { took, bytes: body.len(), tools, next })
}

// === impl ListRead ===

impl ListRead {
    fn add(&mut self, other: Self) {
        self.times.extend(other.times);
        self.bytes += other.bytes;
        self.tools += other.tools;
    }
}

// === impl ListReport ===

impl BenchReport for ListReport {
    fn checks(&self) -> &[TargetCheck] {
        &self.checks
    }
}

impl Display for ListReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut table = TextTable::new(&[
            "skills",
            "agents",
            "pages",
            "first ms",
            "p50 ms",
            "max ms",
            "KB/page",
            "CPU µs/page",
            "idle CPU %",
            "import s",
            "ready ms",
            "RSS MB",
        ]);
        for row in &self.rows {
            table.add_row([
                row.skills.to_string(),
                row.agents.to_string(),
                row.pages.to_string(),
                format!("{:.2}", row.first_page_ms),
                format!("{:.2}", row.page_p50_ms),
                format!("{:.2}", row.page_max_ms),
                format!("{:.0}", row.page_kb),
                format!("{:.0}", row.cpu_us_per_page),
                format!("{:.1}", row.idle_cpu_percent),
                format!("{:.1}", row.import_seconds),
                format!("{:.0}", row.ready_ms),
                format!("{:.1}", row.memory.rss_mb),
            ]);
        }
        writeln!(f, "{table}")?;
        print_checks(f, &self.checks)?;
        write!(f, "\n{FOOTER}")
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

const FOOTER: &str = "\
How to read this: one connection reads tools/list page after page; a page's time is from request to last byte. 'first'
is the first page after the start, when the list has to be prepared. 'pages' is one whole list; it is read again until
enough pages were timed. CPU per page includes what else the server did meanwhile, such as probing that many agents;
'idle CPU' is what it does of that with nobody asking, in percent of one core.";
