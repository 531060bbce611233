//! One HTTP/1 connection, driven by whoever uses it.
//!
//! A connection of hyper has to be driven: it is a future that reads and writes. Usually a task of its own does that,
//! and then each exchange is handed to another task and back, with a wake-up each way. Here the future that makes an
//! exchange drives the connection too, and the body that is being read does so after it. Nobody drives a connection
//! that nobody uses, so whoever takes it next looks first whether it still stands.
//!
//! All of this happens in one task. What hyper's halves have to tell each other is looked for right after the
//! connection was driven and needs no waking, so they are polled with a waker that does nothing; and so is the
//! connection, until it turns out that there is something to wait for. A task that wakes itself would be run once more
//! for nothing.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::{
        TrySendError,
        http1::{self, Connection, SendRequest},
    },
};
use tokio::task::coop::unconstrained;

use crate::connect::Stream;

/// What is sent.
pub(crate) type Message = http::Request<Full<Bytes>>;

/// A connection.
pub(crate) struct Link {
    sender: SendRequest<Full<Bytes>>,
    /// None when it has come to its end.
    connection: Option<Connection<Stream, Full<Bytes>>>,
}

// === impl Link ===

impl Link {
    pub(crate) async fn over(stream: Stream) -> hyper::Result<Self> {
        let (sender, connection) = http1::handshake(stream).await?;
        Ok(Self { sender, connection: Some(connection) })
    }

    /// Sends `message` and waits for the headers of the answer. A message that was not even begun comes back.
    pub(crate) async fn send(
        &mut self,
        message: Message,
    ) -> Result<http::Response<Incoming>, TrySendError<Message>> {
        // Without a budget, because a future that is out of budget would ask our silent waker for its next turn.
        let mut answer = pin!(unconstrained(self.sender.try_send_request(message)));
        poll_fn(|cx| self.drive(cx, |cx| answer.as_mut().poll(cx))).await
    }

    /// Drives the connection until `part` of an exchange is there. When the connection ends, every part is told so.
    pub(crate) fn drive<T>(
        &mut self,
        cx: &Context<'_>,
        mut part: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        for waker in [Waker::noop(), cx.waker()] {
            self.step(waker);
            let found = part(&mut Context::from_waker(Waker::noop()));
            if found.is_ready() {
                return found;
            }
        }
        Poll::Pending
    }

    /// Does what can be done at once.
    pub(crate) fn advance(&mut self) {
        self.step(Waker::noop());
    }

    /// Whether it has come to its end.
    pub(crate) const fn is_over(&self) -> bool {
        self.connection.is_none()
    }

    /// Whether the last exchange is complete and another may follow.
    pub(crate) fn is_idle(&self) -> bool {
        !self.is_over() && self.sender.is_ready()
    }

    fn step(&mut self, waker: &Waker) {
        if let Some(connection) = &mut self.connection
            && Pin::new(connection).poll(&mut Context::from_waker(waker)).is_ready()
        {
            // What is left of the exchange learns of the end by this.
            self.connection = None;
        }
    }
}
