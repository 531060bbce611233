//! What the store costs: tasks opened and finished by 64 callers at once, a great registry, opening.
//!
//! `cargo run --release -p rialto-store --example throughput [pairs] [full]`

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "it is run by hand, to be read")]

use std::{path::Path, sync::Arc, time::Instant};

use rialto_model::{
    agent::Agent,
    audit_event::AuditPhase,
    ids::TaskId,
    store::{AgentStore, TaskStore},
    task::TaskHead,
};
use rialto_store::{Config, Durability, SqliteStore};
use rialto_testkit::store_suite::{accepted, agent, announced, entry, finished, head, parse_card};

const CALLERS: usize = 64;

const AGENTS: usize = 10_000;

#[tokio::main(worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let pairs: usize = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(200_000);
    let full = arguments.iter().any(|word| word == "full");
    let durability = if full { Durability::Full } else { Durability::Normal };
    let config = Config { durability, ..Config::default() };
    let folder = tempfile::tempdir_in(".").unwrap();

    let store = Arc::new(SqliteStore::open(folder.path(), &config, parse_card).unwrap());
    call_from_all_sides(&store, pairs, &config).await;
    println!("memory in use: {} kB", resident());
    show_opening("beside another handle", folder.path(), &config);
    store.close().await;
    show_opening("after closing", folder.path(), &config);
    fill_and_load(folder.path(), &config).await;
}

async fn call_from_all_sides(store: &Arc<SqliteStore>, pairs: usize, config: &Config) {
    let (start, cpu) = (Instant::now(), cpu_ticks());
    let callers = (0..CALLERS).map(|n| tokio::spawn(call(Arc::clone(store), n, pairs / CALLERS)));
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    let (wall, cpu) = (start.elapsed().as_secs_f64(), (cpu_ticks() - cpu) / 100.0);
    let done = (pairs / CALLERS * CALLERS) as f64;
    let (wall_each, cpu_each) = (wall * 1e6 / done, cpu * 1e6 / done);
    println!("{done} pairs of open and append by {CALLERS} callers, durability {:?}:", config.durability);
    println!("{:.0} pairs/s, {wall_each:.1} us wall, {cpu_each:.1} us CPU per pair", done / wall);
}

async fn call(store: Arc<SqliteStore>, caller: usize, times: usize) {
    let template = head("");
    let (before, after) =
        (announced(AuditPhase::PreVerb, "default", ""), announced(AuditPhase::PostVerb, "default", ""));
    for n in 0..times {
        let id = TaskId::from(format!("task_{n:016x}{caller:016x}"));
        // The far side's ids come in no order.
        let remote = format!("{:016x}", (n * CALLERS + caller).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let task = TaskHead { id, ..template.clone() };
        store.open_task(&task, vec![before.clone()]).await.unwrap();
        let mut end = entry(&task, vec![accepted(&remote), finished()], task.created_at);
        end.audit.push(after.clone());
        store.append(end).await.unwrap();
    }
}

fn show_opening(when: &str, folder: &Path, config: &Config) {
    let start = Instant::now();
    SqliteStore::open(folder, config, parse_card).unwrap();
    println!("opened {when} in {:.2} ms", start.elapsed().as_secs_f64() * 1e3);
}

async fn fill_and_load(folder: &Path, config: &Config) {
    let store = SqliteStore::open(folder, config, parse_card).unwrap();
    let skill =
        r#"{"id":"do","name":"Do","description":"Does one of the ten things it can do, and does it well"}"#;
    let text = format!(r#"{{"name":"Ten","skills":[{}]}}"#, [skill; 10].join(","));
    let card = Arc::new(parse_card(&text).unwrap());
    let rows: Vec<Agent> =
        (0..AGENTS).map(|n| Agent { card: Arc::clone(&card), ..agent(&format!("agent_{n:05}")) }).collect();
    let start = Instant::now();
    futures::future::join_all(rows.iter().map(|row| store.put_agent(row, None))).await;
    println!("{AGENTS} agents registered in {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    let start = Instant::now();
    assert_eq!(store.agents().await.unwrap().len(), AGENTS);
    println!("{AGENTS} agents of 10 skills loaded in {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
}

/// Hundredths of a second that this process has been running, on Linux.
fn cpu_ticks() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum()
}

/// Kilobytes of this process in memory, on Linux.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse().ok()).unwrap_or(0)
}
