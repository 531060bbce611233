//! Trace context of a request (W3C trace context).

use http::HeaderMap;
use rialto_model::trace::Trace;

/// Header of the trace context.
pub const TRACEPARENT: &str = "traceparent";
/// Header of vendor-specific trace state.
pub const TRACESTATE: &str = "tracestate";

/// Header of baggage that applications send along.
pub const BAGGAGE: &str = "baggage";

/// Trace context in the headers; none if it is not well-formed.
pub fn from_headers(headers: &HeaderMap) -> Option<Box<Trace>> {
    let text = |name| headers.get(name)?.to_str().ok();
    Some(Box::new(Trace::parse(text(TRACEPARENT)?, text(TRACESTATE))?.with_baggage(text(BAGGAGE))))
}
