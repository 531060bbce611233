//! Outbound connection, with the property of it that hyper's client asks for: whether a proxy forwards its requests.
//!
//! A forwarding proxy reads the whole address from the first line of a request (RFC 9112, 3.2.2), a server its path only.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use tokio::net::TcpStream;

/// TCP connection, encrypted or not.
pub(super) type Transport = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Connection to a server, or to a proxy that forwards requests to it.
pub(crate) struct Stream {
    transport: Transport,
    is_forwarded: bool,
}

// === impl Stream ===

impl Stream {
    /// Connection on which the server itself answers, directly or through a tunnel.
    pub(super) const fn to_server(transport: Transport) -> Self {
        Self { transport, is_forwarded: false }
    }

    /// Connection to a proxy that reads each request and forwards it.
    pub(super) const fn to_proxy(transport: Transport) -> Self {
        Self { transport, is_forwarded: true }
    }

    fn transport(self: Pin<&mut Self>) -> Pin<&mut Transport> {
        Pin::new(&mut self.get_mut().transport)
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        self.transport.connected().proxy(self.is_forwarded)
    }
}

impl Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.transport().poll_read(cx, buffer)
    }
}

impl Write for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.transport().poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.transport().poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.transport.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.transport().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.transport().poll_shutdown(cx)
    }
}
