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
pub(super) type TcpOrTls = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Connection to a server, or to a proxy that forwards requests to it.
pub(crate) struct OutboundStream {
    transport: TcpOrTls,
    is_forwarded: bool,
}

// === impl OutboundStream ===

impl OutboundStream {
    /// Connection on which the server itself answers, directly or through a tunnel.
    pub(super) const fn to_server(transport: TcpOrTls) -> Self {
        Self { transport, is_forwarded: false }
    }

    /// Connection to a proxy that reads each request and forwards it.
    pub(super) const fn to_proxy(transport: TcpOrTls) -> Self {
        Self { transport, is_forwarded: true }
    }

    fn transport(self: Pin<&mut Self>) -> Pin<&mut TcpOrTls> {
        Pin::new(&mut self.get_mut().transport)
    }
}

impl Connection for OutboundStream {
    fn connected(&self) -> Connected {
        self.transport.connected().proxy(self.is_forwarded)
    }
}

impl Read for OutboundStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.transport().poll_read(cx, buffer)
    }
}

impl Write for OutboundStream {
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
