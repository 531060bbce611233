//! A server that speaks TLS, and clients that others wrote: they know its authority, and nothing else is set aside for them.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::{Value, json};

use super::{
    console::play,
    install::{listed, run},
};
use crate::harness::{
    a2a_client::{A2aClient, ClientVariant},
    agent::SampleAgent,
    certificate_authority::{CertificateAuthority, key_digest},
    client::{McpClient, McpEra, McpTransport, Sdk},
    rialto::Rialto,
    server::ServerProcess,
    until,
};

/// A server with a certificate for this machine, a token, and an agent behind it.
struct TlsFixture {
    authority: CertificateAuthority,
    rialto: Rialto,
    server: ServerProcess,
    _agent: SampleAgent,
}

/// curl, which knows the authority and the token.
struct Curl {
    ca: PathBuf,
    url: String,
    token: String,
}

/// Ends what runs beside a test, also when the test has failed.
struct StopOnDrop<'a>(&'a AtomicBool);

/// Calls that are made one after the other until they are to stop.
#[derive(Default)]
struct Traffic {
    is_over: AtomicBool,
    failures: Mutex<Vec<String>>,
}

// === impl TlsFixture ===

impl TlsFixture {
    fn start() -> Self {
        let (authority, rialto, agent) =
            (CertificateAuthority::new(), Rialto::fresh(), SampleAgent::named("Desk"));
        authority.issue(&rialto.folder().join("cert.pem"), &rialto.folder().join("key.pem"));
        let config = "[server.tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n";
        fs::write(rialto.folder().join("rialto.toml"), config).unwrap();
        rialto.trust(&agent.url);
        let server = rialto.serve(&[]);
        assert!(server.token.is_some(), "{}", server.greeting);
        Self { authority, rialto, server, _agent: agent }
    }

    fn token(&self) -> &str {
        self.server.token.as_deref().unwrap()
    }

    fn port(&self) -> u16 {
        self.server.url.rsplit(':').next().unwrap().parse().unwrap()
    }

    /// Its address by the other name in its certificate.
    fn by_name(&self) -> String {
        format!("https://localhost:{}", self.port())
    }

    /// The way in below an address, for clients that know the authority.
    fn door(&self, url: String) -> McpTransport {
        McpTransport::Http { url, token: Some(self.token().to_owned()), ca: Some(self.authority.ca()) }
    }

    /// The same for clients that do not know it.
    fn strange_door(&self, url: String) -> McpTransport {
        McpTransport::Http { url, token: Some(self.token().to_owned()), ca: None }
    }

    fn curl(&self) -> Curl {
        Curl { ca: self.authority.ca(), url: self.server.url.clone(), token: self.token().to_owned() }
    }
}

// === impl Curl ===

impl Curl {
    /// Headers and body of a response, or curl's complaint.
    fn get(&self, words: &[&str], url: &str) -> Result<String, String> {
        let mut command = Command::new("curl");
        command.args(["-sS", "-i", "--max-time", "20", "--cacert"]).arg(&self.ca);
        let output = command.args(words).arg(url).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }

    /// Calls a skill over a connection of its own.
    fn greet_ann(&self, version: &str) -> Result<String, String> {
        let bearer = format!("Authorization: Bearer {}", self.token);
        let words =
            [version, "-H", &bearer, "-H", "Content-Type: application/json", "-d", r#"{"name":"Ann"}"#];
        self.get(&words, &format!("{}/call/desk.greet", self.url))
    }
}

// === impl StopOnDrop ===

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

// === impl Traffic ===

impl Traffic {
    /// Makes a call again and again, and counts those that went well; the first that does not is the last.
    fn repeat(&self, count: &AtomicUsize, mut call: impl FnMut() -> Result<(), String>) {
        while !self.is_over.load(Ordering::Acquire) {
            match call() {
                Ok(()) => count.fetch_add(1, Ordering::AcqRel),
                Err(why) => return self.failures.lock().unwrap().push(why),
            };
        }
    }

    /// Waits until each kind of call has been made a few times more, or one has failed.
    #[track_caller]
    fn goes_on(&self, counts: &[AtomicUsize]) {
        let before: Vec<usize> = counts.iter().map(|count| count.load(Ordering::Acquire)).collect();
        until("calls go on", || {
            let has_failed = !self.failures.lock().unwrap().is_empty();
            let mut more = counts.iter().zip(&before);
            (has_failed || more.all(|(count, before)| count.load(Ordering::Acquire) >= before + 5))
                .then_some(())
        });
    }
}

/// What an A2A client sends, for one greeting.
fn greet_ann() -> Value {
    json!({ "skill": "desk.greet", "data": { "name": "Ann" } })
}

/// The ports from which clients are connected to a port of this machine.
fn connected_to(port: u16) -> BTreeSet<String> {
    let mut from = BTreeSet::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        for row in fs::read_to_string(table).unwrap_or_default().lines().skip(1) {
            let fields: Vec<&str> = row.split_whitespace().collect();
            let port_of = |address: &str| address.rsplit(':').next().unwrap().to_owned();
            // 01 is an established connection.
            if fields[3] == "01" && port_of(fields[2]) == format!("{port:04X}") {
                from.insert(port_of(fields[1]));
            }
        }
    }
    from
}

