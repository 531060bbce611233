//! What one call costs here: tasks opened and finished by 64 callers at once, in a file.
//!
//! `cargo run --release -p rialto-store --example throughput [pairs] [full]`

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "it is run by hand, to be read")]

use std::{sync::Arc, time::Instant};

use rialto_model::{ids::TaskId, store::Store, task::TaskHead, verb::Phase};
use rialto_store::{Config, Durability, SqliteStore};
use rialto_testkit::store_suite::{accepted, announced, entry, finished, head, parse_card};

const CALLERS: usize = 64;

#[tokio::main(worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let pairs: usize = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(200_000);
    let full = arguments.iter().any(|word| word == "full");
    let config = Config { durability: if full { Durability::Full } else { Durability::Normal } };
    let folder = tempfile::tempdir_in(".").unwrap();
    let store = Arc::new(SqliteStore::open(folder.path(), config, parse_card).unwrap());

    let (start, cpu) = (Instant::now(), cpu_ticks());
    let callers = (0..CALLERS).map(|n| tokio::spawn(call(Arc::clone(&store), n, pairs / CALLERS)));
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    let (wall, cpu) = (start.elapsed().as_secs_f64(), cpu_ticks() - cpu);

    let done = (pairs / CALLERS * CALLERS) as f64;
    println!("{done} pairs, {CALLERS} callers, {:?}", config.durability);
    println!(
        "{:.0} pairs/s, {:.1} us wall, {:.1} us CPU per pair",
        done / wall,
        wall * 1e6 / done,
        cpu * 1e4 / done
    );
    let reopening = Instant::now();
    SqliteStore::open(folder.path(), config, parse_card).unwrap();
    println!("a second handle opens in {:.2} ms", reopening.elapsed().as_secs_f64() * 1e3);
    store.close().await;
    let reopening = Instant::now();
    SqliteStore::open(folder.path(), config, parse_card).unwrap();
    println!("after closing it opens in {:.2} ms", reopening.elapsed().as_secs_f64() * 1e3);
    println!(
        "{}",
        std::fs::read_to_string("/proc/self/status")
            .unwrap_or_default()
            .lines()
            .find(|l| l.starts_with("VmRSS"))
            .unwrap_or_default()
    );
}

async fn call(store: Arc<SqliteStore>, caller: usize, times: usize) {
    let template = head("");
    let (before, after) =
        (announced(Phase::PreVerb, "default", ""), announced(Phase::PostVerb, "default", ""));
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

/// Hundredths of a second that this process has been running, on Linux.
fn cpu_ticks() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum()
}
