//! One caller that takes all it can get: sessions, streams, calls. Others get theirs.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
};

use serde_json::{Value, json};

use crate::harness::{
    PATIENCE,
    agent::SampleAgent,
    http::{self, HttpAnswer},
    rialto::Rialto,
    server::{self, ServerProcess, meta},
    until,
};

const LEGACY: &str = "2025-06-18";

fn token(rialto: &Rialto, args: &[&str]) -> String {
    let made = rialto.json(&[&["tokens", "create"], args, &["--json"]].concat());
    made["token"].as_str().unwrap().to_owned()
}

/// The answer to a client that begins as clients before 2026-07-28 do.
fn initialize(server: &ServerProcess, token: &str) -> HttpAnswer {
    let params = json!({
        "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": { "name": "rialto-tests", "version": "1" },
    });
    legacy(server, token, None, "initialize", &params)
}

fn legacy(
    server: &ServerProcess,
    token: &str,
    session: Option<&str>,
    method: &str,
    params: &Value,
) -> HttpAnswer {
    let bearer = format!("Bearer {token}");
    let mut headers = vec![("Authorization", bearer.as_str()), ("MCP-Protocol-Version", LEGACY)];
    headers.extend(session.map(|session| ("Mcp-Session-Id", session)));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    http::post(&server.mcp(), &headers, &body)
}

#[track_caller]
fn session(answer: &HttpAnswer) -> String {
    answer.session.clone().unwrap_or_else(|| panic!("no session: {answer:?}"))
}

/// A stream that stays open, and the head of its response.
struct OpenStream {
    head: String,
    _stream: BufReader<TcpStream>,
}

/// Asks for a stream.
fn open(server: &ServerProcess, request_line: &str, headers: &[(&str, &str)], body: &str) -> OpenStream {
    let host = server.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    write!(
        stream,
        "{request_line} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(stream.read_line(&mut head).unwrap(), 0, "{head}");
    }
    OpenStream { head: head.to_lowercase(), _stream: stream }
}

fn is_open(opened: &OpenStream) -> bool {
    opened.head.starts_with("http/1.1 200")
}

#[track_caller]
fn assert_later(opened: &OpenStream) {
    assert!(
        opened.head.starts_with("http/1.1 429") && opened.head.contains("\r\nretry-after: "),
        "{}",
        opened.head
    );
}

/// Opens the stream of a session, which a client before 2026-07-28 does.
fn session_stream(server: &ServerProcess, token: &str, session: &str) -> OpenStream {
    let headers = [
        ("Authorization", format!("Bearer {token}")),
        ("Accept", "text/event-stream".to_owned()),
        ("Mcp-Session-Id", session.to_owned()),
        ("MCP-Protocol-Version", LEGACY.to_owned()),
    ];
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    open(server, "GET /mcp", &headers, "")
}

/// Subscribes as clients of 2026-07-28 do.
fn listen(server: &ServerProcess, token: &str) -> OpenStream {
    let (method, bearer) = ("subscriptions/listen", format!("Bearer {token}"));
    let params = json!({ "notifications": { "toolsListChanged": true }, "_meta": meta() });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", server::VERSION),
        ("Mcp-Method", method),
    ];
    open(server, "POST /mcp", &headers, &body)
}

/// Calls a skill over A2A and wants to hear how it goes.
fn stream(server: &ServerProcess, token: &str, skill: &str) -> OpenStream {
    let part = json!({ "kind": "data", "data": {} });
    let message = json!({
        "kind": "message", "role": "user", "messageId": "m1", "parts": [part], "metadata": { "skillId": skill },
    });
    let params = json!({ "message": message });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": params }).to_string();
    let bearer = format!("Bearer {token}");
    open(server, "POST /a2a", &[("Authorization", &bearer), ("Accept", "text/event-stream")], &body)
}

#[test]
fn sessions_of_one_caller_end_none_of_another() {
    let rialto = Rialto::fresh()
        .with("RIALTO_MCP__MAX_SESSIONS", "6")
        .with("RIALTO_MCP__MAX_SESSIONS_PER_CALLER", "4")
        .with("RIALTO_TOKEN", "owners-token-of-at-least-32-characters");
    let (ann, eve) = (token(&rialto, &["ann"]), token(&rialto, &["eve", "--org", "acme"]));
    let server = rialto.serve(&[]);
    let own = session(&initialize(&server, &ann));
    let others: Vec<_> = (0..30).map(|_| session(&initialize(&server, &eve))).collect();
    let listed = |token: &str, id: &str| legacy(&server, token, Some(id), "tools/list", &json!({})).status;
    assert_eq!(listed(&ann, &own), 200, "ann's session is as it was");
    assert!(
        others.iter().all(|id| listed(&eve, id) == 200),
        "those that were dropped are rebuilt, four at a time"
    );
    // Sessions that are in use are dropped for nobody, not even for their owner.
    let streams: Vec<_> = others[26..].iter().map(|id| session_stream(&server, &eve, id)).collect();
    assert!(streams.iter().all(is_open) && streams.len() == 4);
    let refused = initialize(&server, &eve);
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.head.contains("\r\nretry-after: 5"), "{}", refused.head);
    assert!(refused.body.contains("max_sessions_per_caller"), "{}", refused.body);
    assert_eq!(listed(&eve, &others[0]), 429, "nor is one rebuilt");
    // Six in all: one more of ann's is there, then her own have to do.
    let second = session(&initialize(&server, &ann));
    session(&initialize(&server, &ann));
    assert_eq!((listed(&ann, &own), listed(&ann, &second)), (200, 200));
    let third = initialize(&server, "owners-token-of-at-least-32-characters");
    assert_eq!(third.status, 503, "nobody's session ends for a caller who has none: {third:?}");
    assert!(third.head.contains("\r\nretry-after: 5") && third.body.contains("max_sessions"), "{third:?}");
    drop(streams);
}

