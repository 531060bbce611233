//! Trace context of a request.
//!
//! A client sends it in `_meta`, where it belongs to the message, or in HTTP headers. The message takes precedence: the headers may be
//! those of a proxy that does not know about messages.

use http::HeaderMap;
use rialto_model::trace::Trace;

pub(crate) use rialto_http_server::trace::{BAGGAGE, TRACEPARENT, TRACESTATE};

/// Trace context of a request: from its `_meta`, or else from its headers. Malformed ones are ignored.
pub(crate) fn of(
    parent: Option<&str>,
    state: Option<&str>,
    baggage: Option<&str>,
    headers: Option<&HeaderMap>,
) -> Option<Box<Trace>> {
    let said = parent.and_then(|parent| Trace::parse(parent, state));
    let said = said.map(|trace| Box::new(trace.with_baggage(baggage)));
    said.or_else(|| rialto_http_server::trace::from_headers(headers?))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn what_the_message_says_counts_before_what_the_headers_say() {
        let context = |digit: char| {
            let digits = |count: usize| String::from(digit).repeat(count);
            format!("00-{}-{}-01", digits(32), digits(16))
        };
        let headers = HeaderMap::from_iter([(
            http::HeaderName::from_static(TRACEPARENT),
            HeaderValue::from_str(&context('a')).unwrap(),
        )]);
        let told = |said: Option<&str>, headers| of(said, None, None, headers).map(|trace| trace.to_string());
        assert_eq!(told(Some(&context('b')), Some(&headers)), Some(context('b')));
        assert_eq!(told(Some("nonsense"), Some(&headers)), Some(context('a')));
        assert_eq!(told(None, Some(&headers)), Some(context('a')));
        assert_eq!(told(None, None), None);
        assert_eq!(told(None, Some(&HeaderMap::new())), None);
    }
}
