//! Through us to somewhere else: addresses that only we can reach, and agents that send us there.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::json;

use crate::harness::{agent::SampleAgent, rialto::Rialto};

/// Counts who connects, and answers everybody alike.
struct Listener {
    url: String,
    seen: Arc<AtomicUsize>,
}

// === impl Listener ===

impl Listener {
    fn answering(answer: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&seen);
        // The thread ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                reply(stream, &answer);
            }
        });
        Self { url, seen }
    }

    fn seen(&self) -> usize {
        self.seen.load(Ordering::SeqCst)
    }
}

fn reply(mut stream: TcpStream, answer: &str) {
    let mut request = [0; 4096];
    let _ = stream.read(&mut request);
    let _ = stream.write_all(answer.as_bytes());
}

fn redirect(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

#[test]
fn an_address_that_is_nobodys_agent_is_not_called() {
    let rialto = Rialto::fresh();
    for (what, url, word) in [
        ("the cloud's metadata", "http://169.254.169.254/latest/meta-data", "metadata"),
        ("the same as one number", "http://2852039166/", "metadata"),
        ("the same in hex", "http://0xa9fea9fe/", "metadata"),
        ("the same in octal", "http://0251.0376.0251.0376/", "metadata"),
        ("the same inside IPv6", "http://[::ffff:169.254.169.254]/", "metadata"),
        ("the same behind a translator", "http://[64:ff9b::a9fe:a9fe]/", "metadata"),
        ("the same in a 6to4 address", "http://[2002:a9fe:a9fe::1]/", "metadata"),
        ("a file", "file:///etc/passwd", "http"),
        ("another protocol", "gopher://127.0.0.1:70/_x", "http"),
        ("a name and a password", "http://ann:secret@127.0.0.1/", "password"),
    ] {
        let said = rialto.cli(&["agents", "add", url]);
        assert!(said.status != 0 && said.err.contains(word), "{what}: {} {}", said.status, said.err);
        assert!(!said.err.contains("secret"), "{what}: {}", said.err);
    }
    assert_eq!(rialto.json(&["agents", "list", "--json"]), json!([]));
}

#[test]
fn an_agent_that_sends_us_elsewhere_is_not_followed() {
    let rialto = Rialto::fresh();
    for to in ["http://169.254.169.254/", "http://[::ffff:a9fe:a9fe]/", "file:///etc/passwd"] {
        let agent = Listener::answering(redirect(to));
        let said = rialto.cli(&["agents", "add", &agent.url]);
        assert!(said.status != 0 && agent.seen() > 0, "{to}: {}", said.err);
    }
    assert_eq!(rialto.json(&["agents", "list", "--json"]), json!([]));
}

#[test]
fn an_agent_whose_card_names_another_place_leads_us_neither_there_nor_gives_it_its_token() {
    let rialto = Rialto::fresh().with("DESK_TOKEN", "desks-own-token");
    let agent = SampleAgent::named("Desk");
    let elsewhere = SampleAgent::named("Elsewhere");
    for (url, word) in [("http://169.254.169.254/", "metadata"), (elsewhere.url.as_str(), "")] {
        agent.change_card(|card| card["url"] = json!(url));
        let added =
            rialto.cli(&["agents", "add", &agent.url, "--trust", "trusted", "--token-env", "DESK_TOKEN"]);
        let said = rialto.cli(&["call", "desk.echo", "{}"]);
        let all = added.err + &said.err;
        assert!(all.contains(word), "{url}: {all}");
        assert!(!all.contains("desks-own-token"), "{all}");
    }
    assert_eq!(elsewhere.tokens(), [""; 0]);
}