#[test]
fn curl_calls_over_both_versions_of_http_and_is_told_https_addresses_only() {
    let site = TlsFixture::start();
    let (curl, by_name, port) = (site.curl(), site.by_name(), site.port());
    let large = site.rialto.folder().join("large");
    fs::write(&large, vec![b'x'; 3_000_000]).unwrap();
    let large = format!("@{}", large.display());
    for (option, version) in [("--http1.1", "HTTP/1.1 200"), ("--http2", "HTTP/2 200")] {
        let healthy = curl.get(&[option], &format!("{by_name}/healthz")).unwrap();
        assert!(healthy.starts_with(version) && healthy.ends_with("ok\n"), "{healthy}");
        let greeted = curl.greet_ann(option).unwrap();
        assert!(greeted.starts_with(version) && greeted.contains("hello Ann"), "{greeted}");
        for path in ["", "/a2a/agents/desk"] {
            let path = format!("{path}/.well-known/agent-card.json");
            let bearer = format!("Authorization: Bearer {}", site.token());
            let card = curl.get(&[option, "-H", &bearer], &format!("{by_name}{path}")).unwrap();
            assert!(card.starts_with(version) && card.contains(&format!("\"{by_name}/a2a")), "{card}");
            assert!(card.contains(&format!("\"localhost:{port}\"")), "gRPC is there too: {card}");
            assert!(!card.contains("\"http://"), "{card}");
        }
        // The response comes before such a body was sent, and is read nevertheless.
        let refused = curl.get(&[option, "--data-binary", &large], &format!("{by_name}/mcp")).unwrap();
        assert!(refused.contains(" 401"), "{refused}");
        let described = format!("resource_metadata=\"{by_name}/.well-known/oauth-protected-resource");
        assert!(refused.contains(&described), "{refused}");
        let resource = curl.get(&[option], &format!("{by_name}/.well-known/oauth-protected-resource/mcp"));
        assert!(resource.as_ref().unwrap().contains(&format!("\"{by_name}/mcp\"")), "{resource:?}");
        let moved = ["-w", "\n%{redirect_url}", "-H", "Accept: text/html", option];
        let moved = curl.get(&moved, &format!("{by_name}/factory")).unwrap();
        assert!(moved.lines().last().unwrap().starts_with(&format!("{by_name}/factory")), "{moved}");
    }
    assert_eq!(site.server.printed("Console: ").trim(), format!("https://127.0.0.1:{port}/factory"));
    let unencrypted = curl.get(&[], &format!("http://localhost:{port}/healthz"));
    assert!(!unencrypted.is_ok_and(|answer| answer.contains("ok")), "nothing is answered without TLS");
}

#[test]
fn a2a_clients_call_over_https_and_over_grpc_on_the_same_port() {
    let site = TlsFixture::start();
    for (peer, binding) in [
        ("a2a_py_1_3", "jsonrpc"),
        ("a2a_py_1_3", "rest"),
        ("a2a_py_1_3", "grpc"),
        ("a2a_py_0_3", "jsonrpc"),
        ("a2a_py_0_3", "grpc"),
        ("a2a_py_0_2", "jsonrpc"),
        ("a2a_js_1_3", "jsonrpc"),
    ] {
        let mut client =
            A2aClient::enter(ClientVariant::of(peer, binding), &site.door(site.by_name())).unwrap();
        let sent = client.call("send", greet_ann()).unwrap();
        assert!(sent.to_string().contains("hello Ann"), "{peer}, {binding}: {sent}");
        let events = client.events("stream", greet_ann()).unwrap();
        assert!(json!(events).to_string().contains("hello Ann"), "{peer}, {binding}: {events:?}");
    }
    let door = site.strange_door(site.by_name());
    let refused = A2aClient::enter(ClientVariant::of("a2a_py_1_3", "jsonrpc"), &door).err().unwrap();
    assert!(refused.contains("CERTIFICATE_VERIFY_FAILED"), "{refused}");
}

#[test]
fn mcp_sdks_list_and_call_over_https() {
    let site = TlsFixture::start();
    let url = site.server.mcp();
    for sdk in [Sdk::Python, Sdk::TypeScript] {
        for era in [McpEra::Auto, McpEra::Legacy] {
            let mut client = McpClient::start(sdk, era, &site.door(url.clone()));
            assert!(client.list().contains(&"desk.greet".to_owned()));
            assert_eq!(client.call("desk.greet", &json!({ "name": "Ann" })).text(), "hello Ann");
            client.leave();
        }
        McpClient::refused(sdk, McpEra::Auto, &site.strange_door(url.clone()));
    }
}

