//! Stream of a connection, with or without TLS.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::server::TlsStream;

/// Stream of a connection.
pub(super) enum ServerStream {
    Plain(TcpStream),
    ClientTls(Box<TlsStream<TcpStream>>),
}

macro_rules! with_stream {
    ($self:ident, $stream:ident => $done:expr) => {
        match $self.get_mut() {
            ServerStream::Plain(stream) => {
                let $stream = Pin::new(stream);
                $done
            }
            ServerStream::ClientTls(stream) => {
                let $stream = Pin::new(&mut **stream);
                $done
            }
        }
    };
}

impl AsyncRead for ServerStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        with_stream!(self, stream => stream.poll_read(cx, buffer))
    }
}

impl AsyncWrite for ServerStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        with_stream!(self, stream => stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        with_stream!(self, stream => stream.poll_write_vectored(cx, slices))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        with_stream!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        with_stream!(self, stream => stream.poll_shutdown(cx))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::ClientTls(stream) => stream.is_write_vectored(),
        }
    }
}