#[test]
fn streams_of_all_kinds_are_counted_for_their_caller() {
    let agent = SampleAgent::named("Desk");
    let rialto = Rialto::fresh()
        .with("RIALTO_LIMITS__CONCURRENT_STREAMS", "3")
        .with("RIALTO_TOKEN", "owners-token-of-at-least-32-characters");
    rialto.trust(&agent.url);
    let eve = token(&rialto, &["eve", "--scope", "call"]);
    let server = rialto.serve(&[]);
    let watch = |token: &str| {
        let bearer = format!("Bearer {token}");
        open(
            &server,
            "GET /api/v1/events",
            &[("Authorization", &bearer), ("Accept", "text/event-stream")],
            "",
        )
    };
    let (listen, stream) = (
        || listen(&server, "owners-token-of-at-least-32-characters"),
        || stream(&server, "owners-token-of-at-least-32-characters", "desk.echo"),
    );
    let legacy = session(&initialize(&server, "owners-token-of-at-least-32-characters"));
    let open = [
        watch("owners-token-of-at-least-32-characters"),
        listen(),
        session_stream(&server, "owners-token-of-at-least-32-characters", &legacy),
    ];
    assert!(
        open.iter().all(is_open),
        "{}",
        open.iter().map(|opened| opened.head.as_str()).collect::<String>()
    );
    for refused in [
        watch("owners-token-of-at-least-32-characters"),
        listen(),
        session_stream(&server, "owners-token-of-at-least-32-characters", &legacy),
        stream(),
    ] {
        assert_later(&refused);
    }
    let rest = http::post(
        &format!("{}/message:stream", server.url),
        &[("Authorization", "Bearer owners-token-of-at-least-32-characters")],
        &json!({ "message": { "role": "ROLE_USER", "messageId": "m2", "parts": [{ "text": "hello" }] } })
            .to_string(),
    );
    assert!(rest.status == 429 && rest.head.contains("retry-after: 5"), "{rest:?}");
    assert_eq!(agent.heard(), [""; 0], "what cannot be told does not begin");
    assert!(is_open(&watch(&eve)), "another caller has its own");
    drop(open);
    until("those that ended make room", || {
        is_open(&watch("owners-token-of-at-least-32-characters")).then_some(())
    });
}

#[test]
fn a_tool_that_has_a_limit_is_called_that_often_by_each_caller() {
    let (agent, rialto) = (SampleAgent::named("Desk"), Rialto::fresh());
    rialto.trust(&agent.url);
    let config = "[limits.tools.\"desk.echo\"]\ncalls_per_minute = 2\n";
    std::fs::write(rialto.folder().join("rialto.toml"), config).unwrap();
    let (ann, eve) = (token(&rialto, &["ann"]), token(&rialto, &["eve"]));
    let server = rialto.serve(&[]);
    let call = |token: &str, tool: &str| {
        let bearer = format!("Bearer {token}");
        let body = r#"{"name":"Ann"}"#;
        http::post(&format!("{}/call/{tool}", server.url), &[("Authorization", &bearer)], body)
    };
    // A minute may end between two of them, not between more.
    let refused = (0..6).map(|_| call(&ann, "desk.echo")).find(|answer| answer.status != 200);
    let refused = refused.expect("there is a limit");
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(
        refused.head.contains("\r\nretry-after: ") && refused.body.contains("calls_per_minute"),
        "{refused:?}"
    );
    assert_eq!(call(&ann, "desk.greet").status, 200, "another tool is not affected");
    assert_eq!(call(&eve, "desk.echo").status, 200, "another caller is not affected");
}

#[test]
fn a_loop_that_runs_away_is_slowed_down_by_default_and_a_team_is_not() {
    let rialto = Rialto::fresh().with("RIALTO_TOKEN", "owners-token-of-at-least-32-characters");
    let shown = rialto.cli(&["config", "show"]).ok().out;
    assert!(shown.contains("requests_per_second = 2000") && shown.contains("burst = 20000"), "{shown}");
}
