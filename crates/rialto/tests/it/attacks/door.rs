//! Attacks on the endpoints: without a token, with a foreign token, from another origin, and smuggled requests.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::wire::{CALL, RawConnection, exchange, status};
use crate::harness::{
    agent::SampleAgent,
    rialto::Rialto,
    server::{ServerProcess, message},
};

/// A server with one agent and callers of two orgs.
struct EndpointFixture {
    rialto: Rialto,
    server: ServerProcess,
    agent: SampleAgent,
    host: String,
    ann: String,
    eve: String,
    bob: String,
}

// === impl EndpointFixture ===

impl EndpointFixture {
    fn set() -> Self {
        let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
        rialto.trust(&agent.url);
        let server = rialto.serve(&[]);
        let host = server.url.strip_prefix("http://").unwrap().to_owned();
        let [ann, eve, bob] =
            [&["ann"][..], &["eve"], &["bob", "--org", "acme"]].map(|args| token(&rialto, args));
        Self { rialto, server, agent, host, ann, eve, bob }
    }

    /// A call that ann may make.
    fn call(&self) -> RawConnection {
        RawConnection::call(&self.host, &self.ann)
    }

    fn send(&self, raw: &RawConnection) -> String {
        exchange(&self.host, &raw.bytes())
    }

    /// Each attack is answered like this, none reaches the agent, and whoever may call still can.
    #[track_caller]
    fn withstands<const N: usize>(&self, attacks: [(&str, RawConnection, u16, &str); N]) {
        for (what, attack, expected, word) in attacks {
            let answer = self.send(&attack);
            let shown: String = answer.chars().take(600).collect();
            assert_eq!(status(&answer), expected, "{what}: {shown}");
            assert!(answer.contains(word), "{what}: {shown}");
            assert!(!answer.contains(&self.ann) && !answer.contains("\"result\""), "{what}: {shown}");
        }
        assert_eq!(self.agent.heard(), [""; 0], "nothing of it left");
        assert_eq!(status(&self.send(&self.call())), 200);
        for token in [&self.ann, &self.eve, &self.bob] {
            assert!(!self.server.log().contains(token), "a token is in the log");
        }
    }

    /// The answer to a call of one of our own tools.
    fn own(&self, tool: &str, args: &Value, token: &str) -> Value {
        let params = json!({ "name": tool, "arguments": args });
        message(&self.server.request("/mcp", "tools/call", params, Some(token)))
    }
}

fn token(rialto: &Rialto, args: &[&str]) -> String {
    let made = rialto.json(&[&["tokens", "create"], args, &["--json"]].concat());
    made["token"].as_str().unwrap().to_owned()
}

#[test]
fn nobody_comes_in_who_is_not_let_in() {
    let scene = EndpointFixture::set();
    let call = scene.call();
    let looker = token(&scene.rialto, &["looker", "--scope", "discover"]);
    let gone = token(&scene.rialto, &["gone"]);
    scene.rialto.cli(&["tokens", "revoke", "gone"]).ok();
    let bearer = |token: &str| call.clone().with("Authorization", &format!("Bearer {token}"));
    let to = |path: &str| call.clone().line(&format!("POST {path} HTTP/1.1"));
    scene.withstands([
        ("no token", call.clone().without("Authorization"), 401, "tokens create"),
        ("a wrong token", bearer("rialto_00000000000000000000000000000000"), 401, "not known"),
        ("a revoked token", bearer(&gone), 401, "revoked"),
        ("another scheme", call.clone().with("Authorization", "Basic YW5uOmFubg=="), 401, "Bearer"),
        ("two tokens", call.clone().and("Authorization", "Bearer other"), 400, "more than one"),
        ("a token in the address", to("/mcp?access_token=x"), 400, "address"),
        ("a token for looking only", bearer(&looker), 403, "insufficient"),
        ("another org's door", to("/orgs/acme/mcp"), 404, "nothing"),
        ("another org's project", to("/acme/main/mcp"), 404, "nothing"),
        ("another org's token", bearer(&scene.bob).line("POST /orgs/default/mcp HTTP/1.1"), 404, "nothing"),
        ("a way out of an org", to("/orgs/default/../acme/mcp"), 404, ""),
        ("an org in disguise", to("/orgs/%2e%2e/mcp"), 404, "nothing"),
    ]);
    for token in [&looker, &gone] {
        assert!(!scene.server.log().contains(token), "a token is in the log");
    }
}

