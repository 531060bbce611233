//! Bare proxy that forwards bytes: the baseline for Rialto's cost.

use std::net::SocketAddr;

use http::{Request, Response, StatusCode, Uri, uri::Scheme};
use http_body_util::{Either, Empty};
use hyper::body::{Bytes, Incoming};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};

use crate::{child::ChildPort, error::BenchError};

type ProxyClient = Client<HttpConnector, Incoming>;
type ProxyBody = Either<Incoming, Empty<Bytes>>;

/// Forwards everything to `to` until the parent is gone.
pub(crate) async fn serve(to: SocketAddr) -> Result<(), BenchError> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let pool = Client::builder(TokioExecutor::new()).build(connector);
    ChildPort::open().await?.serve(move |request| forward(pool.clone(), request, to)).await
}

async fn forward(pool: ProxyClient, mut request: Request<Incoming>, to: SocketAddr) -> Response<ProxyBody> {
    let Some(uri) = rewrite_uri(request.uri(), to) else { return bad_gateway() };
    *request.uri_mut() = uri;
    match pool.request(request).await {
        Ok(response) => response.map(Either::Left),
        Err(_) => bad_gateway(),
    }
}

fn rewrite_uri(uri: &Uri, to: SocketAddr) -> Option<Uri> {
    let mut parts = uri.clone().into_parts();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = to.to_string().parse().ok();
    Uri::from_parts(parts).ok()
}

fn bad_gateway() -> Response<ProxyBody> {
    let mut response = Response::new(Either::Right(Empty::new()));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}
