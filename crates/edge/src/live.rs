//! The body of an answer while it comes in.

use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http_body::{Body, Frame};
use hyper::body::Incoming;

use crate::pool::Loan;

/// A body on its way in, with the connection it comes from, unless somebody else drives that.
pub(crate) struct Live {
    incoming: Incoming,
    loan: Option<Loan>,
}

// === impl Live ===

impl Live {
    pub(crate) fn new(incoming: Incoming, loan: Option<Loan>) -> Self {
        let mut live = Self { incoming, loan };
        live.settle();
        live
    }

    /// How many more bytes will come at least, as far as is known.
    pub(crate) fn announced(&self) -> usize {
        usize::try_from(self.incoming.size_hint().lower()).unwrap_or(usize::MAX)
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self { incoming, loan } = self;
        let mut incoming = Pin::new(incoming);
        let Some(lent) = loan else { return incoming.poll_frame(cx) };
        let mut frame = incoming.as_mut().poll_frame(&mut Context::from_waker(Waker::noop()));
        if frame.is_pending() {
            frame = lent.link.drive(cx, |cx| incoming.as_mut().poll_frame(cx));
        }
        if frame.is_ready() {
            // The end often comes with the last piece, and not everybody who has that reads on.
            lent.link.advance();
            self.settle();
        }
        frame
    }

    /// Gives the connection back as soon as all of the answer is here, read or not.
    fn settle(&mut self) {
        if let Some(loan) = self.loan.take_if(|loan| loan.link.is_idle() || loan.link.is_over()) {
            loan.give_back();
        }
    }
}
