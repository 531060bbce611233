//! Starts a listener and stops it without cutting anyone off.

use std::{
    convert::Infallible,
    future::{Future, ready},
    io,
    net::{IpAddr, SocketAddr},
};

use axum::{
    extract::Request,
    response::Response,
    serve::{IncomingStream, ListenerExt, TapIo},
};
use tokio::net::{TcpListener, TcpStream};
use tower::{Service, service_fn};

/// What connections come from.
type Listener = TapIo<TcpListener, fn(&mut TcpStream)>;

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
        A: Service<Request, Response = Response, Error = Infallible> + Clone + Send + Sync + 'static,
        A::Future: Send,
    {
        self.serve_each(move |_| app.clone(), stop).await
    }

    /// The same, with what `app_for` makes for each connection from an address.
    pub async fn serve_each<A>(
        self,
        app_for: impl Fn(IpAddr) -> A + Clone + Send + Sync + 'static,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()>
    where
        A: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
        A::Future: Send,
    {
        let without_delay: fn(&mut TcpStream) = |stream| {
            // A stream that does not take the option still works, only slower.
            let _ = stream.set_nodelay(true);
        };
        let for_each = service_fn(move |stream: IncomingStream<'_, Listener>| {
            ready(Ok::<_, Infallible>(app_for(stream.remote_addr().ip())))
        });
        axum::serve(self.listener.tap_io(without_delay), for_each).with_graceful_shutdown(stop).await
    }
}
