//! Connections that are opened to keep others out: they cost an attacker more than the server.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use serde_json::json;

use super::wire::{RawConnection, status};
use crate::harness::{
    PATIENCE,
    agent::SampleAgent,
    http,
    rialto::Rialto,
    server::{ServerProcess, message},
    until,
};

/// A connection that stays open from request to request.
struct OpenConnection(TcpStream);

// === impl OpenConnection ===

impl OpenConnection {
    fn open(host: &str) -> Self {
        let stream = TcpStream::connect(host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    /// The response to these bytes, and how long it took.
    #[track_caller]
    fn send(&mut self, bytes: &[u8]) -> (String, Duration) {
        let begun = Instant::now();
        self.0.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        let mut piece = [0; 16 * 1024];
        loop {
            let read = self.0.read(&mut piece).unwrap();
            assert_ne!(read, 0, "hung up after {:?}", String::from_utf8_lossy(&answer));
            answer.extend_from_slice(&piece[..read]);
            let text = String::from_utf8_lossy(&answer);
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.to_lowercase();
            let length = length.lines().find_map(|line| line.strip_prefix("content-length: "));
            if length.unwrap().parse::<usize>().unwrap() == body.len() {
                return (text.into_owned(), begun.elapsed());
            }
        }
    }

    #[track_caller]
    fn get(&mut self, host: &str, path: &str, token: &str) -> (String, Duration) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n");
        self.send(request.as_bytes())
    }
}

fn host(server: &ServerProcess) -> String {
    server.url.strip_prefix("http://").unwrap().to_owned()
}

/// Opens connections and says nothing, as many of them as are taken.
fn silent(host: &str, count: usize) -> Vec<TcpStream> {
    (0..count).filter_map(|_| TcpStream::connect(host).ok()).collect()
}

/// A number that the server counts.
#[track_caller]
fn counted(metrics: &str, name: &str) -> u64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.and_then(|value| value.trim().parse::<f64>().ok()).unwrap_or_else(|| panic!("{name}: {metrics}"))
        as u64
}

#[test]
fn silent_connections_leave_enough_descriptors_for_the_store_and_for_policies() {
    const FILES: usize = 512;
    let rialto = Rialto::fresh().with("RIALTO_SERVER__HEADER_TIMEOUT_MS", "120000");
    let agent = SampleAgent::named("Desk");
    rialto.trust(&agent.url);
    let server = rialto.serve_within(FILES);
    let (host, token) = (host(&server), server.token.clone().unwrap());
    let mut kept = OpenConnection::open(&host);
    assert_eq!(status(&kept.get(&host, "/healthz", &token).0), 200);
    let opened = silent(&host, 1_200);
    assert!(opened.len() > FILES, "{} were opened", opened.len());
    let metrics = until("all of them were accepted", || {
        let (metrics, _) = kept.get(&host, "/metrics", &token);
        let seen =
            counted(&metrics, "rialto_connections") + counted(&metrics, "rialto_connections_refused_total");
        (seen > 1_200).then_some(metrics)
    });
    assert!(counted(&metrics, "rialto_connections") <= 384, "a quarter is left");
    assert!(counted(&metrics, "rialto_connections_refused_total") >= 800);
    let (health, took) = kept.get(&host, "/healthz", &token);
    assert_eq!(status(&health), 200);
    assert!(took < Duration::from_secs(1), "{took:?}");
    // A call writes to the store, and opens a connection to the agent.
    let call = RawConnection::call(&host, &token).without("Connection").bytes();
    let (called, _) = kept.send(&call);
    assert!(status(&called) == 200 && called.contains("\"result\""), "{called}");
    let policy = "@id(\"no-more\") forbid (principal, action, resource);";
    fs::write(rialto.data().join("policies/no-more.cedar"), policy).unwrap();
    until("the policy is in force", || (!kept.send(&call).0.contains("\"result\"")).then_some(()));
    assert!(server.log().contains("ulimit -n"), "{}", server.log());
    drop(opened);
    until("there is room again", || {
        http::get(&format!("{}/healthz", server.url)).filter(|answer| answer.status == 200)
    });
}

#[test]
fn connections_have_a_maximum_in_all_and_for_one_address() {
    for variable in ["RIALTO_SERVER__MAX_CONNECTIONS", "RIALTO_SERVER__MAX_CONNECTIONS_PER_ADDRESS"] {
        let server = Rialto::fresh()
            .with(variable, "5")
            .with("RIALTO_SERVER__HEADER_TIMEOUT_MS", "500")
            .serve(&["--allow-no-auth"]);
        let opened = silent(&host(&server), 20);
        let refused = opened.iter().filter(|stream| {
            let mut stream: &TcpStream = stream;
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut text = String::new();
            let _ = stream.read_to_string(&mut text);
            text.starts_with("HTTP/1.1 503") && text.contains("Retry-After: 1")
        });
        assert!(refused.count() >= 14, "{variable}");
        until("those that were silent are gone", || {
            http::get(&format!("{}/healthz", server.url)).filter(|answer| answer.status == 200)
        });
    }
}

