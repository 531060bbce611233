//! TLS of the server: HTTP/1.1 and HTTP/2, certificates that are replaced, and callers that come with one.

use std::{fs, net::SocketAddr, num::NonZero, path::Path, sync::Arc, time::Duration};

use axum::{Extension, Router, routing};
use http::{HeaderValue, header};
use rialto_http_client::{
    Config, HttpClient,
    fetch::{Fetch, FetchError},
};
use rialto_http_server::{
    admission::AdmissionLayer,
    auth::{Authentication, BearerAuthenticator, Config as AuthConfig, TokenCache, TrustedIssuers},
    host_check::HostCheck,
    listener::{
        ClientCertificate, ClientCertificateMode, ConnectionLimits, Deadlines, HttpListener, ServerTls,
        TlsConfig,
    },
    worker_threads::WorkerThreads,
};
use rialto_model::{
    call::Caller,
    clock::{Clock, SystemClock},
    store::TokenStore,
};
use rialto_store::SqliteStore;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use crate::{
    fixture::token,
    server::{get, text},
    tls::file,
};

/// A server with certificates of its own, which can be replaced.
struct TlsServer {
    address: SocketAddr,
    tls: Arc<ServerTls>,
    folder: TempDir,
}

// === impl TlsServer ===

impl TlsServer {
    async fn start(adapt: impl FnOnce(&mut TlsConfig)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), "server");
        let mut config = TlsConfig {
            cert: folder.path().join("cert.pem"),
            key: folder.path().join("key.pem"),
            client_ca: None,
            client_auth: ClientCertificateMode::Optional,
            clients: Vec::new(),
        };
        adapt(&mut config);
        let tls = Arc::new(ServerTls::open(config).unwrap());
        let deadlines = Deadlines { head: Duration::from_millis(300), ..Deadlines::default() };
        let listener = HttpListener::open("127.0.0.1:0").await.unwrap();
        let listener =
            listener.with_limits(deadlines, ConnectionLimits::default()).with_tls(Arc::clone(&tls));
        let (address, workers) =
            (listener.address(), WorkerThreads::start(NonZero::new(2).unwrap()).unwrap());
        let app = gate().await.wrap(Router::new().route(
            "/",
            routing::get(|version: http::Version, Extension(caller): Extension<Caller>| async move {
                format!("{version:?} {}@{}", caller.id, caller.scope.org)
            }),
        ));
        tokio::spawn(listener.serve(move |peer| app.with_peer(peer), workers, std::future::pending()));
        Self { address, tls, folder }
    }

    /// The answer to a client with this certificate, or this token.
    async fn ask(&self, ca: &str, own: Option<&str>, bearer: Option<&str>) -> Result<String, FetchError> {
        let identity = |end: &str| own.map(|name| file(&format!("{name}.{end}")));
        let client = HttpClient::new(&Config {
            ca_file: Some(file(ca)),
            client_cert: identity("pem"),
            client_key: identity("key"),
            ..Config::default()
        });
        let mut request = get(format!("https://localhost:{}/", self.address.port()).parse().unwrap());
        if let Some(bearer) = bearer {
            let value = HeaderValue::from_str(&format!("Bearer {bearer}")).unwrap();
            request = request.header(header::AUTHORIZATION, value);
        }
        Ok(text(client.fetch(request).await?).await)
    }

    /// A connection that speaks one of these protocols, and the one that was chosen.
    async fn connect(
        &self,
        ca: &str,
        protocols: &[&str],
    ) -> (tokio_rustls::client::TlsStream<TcpStream>, String) {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(file(ca)).unwrap() {
            roots.add(certificate.unwrap()).unwrap();
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        let chosen = stream.get_ref().1.alpn_protocol().unwrap_or_default().to_vec();
        (stream, String::from_utf8(chosen).unwrap())
    }
}

/// A gate for one token.
async fn gate() -> AdmissionLayer {
    let store = Arc::new(SqliteStore::in_memory(|_| Err("no cards here".into())).unwrap());
    store.put_token(&token("secret", "tess")).await.unwrap();
    let tokens = TokenCache::open(store, Vec::new()).await.unwrap();
    let clock = Arc::new(SystemClock) as Arc<dyn Clock>;
    let fetch = Arc::new(HttpClient::new(&Config::default())) as Arc<dyn Fetch>;
    let issuers = TrustedIssuers::new(AuthConfig::default(), &fetch, &clock).unwrap();
    AdmissionLayer::new(
        HostCheck::new(&[], 1_000),
        Authentication::Bearer(Arc::new(BearerAuthenticator::new(tokens, issuers, clock))),
    )
}

/// Puts a certificate and its key where the server looks for them.
fn put(folder: &Path, name: &str) {
    fs::copy(file(&format!("{name}.pem")), folder.join("cert.pem")).unwrap();
    fs::copy(file(&format!("{name}.key")), folder.join("key.pem")).unwrap();
}

fn client(certificate: &str, caller: &str) -> ClientCertificate {
    ClientCertificate {
        certificate: certificate.to_owned(),
        caller: caller.to_owned(),
        org: Some("acme".to_owned()),
        project: None,
        kind: rialto_http_server::auth::TokenCallerKind::Agent,
        scope: "call discover".to_owned(),
    }
}

/// One request over HTTP/1.1 on an open connection.
async fn exchange(stream: &mut tokio_rustls::client::TlsStream<TcpStream>) -> String {
    let request = "GET / HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer secret\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    while !text.ends_with("tess@default") {
        text.push(char::from(stream.read_u8().await.unwrap()));
    }
    text
}

