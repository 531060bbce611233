//! Starts a listener and stops it without cutting anyone off.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    io,
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{body::Body, extract::Request, response::Response};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{rt::TokioIo, server::conn::auto::Builder};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::Service;

use crate::lanes::{Lanes, after_the_others};

/// How long nobody is let in when the system has no room for one more.
const FULL: Duration = Duration::from_secs(1);

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

/// The connections that are open, and the word that they shall come to an end.
#[derive(Clone, Default)]
struct Open {
    connections: TaskTracker,
    is_over: Arc<AtomicBool>,
    over: CancellationToken,
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

    /// Serves what `app_for` makes for each connection from an address, on `lanes`, until `stop` is done; then takes no more
    /// requests and returns when the open ones are answered.
    pub async fn serve<A>(
        self,
        app_for: impl Fn(IpAddr) -> A,
        lanes: Lanes,
        stop: impl Future<Output = ()> + Send,
    ) where
        A: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
        A::Future: Send,
    {
        let (open, mut stop) = (Open::default(), pin!(stop));
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = &mut stop => break,
            };
            match accepted {
                Ok((stream, peer)) => open.begin(stream, app_for(peer.ip()), &lanes),
                Err(error) if is_gone(&error) => {}
                Err(error) => {
                    tracing::error!(
                        "no connection could be taken: {error}; is the limit of open files too low?"
                    );
                    tokio::time::sleep(FULL).await;
                }
            }
        }
        drop(self.listener);
        open.end().await;
    }
}

// === impl Open ===

impl Open {
    /// Has a connection served on one of the lanes.
    fn begin<A>(&self, stream: TcpStream, app: A, lanes: &Lanes)
    where
        A: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
        A::Future: Send,
    {
        // A stream that does not take the option still works, only slower.
        let _ = stream.set_nodelay(true);
        // It is heard on the lane's own thread from now on.
        let (Some((lane, seat)), Ok(stream)) = (lanes.emptiest(), stream.into_std()) else { return };
        let (open, lanes) = (self.clone(), lanes.clone());
        let connection = async move {
            if let Ok(stream) = TcpStream::from_std(stream) {
                serve_one(stream, app, lanes, open).await;
            }
            drop(seat);
        };
        self.connections.spawn_on(connection, lane);
    }

    async fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.over.cancel();
        self.connections.close();
        self.connections.wait().await;
    }
}

/// Whether it is only the one who wanted to come in that is gone again.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn serve_one<A>(stream: TcpStream, app: A, lanes: Lanes, open: Open)
where
    A: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    A::Future: Send,
{
    // What is served here is always ready, so it need not be asked whether it is.
    let app = service_fn(move |request: http::Request<Incoming>| {
        let answer = app.clone().call(request.map(Body::new));
        async move {
            let answer = answer.await;
            after_the_others().await;
            answer
        }
    });
    let builder = Builder::new(lanes);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), app));
    let (mut over, mut listens, mut is_told) = (pin!(open.over.cancelled()), false, false);
    let served = poll_fn(|cx| {
        // It has to be asked for once, to be woken; asked at every turn of each connection it would be a lock that all share.
        if !listens {
            listens = true;
            let _ = over.as_mut().poll(cx);
        }
        if !is_told && open.is_over.load(Ordering::Acquire) {
            is_told = true;
            connection.as_mut().graceful_shutdown();
        }
        connection.as_mut().poll(cx)
    });
    if let Err(error) = served.await {
        tracing::trace!("a connection ended: {error}");
    }
}