#[test]
#[ignore = "opens 15,000 connections: run it with `cargo nextest run --run-ignored all -E 'test(ten_thousand)'`"]
fn ten_thousand_silent_connections_and_five_thousand_idle_streams_are_carried() {
    let rialto = Rialto::fresh()
        .with("RIALTO_LIMITS__CONCURRENT_STREAMS", "0")
        .with("RIALTO_SERVER__HEADER_TIMEOUT_MS", "600000")
        .with("RIALTO_TOKEN", "owners-token-of-at-least-32-characters");
    assert!(
        rialto_http_server::listener::raise_descriptor_limit().is_none_or(|limit| limit >= 16_000),
        "ulimit -n"
    );
    let server = rialto.serve(&[]);
    let host = host(&server);
    let request = format!(
        "GET /api/v1/events HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer owners-token-of-at-least-32-characters\r\nAccept: text/event-stream\r\n\r\n"
    );
    let streams: Vec<_> = (0..5_000)
        .map(|_| {
            let mut stream = TcpStream::connect(&host).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut head = [0; 15];
            stream.read_exact(&mut head).unwrap();
            assert_eq!(&head, b"HTTP/1.1 200 OK");
            stream
        })
        .collect();
    let silent = silent(&host, 10_000);
    assert_eq!((silent.len(), streams.len()), (10_000, 5_000));
    let mut kept = OpenConnection::open(&host);
    let (metrics, _) = kept.get(&host, "/metrics", "owners-token-of-at-least-32-characters");
    assert!(counted(&metrics, "rialto_connections") >= 15_000, "{metrics}");
    let worst = (0..50)
        .map(|_| kept.get(&host, "/healthz", "owners-token-of-at-least-32-characters").1)
        .max()
        .unwrap();
    let begun = Instant::now();
    let fresh =
        OpenConnection::open(&host).get(&host, "/healthz", "owners-token-of-at-least-32-characters").0;
    assert_eq!(status(&fresh), 200);
    let fresh = begun.elapsed();
    let about = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let resident = about.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let resident: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    eprintln!("/healthz: {worst:?}, on a new connection {fresh:?}; {} MB are resident", resident / 1024);
    assert!(worst < Duration::from_millis(100) && fresh < Duration::from_millis(100));
    assert!(resident < 300 * 1024, "{resident} kB");
}

#[test]
fn nobody_needs_no_token_where_others_come() {
    for (variable, value, setting) in [
        ("RIALTO_SERVER__PUBLIC_URL", "https://bridge.example.com", "public_url"),
        ("RIALTO_SERVER__DOMAIN", "bridge.example.com", "domain"),
        ("RIALTO_SERVER__TRUST_PROXY", "true", "trust_proxy"),
    ] {
        let refused =
            Rialto::fresh().with(variable, value).cli(&["serve", "--addr", "127.0.0.1:0", "--allow-no-auth"]);
        assert_ne!(refused.status, 0);
        let fix =
            refused.err.contains(&format!("[server] {setting}")) && refused.err.contains("tokens create");
        assert!(fix, "{}", refused.err);
    }
}

#[test]
fn a_page_of_another_local_port_calls_nobody_where_no_token_is_needed() {
    let agent = SampleAgent::named("Desk");
    let rialto = Rialto::fresh().with("RIALTO_SERVER__ALLOWED_HOSTS", "[\"localhost:3000\"]");
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    let call = |origin: &str| {
        let origin = [("Origin", origin), ("Content-Type", "application/json")];
        http::post(&format!("{}/call/desk.echo", server.url), &origin, "{}")
    };
    let refused = call("http://localhost:5173");
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(refused.body.contains("allowed_hosts"), "{refused:?}");
    assert_eq!(agent.heard(), [""; 0]);
    assert_eq!(call("http://localhost:3000").status, 200, "it is configured");
    assert_eq!(call(&server.url).status, 200, "it is our own");
}

#[test]
fn the_numbers_are_open_on_a_server_for_this_machine_alone() {
    let metrics = |rialto: Rialto| {
        let server = rialto.serve(&[]);
        let status = http::get(&format!("{}/metrics", server.url)).unwrap().status;
        let token = server.token.clone().unwrap();
        let bearer = format!("Bearer {token}");
        let admin = http::get_with(&format!("{}/metrics", server.url), None, &[("Authorization", &bearer)]);
        assert_eq!(admin.status, 200);
        status
    };
    assert_eq!(metrics(Rialto::fresh()), 200);
    for (variable, value) in [
        ("RIALTO_SERVER__ALLOWED_HOSTS", "[\"bridge.example.com\"]"),
        ("RIALTO_SERVER__PUBLIC_URL", "https://bridge.example.com"),
    ] {
        assert_eq!(metrics(Rialto::fresh().with(variable, value)), 401, "{variable}");
    }
}

#[test]
fn a_hangup_signal_reads_everything_again_and_ends_nothing() {
    let agent = SampleAgent::named("Desk");
    let rialto = Rialto::fresh();
    rialto.trust(&agent.url);
    let mut server = rialto.serve(&[]);
    server.call("desk.echo", &json!({})).result();
    server.signal("HUP");
    until("all of it is read again", || {
        let log = server.log();
        (log.contains("received SIGHUP") && log.contains("the configuration was read again")).then_some(())
    });
    let params = json!({ "name": "desk.echo", "arguments": {} });
    let answer = server.request("/mcp", "tools/call", params, server.token.as_deref());
    assert!(message(&answer)["result"].is_object(), "{answer:?}");
    assert!(server.stop().success());
}
