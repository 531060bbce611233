//! What our own child processes share: a loopback port told to the parent, and an end when the parent ends.

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

use crate::trouble::{Trouble, during};

/// A free port, not yet served.
pub(crate) struct Port(TcpListener);

// === impl Port ===

impl Port {
    /// Takes a free port on loopback.
    pub(crate) async fn open() -> Result<Self, Trouble> {
        TcpListener::bind(("127.0.0.1", 0)).await.map(Self).map_err(during("no free loopback port"))
    }

    /// Where it is.
    pub(crate) fn address(&self) -> Result<SocketAddr, Trouble> {
        self.0.local_addr().map_err(during("the port has no address"))
    }

    /// Tells the parent the address, then answers until the parent is gone.
    pub(crate) async fn serve<A, F, B>(self, answer: A) -> Result<(), Trouble>
    where
        A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Error: Into<Box<dyn Error + Send + Sync>>, Data: Send> + Send + 'static,
    {
        tell_parent(&self.address()?)?;
        let mut gone = pin!(parent_gone());
        loop {
            tokio::select! {
                accepted = self.0.accept() => {
                    let (stream, _) = accepted.map_err(during("the port was lost"))?;
                    tokio::spawn(attend(stream, answer.clone()));
                }
                () = &mut gone => return Ok(()),
            }
        }
    }
}

/// Says the one thing the parent waits for.
pub(crate) fn tell_parent(what: &impl Display) -> Result<(), Trouble> {
    writeln!(std::io::stdout(), "{what}").map_err(during("the parent does not listen"))
}

/// Waits until the parent has ended or let go of us: either way our standard input closes.
pub(crate) async fn parent_gone() {
    // An input that cannot be read says the same as one that is closed.
    let _ = io::copy(&mut io::stdin(), &mut io::sink()).await;
}

async fn attend<A, F, B>(stream: TcpStream, answer: A)
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
