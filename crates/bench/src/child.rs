//! Helpers for child processes: they report a loopback port to the parent and end with it.

use std::{
    convert::Infallible, error::Error, fmt::Display, future::Future, io::Write, net::SocketAddr, pin::pin,
};

use http::{Request, Response};
use hyper::{
    body::{Body, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    io,
    net::{TcpListener, TcpStream},
};

use crate::error::{BenchError, context};

/// A free port, not yet served.
pub(crate) struct ChildPort(TcpListener);

// === impl ChildPort ===

impl ChildPort {
    /// Takes a free port on loopback.
    pub(crate) async fn open() -> Result<Self, BenchError> {
        TcpListener::bind(("127.0.0.1", 0)).await.map(Self).map_err(context("no free loopback port"))
    }

    /// Address of the port.
    pub(crate) fn local_addr(&self) -> Result<SocketAddr, BenchError> {
        self.0.local_addr().map_err(context("the port has no address"))
    }

    /// Reports the address to the parent, then serves until the parent has ended.
    pub(crate) async fn serve<A, F, B>(self, answer: A) -> Result<(), BenchError>
    where
        A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Error: Into<Box<dyn Error + Send + Sync>>, Data: Send> + Send + 'static,
    {
        tell_parent(&self.local_addr()?)?;
        let mut gone = pin!(wait_for_parent_exit());
        loop {
            tokio::select! {
                accepted = self.0.accept() => {
                    let (stream, _) = accepted.map_err(context("the port was lost"))?;
                    tokio::spawn(serve_connection(stream, answer.clone()));
                }
                () = &mut gone => return Ok(()),
            }
        }
    }
}

/// Writes the line that the parent waits for.
pub(crate) fn tell_parent(what: &impl Display) -> Result<(), BenchError> {
    writeln!(std::io::stdout(), "{what}").map_err(context("the parent does not listen"))
}

/// Waits until the parent has ended: either way standard input closes.
pub(crate) async fn wait_for_parent_exit() {
    // A read error has the same meaning as the end of input.
    let _ = io::copy(&mut io::stdin(), &mut io::sink()).await;
}

async fn serve_connection<A, F, B>(stream: TcpStream, answer: A)
where
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<B>>,
    B: Body<Error: Into<Box<dyn Error + Send + Sync>>> + 'static,
{
    // A stream that does not take the option still works, only slower.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let response = answer(request);
        async { Ok::<_, Infallible>(response.await) }
    });
    // A client that hangs up is a client's right.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
