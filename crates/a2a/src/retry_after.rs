//! `Retry-After` of answers 429 and 503.
//!
//! An agent that sends it has not accepted the request, so it may be sent again ([`retry`](crate::retry)). That is done when the wait is
//! short; a longer one is reported to the caller in `retryAfter`, in seconds.

use std::time::Duration;

use http::{StatusCode, header};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimeParser};
use rialto_http_client::fetch::FetchResponse;

/// Maximum wait that is passed on.
const MAX_WAIT: Duration = Duration::from_secs(24 * 3600);

/// Pause that the agent requests in a rejection.
pub(crate) fn read(answer: &FetchResponse, now: Timestamp) -> Option<Duration> {
    if !matches!(answer.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let text = answer.headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let then = DateTimeParser::new().parse_timestamp(text).ok()?;
            // A date in the past means no wait.
            Duration::try_from(SignedDuration::from_secs(then.as_second() - now.as_second()))
                .unwrap_or_default()
        }
    };
    Some(wait.min(MAX_WAIT))
}

/// Wait in whole seconds, as reported to callers.
pub(crate) const fn seconds(wait: Duration) -> u64 {
    wait.as_secs() + (wait.subsec_nanos() > 0) as u64
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn asked(status: u16, text: &'static str) -> Option<u64> {
        let answer = FetchResponse::fixed(StatusCode::from_u16(status).unwrap(), "");
        let answer = answer.header(header::RETRY_AFTER, HeaderValue::from_static(text));
        let now = "2026-11-18T08:00:00Z".parse().unwrap();
        read(&answer, now).map(seconds)
    }

    #[test]
    fn seconds_and_dates_are_read_where_they_mean_something() {
        assert_eq!(asked(429, "3"), Some(3));
        assert_eq!(asked(503, " 120 "), Some(120));
        assert_eq!(asked(503, "Wed, 18 Nov 2026 08:00:07 GMT"), Some(7));
        assert_eq!(asked(503, "Wed, 18 Nov 2026 07:00:00 GMT"), Some(0));
        assert_eq!(asked(503, "soon"), None);
        assert_eq!(asked(500, "3"), None);
        assert_eq!(asked(429, "99999999"), Some(24 * 3600));
    }
}
