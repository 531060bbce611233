//! The server is killed again and again in the middle of a large run: it always comes to the end that it must come to, and
//! nothing that was done is done again.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    hash::{BuildHasher, RandomState},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::harness::{
    agent::SampleAgent, http, rialto::Rialto, server::ServerProcess, slow_agent::SlowAgent,
};

/// How many nodes count, and how many say what they have heard of that.
const FAN: usize = 20;

/// Longer than any run takes, deaths included.
const PATIENCE: Duration = Duration::from_secs(180);

/// Fifty nodes: a fan of tasks that take their time, what follows from each, one that asks, one that fails, one that nobody
/// answers, what follows from those, and what gathers everything.
fn definition() -> String {
    let again = "retry: { attempts: 50, backoff: { first: 5ms, longest: 20ms } }";
    let mut text = "name: large\nstatus: active\nlimits: { parallel: 8 }\nnodes:\n".to_owned();
    writeln!(text, "  seed: {{ type: set, value: {{ go: true }} }}").unwrap();
    for at in 0..FAN {
        writeln!(text, "  count{at}: {{ type: tool, tool: worker.count, args: {{ node: {at} }}, depends_on: [seed], {again} }}").unwrap();
        writeln!(text, "  say{at}: {{ type: tool, tool: desk.echo, args: {{ node: {at}, heard: \"{{{{ nodes.count{at}.output }}}}\" }}, {again} }}").unwrap();
    }
    text.push_str(&format!("  ask: {{ type: tool, tool: desk.ask, depends_on: [seed], {again} }}\n"));
    text.push_str(&format!("  answered: {{ type: tool, tool: desk.echo, args: {{ node: answered, heard: \"{{{{ nodes.ask.output }}}}\" }}, {again} }}\n"));
    text.push_str("  bad: { type: tool, tool: desk.fail, depends_on: [seed] }\n");
    text.push_str(
        "  after_bad: { type: tool, tool: desk.echo, args: { node: after_bad }, depends_on: [bad] }\n",
    );
    text.push_str(
        "  far_after_bad: { type: tool, tool: desk.echo, args: { node: far }, depends_on: [after_bad] }\n",
    );
    text.push_str("  gone: { type: tool, tool: ghost.echo, depends_on: [seed] }\n");
    text.push_str(
        "  after_gone: { type: tool, tool: desk.echo, args: { node: after_gone }, depends_on: [gone] }\n",
    );
    let all: Vec<String> = (0..FAN).map(|at| format!("say{at}")).collect();
    text.push_str(&format!("  gather: {{ type: set, value: all, depends_on: [{}] }}\n", all.join(", ")));
    text.push_str(
        "  last: { type: set, value: \"{{ nodes.gather.output }} and {{ nodes.answered.heard }}\" }\n",
    );
    text
}

struct KilledRun {
    rialto: Rialto,
    worker: SlowAgent,
    desk: SampleAgent,
    run: String,
}

#[test]
fn killed_twenty_times_a_run_of_fifty_nodes_ends_as_it_must() {
    killed(14, 6);
}

/// Kills it so often while it works, and so often after its question was answered.
fn killed(before: usize, after: usize) {
    let (rialto, worker, desk) = (Rialto::fresh(), SlowAgent::start(), SampleAgent::named("Desk"));
    rialto.trust(&worker.url);
    rialto.trust(&desk.url);
    let ghost = SampleAgent::named("Ghost");
    rialto.trust(&ghost.url);
    drop(ghost);
    let file = rialto.folder().join("large.yaml");
    std::fs::write(&file, definition()).unwrap();
    std::fs::write(rialto.folder().join("rialto.toml"), "[limits]\nconcurrent_calls = 0\n").unwrap();
    rialto.cli(&["workflow", "add", &file.display().to_string()]).ok();
    let mut server = rialto.serve(&["--allow-no-auth"]);
    let begun = http::post(&format!("{}/api/v1/workflows/large/runs?wait=false", server.url), &[], "{}");
    assert_eq!(begun.status, 202, "{begun:?}");
    let run = serde_json::from_str::<Value>(&begun.body).unwrap()["runId"].as_str().unwrap().to_owned();
    let stage = KilledRun { rialto, worker, desk, run };
    for _ in 0..before {
        server = stage.die(server);
    }
    stage.until_it(&server, "waiting");
    let said = json!({ "message": "green" }).to_string();
    let url = format!("{}/api/v1/runs/{}", server.url, stage.run);
    if after > 0 {
        // Whoever answers may find its server dead before it hears what came of it.
        thread::spawn(move || http::try_post(&url, &[], &said));
        for _ in 0..after {
            server = stage.die(server);
        }
    }
    let over = stage.to_the_end(&server);
    stage.check(&over);
}

