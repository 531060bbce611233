//! Spans of calls in the protobuf messages of OTLP.

pub(crate) use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value},
    resource::v1::Resource,
    trace::v1::{ResourceSpans, ScopeSpans, Status, span::SpanKind, status::StatusCode},
};
use rialto_model::{audit_event::SkillInvocation, clock::Timestamp, trace::Trace};

/// Builds the request that exports `spans` under the name of this service.
pub(crate) fn export_request(service: &str, spans: Vec<Span>) -> ExportTraceServiceRequest {
    let version = env!("CARGO_PKG_VERSION");
    let attributes = vec![text("service.name", service), text("service.version", version)];
    let scope = InstrumentationScope {
        name: "rialto".to_owned(),
        version: version.to_owned(),
        ..InstrumentationScope::default()
    };
    let scope_spans = ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() };
    let resource = Resource { attributes, ..Resource::default() };
    let resource_spans = ResourceSpans {
        resource: Some(resource),
        scope_spans: vec![scope_spans],
        ..ResourceSpans::default()
    };
    ExportTraceServiceRequest { resource_spans: vec![resource_spans] }
}

/// Builds the span of a call that ended, as failed if there is a `code`. It holds no arguments and no text of callers or agents.
pub(crate) fn span_of_call(
    verb: &SkillInvocation,
    trace: &Trace,
    (begun, ended): (Timestamp, Timestamp),
    code: Option<i64>,
) -> Span {
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
    attributes.extend(code.map(|code| attribute("rialto.error.code", Value::IntValue(code))));
    let status = if code.is_some() { StatusCode::Error } else { StatusCode::Ok };
    Span {
        trace_id: trace.trace_id().to_vec(),
        span_id: trace.span_id().to_vec(),
        trace_state: trace.state().unwrap_or_default().to_owned(),
        parent_span_id: trace.parent_id().map(|id| id.to_vec()).unwrap_or_default(),
        name: verb.verb.clone(),
        kind: SpanKind::Server.into(),
        start_time_unix_nano: nanoseconds(begun),
        end_time_unix_nano: nanoseconds(ended),
        attributes,
        status: Some(Status { code: status.into(), ..Status::default() }),
        ..Span::default()
    }
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    let value = Some(AnyValue { value: Some(value) });
    KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
}

fn nanoseconds(at: Timestamp) -> u64 {
    u64::try_from(at.as_nanosecond()).unwrap_or_default()
}
