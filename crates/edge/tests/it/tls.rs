use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    path::Path,
    sync::Arc,
    thread,
};

use rialto_edge::{
    client::{Client, Config},
    fetch::{Fetch, FetchError},
};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use crate::server::{get, text};

fn file(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/tls").join(name)
}

/// A server with a certificate for `localhost` that answers one request per connection.
fn start() -> SocketAddr {
    let chain = vec![CertificateDer::from_pem_file(file("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream.unwrap());
            let mut buffer = [0; 4096];
            if stream.read(&mut buffer).is_ok() {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret");
            }
        }
    });
    address
}

async fn ask(ca_file: Option<&str>) -> Result<String, FetchError> {
    let client = Client::new(&Config { ca_file: ca_file.map(file), ..Config::default() });
    let uri = format!("https://localhost:{}/", start().port()).parse().unwrap();
    Ok(text(client.fetch(get(uri)).await?).await)
}

#[tokio::test]
async fn a_server_with_a_known_authority_is_trusted() {
    assert_eq!(ask(Some("ca.pem")).await.unwrap(), "secret");
}

#[tokio::test]
async fn a_server_with_an_unknown_authority_is_not_trusted() {
    let error = ask(None).await.unwrap_err();
    assert!(error.surely_not_sent());
    assert!(error.to_string().starts_with("no encrypted connection to localhost:"), "{error}");
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
}

#[tokio::test]
async fn a_missing_authority_file_is_named() {
    let error = ask(Some("nothing.pem")).await.unwrap_err();
    assert!(error.to_string().contains("nothing.pem"), "{error}");
}
