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
use rialto_edge::{
    address::Reach,
    client::{Client, Config},
    fetch::{Fetch, FetchError, Request, Response},
};
use tokio::{io::AsyncReadExt, io::AsyncWriteExt, net::TcpListener};

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
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut buffer = [0; 4096];
                let _ = stream.read(&mut buffer).await;
                let _ = stream.write_all(bytes).await;
            }
        });
        Self { address, connections: Arc::default() }
    }

    pub(crate) fn uri(&self, path: &str) -> Uri {
        format!("http://{}{path}", self.address).parse().unwrap()
    }
}

pub(crate) fn get(uri: Uri) -> Request {
    let mut request = Request::new(Method::GET, uri);
    request.reach = Reach::Private;
    request
}

pub(crate) fn client() -> Client {
    Client::new(&Config::default())
}

pub(crate) async fn fetch(request: Request) -> Result<Response, FetchError> {
    client().fetch(request).await
}

pub(crate) async fn text(response: Response) -> String {
    String::from_utf8(response.body.read().await.unwrap().to_vec()).unwrap()
}