#[test]
fn a_page_of_another_site_calls_nobody() {
    let scene = EndpointFixture::set();
    let call = scene.call();
    let port = scene.host.rsplit_once(':').unwrap().1;
    let pointed_here = call.clone().with("Host", &format!("evil.example:{port}"));
    scene.withstands([
        ("another host", call.clone().with("Host", "evil.example"), 421, "allowed_hosts"),
        ("a host that only looks local", call.clone().with("Host", "localhost.evil.example"), 421, "allowed"),
        ("no host", call.clone().without("Host"), 421, "Host"),
        (
            "a host in the address and another beside it",
            call.clone().line("POST http://evil.example/mcp HTTP/1.1"),
            421,
            "allowed_hosts",
        ),
        ("a page of another origin", call.clone().and("Origin", "https://evil.example"), 403, "Origin"),
        ("a page of no origin", call.clone().and("Origin", "null"), 403, "Origin"),
        ("a name pointed here", pointed_here.and("Origin", "http://evil.example"), 421, "allowed_hosts"),
        ("a header that is not the body's", call.with("Mcp-Name", "other.echo"), 400, "Mcp-Name"),
    ]);
}

#[test]
fn a_request_that_is_none_is_refused() {
    let scene = EndpointFixture::set();
    let call = scene.call();
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let nested = CALL.replace(r#""arguments":{}"#, &format!(r#""arguments":{{"a":{deep}}}"#));
    let large = format!("{}{}", CALL, " ".repeat(5 * 1024 * 1024));
    let in_one_chunk = format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    let chunked = call.clone().and("Transfer-Encoding", "chunked");
    let many = (0..500).fold(call.clone(), |raw, n| raw.and(&format!("X-Header-{n}"), "1"));
    scene.withstands([
        ("two lengths", call.clone().and("Content-Length", "10").and("Content-Length", "20"), 400, ""),
        ("a length that is none", call.clone().and("Content-Length", "+10"), 400, ""),
        ("an encoding that is hidden", call.clone().and("Transfer-Encoding", "xchunked"), 400, ""),
        ("a space before the colon", call.clone().and("Transfer-Encoding ", "chunked"), 400, ""),
        ("a chunk that is none", chunked.clone().body("ffffffffffffffffff\r\n"), 400, ""),
        ("a header that goes on", call.clone().and("X-One", "1\r\n folded: yes"), 400, ""),
        ("a header with a null", call.clone().and("X-One", "\0"), 400, ""),
        ("too many headers", many, 431, ""),
        ("a header that is too long", call.clone().and("X-One", &"x".repeat(1 << 20)), 431, ""),
        ("a body that is too large", call.clone().body(large), 413, "larger"),
        ("a body that does not say how large it is", chunked.body(in_one_chunk), 413, ""),
        ("a body that is nested too deep", call.clone().body(nested), 400, "deep"),
        ("a body that is no message", call.body("[[["), 400, ""),
    ]);
}

/// The first request says two things about where it ends. Whoever believes the other one would hear a second request,
/// with rights that somebody in front of us has checked for the first one only.
#[test]
fn a_request_in_a_request_is_not_heard() {
    let scene = EndpointFixture::set();
    let hidden = scene.call().bytes();
    let hidden = String::from_utf8(hidden).unwrap();
    let both = scene
        .call()
        .without("Connection")
        .and("Content-Length", &(5 + hidden.len()).to_string())
        .and("Transfer-Encoding", "chunked")
        .body(format!("0\r\n\r\n{hidden}"));
    let answer = scene.send(&both);
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    assert_eq!(scene.agent.heard(), [""; 0]);
}

#[test]
fn nobody_reads_or_stops_what_is_somebody_elses() {
    let scene = EndpointFixture::set();
    let secret = json!({ "note": "for ann alone" });
    scene.own("desk.echo", &secret, &scene.ann);
    scene.own("desk.ask", &json!({}), &scene.ann);
    let trail = scene.rialto.json(&["audit", "--json"]);
    let calls = trail.as_array().unwrap().iter().filter(|record| record["event"]["phase"] != "admin");
    let ids: BTreeSet<&str> = calls.map(|record| record["event"]["taskId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 2, "{trail}");
    for id in ids.into_iter().chain(["task-1"]) {
        let by = json!({ "task_id": id });
        let own = scene.own("get_task", &by, &scene.ann).to_string();
        assert!(own.contains("for ann alone") || own.contains("which colour"), "{own}");
        let heard = scene.agent.heard();
        for other in [&scene.eve, &scene.bob] {
            let goes_on = json!({ "agent": "desk", "message": "hello", "task_id": id });
            for (tool, mut args) in
                [("get_task", by.clone()), ("cancel_task", by.clone()), ("send_message", goes_on)]
            {
                let told = scene.own(tool, &args, other)["error"]["message"].to_string();
                // The same words as for a task that never was.
                args["task_id"] = json!("task_never");
                let unknown = scene.own(tool, &args, other)["error"]["message"].to_string();
                assert_eq!(told, unknown.replace("task_never", id), "{tool}");
                assert_ne!(told, "null", "{tool}");
            }
        }
        assert_eq!(scene.agent.heard(), heard, "the agent was not asked for them");
    }
}
