//! Responses that are streams of server-sent events.
//!
//! axum writes the events. The rest is the same in every protocol: the interval between the comments that keep a silent stream
//! open, and the header that keeps nginx from holding events back in a buffer.

use std::{convert::Infallible, time::Duration};

use axum::response::{
    IntoResponse, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures::{Stream, StreamExt};

/// Longest silence of a stream that has a heartbeat.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

/// Response that sends `events` as they come and ends after the last. While none comes, it sends `heartbeat`.
pub fn respond(events: impl Stream<Item = Event> + Send + 'static, heartbeat: Option<KeepAlive>) -> Response {
    let stream = Sse::new(events.map(Ok::<_, Infallible>));
    let unbuffered = [("x-accel-buffering", "no")];
    match heartbeat {
        Some(heartbeat) => {
            (unbuffered, stream.keep_alive(heartbeat.interval(HEARTBEAT_INTERVAL))).into_response()
        }
        None => (unbuffered, stream).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use http::header::{CACHE_CONTROL, CONTENT_TYPE};
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_sends_a_comment_every_15_seconds() {
        let events = stream::iter([Event::default().data("first")]).chain(stream::pending());
        let mut response = respond(events, Some(KeepAlive::new().text("still working")));
        let headers = response.headers();
        let values = [CONTENT_TYPE.as_str(), CACHE_CONTROL.as_str(), "x-accel-buffering"];
        assert_eq!(
            values.map(|name| headers[name].to_str().unwrap()),
            ["text/event-stream", "no-cache", "no"]
        );
        let mut next = async || response.body_mut().frame().await.unwrap().unwrap().into_data().unwrap();
        let begun = tokio::time::Instant::now();
        assert_eq!(next().await, "data: first\n\n");
        for comments in 1..=2 {
            assert_eq!(next().await, ": still working\n\n");
            assert_eq!(begun.elapsed().as_secs(), comments * HEARTBEAT_INTERVAL.as_secs());
        }
    }

    #[tokio::test]
    async fn a_stream_ends_after_its_last_event() {
        let events = stream::iter(["a", "b\nc"].map(|text| Event::default().event("error").data(text)));
        let body = respond(events, None).into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, "event: error\ndata: a\n\nevent: error\ndata: b\ndata: c\n\n");
    }
}
