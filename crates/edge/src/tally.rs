//! What came to a gate, in numbers: requests by door and status, refusals by reason.
//!
//! Every request counts itself, so it is a few counters that are there from the beginning, and nothing to look up or to
//! allocate. Whoever shows them to somebody reads them.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use pin_project_lite::pin_project;

use crate::{refusal::revoked, revocable::TokenHold};

/// The classes of statuses, as they are told.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Why requests are turned away at a gate.
const REASONS: [&str; 12] = [
    "host-not-allowed",
    "origin-not-allowed",
    "too-large",
    "not-found",
    "no-token",
    "bad-token",
    "malformed-token",
    "insufficient-scope",
    "unavailable",
    "too-many-requests",
    "too-many-attempts",
    "draining",
];

/// What goes to no door that has a name.
const ELSEWHERE: &str = "other";

/// Counts what comes to a gate.
#[derive(Debug)]
pub struct Tally {
    doors: Vec<Count>,
    refused: [AtomicU64; REASONS.len()],
}

pin_project! {
    /// An answer under way. It is counted when it comes.
    pub struct Counted<F> {
        #[pin]
        answer: F,
        tally: Arc<Tally>,
        door: usize,
        hold: Option<TokenHold>,
    }
}

/// One door's answers, by class.
#[derive(Debug)]
struct Count {
    door: &'static str,
    answered: [AtomicU64; CLASSES.len()],
}

// === impl Tally ===

impl Tally {
    /// Counts by these doors, and one for whatever goes elsewhere.
    pub(crate) fn new(doors: impl IntoIterator<Item = &'static str>) -> Self {
        let doors = doors.into_iter().chain([ELSEWHERE]);
        let doors = doors.map(|door| Count { door, answered: Default::default() }).collect();
        Self { doors, refused: Default::default() }
    }

    /// How many requests were answered: door, class of status, number.
    pub fn requests(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + '_ {
        self.doors.iter().flat_map(|count| {
            let each = CLASSES.iter().zip(&count.answered);
            each.map(|(class, answered)| (count.door, *class, answered.load(Ordering::Relaxed)))
        })
    }

    /// How many requests were turned away: reason, number.
    pub fn refusals(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        REASONS.iter().zip(&self.refused).map(|(reason, count)| (*reason, count.load(Ordering::Relaxed)))
    }

    /// Counts an answer. A door that there is none of is elsewhere.
    pub(crate) fn answered(&self, door: usize, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        let count = self.doors.get(door).or(self.doors.last());
        if let Some(answered) = count.and_then(|count| count.answered.get(class)) {
            answered.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a request that was turned away.
    pub(crate) fn refused(&self, reason: &str) {
        let at = REASONS.iter().position(|known| *known == reason);
        if let Some(count) = at.and_then(|at| self.refused.get(at)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

// === impl Counted ===

impl<F> Counted<F> {
    pub(crate) const fn new(answer: F, tally: Arc<Tally>, door: usize, hold: Option<TokenHold>) -> Self {
        Self { answer, tally, door, hold }
    }
}

impl<F: Future<Output = Result<Response, E>>, E> Future for Counted<F> {
    type Output = Result<Response, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = ready!(this.answer.poll(cx)).map(|answer| match this.hold.take() {
            Some(hold) if hold.has_ended() => revoked().into_response(),
            Some(hold) => hold.bind(answer),
            None => answer,
        });
        if let Ok(answer) = &answer {
            this.tally.answered(*this.door, answer.status());
        }
        Poll::Ready(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_by_door_and_class_and_strange_ones_do_no_harm() {
        let tally = Tally::new(["mcp"]);
        tally.answered(0, StatusCode::OK);
        tally.answered(0, StatusCode::IM_USED);
        tally.answered(7, StatusCode::NOT_FOUND);
        tally.answered(0, StatusCode::from_u16(999).unwrap());
        let counted: Vec<_> = tally.requests().filter(|(.., count)| *count > 0).collect();
        assert_eq!(counted, [("mcp", "2xx", 2), ("other", "4xx", 1)]);
    }
}
