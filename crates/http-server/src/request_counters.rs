//! Request counters: requests by endpoint and status class, rejections by reason.
//!
//! Every request counts itself, so the counters exist from the start: nothing is looked up or allocated.

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

use crate::{rejection::revoked, token_binding::TokenBinding};

/// Status classes, as metrics spell them.
const STATUS_CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Reasons for rejection.
const REJECTION_REASONS: [&str; 12] = [
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

/// Requests to no known endpoint.
const OTHER_ENDPOINT: &str = "other";

/// Counters of requests and rejections.
#[derive(Debug)]
pub struct RequestCounters {
    endpoints: Vec<EndpointCounter>,
    rejected: [AtomicU64; REJECTION_REASONS.len()],
}

pin_project! {
    /// Response future that is counted when it resolves.
    pub struct CountedResponse<F> {
        #[pin]
        response: F,
        counters: Arc<RequestCounters>,
        endpoint: usize,
        binding: Option<TokenBinding>,
    }
}

/// Responses of one endpoint, by status class.
#[derive(Debug)]
struct EndpointCounter {
    endpoint: &'static str,
    answered: [AtomicU64; STATUS_CLASSES.len()],
}

// === impl RequestCounters ===

impl RequestCounters {
    /// Counters for these endpoints, and one for all others.
    pub(crate) fn new(endpoints: impl IntoIterator<Item = &'static str>) -> Self {
        let endpoints = endpoints.into_iter().chain([OTHER_ENDPOINT]);
        let endpoints =
            endpoints.map(|endpoint| EndpointCounter { endpoint, answered: Default::default() }).collect();
        Self { endpoints, rejected: Default::default() }
    }

    /// Requests: endpoint, status class, number.
    pub fn requests(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + '_ {
        self.endpoints.iter().flat_map(|count| {
            let each = STATUS_CLASSES.iter().zip(&count.answered);
            each.map(|(class, answered)| (count.endpoint, *class, answered.load(Ordering::Relaxed)))
        })
    }

    /// Rejections: reason, number.
    pub fn rejections(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        REJECTION_REASONS
            .iter()
            .zip(&self.rejected)
            .map(|(reason, count)| (*reason, count.load(Ordering::Relaxed)))
    }

    /// Counts a response. An unknown endpoint is counted as other.
    pub(crate) fn count_response(&self, endpoint: usize, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        let count = self.endpoints.get(endpoint).or(self.endpoints.last());
        if let Some(answered) = count.and_then(|count| count.answered.get(class)) {
            answered.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a rejection.
    pub(crate) fn count_rejection(&self, reason: &str) {
        let index = REJECTION_REASONS.iter().position(|known| *known == reason);
        if let Some(count) = index.and_then(|index| self.rejected.get(index)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

// === impl CountedResponse ===

impl<F> CountedResponse<F> {
    pub(crate) const fn new(
        response: F,
        counters: Arc<RequestCounters>,
        endpoint: usize,
        binding: Option<TokenBinding>,
    ) -> Self {
        Self { response, counters, endpoint, binding }
    }
}

impl<F: Future<Output = Result<Response, E>>, E> Future for CountedResponse<F> {
    type Output = Result<Response, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = ready!(this.response.poll(cx)).map(|answer| match this.binding.take() {
            Some(binding) if binding.has_ended() => revoked().into_response(),
            Some(binding) => binding.bind(answer),
            None => answer,
        });
        if let Ok(answer) = &answer {
            this.counters.count_response(*this.endpoint, answer.status());
        }
        Poll::Ready(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_counted_by_endpoint_and_class_and_unknown_ones_are_harmless() {
        let counters = RequestCounters::new(["mcp"]);
        counters.count_response(0, StatusCode::OK);
        counters.count_response(0, StatusCode::IM_USED);
        counters.count_response(7, StatusCode::NOT_FOUND);
        counters.count_response(0, StatusCode::from_u16(999).unwrap());
        let counted: Vec<_> = counters.requests().filter(|(.., count)| *count > 0).collect();
        assert_eq!(counted, [("mcp", "2xx", 2), ("other", "4xx", 1)]);
    }
}
