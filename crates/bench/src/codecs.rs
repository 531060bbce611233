//! Cost of the codecs: reading and writing a small and a large task in every dialect.

use std::{
    fmt::{self, Display, Formatter},
    hint::black_box,
    time::{Duration, Instant},
};

use rialto_a2a_codec::{
    answer,
    invalid::InvalidDocument,
    rpc,
    task::{A2aState, A2aStatus, A2aTask, SendAnswer},
    wire::Wire,
};
use rialto_model::{
    json::Json,
    message::{Artifact, Message, Part, Role},
};
use serde::Serialize;
use serde_json::json;

use crate::{
    duration_arg,
    error::{BenchError, context},
    report::{BenchReport, TargetCheck, TextTable},
};

/// Options of the measurement.
#[derive(clap::Args)]
pub(crate) struct CodecArgs {
    /// Time per row.
    #[arg(long, default_value = "0.5", value_parser = duration_arg::parse_seconds)]
    seconds: Duration,
}

/// Result of the measurement.
#[derive(Serialize)]
pub(crate) struct CodecReport {
    rows: Vec<CodecRow>,
}

/// One task in one dialect.
#[derive(Serialize)]
struct CodecRow {
    wire: &'static str,
    bytes: usize,
    decode_us: f64,
    encode_us: f64,
    to_1_0_us: f64,
}

/// Number of runs per batch: few, so that some batches are undisturbed.
const BATCH: u32 = 10;

/// Measures.
pub(crate) fn run(args: &CodecArgs) -> Result<CodecReport, BenchError> {
    let mut rows = Vec::new();
    for task in [small_task(), large_task()] {
        for wire in Wire::ALL {
            rows.push(measure(wire, &SendAnswer::Task(task.clone()), args.seconds)?);
        }
    }
    Ok(CodecReport { rows })
}

fn measure(wire: Wire, task: &SendAnswer, each: Duration) -> Result<CodecRow, BenchError> {
    let body = encode_response(wire, task);
    let read = decode_response(wire, body.as_bytes()).map_err(context("our own words cannot be read"))?;
    Ok(CodecRow {
        wire: wire_name(wire),
        bytes: body.len(),
        decode_us: best_micros(each, || decode_response(wire, black_box(body.as_bytes())).is_ok()),
        encode_us: best_micros(each, || encode_response(wire, black_box(&read)).len()),
        to_1_0_us: best_micros(each, || {
            decode_response(wire, black_box(body.as_bytes()))
                .map(|task| encode_response(Wire::V10, &task).len())
                .ok()
        }),
    })
}

/// The microseconds one run takes when nothing disturbs it: the best of many batches.
fn best_micros<T>(each: Duration, run: impl Fn() -> T) -> f64 {
    let begun = Instant::now();
    let mut best = f64::INFINITY;
    while begun.elapsed() < each || best.is_infinite() {
        let batch = Instant::now();
        for _ in 0..BATCH {
            black_box(run());
        }
        best = best.min(batch.elapsed().as_secs_f64() * 1e6 / f64::from(BATCH));
    }
    best
}

/// The whole body of an answer: JSON-RPC, except where the wire is REST.
fn encode_response(wire: Wire, task: &SendAnswer) -> String {
    let answer = answer::encode_send(wire, task);
    match wire {
        Wire::V03Proto => answer.text(),
        Wire::V10 | Wire::V03 | Wire::V01 => rpc::encode_result(&rpc::Id::from(1), &answer),
    }
}

fn decode_response(wire: Wire, body: &[u8]) -> Result<SendAnswer, InvalidDocument> {
    match wire {
        Wire::V03Proto => answer::decode_send(wire, answer::parse(body)?),
        Wire::V10 | Wire::V03 | Wire::V01 => rpc::decode_send(wire, &rpc::Id::from(1), body)?
            .map_err(|error| InvalidDocument::new("a result", error.message)),
    }
}

const fn wire_name(wire: Wire) -> &'static str {
    match wire {
        Wire::V10 => "1.0",
        Wire::V03 => "0.3 JSON-RPC",
        Wire::V03Proto => "0.3 REST",
        Wire::V01 => "0.1",
    }
}

/// A task of about 1 KB.
fn small_task() -> A2aTask {
    sample_task(1, 3)
}

/// A task of about 40 KB.
fn large_task() -> A2aTask {
    sample_task(20, 9)
}

fn sample_task(artifacts: usize, lines: usize) -> A2aTask {
    let line = "a line of what the agent has found out, with \"quotes\" and a number. ";
    let data = Json::encode(
        &json!({"found": line.repeat(lines), "score": 0.75, "tags": ["a", "b", "c"], "deep": {"er": [1, 2, 3]}}),
    );
    let artifact = |number: usize| {
        let mut parts = vec![Part::data(data.clone())];
        if artifacts > 1 {
            parts.push(Part::text(line.repeat(lines * 2)));
        }
        Artifact::new(format!("artifact-{number}"), parts)
    };
    let message = |role, text: &str| Message::new("message-1", role, vec![Part::text(text)]);
    let mut status = A2aStatus::new(A2aState::Completed);
    status.message = Some(message(Role::Agent, "done, and gladly"));
    status.timestamp = Some("2026-11-15T12:00:00.000Z".to_owned());
    let mut task = A2aTask::new("0199f0c2-7d5e-7c3a-9b1f-2f6a1c0d4e5b", status);
    task.context_id = Some("0199f0c2-7d5e-7c3a-9b1f-2f6a1c0d4e5c".to_owned());
    task.artifacts = (0..artifacts).map(artifact).collect();
    task.history = vec![message(Role::User, "please find out what there is to be found out")];
    task
}

// === impl CodecReport ===

impl BenchReport for CodecReport {
    fn checks(&self) -> &[TargetCheck] {
        &[]
    }
}

impl Display for CodecReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut table = TextTable::new(&["wire", "bytes", "decode µs", "encode µs", "to 1.0 µs"]);
        for row in &self.rows {
            table.add_row([
                row.wire.to_owned(),
                row.bytes.to_string(),
                format!("{:.1}", row.decode_us),
                format!("{:.1}", row.encode_us),
                format!("{:.1}", row.to_1_0_us),
            ]);
        }
        write!(f, "{table}\n{FOOTER}")
    }
}

const FOOTER: &str = "\
How to read this: a completed task as the whole body of an answer, envelope included. 'decode' is bytes to our types,
'encode' is back to bytes in the same dialect, 'to 1.0' is both with 1.0 as the target. Each number is the best of many
batches, so that a busy machine shows in none of them.";
