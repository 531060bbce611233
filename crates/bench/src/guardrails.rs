//! Throughput of guardrails on clean text: megabytes per second and core, for all built-in checks together.
//!
//! Clean is what there is most of: prose, JSON, code and logs, with the digits, addresses and long words that such text has.

use std::{
    fmt::{self, Display, Formatter},
    hint::black_box,
    time::{Duration, Instant},
};

use rialto_guardrails::{
    GuardrailRuleset,
    config::{CheckDirection, Guardrail, GuardrailCheck as GuardCheck},
};
use rialto_model::{json::Json, message::Part};
use serde::Serialize;

use crate::{
    duration_arg,
    error::{BenchError, context},
    report::{self, BenchReport, TargetCheck, TextTable},
};

/// Options of the measurement.
#[derive(clap::Args)]
pub(crate) struct GuardrailsArgs {
    /// Time per row.
    #[arg(long, default_value = "1", value_parser = duration_arg::parse_seconds)]
    seconds: Duration,
    /// Length of each text, in KiB.
    #[arg(long, default_value_t = 256)]
    kib: usize,
}

/// Result of the measurement.
#[derive(Serialize)]
pub(crate) struct GuardrailsReport {
    rows: Vec<GuardrailsRow>,
    checks: Vec<TargetCheck>,
}

/// One kind of text.
#[derive(Serialize)]
struct GuardrailsRow {
    text: &'static str,
    checks: String,
    mb_per_second: f64,
}

const TARGET: f64 = 200.0;
const BUILT_IN: [&str; 4] = ["pii", "prompt-injection", "secrets", "max-tokens"];

const PROSE: &str = "The committee met on Tuesday to discuss the harvest, which had been better than anybody expected. \
    Prices rose by 4 percent in 2024, and the mayor said that the new bridge would be open before winter comes. \
    \"We have waited for eleven years,\" she told the crowd, \"and we can wait for another month.\" Nobody objected.\n\
    Les habitants du quartier ont fêté jusqu'au matin; die Kinder bekamen Süßigkeiten und durften länger aufbleiben.\n";
const CODE: &str = "pub fn read_lines(path: &Path, limit: usize) -> Result<Vec<String>, Error> {\n    let file = \
    File::open(path).map_err(|error| Error::Unreadable(path.to_owned(), error))?;\n    // Lines behind the limit are left \
    for the next call.\n    BufReader::new(file).lines().take(limit).collect()\n}\n";
const LOGS: &str = "2026-01-14T09:21:07.114Z INFO gateway::calls task.id=0198c2d4 agent=reviewer took=41ms status=completed\n\
    2026-01-14T09:21:07.392Z WARN gateway::health agent at https://agents.example.org/v1 answered after 3022 ms\n";
const RECORD: &str = r#"{"id":48213,"title":"Review of the release notes","labels":["docs","release"],"open":true,"score":0.8731,
    "author":{"name":"reviewer-bot","team":"platform"},"body":"Please look at the second paragraph, it promises too much."},"#;

/// Measures.
pub(crate) fn run(args: &GuardrailsArgs) -> Result<GuardrailsReport, BenchError> {
    let size = args.kib * 1_024;
    let json = Json::parse(format!("[{}null]", RECORD.repeat(size / RECORD.len() + 1)))
        .map_err(context("the sample is no JSON"))?;
    let text = |sample: &str| Part::text(sample.repeat(size / sample.len() + 1));
    let mixed = [PROSE, CODE, LOGS].concat();
    let parts = [
        ("prose", text(PROSE)),
        ("code", text(CODE)),
        ("logs", text(LOGS)),
        ("prose, code and logs", text(&mixed)),
        ("data", Part::data(json)),
    ];
    let mut rows = Vec::new();
    for (name, part) in &parts {
        rows.push(measure_text(name, &BUILT_IN, part, args.seconds)?);
    }
    for check in BUILT_IN {
        rows.push(measure_text("prose, code and logs", &[check], &parts[3].1, args.seconds)?);
    }
    let all = |row: &&GuardrailsRow| row.checks == "all built-in";
    let checks = rows
        .iter()
        .filter(all)
        .map(|row| {
            TargetCheck::at_least(format!("all checks, {}", row.text), row.mb_per_second, TARGET, "MB/s")
        })
        .collect();
    Ok(GuardrailsReport { rows, checks })
}

fn measure_text(
    text: &'static str,
    names: &[&str],
    part: &Part,
    each: Duration,
) -> Result<GuardrailsRow, BenchError> {
    let checks = names.iter().filter_map(|name| GuardCheck::plain(name)).map(|check| match check {
        GuardCheck::MaxTokens(mut rule) => {
            rule.config.limit = usize::MAX;
            GuardCheck::MaxTokens(rule)
        }
        check => check,
    });
    let guardrail = Guardrail { checks: checks.collect(), ..Guardrail::default() };
    let guards = GuardrailRuleset::compile(&[guardrail]).map_err(context("the guardrails do not hold up"))?;
    let guards = guards.ok_or_else(|| BenchError::new("there is nothing to look for"))?;
    let parts = std::slice::from_ref(part);
    let findings = guards.check(parts, CheckDirection::Input);
    if !findings.is_empty() {
        return Err(BenchError::new(format!("the text is not clean: {findings}")));
    }
    let size = match &part.content {
        rialto_model::message::Content::Data(json) => json.get().len(),
        _ => rialto_model::message::text_of(parts).len(),
    };
    let (begun, mut best) = (Instant::now(), f64::INFINITY);
    while begun.elapsed() < each || best.is_infinite() {
        let once = Instant::now();
        black_box(guards.check(black_box(parts), CheckDirection::Input));
        best = best.min(once.elapsed().as_secs_f64());
    }
    let checks = if names.len() > 1 { "all built-in".to_owned() } else { names.concat() };
    Ok(GuardrailsRow { text, checks, mb_per_second: size as f64 / best / 1e6 })
}

// === impl GuardrailsReport ===

impl BenchReport for GuardrailsReport {
    fn checks(&self) -> &[TargetCheck] {
        &self.checks
    }
}

impl Display for GuardrailsReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut table = TextTable::new(&["text", "checks", "MB/s"]);
        for row in &self.rows {
            table.add_row([row.text.to_owned(), row.checks.clone(), format!("{:.0}", row.mb_per_second)]);
        }
        writeln!(f, "{table}")?;
        report::print_checks(f, &self.checks)?;
        write!(f, "\nHow to read this: clean text on one core, the best of all rounds.")
    }
}
