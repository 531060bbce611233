//! W3C Trace Context of calls.
//!
//! A call that comes with a context goes on in it, under a name of its own, whether or not anybody here collects traces:
//! then those on both sides find each other. A context that is not well-formed is none, by the specification.

use std::fmt;

use crate::ids;

/// Tracing systems keep notes of their own here; more than this is not carried on.
const LONGEST_STATE: usize = 512;

/// Maximum length of baggage; W3C asks for this much to be carried.
const LONGEST_BAGGAGE: usize = 8_192;

/// Member of `tracestate` that counts the calls which led to a request.
const HOPS: &str = "rialto=";

/// A call's place in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    trace: u128,
    span: u64,
    parent: Option<u64>,
    flags: u8,
    state: Option<String>,
    baggage: Option<Box<str>>,
}

/// Fraction of the traces started here that are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// A trace is collected whose last 32 bits are below this: those are random in every id.
    below: u64,
}

// === impl Trace ===

impl Trace {
    /// Reads what a caller sent. Nothing, unless it is well-formed.
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let mut fields = traceparent.trim().split('-');
        let (version, trace) = (hex(fields.next()?, 2)?, hex(fields.next()?, 32)?);
        let (span, flags) = (hex(fields.next()?, 16)?, hex(fields.next()?, 2)?);
        // Later versions may say more behind that; the first may not.
        let is_whole = version != 0 || fields.next().is_none();
        if version == 0xff || trace == 0 || span == 0 || !is_whole {
            return None;
        }
        let state =
            tracestate.map(str::trim).filter(|state| is_header(state, LONGEST_STATE)).map(str::to_owned);
        let (span, flags) = (u64::try_from(span).ok()?, u8::try_from(flags).ok()?);
        Some(Self { trace, span, parent: None, flags: flags & 1, state, baggage: None })
    }

    /// A trace that begins here.
    pub fn begin(sampling: Sampling) -> Self {
        let trace = ids::fresh_number();
        let is_sampled = low(trace) & u64::from(u32::MAX) < sampling.below;
        Self {
            trace,
            span: low(ids::fresh_number()),
            parent: None,
            flags: u8::from(is_sampled),
            state: None,
            baggage: None,
        }
    }

    /// Adds the application's baggage. Baggage that does not fit a header is ignored.
    #[must_use]
    pub fn with_baggage(mut self, baggage: Option<&str>) -> Self {
        let baggage = baggage.map(str::trim).filter(|baggage| is_header(baggage, LONGEST_BAGGAGE));
        self.baggage = baggage.map(Into::into);
        self
    }

    /// Baggage of the application, to be passed on.
    pub fn baggage(&self) -> Option<&str> {
        self.baggage.as_deref()
    }

    /// Starts a child span.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { span: low(ids::fresh_number()), parent: Some(self.span), ..self.clone() }
    }

    /// Adds the hop count to `tracestate`, which tracing libraries pass on by themselves.
    #[must_use]
    pub fn with_hops(mut self, hops: u8) -> Self {
        let mut state = format!("{HOPS}{hops}");
        let others = self.state.as_deref().unwrap_or_default().split(',').map(str::trim);
        for other in others.filter(|other| !other.is_empty() && !other.starts_with(HOPS)) {
            if state.len() + 1 + other.len() > LONGEST_STATE {
                break;
            }
            state.push(',');
            state.push_str(other);
        }
        self.state = Some(state);
        self
    }

    /// The count of calls that `tracestate` carries; none counted is 0.
    pub fn hops(&self) -> u8 {
        let mut members = self.state.as_deref().unwrap_or_default().split(',').map(str::trim);
        let count = members.find_map(|member| member.strip_prefix(HOPS));
        count.map_or(0, |count| count.parse().unwrap_or(u8::MAX))
    }

    /// Returns whether it is sampled.
    pub const fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }

    /// The trace's id.
    pub const fn trace_id(&self) -> [u8; 16] {
        self.trace.to_be_bytes()
    }

    /// The id of this part of it.
    pub const fn span_id(&self) -> [u8; 8] {
        self.span.to_be_bytes()
    }

    /// The id of the part that this is inside of.
    pub fn parent_id(&self) -> Option<[u8; 8]> {
        self.parent.map(u64::to_be_bytes)
    }

    /// `tracestate` of tracing systems, to be passed on.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }
}

impl fmt::Display for Trace {
    /// As it is sent on: the value of `traceparent`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, self.flags)
    }
}

// === impl Sampling ===

impl Sampling {
    /// Collects this share of all traces: all of them is 1.
    pub fn share(share: f64) -> Self {
        let all = 1_u64 << 32;
        // A share of them is never more than all, and what a float cannot tell apart does not matter.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "see above"
        )]
        let below = (share.clamp(0.0, 1.0) * all as f64) as u64;
        Self { below }
    }
}

/// Exactly `digits` lowercase hexadecimal digits.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != digits || !text.bytes().all(is_hex) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

/// Returns whether this can be passed on in a header as it is.
fn is_header(text: &str, longest: usize) -> bool {
    !text.is_empty() && text.len() <= longest && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// The last 64 bits. They are never all zero: there is a mark in each id.
#[expect(clippy::cast_possible_truncation, reason = "that is what it does")]
const fn low(number: u128) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_goes_on_in_the_same_trace_under_another_name() {
        let parent = Trace::parse(PARENT, Some("vendor=1")).unwrap();
        assert_eq!(parent.to_string(), PARENT);
        let child = parent.child();
        assert_eq!((child.trace_id(), child.parent_id()), (parent.trace_id(), Some(parent.span_id())));
        assert_ne!(child.span_id(), parent.span_id());
        assert_eq!((child.is_sampled(), child.state()), (true, Some("vendor=1")));
        assert!(Trace::parse(&child.to_string(), None).is_some());
        let laden = parent.with_baggage(Some(" user=ann,tier=gold "));
        assert_eq!(laden.child().baggage(), Some("user=ann,tier=gold"));
        assert_eq!(laden.with_baggage(Some("a=\n1")).baggage(), None);
    }

    #[test]
    fn what_is_not_well_formed_is_none() {
        for wrong in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        ] {
            assert_eq!(Trace::parse(wrong, None), None, "{wrong}");
        }
        let later = Trace::parse("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-more", None);
        assert!(later.is_some_and(|trace| !trace.is_sampled()));
        for wrong in ["", "a=\n1", &"x".repeat(LONGEST_STATE + 1)] {
            assert_eq!(Trace::parse(PARENT, Some(wrong)).unwrap().state(), None, "{wrong}");
        }
    }

    #[test]
    fn a_share_of_the_traces_that_begin_here_is_collected() {
        let sampled = |share| {
            let sampling = Sampling::share(share);
            (0..1_000).filter(|_| Trace::begin(sampling).is_sampled()).count()
        };
        assert_eq!((sampled(0.0), sampled(1.0), sampled(f64::NAN)), (0, 1_000, 0));
        let half = sampled(0.5);
        assert!((350..650).contains(&half), "{half}");
        assert_ne!(Trace::begin(Sampling::share(1.0)).span_id(), [0; 8]);
    }
}
