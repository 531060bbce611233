//! Through a proxy: what it is asked, and what it is not asked for.

use std::{net::IpAddr, sync::Arc};

use http::Method;
use rialto_http_client::{
    ClientEnv, Config, HttpClient,
    fetch::{Fetch, FetchError, FetchRequest},
    proxy::ProxyRules,
};
use tokio::{
    io::{AsyncWriteExt, copy_bidirectional},
    net::TcpStream,
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
};

use crate::{
    server::{Server, read_head, text},
    tls,
};

/// A proxy that answers plain requests itself, leads tunnels to this machine, and tells what it heard.
pub(crate) async fn proxy() -> (Server, UnboundedReceiver<String>) {
    let (tell, told) = unbounded_channel();
    let server = Server::handling(move |mut stream| {
        let tell = tell.clone();
        async move {
            while let Some(head) = read_head(&mut stream).await {
                tell.send(head.clone()).unwrap();
                let Some(place) = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next())
                else {
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nproxy").await.unwrap();
                    continue;
                };
                let port = place.rsplit(':').next().unwrap().parse::<u16>().unwrap();
                let mut there = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await.unwrap();
                let _ = copy_bidirectional(&mut stream, &mut there).await;
                return;
            }
        }
    })
    .await;
    (server, told)
}

/// A client that goes through the proxy, and knows two names.
pub(crate) fn client(proxy: &Server, config: &Config) -> HttpClient {
    let address = proxy.address;
    let proxies = ProxyRules::from_env(move |name| {
        (name == "ALL_PROXY").then(|| format!("http://me:hunter2@{address}"))
    });
    let resolver: rialto_http_client::DnsResolver = Arc::new(|name| {
        let found: Result<Vec<IpAddr>, _> = match name {
            "inner.example" => Ok(vec![[10, 0, 0, 7].into()]),
            "outer.example" => Ok(vec![[1, 1, 1, 1].into()]),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        };
        Box::pin(std::future::ready(found))
    });
    HttpClient::with_env(config, ClientEnv { proxies, resolver: Some(resolver) })
}

async fn ask(client: &HttpClient, uri: &str) -> Result<String, FetchError> {
    Ok(text(client.fetch(FetchRequest::new(Method::GET, uri.parse().unwrap())).await?).await)
}

#[tokio::test]
async fn a_proxy_receives_the_whole_address_and_our_login() {
    let (server, mut told) = proxy().await;
    let client = client(&server, &Config::default());
    for _ in 0..2 {
        assert_eq!(ask(&client, "http://outer.example/x?y").await.unwrap(), "proxy");
        let head = told.recv().await.unwrap().to_lowercase();
        assert!(head.starts_with("get http://outer.example/x?y http/1.1\r\n"), "{head}");
        assert!(head.contains("\r\nproxy-authorization: basic bwu6ahvudgvymg==\r\n"), "{head}");
        assert!(head.contains("\r\nhost: outer.example\r\n"), "{head}");
    }
    assert_eq!(server.accepted(), 1, "the connection is kept");
}

#[tokio::test]
async fn an_encrypted_connection_goes_through_a_tunnel() {
    let (server, mut told) = proxy().await;
    let inside = tls::start(false);
    let config = Config { ca_file: Some(tls::file("ca.pem")), ..Config::default() };
    // The certificate is for localhost, and localhost is called directly: so the tunnel is found out by whose it is.
    let client = client(&server, &config);
    let error = ask(&client, &format!("https://outer.example:{}/", inside.port())).await.unwrap_err();
    assert!(error.to_string().contains("certificate not valid for name \"outer.example\""), "{error}");
    let head = told.recv().await.unwrap();
    assert!(head.starts_with(&format!("CONNECT outer.example:{} HTTP/1.1\r\n", inside.port())), "{head}");
    assert!(head.contains("Proxy-Authorization: Basic bWU6aHVudGVyMg==\r\n"), "{head}");
}

#[tokio::test]
async fn a_forbidden_address_is_not_called_through_a_proxy_either() {
    let (server, mut told) = proxy().await;
    let client = client(&server, &Config::default());
    for host in ["10.0.0.1", "169.254.169.254", "[::ffff:10.0.0.1]", "2852039166", "inner.example"] {
        for scheme in ["http", "https"] {
            let error = ask(&client, &format!("{scheme}://{host}/")).await.unwrap_err();
            assert!(matches!(error, FetchError::Forbidden(_)), "{scheme}://{host}: {error:?}");
        }
    }
    let error = ask(&client, "http://outer.example:22/").await.unwrap_err();
    assert!(matches!(error, FetchError::Forbidden(_)), "{error:?}");
    // A name that only the proxy knows is the proxy's to judge.
    assert_eq!(ask(&client, "http://only.there.example/").await.unwrap(), "proxy");
    assert!(told.recv().await.unwrap().starts_with("GET http://only.there.example/"));
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn a_proxy_that_does_not_let_us_through_is_named() {
    for (answer, words) in [
        (b"HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n".as_slice(), "wants a login"),
        (b"HTTP/1.1 502 No\r\ncontent-length: 0\r\n\r\n", "does not lead to outer.example:443"),
        (b"", "the proxy 127.0.0.1"),
    ] {
        let server = Server::raw(answer).await;
        let client = client(&server, &Config::default());
        let error = ask(&client, "https://outer.example/").await.unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains("hunter2"), "{error}");
    }
    let server = Server::raw(b"HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n").await;
    let error = ask(&client(&server, &Config::default()), "http://outer.example/").await.unwrap_err();
    assert!(error.to_string().contains("wants a login"), "{error}");
}

#[tokio::test]
async fn this_machine_is_called_directly() {
    let (server, _told) = proxy().await;
    let inside = tls::start(false);
    let config = Config { ca_file: Some(tls::file("ca.pem")), ..Config::default() };
    let client = client(&server, &config);
    let mut request =
        FetchRequest::new(Method::GET, format!("https://127.0.0.1:{}/", inside.port()).parse().unwrap());
    request.reach = rialto_http_client::address::Reach::Private;
    let _ = client.fetch(request).await;
    assert_eq!(server.accepted(), 0);
}
