//! The store is away for 6, 30 and 120 seconds under load, twenty times each: nothing that was acknowledged is lost, and nothing untrue is said.
//!
//! `cargo nextest run --workspace --profile foreign --run-ignored only -E 'test(/long_outages/)'` runs them; each takes about a quarter of an hour.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use rialto_testkit::postgres::Server as Postgres;

use crate::harness::{
    outage::{OutageFixture, SmallDisk},
    rialto::Rialto,
};

/// Tasks under way when the store goes away.
const TASKS: usize = 10;

/// Outages of each length.
const ROUNDS: usize = 20;

/// Servers with a store of their own that are tested at the same time.
const LANES: usize = 5;

/// Lengths of the outages, in seconds.
const LENGTHS: [u64; 3] = [6, 30, 120];

/// Longest time from the return of the store until every result is recorded.
const RECORDED_WITHIN: Duration = Duration::from_secs(5);

/// Something that takes a store away.
#[derive(Clone, Copy, Debug)]
enum Kind {
    PostgresStopped,
    PostgresReadOnly,
    DiskFull,
}

/// A store that can be taken away.
enum Victim {
    Postgres(Box<Postgres>),
    Disk(SmallDisk),
}

// === impl Kind ===

impl Kind {
    fn prepare(self) -> Option<(Victim, OutageFixture)> {
        if matches!(self, Self::DiskFull) {
            let rialto = Rialto::fresh();
            let disk = SmallDisk::mount(&rialto.data())?;
            return Some((Victim::Disk(disk), OutageFixture::new(rialto)));
        }
        let postgres = Postgres::start();
        let rialto = Rialto::fresh().with("RIALTO_STORE_URL", &postgres.database());
        Some((Victim::Postgres(Box::new(postgres)), OutageFixture::new(rialto)))
    }

    fn begin(self, victim: &mut Victim) {
        match (self, victim) {
            (Self::PostgresStopped, Victim::Postgres(postgres)) => postgres.stop(),
            (_, Victim::Postgres(postgres)) => set_read_only(postgres, "on"),
            (_, Victim::Disk(disk)) => disk.fill(),
        }
    }

    fn end(self, victim: &mut Victim) {
        match (self, victim) {
            (Self::PostgresStopped, Victim::Postgres(postgres)) => postgres.restart(),
            (_, Victim::Postgres(postgres)) => set_read_only(postgres, "off"),
            (_, Victim::Disk(disk)) => disk.free(),
        }
    }
}

/// Has every transaction refuse to write, also those of connections that are open.
fn set_read_only(postgres: &Postgres, value: &str) {
    postgres.sql("postgres", &format!("ALTER SYSTEM SET default_transaction_read_only = {value}"));
    postgres.sql("postgres", "SELECT pg_reload_conf()");
}

fn survive(kind: Kind) {
    for seconds in LENGTHS {
        let (next, acknowledged, refused) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..LANES {
                scope.spawn(|| {
                    while next.fetch_add(1, Ordering::SeqCst) < ROUNDS {
                        let Some(told) = survive_once(kind, Duration::from_secs(seconds)) else { return };
                        acknowledged.fetch_add(told.0, Ordering::SeqCst);
                        refused.fetch_add(told.1, Ordering::SeqCst);
                    }
                });
            }
        });
        eprintln!(
            "{kind:?}, {ROUNDS} times {seconds} s: {} tasks were acknowledged and completed, {} calls were refused and not made",
            acknowledged.into_inner(),
            refused.into_inner()
        );
    }
}

/// Answers how many tasks were acknowledged, and how many calls were refused.
fn survive_once(kind: Kind, away: Duration) -> Option<(usize, usize)> {
    let (mut victim, mut outage) = kind.prepare()?;
    let mut server = outage.serve();
    outage.begin(&server, TASKS);
    let (url, is_over) = (server.url.as_str(), AtomicBool::new(false));
    kind.begin(&mut victim);
    let refused = thread::scope(|scope| {
        let sending = scope.spawn(|| outage.keep_sending(url, &is_over));
        thread::sleep(away);
        kind.end(&mut victim);
        is_over.store(true, Ordering::Relaxed);
        sending.join().unwrap()
    });
    outage.expect_all_completed(&server, RECORDED_WITHIN + crate::harness::outage::WORK);
    let acknowledged = outage.acknowledged();
    assert_eq!(outage.runs(), acknowledged, "what was refused was not made, and nothing was done twice");
    assert!(outage.held_files().is_empty());
    assert!(server.stop().success());
    Some((acknowledged, refused))
}

#[test]
#[ignore = "takes a quarter of an hour"]
fn postgres_may_be_stopped_for_two_minutes() {
    survive(Kind::PostgresStopped);
}

#[test]
#[ignore = "takes a quarter of an hour"]
fn postgres_may_refuse_to_write_for_two_minutes() {
    survive(Kind::PostgresReadOnly);
}

#[test]
#[ignore = "takes a quarter of an hour"]
fn the_disk_may_be_full_for_two_minutes() {
    survive(Kind::DiskFull);
}
