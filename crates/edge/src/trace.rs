//! Which trace a request is a part of, by its headers (W3C trace context).

use http::HeaderMap;
use rialto_model::trace::Trace;

/// The name of a trace's context.
pub const PARENT: &str = "traceparent";
/// The name of what tracing systems note beside it.
pub const STATE: &str = "tracestate";

/// The name of what an application sends along.
pub const BAGGAGE: &str = "baggage";

/// The trace that headers name. One that is not well-formed is none.
pub fn of(headers: &HeaderMap) -> Option<Box<Trace>> {
    let text = |name| headers.get(name)?.to_str().ok();
    Some(Box::new(Trace::parse(text(PARENT)?, text(STATE))?.with_baggage(text(BAGGAGE))))
}