#[tokio::test]
async fn clients_choose_between_http2_and_http1() {
    let server = TlsServer::start(|_| {}).await;
    assert_eq!(server.ask("ca.pem", None, Some("secret")).await.unwrap(), "HTTP/2.0 tess@default");
    let (mut stream, chosen) = server.connect("ca.pem", &["http/1.1"]).await;
    assert_eq!(chosen, "http/1.1");
    assert!(exchange(&mut stream).await.starts_with("HTTP/1.1 200"));
    assert_eq!(server.connect("ca.pem", &["h2", "http/1.1"]).await.1, "h2");
    assert_eq!(server.connect("ca.pem", &[]).await.1, "");
}

#[tokio::test]
async fn a_client_that_does_not_speak_tls_is_disconnected() {
    let server = TlsServer::start(|_| {}).await;
    for bytes in ["GET / HTTP/1.1\r\nhost: localhost\r\n\r\n", ""] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        let mut heard = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut heard)).await;
        let _ = read.expect("the server hangs up");
        assert!(!heard.starts_with(b"HTTP"), "{heard:?}");
    }
}

#[tokio::test]
async fn a_certificate_is_replaced_without_a_dropped_call() {
    let server = TlsServer::start(|_| {}).await;
    let (mut before, _) = server.connect("ca.pem", &["http/1.1"]).await;
    exchange(&mut before).await;
    assert!(!server.tls.is_outdated());
    put(server.folder.path(), "server2");
    assert!(server.tls.is_outdated());
    server.tls.reload().unwrap();
    assert!(!server.tls.is_outdated());
    assert!(exchange(&mut before).await.starts_with("HTTP/1.1 200"), "an open connection goes on");
    assert!(server.ask("ca2.pem", None, Some("secret")).await.unwrap().ends_with("tess@default"));
    assert!(server.ask("ca.pem", None, Some("secret")).await.is_err(), "the old one is gone");
}

#[tokio::test]
async fn files_that_cannot_be_used_change_nothing_and_are_named() {
    let server = TlsServer::start(|_| {}).await;
    fs::copy(file("server2.pem"), server.folder.path().join("cert.pem")).unwrap();
    let why = server.tls.reload().unwrap_err();
    assert!(why.contains("key.pem is not the private key of") && why.contains("cert.pem"), "{why}");
    fs::write(server.folder.path().join("cert.pem"), "nonsense").unwrap();
    let why = server.tls.reload().unwrap_err();
    assert!(why.contains("[server.tls] cert") && why.contains("no certificate"), "{why}");
    assert!(server.ask("ca.pem", None, Some("secret")).await.is_ok());
}

#[tokio::test]
async fn a_certificate_of_a_client_stands_for_its_caller() {
    let server = TlsServer::start(|config| {
        config.client_ca = Some(file("client-ca.pem"));
        config.clients = vec![client("rialto", "ci")];
    })
    .await;
    let ask = |own, bearer| server.ask("ca.pem", own, bearer);
    assert_eq!(ask(Some("client"), None).await.unwrap(), "HTTP/2.0 ci@acme");
    assert_eq!(
        ask(Some("client"), Some("secret")).await.unwrap(),
        "HTTP/2.0 tess@default",
        "a token counts more"
    );
    let wrong = ask(Some("client"), Some("wrong")).await.unwrap();
    assert!(wrong.contains("not known"), "a wrong token is not made up for: {wrong}");
    assert!(ask(None, None).await.unwrap().contains("unauthenticated"));
    assert_eq!(ask(None, Some("secret")).await.unwrap(), "HTTP/2.0 tess@default");
}

#[tokio::test]
async fn without_a_certificate_there_is_no_connection_where_one_is_required() {
    let fingerprint = {
        let der = CertificateDer::from_pem_file(file("client.pem")).unwrap();
        let digits: String = Sha256::digest(&der).iter().map(|byte| format!("{byte:02X}")).collect();
        format!("sha256:{digits}")
    };
    let server = TlsServer::start(|config| {
        config.client_ca = Some(file("client-ca.pem"));
        config.client_auth = ClientCertificateMode::Required;
        config.clients = vec![client(&fingerprint, "ci")];
    })
    .await;
    assert_eq!(server.ask("ca.pem", Some("client"), None).await.unwrap(), "HTTP/2.0 ci@acme");
    // Signed by the same authority, but not in the table.
    assert!(server.ask("ca.pem", Some("client2"), None).await.unwrap().contains("unauthenticated"));
    assert!(server.ask("ca.pem", None, Some("secret")).await.is_err());
}

#[test]
fn a_table_of_clients_that_cannot_be_used_is_refused() {
    let config = |adapt: fn(&mut TlsConfig)| {
        let mut config = TlsConfig {
            cert: file("server.pem"),
            key: file("server.key"),
            client_ca: Some(file("client-ca.pem")),
            client_auth: ClientCertificateMode::Optional,
            clients: vec![client("rialto", "ci")],
        };
        adapt(&mut config);
        ServerTls::open(config).err().unwrap_or_default()
    };
    assert_eq!(config(|_| {}), "");
    for (adapt, word) in [
        ((|config| config.client_ca = None) as fn(&mut TlsConfig), "client_ca"),
        (|config| config.clients[0].scope = "everything".to_owned(), "\"everything\" is not one of"),
        (|config| config.clients[0].certificate = "sha256:12".to_owned(), "64 hexadecimal digits"),
        (|config| config.cert = "nothing.pem".into(), "nothing.pem"),
        (|config| config.key = "nothing.key".into(), "nothing.key"),
    ] {
        let why = config(adapt);
        assert!(why.contains(word), "{why}");
    }
}
