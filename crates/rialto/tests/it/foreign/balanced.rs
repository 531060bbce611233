//! Three servers on one PostgreSQL database behind HAProxy or nginx, with the configuration of `deploy/haproxy.cfg` or
//! `deploy/nginx.conf`: every request may reach another server than the one before.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rialto_testkit::postgres::Server as Postgres;
use serde_json::{Value, json};

use super::operations::{Operation, Visit};
use crate::harness::{
    a2a_client::{A2aClient, ClientVariant},
    agent::SampleAgent,
    client::{McpClient, McpEra, McpTransport, Sdk},
    foreign_agent::ForeignAgent,
    haproxy::{Haproxy, free_address},
    http,
    nginx::Nginx,
    rialto::{PROGRAM, Rialto},
    server::{self, ServerProcess},
    until,
    webhook_receiver::WebhookReceiver,
};

const TOKEN: &str = "owners-token-of-at-least-32-characters";

/// The proxy, and the servers behind it.
struct Cluster {
    url: String,
    nodes: Vec<Node>,
    _proxy: Proxy,
    _postgres: Postgres,
}

/// What lies before the servers.
enum Proxy {
    #[expect(dead_code, reason = "it runs until this is dropped")]
    Haproxy(Haproxy),
    #[expect(dead_code, reason = "it runs until this is dropped")]
    Nginx(Nginx),
}

/// A server that can be started again at the same address.
struct Node {
    rialto: Rialto,
    address: String,
    server: ServerProcess,
}

// === impl Cluster ===

impl Cluster {
    fn start(agents: &[&str]) -> Self {
        Self::behind(agents, haproxy)
    }

    fn behind_nginx(agents: &[&str]) -> Self {
        Self::behind(agents, |addresses| {
            let proxy = Nginx::in_front_of(addresses);
            (proxy.url.clone(), Proxy::Nginx(proxy))
        })
    }

    fn behind(agents: &[&str], start: impl FnOnce(&[String]) -> (String, Proxy)) -> Self {
        Self::with_program(PROGRAM, agents, start)
    }

    fn with_program(
        program: &str,
        agents: &[&str],
        start: impl FnOnce(&[String]) -> (String, Proxy),
    ) -> Self {
        let postgres = Postgres::start();
        let database = postgres.database();
        let nodes: Vec<Node> = (0..3).map(|_| Node::start(&database, program)).collect();
        for agent in agents {
            nodes[0].rialto.trust(agent);
        }
        let addresses: Vec<String> = nodes.iter().map(|node| node.address.clone()).collect();
        let (url, proxy) = start(&addresses);
        Self { url, nodes, _proxy: proxy, _postgres: postgres }
    }

    fn mcp(&self) -> McpTransport {
        McpTransport::Http { url: format!("{}/mcp", self.url), token: Some(TOKEN.to_owned()), ca: None }
    }

    /// What the servers have logged.
    fn log(&self) -> String {
        self.nodes.iter().map(|node| node.server.log()).collect()
    }
}

fn haproxy(addresses: &[String]) -> (String, Proxy) {
    let proxy = Haproxy::in_front_of(addresses);
    proxy.wait();
    (proxy.url.clone(), Proxy::Haproxy(proxy))
}

// === impl Node ===

impl Node {
    fn start(database: &str, program: &str) -> Self {
        let mut rialto = Rialto::fresh()
            .with("RIALTO_STORE_URL", database)
            .with("RIALTO_TOKEN", TOKEN)
            .with("RIALTO_A2A__PUBLIC_SKILLS", "all")
            .with("RIALTO_A2A__PUSH_PRIVATE", "true");
        rialto.set_program(program);
        let address = free_address();
        let server = rialto.serve_at(&address, &[]);
        Self { rialto, address, server }
    }

    /// Stops the server as a service manager does, and starts this program in its place.
    fn restart(&mut self, program: &str) {
        assert!(self.server.stop().success(), "{}", self.server.log());
        self.rialto.set_program(program);
        self.server = self.rialto.serve_at(&self.address, &[]);
        let ready = format!("http://{}/readyz", self.address);
        until("the server is ready again", || http::get(&ready).filter(|answer| answer.status == 200));
    }
}

