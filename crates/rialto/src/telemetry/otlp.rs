//! Spans as OTLP says them: the few messages of `opentelemetry/proto/collector/trace/v1` that are needed to tell of calls.
//!
//! The numbers are the protocol's and never change. That others read this is tested with their own types.

use prost::{Message, Oneof};
use rialto_model::{clock::Timestamp, trace::Trace, verb::Verb};

/// The message that a collector takes at `/v1/traces`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Export {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

/// One call.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Span {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    trace_state: String,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 3")]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Number(i64),
}

/// `SPAN_KIND_SERVER`: somebody else asked for it.
const SERVER: i32 = 2;
/// `STATUS_CODE_OK`.
const OK: i32 = 1;
/// `STATUS_CODE_ERROR`.
const ERROR: i32 = 2;

// === impl Export ===

impl Export {
    /// All of these, told by the service of this name.
    pub(crate) fn of(service: &str, spans: Vec<Span>) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let attributes = vec![text("service.name", service), text("service.version", version)];
        let scope = Scope { name: "rialto".to_owned(), version: version.to_owned() };
        let scope_spans = vec![ScopeSpans { scope: Some(scope), spans }];
        Self { resource_spans: vec![ResourceSpans { resource: Some(Resource { attributes }), scope_spans }] }
    }
}

// === impl Span ===

impl Span {
    /// A call that ended, badly if there is a `code`. Neither its arguments nor anybody's words are in it.
    pub(crate) fn of(
        verb: &Verb,
        trace: &Trace,
        (begun, ended): (Timestamp, Timestamp),
        code: Option<i64>,
    ) -> Self {
        let outcome = if code.is_some() { "failed" } else { "completed" };
        let mut attributes = vec![
            text("rialto.org.id", &verb.org_id),
            text("rialto.agent.id", &verb.agent_card_id),
            text("rialto.skill.id", &verb.skill_id),
            text("rialto.task.id", &verb.task_id),
            text("rialto.caller.id", &verb.caller),
            text("rialto.session.id", &verb.session_id),
            text("rialto.outcome", outcome),
        ];
        attributes.extend(verb.door.map(|door| text("rialto.door", door.as_str())));
        attributes.extend(code.map(|code| attribute("rialto.error.code", Value::Number(code))));
        Self {
            trace_id: trace.trace_id().to_vec(),
            span_id: trace.span_id().to_vec(),
            trace_state: trace.state().unwrap_or_default().to_owned(),
            parent_span_id: trace.parent_id().map(|id| id.to_vec()).unwrap_or_default(),
            name: verb.verb.clone(),
            kind: SERVER,
            start_time_unix_nano: nanoseconds(begun),
            end_time_unix_nano: nanoseconds(ended),
            attributes,
            status: Some(Status { code: if code.is_some() { ERROR } else { OK } }),
        }
    }
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::Text(value.to_owned()))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}

fn nanoseconds(at: Timestamp) -> u64 {
    u64::try_from(at.as_nanosecond()).unwrap_or_default()
}
