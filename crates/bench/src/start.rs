//! What a start costs: from exec of `rialto mcp` to the first `tools/list` answer on stdio.

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
    mcp::{self, Era},
    program::{self, Program},
    report::{Check, Table, Verdict, checks, percentile},
    trouble::{Trouble, during},
};

/// How to measure.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many starts of each kind.
    #[arg(long, default_value_t = 20)]
    runs: usize,
    #[command(flatten)]
    program: program::Args,
}

/// What was measured.
#[derive(Serialize)]
pub(crate) struct Report {
    rows: Vec<Row>,
    checks: Vec<Check>,
}

/// One kind of start.
#[derive(Serialize)]
struct Row {
    era: Era,
    data: &'static str,
    runs: usize,
    p50_ms: f64,
    max_ms: f64,
}

/// The two ends of a stdio server.
struct Pipes {
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

/// How long one start may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Measures.
pub(crate) async fn run(args: &Args) -> Result<Report, Trouble> {
    let program = args.program.find()?;
    let mut rows = Vec::new();
    for era in [Era::Legacy, Era::Modern] {
        for is_fresh in [true, false] {
            rows.push(measure(&program, era, is_fresh, args.runs.max(1)).await?);
        }
    }
    let checks = rows.iter().map(|row| {
        Check::at_most(format!("{:?} start, {} data folder", row.era, row.data), row.p50_ms, 50.0, "ms")
    });
    Ok(Report { checks: checks.collect(), rows })
}

async fn measure(program: &Program, era: Era, is_fresh: bool, runs: usize) -> Result<Row, Trouble> {
    let folder = || tempfile::tempdir().map_err(during("no folder for the data"));
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
    Ok(Row {
        era,
        data: if is_fresh { "fresh" } else { "used" },
        runs,
        p50_ms: millis(percentile(&mut times, 0.5)),
        max_ms: millis(percentile(&mut times, 1.0)),
    })
}

async fn start(program: &Program, era: Era, data: &Path) -> Result<Duration, Trouble> {
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
        .map_err(during("rialto mcp could not be started"))?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(Trouble::new("rialto mcp has no pipes"));
    };
    let mut pipes = Pipes { input, output: BufReader::new(output).lines() };
    timeout(PATIENCE, pipes.list(era)).await.map_err(during("rialto mcp does not answer"))??;
    let took = begun.elapsed();
    drop(pipes);
    // It ends when its input closes; one that does not is killed when it is dropped.
    let _ = timeout(Duration::from_secs(2), child.wait()).await;
    Ok(took)
}

// === impl Pipes ===

impl Pipes {
    async fn list(&mut self, era: Era) -> Result<(), Trouble> {
        let listed = match era {
            Era::Modern => {
                self.say(&request(1, "tools/list", &mcp::with_meta(json!({})))).await?;
                self.hear(1).await?
            }
            Era::Legacy => {
                self.say(&request(1, "initialize", &mcp::initialize_params())).await?;
                self.hear(1).await?;
                self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
                self.say(&request(2, "tools/list", &json!({}))).await?;
                self.hear(2).await?
            }
        };
        match listed.get("tools").and_then(Value::as_array) {
            Some(tools) if !tools.is_empty() => Ok(()),
            _ => Err(Trouble::new("rialto mcp lists no tools")),
        }
    }

    async fn say(&mut self, message: &Value) -> Result<(), Trouble> {
        let line = format!("{message}\n");
        self.input.write_all(line.as_bytes()).await.map_err(during("rialto mcp does not listen"))
    }

    /// The result of request `id`; whatever else is said before it does not matter here.
    async fn hear(&mut self, id: u64) -> Result<Value, Trouble> {
        loop {
            let line = self.output.next_line().await.map_err(during("rialto mcp was lost"))?;
            let line = line.ok_or_else(|| Trouble::new("rialto mcp ended without an answer"))?;
            let message: Value =
                serde_json::from_str(&line).map_err(during("rialto mcp does not speak JSON"))?;
            if message.get("id").and_then(Value::as_u64) == Some(id) {
                return mcp::result(message);
            }
        }
    }
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

// === impl Report ===

impl Verdict for Report {
    fn checks(&self) -> &[Check] {
        &self.checks
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&["era", "data folder", "runs", "p50 ms", "max ms"]);
        for row in &self.rows {
            table.row([
                format!("{:?}", row.era).to_lowercase(),
                row.data.to_owned(),
                row.runs.to_string(),
                format!("{:.1}", row.p50_ms),
                format!("{:.1}", row.max_ms),
            ]);
        }
        writeln!(f, "{table}")?;
        checks(f, &self.checks)?;
        write!(f, "\n{FOOTER}")
    }
}

const FOOTER: &str = "\
How to read this: the clock runs from before exec to the line with the tools/list answer; legacy means initialize first,
modern means tools/list is the first thing said. 'fresh' makes a new data folder each time (the store is created),
'used' is the everyday case. The target is held against p50.";