impl KilledRun {
    /// Kills the server at some moment of the next half second, and starts it again.
    fn die(&self, server: ServerProcess) -> ServerProcess {
        let moment = RandomState::new().hash_one(0) % 500;
        thread::sleep(Duration::from_millis(moment));
        server.kill();
        self.rialto.serve(&["--allow-no-auth"])
    }

    fn look(&self, server: &ServerProcess) -> Value {
        let shown = http::get(&format!("{}/api/v1/runs/{}", server.url, self.run)).unwrap();
        serde_json::from_str(&shown.body).unwrap_or_else(|error| panic!("{error}: {shown:?}"))
    }

    fn until_it(&self, server: &ServerProcess, state: &str) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let shown = self.look(server);
            if shown["run"]["state"] == state {
                return shown;
            }
            assert!(Instant::now() < end, "it is not {state}: {shown:#}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the end. An answer that was lost with its server is given again.
    fn to_the_end(&self, server: &ServerProcess) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let shown = self.look(server);
            match shown["run"]["state"].as_str().unwrap() {
                "running" => thread::sleep(Duration::from_millis(20)),
                "waiting" => {
                    let url = format!("{}/api/v1/runs/{}", server.url, self.run);
                    let _ = http::try_post(&url, &[], &json!({ "message": "green" }).to_string());
                }
                _ => return shown,
            }
            assert!(Instant::now() < end, "it does not end: {shown:#}");
        }
    }

    fn check(&self, over: &Value) {
        let steps = over["steps"].as_array().unwrap();
        let mut last: BTreeMap<&str, &Value> = BTreeMap::new();
        for step in steps {
            last.insert(step["node"].as_str().unwrap(), step);
        }
        assert_eq!(last.len(), 50, "{over:#}");
        let state = |node: &str| last[node]["state"].as_str().unwrap().to_owned();
        for node in last.keys().filter(|node| !node.contains("bad") && !node.contains("gone")) {
            assert_eq!(state(node), "completed", "{node}: {:#}", last[node]);
        }
        assert_eq!((state("bad"), state("gone")), ("failed".to_owned(), "failed".to_owned()));
        for node in ["after_bad", "far_after_bad", "after_gone"] {
            assert_eq!(state(node), "skipped", "{node}");
        }
        assert_eq!(over["run"]["state"], "failed");
        assert!(
            over["run"]["failure"]["message"].as_str().unwrap().starts_with("step bad failed:"),
            "{over:#}"
        );
        // Nobody is called more often than there are attempts, and who has answered is not asked again.
        let attempts = |node: &str| steps.iter().filter(|step| step["node"] == node).count();
        for at in 0..FAN {
            let (count, say) = (format!("count{at}"), format!("say{at}"));
            let heard = self.worker.told().iter().filter(|data| data["node"] == at).count();
            assert!((1..=attempts(&count)).contains(&heard), "{count} was called {heard} times");
            let heard = self.heard_by_desk(&json!(at));
            assert!((1..=attempts(&say)).contains(&heard), "{say} was called {heard} times");
        }
        assert!((1..=attempts("answered")).contains(&self.heard_by_desk(&json!("answered"))));
        assert_eq!(self.heard_by_desk(&json!("after_bad")), 0);
        let tasks = self.rialto.json(&["tasks", "list", "--limit", "500", "--json"]);
        let open = |task: &&Value| task["state"] == "working" || task["state"] == "submitted";
        assert_eq!(tasks.as_array().unwrap().iter().filter(open).count(), 0, "{tasks:#}");
    }

    fn heard_by_desk(&self, node: &Value) -> usize {
        let bodies = self.desk.heard();
        let said = bodies.iter().filter_map(|body| serde_json::from_str::<Value>(body).ok());
        said.filter(|body| body["params"]["message"]["parts"][0]["data"]["node"] == *node).count()
    }
}
