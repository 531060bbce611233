//! HTTP/2 from the first byte on, as gRPC wants it: under the same rules as all else that leaves.

use std::sync::{Arc, atomic::Ordering};

use axum::{Router, body::Body, extract::Request as Incoming, routing};
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version};
use http_body::Frame;
use http_body_util::StreamBody;
use hyper_util::{rt::TokioExecutor, rt::TokioIo, server::conn::auto, service::TowerToHyperService};
use rialto_http_client::{
    Config, HttpClient,
    address::Reach,
    fetch::{Fetch, FetchError, FetchRequest},
};
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::{
    proxies,
    server::{Server, client, text},
    tls,
};

const TRAILER: HeaderName = HeaderName::from_static("grpc-status");

/// Responds with the HTTP version, and a trailer.
fn router() -> Router {
    Router::new().fallback(routing::any(|request: Incoming| async move {
        let said = format!("{:?} {}", request.version(), request.uri().authority().is_some());
        let trailers = HeaderMap::from_iter([(TRAILER, HeaderValue::from_static("0"))]);
        let frames = [Frame::data(Bytes::from(said)), Frame::trailers(trailers)];
        Body::new(StreamBody::new(stream::iter(frames.map(Ok::<_, std::io::Error>))))
    }))
}

fn post(uri: Uri) -> FetchRequest {
    let mut request = FetchRequest::new(Method::POST, uri);
    request.reach = Reach::Private;
    request.http2 = true;
    request
}

/// Server behind TLS, for `localhost`, which speaks both versions.
async fn encrypted() -> std::net::SocketAddr {
    let chain = vec![CertificateDer::from_pem_file(tls::file("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(tls::file("server.key")).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap();
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, service) = (acceptor.clone(), TowerToHyperService::new(router()));
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let server = auto::Builder::new(TokioExecutor::new());
                let _ = server.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    address
}

#[tokio::test]
async fn http_2_without_tls_is_used_only_on_request() {
    let server = Server::start(router()).await;
    let client = client();
    let answer = client.fetch(post(server.uri("/"))).await.unwrap();
    assert_eq!(text(answer).await, format!("{:?} true", Version::HTTP_2));
    let usual = FetchRequest { http2: false, ..post(server.uri("/")) };
    assert_eq!(text(client.fetch(usual).await.unwrap()).await, format!("{:?} false", Version::HTTP_11));
}

#[tokio::test]
async fn trailers_can_be_read_at_the_end_of_a_body() {
    let server = Server::start(router()).await;
    let mut body = client().fetch(post(server.uri("/"))).await.unwrap().body;
    assert!(body.chunk().await.unwrap().is_some());
    assert!(body.trailers().is_none());
    assert!(body.chunk().await.unwrap().is_none());
    assert_eq!(body.trailers().unwrap()[TRAILER], "0");
}

#[tokio::test]
async fn requests_at_the_same_time_share_a_connection() {
    let server = Server::start(router()).await;
    let client = client();
    text(client.fetch(post(server.uri("/"))).await.unwrap()).await;
    let all = (0..20).map(|_| async { text(client.fetch(post(server.uri("/"))).await.unwrap()).await });
    assert_eq!(futures::future::join_all(all).await.len(), 20);
    assert_eq!(server.connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_private_address_is_refused_unless_it_is_meant() {
    let server = Server::start(router()).await;
    let client = client();
    text(client.fetch(post(server.uri("/"))).await.unwrap()).await;
    for uri in [server.uri("/"), "http://localhost:9/".parse().unwrap()] {
        let error = client.fetch(FetchRequest { reach: Reach::Public, ..post(uri) }).await.unwrap_err();
        assert!(matches!(error, FetchError::Forbidden(_)), "{error}");
    }
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn a_server_that_speaks_only_http_1_is_said_to_hang_up() {
    let server = Server::raw(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
    let error = client().fetch(post(server.uri("/"))).await.unwrap_err();
    assert!(!matches!(error, FetchError::Forbidden(_) | FetchError::Timeout(_)), "{error}");
}

#[tokio::test]
async fn it_is_encrypted_where_the_address_says_so() {
    let address = encrypted().await;
    let client = HttpClient::new(&Config { ca_file: Some(tls::file("ca.pem")), ..Config::default() });
    let uri: Uri = format!("https://localhost:{}/", address.port()).parse().unwrap();
    let answer = client.fetch(post(uri.clone())).await.unwrap();
    assert_eq!(text(answer).await, format!("{:?} true", Version::HTTP_2));
    let error = self::client().fetch(post(uri)).await.unwrap_err();
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
}

#[tokio::test]
async fn it_is_spoken_wherever_an_encrypted_server_offers_it() {
    let address = encrypted().await;
    let client = HttpClient::new(&Config { ca_file: Some(tls::file("ca.pem")), ..Config::default() });
    let uri: Uri = format!("https://localhost:{}/", address.port()).parse().unwrap();
    let usual = FetchRequest { http2: false, ..post(uri) };
    assert_eq!(text(client.fetch(usual).await.unwrap()).await, format!("{:?} true", Version::HTTP_2));
}

#[tokio::test]
async fn a_proxy_leads_to_it_through_a_tunnel() {
    let (server, mut told) = proxies::proxy().await;
    let inside = Server::start(router()).await;
    let client = proxies::client(&server, &Config::default());
    let uri = format!("http://outer.example:{}/", inside.address.port()).parse().unwrap();
    let answer = client.fetch(FetchRequest { reach: Reach::Public, ..post(uri) }).await.unwrap();
    assert_eq!(text(answer).await, format!("{:?} true", Version::HTTP_2));
    let head = told.recv().await.unwrap();
    let port = inside.address.port();
    assert!(head.starts_with(&format!("CONNECT outer.example:{port} HTTP/1.1\r\n")), "{head}");
}
