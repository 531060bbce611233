//! Cost of a start: from exec of `rialto mcp` to the first `tools/list` response on stdio.

use std::{
    fmt::{self, Display, Formatter},
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use serde::Serialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{ChildStdin, ChildStdout, Command},
    time::timeout,
};

use crate::{
    error::{BenchError, context},
    mcp_client::{self, McpEra},
    program::{self, RialtoBinary},
    report::{BenchReport, TargetCheck, TextTable, percentile, print_checks},
};

/// Options of the measurement.
#[derive(clap::Args)]
pub(crate) struct StartArgs {
    /// Number of starts of each kind.
    #[arg(long, default_value_t = 20)]
    runs: usize,
    #[command(flatten)]
    program: program::ProgramArgs,
}

/// Result of the measurement.
#[derive(Serialize)]
pub(crate) struct StartReport {
    rows: Vec<StartRow>,
    checks: Vec<TargetCheck>,
}

/// One kind of start.
#[derive(Serialize)]
struct StartRow {
    era: McpEra,
    data: &'static str,
    runs: usize,
    p50_ms: f64,
    max_ms: f64,
}

/// The two ends of a stdio server.
struct StdioPipes {
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

/// Timeout of one start.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Measures.
pub(crate) async fn run(args: &StartArgs) -> Result<StartReport, BenchError> {
    let program = args.program.locate()?;
    let mut rows = Vec::new();
    for era in [McpEra::Legacy, McpEra::Modern] {
        for is_fresh in [true, false] {
            rows.push(measure(&program, era, is_fresh, args.runs.max(1)).await?);
        }
    }
    let checks = rows.iter().map(|row| {
        TargetCheck::at_most(format!("{:?} start, {} data folder", row.era, row.data), row.p50_ms, 50.0, "ms")
    });
    Ok(StartReport { checks: checks.collect(), rows })
}

async fn measure(
    program: &RialtoBinary,
    era: McpEra,
    is_fresh: bool,
    runs: usize,
) -> Result<StartRow, BenchError> {
    let folder = || tempfile::tempdir().map_err(context("no folder for the data"));
    let mut data = folder()?;
    if !is_fresh {
        start(program, era, data.path()).await?;
    }
    let mut times = Vec::new();
    for _ in 0..runs {
        if is_fresh {
            data = folder()?;
        }
        times.push(start(program, era, data.path()).await?);
    }
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    Ok(StartRow {
        era,
        data: if is_fresh { "fresh" } else { "used" },
        runs,
        p50_ms: millis(percentile(&mut times, 0.5)),
        max_ms: millis(percentile(&mut times, 1.0)),
    })
}

async fn start(program: &RialtoBinary, era: McpEra, data: &Path) -> Result<Duration, BenchError> {
    let begun = Instant::now();
    let mut child = Command::new(program.path())
        .arg("mcp")
        .arg("--data")
        .arg(data)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(context("rialto mcp could not be started"))?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(BenchError::new("rialto mcp has no pipes"));
    };
    let mut pipes = StdioPipes { input, output: BufReader::new(output).lines() };
    timeout(START_TIMEOUT, pipes.list(era)).await.map_err(context("rialto mcp does not answer"))??;
    let took = begun.elapsed();
    drop(pipes);
    // It ends when its input closes; one that does not is killed when it is dropped.
    let _ = timeout(Duration::from_secs(2), child.wait()).await;
    Ok(took)
}

// === impl StdioPipes ===

impl StdioPipes {
    async fn list(&mut self, era: McpEra) -> Result<(), BenchError> {
        let listed = match era {
            McpEra::Modern => {
                self.send_message(&request(1, "tools/list", &mcp_client::with_meta(json!({})))).await?;
                self.read_result(1).await?
            }
            McpEra::Legacy => {
                self.send_message(&request(1, "initialize", &mcp_client::initialize_params())).await?;
                self.read_result(1).await?;
                self.send_message(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
                self.send_message(&request(2, "tools/list", &json!({}))).await?;
                self.read_result(2).await?
            }
        };
        match listed.get("tools").and_then(Value::as_array) {
            Some(tools) if !tools.is_empty() => Ok(()),
            _ => Err(BenchError::new("rialto mcp lists no tools")),
        }
    }

    async fn send_message(&mut self, message: &Value) -> Result<(), BenchError> {
        let line = format!("{message}\n");
        self.input.write_all(line.as_bytes()).await.map_err(context("rialto mcp does not listen"))
    }

    /// Reads the result of request `id`; other messages are skipped.
    async fn read_result(&mut self, id: u64) -> Result<Value, BenchError> {
        loop {
            let line = self.output.next_line().await.map_err(context("rialto mcp was lost"))?;
            let line = line.ok_or_else(|| BenchError::new("rialto mcp ended without an answer"))?;
            let message: Value =
                serde_json::from_str(&line).map_err(context("rialto mcp does not speak JSON"))?;
            if message.get("id").and_then(Value::as_u64) == Some(id) {
                return mcp_client::result_of(message);
            }
        }
    }
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

// === impl StartReport ===

impl BenchReport for StartReport {
    fn checks(&self) -> &[TargetCheck] {
        &self.checks
    }
}

impl Display for StartReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut table = TextTable::new(&["era", "data folder", "runs", "p50 ms", "max ms"]);
        for row in &self.rows {
            table.add_row([
                format!("{:?}", row.era).to_lowercase(),
                row.data.to_owned(),
                row.runs.to_string(),
                format!("{:.1}", row.p50_ms),
                format!("{:.1}", row.max_ms),
            ]);
        }
        writeln!(f, "{table}")?;
        print_checks(f, &self.checks)?;
        write!(f, "\n{FOOTER}")
    }
}

const FOOTER: &str = "\
How to read this: the clock runs from before exec to the line with the tools/list answer; legacy means initialize first,
modern means tools/list is the first thing said. 'fresh' makes a new data folder each time (the store is created),
'used' is the everyday case. The target is held against p50.";
