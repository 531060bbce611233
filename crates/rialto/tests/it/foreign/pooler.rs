//! Two nodes on one PostgreSQL database, by way of PgBouncer in transaction mode.

use std::{
    fs,
    time::{Duration, Instant},
};

use rialto_testkit::{pgbouncer::PgBouncer, postgres::Server as Postgres};
use serde_json::json;

use super::nodes::{begin, state};
use crate::harness::{agent::SampleAgent, rialto::Rialto, server::ServerProcess, until};

/// A change at one node holds at the other by then where it is polled (docs/OPERATIONS.md).
const POLLED_WITHIN: Duration = Duration::from_millis(500);

/// A task of a node that is gone is another's by then.
const TAKEN_OVER: Duration = Duration::from_secs(5);

/// A database with a pooler before it. Fields go in their order.
struct Pooled {
    pooler: PgBouncer,
    _postgres: Postgres,
    direct: String,
}

// === impl Pooled ===

impl Pooled {
    fn start() -> Self {
        let postgres = Postgres::start();
        let (direct, pooler) = (postgres.database(), PgBouncer::start(&postgres, 12));
        Self { pooler, _postgres: postgres, direct }
    }

    fn polling_node(&self) -> Rialto {
        let url = self.pooler.around(&self.direct);
        Rialto::fresh().with("RIALTO_STORE_URL", &url).with("PATH", "/usr/bin:/bin")
    }

    fn listening_node(&self) -> Rialto {
        self.polling_node().with("RIALTO_STORE_LISTEN_URL", &self.direct)
    }
}

#[test]
fn nodes_behind_a_pooler_see_changes_of_the_other_at_the_very_next_call() {
    let pooled = Pooled::start();
    changes_hold(&pooled.listening_node(), &pooled.listening_node(), Duration::ZERO);
}

#[test]
fn nodes_that_poll_see_changes_of_the_other_within_the_stated_time() {
    let pooled = Pooled::start();
    changes_hold(&pooled.polling_node(), &pooled.polling_node(), POLLED_WITHIN);
}

fn changes_hold(here: &Rialto, there: &Rialto, within: Duration) {
    let agent = SampleAgent::named("Desk");
    let (first, second) = (here.serve(&["--allow-no-auth"]), there.serve(&["--allow-no-auth"]));
    let url = agent.url.as_str();
    here.cli(&["agents", "add", url]).ok();
    for _ in 0..3 {
        let added = here.json(&["policy", "add", "allow-agent", "desk", "--json"]);
        all_within(within, [&first, &second], |server| server.call("desk.echo", &json!({})).answer.is_ok());
        there.cli(&["policy", "remove", added["file"].as_str().unwrap()]).ok();
        all_within(within, [&first, &second], |server| server.call("desk.echo", &json!({})).answer.is_err());
    }
    assert!(!first.log().contains("ERROR") && !second.log().contains("ERROR"), "{}", first.log());
}

/// Each server does so by its next call, or, where changes are polled, by the first one after the stated time.
fn all_within(within: Duration, servers: [&ServerProcess; 2], holds: impl Fn(&ServerProcess) -> bool) {
    let end = Instant::now() + within;
    for server in servers {
        while !holds(server) {
            assert!(Instant::now() < end, "a change does not hold in time: {}", server.log());
        }
    }
}

#[test]
fn a_node_that_is_killed_behind_a_pooler_is_replaced_in_time() {
    let pooled = Pooled::start();
    // Both pairs are on one database, where a message begins one task.
    for (message, [here, there]) in [
        ("m-1", [pooled.listening_node(), pooled.listening_node()]),
        ("m-2", [pooled.polling_node(), pooled.polling_node()]),
    ] {
        let marks = here.folder().join("runs");
        let text = format!(
            "[[functions]]\nname = \"slow\"\nidempotent = true\n\
             command = [\"sh\", \"-c\", \"cat >/dev/null; echo run >>{}; sleep 2; echo '\\\"done\\\"'\"]\n",
            marks.display()
        );
        for node in [&here, &there] {
            fs::write(node.folder().join("rialto.toml"), &text).unwrap();
        }
        let (first, second) = (here.serve(&["--allow-no-auth"]), there.serve(&["--allow-no-auth"]));
        let task = begin(&first, message);
        until("it runs", || fs::read_to_string(&marks).ok().filter(|runs| !runs.is_empty()));
        first.kill();
        let killed_at = Instant::now();
        until("the other node runs it", || {
            fs::read_to_string(&marks).ok().filter(|runs| runs.lines().count() == 2)
        });
        assert!(killed_at.elapsed() <= TAKEN_OVER, "{:?}", killed_at.elapsed());
        until("it is done", || Some(state(&second, &task)).filter(|state| state == "TASK_STATE_COMPLETED"));
    }
}
