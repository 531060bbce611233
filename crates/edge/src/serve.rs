//! Starts a listener and stops it without cutting anyone off.

use std::{convert::Infallible, future::Future, io, net::SocketAddr};

use axum::{ServiceExt, extract::Request, response::Response, serve::ListenerExt};
use tokio::net::TcpListener;
use tower::Service;

/// A bound listener: its port is known, nobody is served yet.
pub struct Door {
    listener: TcpListener,
    address: SocketAddr,
}

/// Why nothing could be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}; choose another address or stop what listens there")]
pub struct BindError {
    address: String,
    source: io::Error,
}

// === impl Door ===

impl Door {
    /// Binds `address` (`host:port`; port 0 takes any free one).
    pub async fn open(address: &str) -> Result<Self, BindError> {
        let bound = async {
            let listener = TcpListener::bind(address).await?;
            let address = listener.local_addr()?;
            Ok(Self { listener, address })
        };
        bound.await.map_err(|source| BindError { address: address.to_owned(), source })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves `app` until `stop` is done; then takes no more requests and returns when the open ones are answered.
    pub async fn serve<A>(self, app: A, stop: impl Future<Output = ()> + Send + 'static) -> io::Result<()>
    where
        A: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
        A::Future: Send,
    {
        let listener = self.listener.tap_io(|stream| {
            // A stream that does not take the option still works, only slower.
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, app.into_make_service()).with_graceful_shutdown(stop).await
    }
}
