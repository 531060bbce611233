//! Servers that live as long as a test.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{Router, serve::ListenerExt};
use http::{Method, Uri};
use rialto_http_client::{
    Config, HttpClient,
    address::Reach,
    fetch::{Fetch, FetchError, FetchRequest, FetchResponse},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// A running server and how many connections it has taken.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) async fn start(router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let listener = listener.tap_io(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, connections }
    }

    /// A server that answers each connection's first request with `bytes` and hangs up.
    pub(crate) async fn raw(bytes: &'static [u8]) -> Self {
        Self::handling(move |mut stream| async move {
            read_head(&mut stream).await;
            stream.write_all(bytes).await.unwrap();
        })
        .await
    }

    /// A server that answers every request with `bytes` and waits for the next.
    pub(crate) async fn repeating(bytes: &'static [u8]) -> Self {
        Self::handling(move |mut stream| async move {
            while read_head(&mut stream).await.is_some() {
                stream.write_all(bytes).await.unwrap();
            }
        })
        .await
    }

    /// Server that handles each connection with a function.
    pub(crate) async fn handling<D>(deal: impl Fn(TcpStream) -> D + Send + 'static) -> Self
    where
        D: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(deal(stream));
            }
        });
        Self { address, connections }
    }

    /// Number of accepted connections.
    pub(crate) fn accepted(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn uri(&self, path: &str) -> Uri {
        format!("http://{}{path}", self.address).parse().unwrap()
    }
}

/// Head of the next request; none when there is no more.
pub(crate) async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(head).unwrap())
}

pub(crate) fn get(uri: Uri) -> FetchRequest {
    let mut request = FetchRequest::new(Method::GET, uri);
    request.reach = Reach::Private;
    request
}

pub(crate) fn client() -> HttpClient {
    HttpClient::new(&Config::default())
}

pub(crate) async fn fetch(request: FetchRequest) -> Result<FetchResponse, FetchError> {
    client().fetch(request).await
}

pub(crate) async fn text(response: FetchResponse) -> String {
    String::from_utf8(response.body.read().await.unwrap().to_vec()).unwrap()
}
