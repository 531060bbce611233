use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    path::Path,
    sync::Arc,
    thread,
};

use rialto_http_client::{
    ClientIdentity, Config, HttpClient,
    fetch::{Fetch, FetchError},
};
use rustls::{
    RootCertStore, ServerConfig, ServerConnection, StreamOwned,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};

use crate::server::{get, text};

pub(crate) fn file(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/tls").join(name)
}

/// A server with a certificate for `localhost` that answers one request per connection. It asks clients who they are if
/// `wants_login`, and then says how many certificates it was shown and the last bytes of the first.
pub(crate) fn start(wants_login: bool) -> SocketAddr {
    let chain = vec![CertificateDer::from_pem_file(file("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = if wants_login {
        let mut roots = RootCertStore::empty();
        roots.add(certificate("client-ca.pem")).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        builder.with_client_cert_verifier(verifier.build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let config = Arc::new(builder.with_single_cert(chain, key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream.unwrap());
            let mut buffer = [0; 4096];
            if stream.read(&mut buffer).is_ok() {
                let shown = stream.conn.peer_certificates().and_then(<[_]>::first);
                let name = shown.map_or_else(|| "secret".to_owned(), name_of);
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{name}",
                    name.len()
                );
                let _ = stream.write_all(answer.as_bytes());
            }
        }
    });
    address
}

async fn ask(ca_file: Option<&str>) -> Result<String, FetchError> {
    let client = HttpClient::new(&Config { ca_file: ca_file.map(file), ..Config::default() });
    ask_with(&client, start(false)).await
}

async fn ask_with(client: &HttpClient, server: SocketAddr) -> Result<String, FetchError> {
    let uri = format!("https://localhost:{}/", server.port()).parse().unwrap();
    Ok(text(client.fetch(get(uri)).await?).await)
}

fn certificate(name: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(file(name)).unwrap()
}

/// Name of the certificate.
fn name_of(shown: &CertificateDer<'_>) -> String {
    let known = ["client.pem", "client2.pem"].into_iter().find(|name| certificate(name) == *shown);
    known.unwrap_or("a stranger").to_owned()
}

/// A client that trusts the server and has these certificates.
fn client_with(config: Config) -> HttpClient {
    HttpClient::new(&Config { ca_file: Some(file("ca.pem")), keep_idle_ms: 0, ..config })
}

fn showing(cert: &str, key: &str) -> Config {
    Config { client_cert: Some(file(cert)), client_key: Some(file(key)), ..Config::default() }
}

#[tokio::test]
async fn a_server_with_a_known_authority_is_trusted() {
    assert_eq!(ask(Some("ca.pem")).await.unwrap(), "secret");
}

#[tokio::test]
async fn a_server_with_an_unknown_authority_is_not_trusted() {
    let error = ask(None).await.unwrap_err();
    assert!(error.is_surely_not_sent());
    assert!(error.to_string().starts_with("no encrypted connection to localhost:"), "{error}");
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
}

#[tokio::test]
async fn a_missing_authority_file_is_named() {
    let error = ask(Some("nothing.pem")).await.unwrap_err();
    assert!(error.to_string().contains("nothing.pem"), "{error}");
}

#[tokio::test]
async fn a_server_that_requests_a_certificate_receives_ours() {
    let client = client_with(showing("client.pem", "client.key"));
    assert_eq!(ask_with(&client, start(true)).await.unwrap(), "client.pem");
    assert_eq!(ask_with(&client, start(false)).await.unwrap(), "secret");
}

#[tokio::test]
async fn a_server_that_asks_who_we_are_refuses_us_when_we_do_not_say() {
    let error = ask_with(&client_with(Config::default()), start(true)).await.unwrap_err();
    assert!(!error.to_string().is_empty(), "{error}");
}

#[tokio::test]
async fn a_certificate_for_some_hosts_is_sent_to_these_alone() {
    let identity = |host: &str| ClientIdentity {
        host: host.to_owned(),
        cert: file("client2.pem"),
        key: file("client2.key"),
    };
    let own = showing("client.pem", "client.key");
    for (host, shown) in
        [("localhost", "client2.pem"), ("*.example", "client.pem"), ("LOCALHOST.", "client2.pem")]
    {
        let client = client_with(Config { identities: vec![identity(host)], ..own.clone() });
        assert_eq!(ask_with(&client, start(true)).await.unwrap(), shown, "{host}");
    }
}

#[tokio::test]
async fn a_renewed_certificate_is_sent_from_the_next_connection_on() {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (folder.path().join("own.pem"), folder.path().join("own.key"));
    let put = |name: &str, age: u64| {
        for (from, to) in [("pem", &cert), ("key", &key)] {
            std::fs::copy(file(&format!("{name}.{from}")), to).unwrap();
            let past = std::time::UNIX_EPOCH + std::time::Duration::from_secs(age);
            std::fs::File::options().write(true).open(to).unwrap().set_modified(past).unwrap();
        }
    };
    put("client", 1_000);
    let config =
        Config { client_cert: Some(cert.clone()), client_key: Some(key.clone()), ..Config::default() };
    let (client, server) = (client_with(config), start(true));
    assert_eq!(ask_with(&client, server).await.unwrap(), "client.pem");
    put("client2", 2_000);
    assert_eq!(ask_with(&client, server).await.unwrap(), "client2.pem");
    // What cannot be read does not take away what was read before.
    std::fs::write(&cert, "half a cert").unwrap();
    assert_eq!(ask_with(&client, server).await.unwrap(), "client2.pem");
}

#[tokio::test]
async fn half_an_identity_is_a_mistake_that_is_named() {
    let half = Config { client_key: None, ..showing("client.pem", "client.key") };
    let error = ask_with(&client_with(half), start(true)).await.unwrap_err();
    assert!(error.to_string().contains("belong together"), "{error}");
    let crossed = client_with(showing("client.pem", "client2.key"));
    let error = ask_with(&crossed, start(true)).await.unwrap_err();
    assert!(error.to_string().contains("do not make an identity"), "{error}");
    let absent = client_with(showing("nothing.pem", "client.key"));
    let error = ask_with(&absent, start(true)).await.unwrap_err();
    assert!(error.to_string().contains("nothing.pem"), "{error}");
}
