//! Several nodes on one PostgreSQL database.

use std::{
    thread,
    time::{Duration, Instant},
};

use rialto_testkit::postgres::Server as Postgres;
use serde_json::{Value, json};

use crate::harness::{
    agent::SampleAgent,
    http,
    kill_loop::{KillLoop, killed_again_and_again},
    nodes, placement,
    rialto::Rialto,
    server::ServerProcess,
    simultaneous::send_twice,
    until,
};

/// A task of a node that is gone is another's by then.
const TAKEN_OVER: Duration = Duration::from_secs(5);

/// Of the tasks there are so many, and so many are not over; the messages that began them are so many.
const TASKS: &str = "SELECT count(*), count(*) FILTER (WHERE open), count(DISTINCT message) FROM tasks";

fn node(url: &str) -> Rialto {
    Rialto::fresh().with("RIALTO_STORE_URL", url).with("PATH", "/usr/bin:/bin")
}

#[test]
fn nodes_that_are_killed_lose_no_task_and_the_others_take_over() {
    killed(3, 30);
}

/// `cargo nextest run --workspace --profile foreign --run-ignored only -E 'test(/hundred_times/)'` runs it; it takes minutes.
#[test]
#[ignore = "takes minutes"]
fn nodes_that_are_killed_a_hundred_times_lose_no_task_and_the_others_take_over() {
    killed(100, 60);
}

fn killed(deaths: usize, tasks: usize) {
    let postgres = Postgres::start();
    let stage = KillLoop::balanced(&postgres.database());
    let told = killed_again_and_again(&stage, deaths, tasks);
    assert_eq!(told.tasks, deaths * tasks);
    let count = told.tasks;
    assert_eq!(postgres.sql("rialto_0", TASKS), format!("{count}|0|{count}"));
    stage.check_trail();
    // Each task takes less than half a second by itself.
    assert!(told.p99() <= TAKEN_OVER + Duration::from_millis(500), "{:?}", told.p99());
}

/// `cargo nextest run --workspace --profile foreign --run-ignored only -E 'test(/thousand_messages/)'` runs it.
#[test]
#[ignore = "takes minutes"]
fn each_of_a_thousand_messages_to_two_nodes_at_once_is_one_task() {
    let (postgres, agent) = (Postgres::start(), SampleAgent::named("Desk"));
    let url = postgres.database();
    let (here, there) = (node(&url), node(&url));
    here.trust(&agent.url);
    let (first, second) = (here.serve(&["--allow-no-auth"]), there.serve(&["--allow-no-auth"]));
    let (tasks, calls) = send_twice([&first, &second], &agent, 1_000);
    assert_eq!((tasks.len(), calls), (1_000, 1_000));
}

#[test]
fn a_node_that_was_stopped_finds_its_tasks_taken_and_writes_nothing_to_them() {
    let postgres = Postgres::start();
    let url = postgres.database();
    let (here, there) = (node(&url), node(&url));
    let marks = here.folder().join("runs");
    // It runs for longer than a lease lasts, and may be run twice.
    let text = format!(
        "[[functions]]\nname = \"slow\"\nidempotent = true\n\
         command = [\"sh\", \"-c\", \"cat >/dev/null; echo run >>{}; sleep 4; echo '\\\"done\\\"'\"]\n",
        marks.display()
    );
    for machine in [&here, &there] {
        std::fs::write(machine.folder().join("rialto.toml"), &text).unwrap();
    }
    let (first, second) = (here.serve(&["--allow-no-auth"]), there.serve(&["--allow-no-auth"]));
    let task = begin(&first, "m-1");
    until("it runs", || std::fs::read_to_string(&marks).ok().filter(|runs| !runs.is_empty()));
    first.signal("STOP");
    let stopped_at = Instant::now();
    until("the other node runs it", || {
        std::fs::read_to_string(&marks).ok().filter(|runs| runs.lines().count() == 2)
    });
    assert!(stopped_at.elapsed() <= TAKEN_OVER, "{:?}", stopped_at.elapsed());
    first.signal("CONT");
    until("it is done", || Some(state(&second, &task)).filter(|state| state == "TASK_STATE_COMPLETED"));
    // What the first node has to say comes too late, and changes nothing.
    let version = || postgres.sql("rialto_0", &format!("SELECT version FROM tasks WHERE id = '{task}'"));
    let before = version();
    thread::sleep(Duration::from_secs(5));
    assert_eq!(version(), before);
    until("it says so", || first.log().contains("others took over its tasks").then_some(()));
    // It goes on under another number.
    let task = begin(&first, "m-2");
    until("it is done", || Some(state(&second, &task)).filter(|state| state == "TASK_STATE_COMPLETED"));
}

/// Calls in a second that a node of the next test lets through at most.
const CALLS_PER_SECOND: usize = 50;