#[test]
fn mcp_clients_of_every_era_are_served_behind_a_round_robin_proxy() {
    let agent = ForeignAgent::start("py_1_3", &[]);
    let cluster = Cluster::start(&[&agent.url]);
    let eras = [
        (Sdk::Aged("mcp_py_1_12", "2025-06-18"), McpEra::Legacy),
        (Sdk::Python, McpEra::Legacy),
        (Sdk::Python, McpEra::Auto),
    ];
    for (sdk, era) in eras {
        let red = json!({ "action": "accept", "content": { "answer": "red" } });
        let mut client = McpClient::answering(sdk, era, &cluster.mcp(), &red);
        // Each of these requests reaches another server.
        for _ in 0..6 {
            assert!(client.list().contains(&"py13_agent.say".to_owned()), "{sdk:?} {era:?}");
            assert_eq!(client.call("py13_agent.say", &json!({ "name": "Ann" })).text(), "hello Ann");
        }
        for _ in 0..3 {
            let counted = client.call("py13_agent.count", &json!({ "steps": 3 }));
            assert_eq!(counted.text(), "1 2 3", "{sdk:?} {era:?}: {counted:?}");
            assert!(counted.progress.len() >= 3, "{sdk:?} {era:?}: {counted:?}");
            assert_eq!(client.call("py13_agent.ask", &json!({})).text(), "you chose red", "{sdk:?} {era:?}");
            assert_eq!(client.hear_question()["message"], "which colour?");
        }
        for id in 1..4 {
            client.begin(id, "py13_agent.slow", &json!({ "seconds": 60 }));
            client.hear_progress(id);
            client.cancel(id);
        }
        every_task_is_over(&cluster);
        client.leave();
    }
    assert!(!cluster.log().contains("ERROR"), "{}", cluster.log());
}

/// What a client has cancelled is cancelled at its agent, by whichever server runs it.
fn every_task_is_over(cluster: &Cluster) {
    let count = |records: &Value, phase: &str| {
        records.as_array().unwrap().iter().filter(|record| record["event"]["phase"] == phase).count()
    };
    until("every call is over", || {
        let records = cluster.nodes[0].rialto.json(&["audit", "--json", "--limit", "1000"]);
        let (begun, ended) = (count(&records, "pre-verb"), count(&records, "post-verb"));
        (begun > 3 && begun == ended).then_some(())
    });
}

#[test]
fn a2a_clients_of_0_3_and_1_0_are_served_behind_a_round_robin_proxy() {
    let agent = ForeignAgent::start("py_1_3", &[]);
    let cluster = Cluster::start(&[&agent.url]);
    let receiver = WebhookReceiver::start();
    for kind in [
        ClientVariant::of("a2a_py_0_3", "jsonrpc"),
        ClientVariant::of("a2a_py_1_3", "jsonrpc"),
        ClientVariant::of("a2a_py_1_3", "rest"),
    ] {
        let mut client = A2aClient::start(kind, &cluster.url, Some(TOKEN)).unwrap();
        let mut wrong = Vec::new();
        // Twice, and a number of requests that is no multiple of three between: each meets other servers.
        for operation in Operation::ALL.into_iter().chain(Operation::ALL) {
            if operation.is_known_to(&client) {
                let mut visit = Visit {
                    client: &mut client,
                    prefix: "py13_agent.",
                    tells_steps: true,
                    receiver: &receiver,
                };
                if let Err(why) = visit.perform(operation) {
                    wrong.push(format!("{}: {why}", operation.name()));
                }
            }
        }
        assert!(wrong.is_empty(), "{}:\n{}\n{}", kind.name, wrong.join("\n"), cluster.log());
    }
}

#[test]
fn clients_of_both_protocols_are_served_behind_nginx() {
    let agent = ForeignAgent::start("py_1_3", &[]);
    let cluster = Cluster::behind_nginx(&[&agent.url]);
    let red = json!({ "action": "accept", "content": { "answer": "red" } });
    for (sdk, era) in [(Sdk::Aged("mcp_py_1_12", "2025-06-18"), McpEra::Legacy), (Sdk::Python, McpEra::Auto)]
    {
        let mut client = McpClient::answering(sdk, era, &cluster.mcp(), &red);
        for _ in 0..6 {
            assert_eq!(client.call("py13_agent.say", &json!({ "name": "Ann" })).text(), "hello Ann");
        }
        let counted = client.call("py13_agent.count", &json!({ "steps": 3 }));
        assert_eq!(counted.text(), "1 2 3", "{sdk:?} {era:?}: {counted:?}");
        // Steps are passed on as they come.
        assert!(counted.progress.len() >= 3, "{sdk:?} {era:?}: {counted:?}");
        assert_eq!(client.call("py13_agent.ask", &json!({})).text(), "you chose red", "{sdk:?} {era:?}");
        assert_eq!(client.hear_question()["message"], "which colour?");
        client.leave();
    }
    let receiver = WebhookReceiver::start();
    let mut client =
        A2aClient::start(ClientVariant::of("a2a_py_1_3", "jsonrpc"), &cluster.url, Some(TOKEN)).unwrap();
    for operation in [Operation::Send, Operation::Stream, Operation::Resubscribe, Operation::Cancel] {
        let mut visit =
            Visit { client: &mut client, prefix: "py13_agent.", tells_steps: true, receiver: &receiver };
        if let Err(why) = visit.perform(operation) {
            panic!("{}: {why}\n{}", operation.name(), cluster.log());
        }
    }
    // nginx closes the connection to the server when a client goes, and then the library of MCP says that nobody listens any more.
    let is_ours = |line: &&str| line.contains("ERROR") && !line.contains("pending response during drain");
    assert_eq!(cluster.log().lines().find(is_ours), None, "{}", cluster.log());
}

#[test]
fn a_rolling_restart_under_load_fails_no_request() {
    let agent = SampleAgent::named("Desk");
    restart_under_load(&mut Cluster::start(&[&agent.url]), &[PROGRAM]);
}

