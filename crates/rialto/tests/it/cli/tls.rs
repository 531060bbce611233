//! A server that speaks TLS itself, asked by curl.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::harness::{process::ChildProcess, rialto::Rialto, root, until};

/// The owner's.
const TOKEN: &str = "owners-token-of-at-least-32-characters";

/// A server with certificates in its folder.
struct TlsServer {
    rialto: Rialto,
    process: ChildProcess,
    url: String,
}

// === impl TlsServer ===

impl TlsServer {
    fn start(more: &str) -> Self {
        let rialto = Rialto::fresh().with("RIALTO_TOKEN", TOKEN);
        put(rialto.folder(), "server");
        let config = format!("[server.tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n{more}");
        fs::write(rialto.folder().join("rialto.toml"), config).unwrap();
        let process = rialto.start(&["serve", "--addr", "127.0.0.1:0"]);
        let url = loop {
            let line = process.line().unwrap_or_else(|| panic!("the server ended: {}", process.stderr()));
            if let Some((_, url)) = line.split_once(" as MCP tools at ") {
                break url.trim().strip_suffix("/mcp").unwrap().replace("127.0.0.1", "localhost");
            }
        };
        assert!(url.starts_with("https://"), "{url}");
        let server = Self { rialto, process, url };
        until("it is healthy", || {
            (server.curl("ca.pem", &["--http1.1"], "/healthz").ok()? == "ok\n 1.1 200").then_some(())
        });
        server
    }

    /// What curl prints, and then the version of HTTP and the status.
    fn curl(&self, ca: &str, more: &[&str], path: &str) -> Result<String, String> {
        let ca = file(ca);
        let output = Command::new("curl")
            .args(["-sS", "--max-time", "20", "-w", " %{http_version} %{http_code}", "--cacert"])
            .arg(ca)
            .args(more)
            .arg(format!("{}{path}", self.url))
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }
}

fn file(name: &str) -> PathBuf {
    root().join("crates/http-client/tests/it/tls").join(name)
}

/// Puts a certificate and its key where the server looks for them.
fn put(folder: &Path, name: &str) {
    fs::copy(file(&format!("{name}.pem")), folder.join("cert.pem")).unwrap();
    fs::copy(file(&format!("{name}.key")), folder.join("key.pem")).unwrap();
}

#[test]
fn http2_and_http1_are_spoken_over_tls_and_cards_say_so() {
    let server = TlsServer::start("");
    assert_eq!(server.curl("ca.pem", &["--http2"], "/healthz").unwrap(), "ok\n 2 200");
    let refused = server.curl("ca2.pem", &[], "/healthz").unwrap_err();
    assert!(refused.contains("certificate"), "{refused}");
    assert!(server.curl("ca.pem", &[], "/metrics").unwrap().ends_with("401"), "others may come here");
    let card = server.curl("ca.pem", &[], "/.well-known/agent-card.json").unwrap();
    assert!(card.contains(&format!("\"{}/", server.url)), "{card}");
}

#[test]
fn certificates_are_replaced_while_the_server_runs() {
    let server = TlsServer::start("");
    let log = || server.process.stderr();
    put(server.rialto.folder(), "server2");
    until("the new one is shown", || server.curl("ca2.pem", &[], "/healthz").ok());
    assert!(server.curl("ca.pem", &[], "/healthz").is_err());
    fs::write(server.rialto.folder().join("key.pem"), "nonsense").unwrap();
    until("it is logged that the new one cannot be used", || {
        log().contains("the previous ones stay active").then_some(())
    });
    assert!(log().contains("key.pem"), "{}", log());
    assert!(server.curl("ca2.pem", &[], "/healthz").is_ok());
    put(server.rialto.folder(), "server");
    let before = log().matches("the certificates were read again").count();
    server.process.signal("HUP");
    until("a signal has them read again", || {
        (log().contains("received SIGHUP")
            && log().matches("the certificates were read again").count() > before)
            .then_some(())
    });
    assert!(server.curl("ca.pem", &[], "/healthz").is_ok());
}

#[test]
fn a_certificate_of_a_client_stands_for_its_caller() {
    let clients = format!(
        "client_ca = \"{}\"\n[[server.tls.clients]]\ncertificate = \"rialto\"\ncaller = \"ci\"\norg = \"acme\"\n",
        file("client-ca.pem").display()
    );
    let server = TlsServer::start(&clients);
    let (cert, key) = (file("client.pem").display().to_string(), file("client.key").display().to_string());
    let own = ["--cert", &cert, "--key", &key];
    assert!(server.curl("ca.pem", &[], "/api/v1/agents").unwrap().ends_with("401"));
    let with_certificate = server.curl("ca.pem", &own, "/api/v1/agents").unwrap();
    assert!(with_certificate.ends_with("200"), "{with_certificate}");
    for (org, is_open) in [("acme", true), ("other", false)] {
        let agents = server.curl("ca.pem", &own, &format!("/orgs/{org}/api/v1/agents")).unwrap();
        assert_eq!(agents.ends_with("200"), is_open, "{org}: {agents}");
    }
}

#[test]
fn another_rialto_reaches_it_with_the_authority_in_its_configuration() {
    let function = "[[functions]]\nname = \"say\"\ncommand = [\"/bin/echo\", \"hello from there\"]\n";
    let server = TlsServer::start(function);
    let list = ["tools", "list", "--server", &server.url];
    let stranger = Rialto::fresh().with("RIALTO_TOKEN", TOKEN).cli(&list);
    assert_ne!(stranger.status, 0);
    assert!(stranger.err.contains("UnknownIssuer") && stranger.err.contains("ca_file"), "{}", stranger.err);
    let ca = file("ca.pem").display().to_string();
    let other = Rialto::fresh().with("RIALTO_OUTBOUND__CA_FILE", &ca).with("RIALTO_TOKEN", TOKEN);
    assert!(other.cli(&list).ok().out.contains("say"));
    let add = ["agents", "add", &server.url, "--trust", "trusted", "--token-env", "RIALTO_TOKEN"];
    let added = other.cli(&add).ok();
    assert!(added.out.contains("rialto_default.say"), "{}", added.out);
    let called = other.cli(&["call", "rialto_default.say", "{}"]).ok();
    assert!(called.out.contains("hello from there"), "{}", called.out);
}

#[test]
fn files_that_cannot_be_used_are_named_at_the_start() {
    let rialto = Rialto::fresh().with("RIALTO_TOKEN", TOKEN);
    put(rialto.folder(), "server");
    for (config, words) in [
        ("cert = \"nothing.pem\"\nkey = \"key.pem\"", ["[server.tls] cert", "nothing.pem"]),
        ("cert = \"cert.pem\"\nkey = \"cert.pem\"", ["[server.tls] key", "cert.pem"]),
        ("cert = \"cert.pem\"\nkey = \"key.pem\"\nclient_auth = \"required\"", ["client_auth", "client_ca"]),
        ("cert = \"cert.pem\"", ["server.tls", "key"]),
    ] {
        fs::write(rialto.folder().join("rialto.toml"), format!("[server.tls]\n{config}\n")).unwrap();
        let refused = rialto.cli(&["serve", "--addr", "127.0.0.1:0"]);
        assert_ne!(refused.status, 0);
        assert!(words.iter().all(|word| refused.err.contains(word)), "{}", refused.err);
    }
}