#[test]
fn claude_code_connects_with_the_command_that_the_server_prints() {
    let site = TlsFixture::start();
    let own = site.rialto.folder().join("claude");
    fs::create_dir(&own).unwrap();
    fs::write(own.join(".claude.json"), r#"{"hasCompletedOnboarding":true}"#).unwrap();
    let printed = site.server.printed("Claude Code:  claude ");
    let (words, bearer) = printed.split_once(" --header ").unwrap();
    assert_eq!(bearer, "\"Authorization: Bearer $RIALTO_TOKEN\"");
    let bearer = format!("Authorization: Bearer {}", site.token());
    let words: Vec<&str> =
        ["claude_code"].into_iter().chain(words.split(' ')).chain(["--header", &bearer]).collect();
    let (own, ca) = (own.display().to_string(), site.authority.ca().display().to_string());
    let added = run(&site.rialto, &words, &[("CLAUDE_CONFIG_DIR", &own)]);
    assert!(added.contains("rialto"), "{added}");
    let knows = [("CLAUDE_CONFIG_DIR", own.as_str()), ("NODE_EXTRA_CA_CERTS", ca.as_str())];
    let list = listed(&site.rialto, "claude_code", &knows);
    assert!(list.contains(&site.server.mcp()) && list.contains("Connected"), "{list}");
    let list = listed(&site.rialto, "claude_code", &knows[..1]);
    assert!(list.contains(&site.server.mcp()) && !list.contains("Connected"), "{list}");
}

#[test]
fn a_browser_signs_in_over_https_and_keeps_its_cookie_to_it() {
    let site = TlsFixture::start();
    let digest = key_digest(&site.rialto.folder().join("cert.pem"));
    play("encrypted", &site.server, &[("--spki", &digest)]);
}

#[test]
fn no_call_fails_while_the_certificate_is_replaced() {
    let site = TlsFixture::start();
    let (folder, port) = (site.rialto.folder(), site.port());
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    let (new_cert, new_key) = (folder.join("new-cert.pem"), folder.join("new-key.pem"));
    site.authority.issue(&new_cert, &new_key);
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let (old, new) = (read(&cert), read(&new_cert));
    assert_eq!(site.authority.shown_at(port).unwrap(), old);

    let door = site.door(site.server.url.clone());
    let enter = |binding| A2aClient::enter(ClientVariant::of("a2a_py_1_3", binding), &door).unwrap();
    let (mut rpc, mut grpc, mut patient) = (enter("jsonrpc"), enter("grpc"), enter("grpc"));
    for client in [&mut rpc, &mut grpc, &mut patient] {
        client.call("send", greet_ann()).unwrap();
    }
    patient.events("stream", greet_ann()).unwrap();
    let before = connected_to(port);
    assert!(before.len() >= 3, "{before:?}");

    let (traffic, counts) = (Traffic::default(), [const { AtomicUsize::new(0) }; 3]);
    thread::scope(|scope| {
        let _guard = StopOnDrop(&traffic.is_over);
        let (traffic, counts) = (&traffic, &counts);
        for (client, count) in [(&mut rpc, &counts[0]), (&mut grpc, &counts[1])] {
            let call = || client.call("send", greet_ann()).map(drop);
            scope.spawn(move || traffic.repeat(count, call));
        }
        let curl = site.curl();
        let call = move || {
            let answer = curl.greet_ann("--http2")?;
            answer.contains("hello Ann").then_some(()).ok_or(answer)
        };
        scope.spawn(move || traffic.repeat(&counts[2], call));
        traffic.goes_on(counts);
        let slow = patient.begin("stream", json!({ "skill": "desk.slow", "data": { "ms": 8_000 } }));
        // Half of it is there for a while, as when somebody copies two files.
        fs::rename(&new_cert, &cert).unwrap();
        until("the certificate without its key is not used", || {
            site.server.log().contains("the previous ones stay active").then_some(())
        });
        assert_eq!(site.authority.shown_at(port).unwrap(), old);
        traffic.goes_on(counts);
        fs::rename(&new_key, &key).unwrap();
        until("new connections see the new certificate", || {
            (site.authority.shown_at(port).unwrap() == new).then_some(())
        });
        traffic.goes_on(counts);
        let told = patient.rest_of(slow).unwrap();
        assert!(json!(told).to_string().contains("done at last"), "{told:?}");
    });
    assert_eq!(*traffic.failures.lock().unwrap(), Vec::<String>::new(), "{}", site.server.log());
    assert_eq!(connected_to(port), before, "the clients still have the connections that they had");
    enter("grpc").call("send", greet_ann()).unwrap();
}
