//! PostgreSQL goes away under load and comes back: nothing that was done is lost, done twice or said to be undone.

use std::{
    thread,
    time::{Duration, Instant},
};

use rialto_testkit::postgres::Server as Postgres;

use crate::harness::{
    outage::{OutageFixture, WORK, send},
    rialto::Rialto,
    until,
};

const TASKS: usize = 40;

/// How long the database is away. The function ends in the middle of it.
const AWAY: Duration = Duration::from_secs(6);

/// Longest time from the return of the database until every result is recorded.
const RECORDED_WITHIN: Duration = Duration::from_secs(5);

fn on(postgres: &Postgres) -> OutageFixture {
    OutageFixture::new(Rialto::fresh().with("RIALTO_STORE_URL", &postgres.database()))
}

#[test]
fn results_that_arrive_while_postgres_is_stopped_are_recorded_when_it_is_back() {
    let mut postgres = Postgres::start();
    let mut outage = on(&postgres);
    let server = outage.serve();
    let url = server.url.as_str();
    let waiting = thread::scope(|scope| {
        outage.begin(&server, TASKS);
        let waiting = scope.spawn(|| send(url, "blocking", false).unwrap());
        until("the caller's call has left", || (outage.runs() == TASKS + 1).then_some(()));
        postgres.stop();
        let stopped = Instant::now();
        let refused = send(url, "refused", true).unwrap();
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("so it was not made"), "{refused}");
        thread::sleep(AWAY.saturating_sub(stopped.elapsed()));
        postgres.restart();
        outage.expect_all_completed(&server, RECORDED_WITHIN);
        waiting.join().unwrap()
    });
    assert_eq!(waiting["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{waiting}");
    assert_eq!(outage.runs(), TASKS + 1, "what was refused was not made, and nothing was done twice");
    until("the file of held results is gone", || outage.held_files().is_empty().then_some(()));
    let verified = outage.rialto.json(&["audit", "verify", "--json"]);
    assert_eq!(verified["sound"], true, "{verified}");
}

#[test]
fn results_outlive_a_server_that_is_killed_while_postgres_is_stopped() {
    let mut postgres = Postgres::start();
    let mut outage = on(&postgres);
    let server = outage.serve();
    outage.begin(&server, TASKS);
    postgres.stop();
    thread::sleep(WORK + Duration::from_secs(2));
    assert_eq!(outage.held_files().len(), 1);
    server.kill();
    postgres.restart();
    let server = outage.serve();
    outage.expect_all_completed(&server, RECORDED_WITHIN);
    assert_eq!(outage.runs(), TASKS, "nothing was done twice");
    assert!(outage.held_files().is_empty());
}

#[test]
fn callers_are_answered_in_time_though_postgres_hangs() {
    let postgres = Postgres::start();
    let rialto = Rialto::fresh()
        .with("RIALTO_STORE_URL", &postgres.database())
        .with("RIALTO_CALLS__STORE_TIMEOUT_SECS", "2");
    let mut outage = OutageFixture::new(rialto);
    let server = outage.serve();
    outage.begin(&server, TASKS);
    postgres.freeze();
    let frozen = Instant::now();
    thread::scope(|scope| {
        let callers: Vec<_> = (0..20)
            .map(|number| {
                let url = &server.url;
                scope.spawn(move || {
                    let began = Instant::now();
                    (send(url, &format!("n-{number}"), true).unwrap(), began.elapsed())
                })
            })
            .collect();
        for caller in callers {
            let (answer, took) = caller.join().unwrap();
            assert!(answer["error"]["message"].as_str().unwrap().contains("so it was not made"), "{answer}");
            assert!(took < Duration::from_secs(6), "{took:?}");
        }
    });
    thread::sleep(AWAY.saturating_sub(frozen.elapsed()));
    postgres.thaw();
    outage.expect_all_completed(&server, RECORDED_WITHIN);
    assert_eq!(outage.runs(), TASKS, "what was refused was not made, and nothing was done twice");
    until("no task stays open whose call was not made", || {
        let tasks = outage.rialto.json(&["tasks", "list", "--limit", "200", "--json"]);
        let states = tasks.as_array().unwrap().iter().map(|task| task["state"].as_str().unwrap().to_owned());
        states.collect::<Vec<_>>().iter().all(|state| state == "completed" || state == "failed").then_some(())
    });
}

#[test]
fn a_server_that_is_told_to_stop_while_postgres_is_away_keeps_its_results() {
    let mut postgres = Postgres::start();
    let mut outage = on(&postgres);
    let mut server = outage.serve();
    outage.begin(&server, TASKS);
    postgres.stop();
    thread::sleep(WORK + Duration::from_secs(1));
    let told = Instant::now();
    server.stop();
    assert!(told.elapsed() < Duration::from_secs(30), "{:?}", told.elapsed());
    assert_eq!(outage.held_files().len(), 1);
    postgres.restart();
    let server = outage.serve();
    outage.expect_all_completed(&server, RECORDED_WITHIN);
    assert_eq!(outage.runs(), TASKS);
}