#[test]
fn quotas_of_orgs_hold_for_all_nodes_together_and_survive_a_restart() {
    const QUOTA: usize = 200;
    let (postgres, agent) = (Postgres::start(), SampleAgent::named("Desk"));
    let url = postgres.database();
    let machines = [node(&url), node(&url)];
    for machine in &machines {
        let text = format!("[limits.orgs.default]\ncalls_per_day = {QUOTA}\n");
        std::fs::write(machine.folder().join("rialto.toml"), text).unwrap();
    }
    machines[0].trust(&agent.url);
    let callers = [&machines[0], &machines[1]].map(|machine| {
        let server = machine.serve(&["--allow-no-auth"]);
        thread::spawn(move || (calls_until_refused(&server), server))
    });
    let [(first, one), (second, two)] = callers.map(|caller| caller.join().unwrap());
    let made = first + second;
    // Each node may let through what the other does in two exchanges of half a second, and some for the machine.
    assert!((QUOTA..=QUOTA + 2 * CALLS_PER_SECOND).contains(&made), "{made}");
    for mut server in [one, two] {
        assert!(server.stop().success());
    }
    let server = machines[1].serve(&["--allow-no-auth"]);
    let refused = || server.call("desk.echo", &json!({})).answer.is_err();
    until("the calls from before count", || refused().then_some(()));
    assert_eq!(
        postgres.sql("rialto_0", "SELECT count(*) FROM call_counts WHERE key = 'org default day'"),
        "1"
    );
}

/// Calls at a steady pace, and answers how many were made before one was refused.
fn calls_until_refused(server: &ServerProcess) -> usize {
    let pace = Duration::from_secs(1) / u32::try_from(CALLS_PER_SECOND).unwrap();
    let mut made = 0;
    loop {
        let next = Instant::now() + pace;
        if let Err(error) = server.call("desk.echo", &json!({})).answer {
            assert!(format!("{error:?}").contains("of this day"), "{error:?}");
            return made;
        }
        made += 1;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

#[test]
fn nodes_are_listed_with_their_tasks_and_one_that_is_killed_is_lost_within_seconds() {
    let postgres = Postgres::start();
    let url = postgres.database();
    let (here, there) = (node(&url), node(&url));
    let text = "[[functions]]\nname = \"slow\"\ncommand = [\"sh\", \"-c\", \"cat >/dev/null; sleep 60\"]\n";
    for machine in [&here, &there] {
        std::fs::write(machine.folder().join("rialto.toml"), text).unwrap();
    }
    let first = nodes::serve_named(&here, "a", &["--allow-no-auth"]);
    let _second = nodes::serve_named(&there, "b", &["--allow-no-auth"]);
    begin(&first, "m-1");
    let rows = nodes::list(&there, &[]);
    let tasks: Vec<_> =
        rows.as_array().unwrap().iter().map(|row| (&row["name"], &row["openTasks"])).collect();
    assert_eq!(tasks, [(&json!("a"), &json!(1)), (&json!("b"), &json!(0))], "{rows}");
    let killed_at = Instant::now();
    first.kill();
    let state = |name: &str| nodes::states(&there).into_iter().find(|(node, _)| node == name).unwrap().1;
    until("its lease is over", || (state("a") == "lost").then_some(()));
    assert!(killed_at.elapsed() <= TAKEN_OVER, "{:?}", killed_at.elapsed());
    assert_eq!(state("b"), "serving");
}

#[test]
fn a_drained_node_takes_over_nothing_until_it_is_undone() {
    let postgres = Postgres::start();
    let url = postgres.database();
    let (here, there) = (node(&url), node(&url));
    let text = "[[functions]]\nname = \"slow\"\nidempotent = true\n\
         command = [\"sh\", \"-c\", \"cat >/dev/null; sleep 2; echo 1\"]\n";
    for machine in [&here, &there] {
        std::fs::write(machine.folder().join("rialto.toml"), text).unwrap();
    }
    let first = nodes::serve_named(&here, "a", &["--allow-no-auth"]);
    let second = nodes::serve_named(&there, "b", &["--allow-no-auth"]);
    there.cli(&["nodes", "drain", "b"]).ok();
    until("it notices", || (nodes::ready(&second).0 == 503).then_some(()));
    let task = begin(&first, "m-1");
    first.kill();
    let is_lost = || nodes::states(&there)[0].1 == "lost";
    until("the lease of the other is over", || is_lost().then_some(()));
    thread::sleep(Duration::from_secs(3));
    let runner = || postgres.sql("rialto_0", &format!("SELECT runner FROM tasks WHERE id = '{task}'"));
    let before = runner();
    assert_eq!(nodes::list(&there, &[])[0]["runner"], before, "it is still the lost node's");
    there.cli(&["nodes", "drain", "b", "--undo"]).ok();
    until("it is done", || Some(state(&second, &task)).filter(|state| state == "TASK_STATE_COMPLETED"));
    assert_ne!(runner(), before);
}

#[test]
fn programs_run_on_the_nodes_that_they_are_placed_on() {
    let postgres = Postgres::start();
    for check in [
        placement::check_pins,
        placement::check_singleton,
        placement::check_stdio_server,
        placement::check_lost_call,
    ] {
        let url = postgres.database();
        check([&node(&url), &node(&url)]);
    }
}

/// Begins a task and does not wait for it.
pub(super) fn begin(server: &ServerProcess, message: &str) -> String {
    let message = json!({
        "messageId": message, "role": "ROLE_USER", "parts": [{ "data": {} }],
    });
    let params = json!({
        "message": message, "configuration": { "returnImmediately": true }, "metadata": { "skillId": "slow" },
    });
    let answer = ask(server, "SendMessage", &params);
    answer["result"]["task"]["id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

pub(super) fn state(server: &ServerProcess, task: &str) -> String {
    let answer = ask(server, "GetTask", &json!({ "id": task }));
    answer["result"]["status"]["state"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn ask(server: &ServerProcess, method: &str, params: &Value) -> Value {
    let headers = [("content-type", "application/json"), ("a2a-version", "1.0")];
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let answer = http::post(&format!("{}/a2a", server.url), &headers, &request.to_string());
    serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {}", answer.body))
}