/// `tools/previous` builds the version before, and `RIALTO_PREVIOUS=$(tools/previous) cargo nextest run --workspace --profile foreign
/// --run-ignored only -E 'test(/rolling_upgrade/)'` runs it.
#[test]
#[ignore = "needs a program of the version before"]
#[expect(clippy::disallowed_methods, reason = "a test has no other configuration")]
fn a_rolling_upgrade_and_its_roll_back_under_load_fail_no_request() {
    let previous =
        std::env::var("RIALTO_PREVIOUS").expect("RIALTO_PREVIOUS names a program of the version before");
    let agent = SampleAgent::named("Desk");
    let mut cluster = Cluster::with_program(&previous, &[&agent.url], haproxy);
    restart_under_load(&mut cluster, &[PROGRAM, &previous, PROGRAM]);
}

/// Has every node of the cluster run these programs, one after the other, while clients call.
fn restart_under_load(cluster: &mut Cluster, programs: &[&str]) {
    let stop = Arc::<AtomicBool>::default();
    let session = open_session(&cluster.url);
    let load =
        [mcp_call as fn(&str, &str) -> Result<(), String>, session_call, a2a_call, slow_call, slow_call].map(
            |call| {
                let (url, session, stop) = (cluster.url.clone(), session.clone(), Arc::clone(&stop));
                thread::spawn(move || {
                    let (mut made, mut failed) = (0, Vec::new());
                    while !stop.load(Ordering::Relaxed) {
                        made += 1;
                        if let Err(why) = call(&url, &session) {
                            failed.push(why);
                        }
                    }
                    (made, failed)
                })
            },
        );
    let mut client = McpClient::start(Sdk::Aged("mcp_py_1_12", "2025-06-18"), McpEra::Legacy, &cluster.mcp());
    for program in programs {
        for node in &mut cluster.nodes {
            node.restart(program);
            // The proxy checks every second.
            let end = Instant::now() + Duration::from_secs(3);
            while Instant::now() < end {
                client.call("desk.echo", &json!({ "n": 1 })).result();
            }
        }
    }
    stop.store(true, Ordering::Relaxed);
    for load in load {
        let (made, failed) = load.join().unwrap();
        assert!(made > 10, "{made}");
        assert!(
            failed.is_empty(),
            "{} of {made} failed: {:?}\n{}",
            failed.len(),
            &failed[..1],
            cluster.log()
        );
        eprintln!("{made} requests, none failed");
    }
    client.leave();
}

fn authorization() -> (&'static str, &'static str) {
    ("Authorization", "Bearer owners-token-of-at-least-32-characters")
}

/// Opens a session of 2025-06-18, for requests by hand.
fn open_session(url: &str) -> String {
    let params = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "by hand", "version": "1" },
    });
    let opened =
        legacy(url, "", &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }));
    opened.session.clone().unwrap_or_else(|| panic!("no session: {opened:?}"))
}

fn legacy(url: &str, session: &str, message: &Value) -> http::HttpAnswer {
    let headers = [authorization(), ("Mcp-Session-Id", session)];
    let headers = if session.is_empty() { &headers[..1] } else { &headers[..] };
    http::try_post(&format!("{url}/mcp"), headers, &message.to_string()).unwrap()
}

fn expect(answer: &http::HttpAnswer, part: &str) -> Result<(), String> {
    let is_good = answer.status == 200 && answer.body.contains(part) && !answer.body.contains("\"error\"");
    is_good.then_some(()).ok_or_else(|| format!("{answer:?}"))
}

fn mcp_call(url: &str, _session: &str) -> Result<(), String> {
    let params = json!({ "name": "desk.echo", "arguments": { "n": "modern" } });
    expect(&server::request(&format!("{url}/mcp"), "tools/call", params, Some(TOKEN), &[]), "modern")
}

fn session_call(url: &str, session: &str) -> Result<(), String> {
    let params = json!({ "name": "desk.echo", "arguments": { "n": "legacy" } });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    expect(&legacy(url, session, &call), "legacy")
}

/// A call that a server which is told to stop waits for.
fn slow_call(url: &str, _session: &str) -> Result<(), String> {
    let params = json!({ "name": "desk.slow", "arguments": { "ms": 1500 } });
    expect(&server::request(&format!("{url}/mcp"), "tools/call", params, Some(TOKEN), &[]), "done at last")
}

fn a2a_call(url: &str, _session: &str) -> Result<(), String> {
    let message = json!({
        "messageId": uuid(), "role": "user", "kind": "message", "metadata": { "skillId": "desk.echo" },
        "parts": [{ "kind": "data", "data": { "n": "agent" } }],
    });
    let send =
        json!({ "jsonrpc": "2.0", "id": 3, "method": "message/send", "params": { "message": message } });
    let answer = http::try_post(&format!("{url}/a2a"), &[authorization()], &send.to_string());
    expect(&answer.map_err(|error| error.to_string())?, "agent")
}

fn uuid() -> String {
    use std::sync::atomic::AtomicU64;
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("balanced-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}
