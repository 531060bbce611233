//! Traces: a caller's goes on at the agent, and a collector hears of what happened here.

use std::sync::{Arc, Mutex};

use axum::{Router, body::Bytes, extract::State, http::HeaderMap, routing::post};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value as Any},
    trace::v1::Span,
};
use prost::Message;
use serde_json::{Value, json};
use tokio::{net::TcpListener, runtime::Runtime};

use crate::harness::{
    agent::SampleAgent,
    http,
    rialto::Rialto,
    server::{self, message},
    until,
};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

/// Headers and bodies.
type Kept = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// A collector that keeps what it is sent.
struct Receiver {
    url: String,
    kept: Kept,
    _runtime: Runtime,
}

impl Receiver {
    fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let kept = Kept::default();
        let keep = |State(kept): State<Kept>, headers: HeaderMap, body: Bytes| async move {
            kept.lock().unwrap().push((headers, body));
        };
        let router = Router::new().route("/v1/traces", post(keep)).with_state(Arc::clone(&kept));
        runtime.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, kept, _runtime: runtime }
    }

    /// The spans so far, with the names of their services.
    fn spans(&self) -> Vec<(String, Span)> {
        let kept = self.kept.lock().unwrap();
        let messages = kept.iter().map(|(_, body)| ExportTraceServiceRequest::decode(&body[..]).unwrap());
        let mut spans = Vec::new();
        for resource in messages.flat_map(|message| message.resource_spans) {
            let service = attribute(&resource.resource.unwrap().attributes, "service.name");
            let found = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
            spans.extend(found.map(|span| (service.clone(), span)));
        }
        spans
    }
}

fn attribute(attributes: &[KeyValue], key: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key == key);
    match found.and_then(|found| found.value.clone()).and_then(|value| value.value) {
        Some(Any::StringValue(text)) => text,
        Some(Any::IntValue(number)) => number.to_string(),
        other => panic!("{key} is {other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn call(url: &str, tool: &str, meta: &Value, headers: &[(&str, &str)]) -> Value {
    let params = json!({ "name": tool, "arguments": { "password": "hunter2" }, "_meta": meta });
    message(&server::request(url, "tools/call", params, None, headers))
}

#[test]
fn a_trace_goes_on_at_the_agent_under_another_name_without_any_collector() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    let context = |trace: &str| format!("00-{trace}-{SPAN}-01");
    let (ours, other) = (context(TRACE), context(&TRACE.replace('4', "5")));
    let header = [("traceparent", ours.as_str()), ("tracestate", "vendor=7"), ("baggage", "user=ann")];
    call(&server.mcp(), "desk.echo", &json!({}), &header);
    call(
        &server.mcp(),
        "desk.echo",
        &json!({ "traceparent": ours, "tracestate": "vendor=8", "baggage": "tier=gold" }),
        &[("traceparent", &other)],
    );
    // The same by way of the library, for versions before 2026-07-28.
    let params = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
    });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let hello = http::post(&server.mcp(), &[], &hello.to_string());
    let session = hello.session.as_deref().unwrap();
    let old = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "desk.echo", "arguments": {}, "_meta": { "traceparent": ours } },
    });
    let headers = [("MCP-Protocol-Version", "2025-06-18"), ("Mcp-Session-Id", session)];
    let answer = http::post(&server.mcp(), &headers, &old.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let mut stdio = rialto.mcp(&[]);
    stdio.initialize();
    let params = json!({ "name": "desk.echo", "arguments": {}, "_meta": { "traceparent": ours } });
    stdio.ask("tools/call", &params);
    // An A2A client may say it beside its message.
    let beside = json!({ "traceparent": ours, "baggage": "from=a2a" });
    let said = json!({
        "messageId": "m-1", "role": "ROLE_USER", "parts": [{ "text": "hi" }], "metadata": beside,
    });
    let params = json!({ "message": said, "metadata": { "skillId": "desk.echo" } });
    let sent = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params });
    let answer = http::post(&format!("{}/a2a", server.url), &[], &sent.to_string());
    assert!(answer.body.contains("TASK_STATE_COMPLETED"), "{answer:?}");

    let traces = agent.traces();
    assert_eq!(traces.len(), 5);
    for [parent, ..] in &traces {
        let fields: Vec<&str> = parent.as_deref().unwrap().split('-').collect();
        assert_eq!((fields[0], fields[1], fields[3]), ("00", TRACE, "01"), "{traces:?}");
        assert_ne!(fields[2], SPAN);
    }
    let states: Vec<_> = traces.iter().map(|[_, state, _]| state.as_deref()).collect();
    assert_eq!(
        states,
        [
            Some("rialto=1,vendor=7"),
            Some("rialto=1,vendor=8"),
            Some("rialto=1"),
            Some("rialto=1"),
            Some("rialto=1")
        ]
    );
    let baggage: Vec<_> = traces.iter().map(|[_, _, baggage]| baggage.as_deref()).collect();
    assert_eq!(baggage, [Some("user=ann"), Some("tier=gold"), None, None, Some("from=a2a")]);
}

#[test]
fn without_a_trace_and_without_a_collector_there_is_none() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    call(&server.mcp(), "desk.echo", &json!({}), &[]);
    let nonsense = [("traceparent", "00-00000000000000000000000000000000-0000000000000000-01")];
    call(&server.mcp(), "desk.echo", &json!({ "traceparent": "nonsense" }), &nonsense);
    assert_eq!(agent.traces(), [[None, None, None], [None, None, None]]);
}

#[test]
fn a_collector_hears_of_each_call_what_it_was_and_how_it_ended() {
    let (receiver, agent) = (Receiver::start(), SampleAgent::named("Desk"));
    let rialto = Rialto::fresh()
        .with("RIALTO_TELEMETRY__OTLP_ENDPOINT", &receiver.url)
        .with("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20collect");
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    let (sampled, unsampled) = (format!("00-{TRACE}-{SPAN}-01"), format!("00-{TRACE}-{SPAN}-00"));
    let done = call(&server.mcp(), "desk.echo", &json!({}), &[("traceparent", &sampled)]);
    call(&server.mcp(), "desk.greet", &json!({}), &[("traceparent", &unsampled)]);
    call(&server.mcp(), "desk.fail", &json!({}), &[]);
    let spans = until("two spans have come", || Some(receiver.spans()).filter(|spans| spans.len() >= 2));
    assert_eq!(spans.len(), 2, "what its sender does not collect is not collected");

    let (service, echo) = &spans[0];
    assert_eq!((service.as_str(), echo.name.as_str(), echo.kind), ("rialto", "desk.echo", 2));
    assert_eq!((hex(&echo.trace_id), hex(&echo.parent_span_id)), (TRACE.to_owned(), SPAN.to_owned()));
    let sent_on = format!("00-{TRACE}-{}-01", hex(&echo.span_id));
    assert_eq!(agent.traces()[0][0], Some(sent_on), "the agent's parent is our span");
    assert!(echo.start_time_unix_nano > 0 && echo.start_time_unix_nano < echo.end_time_unix_nano);
    assert_eq!(echo.status.as_ref().unwrap().code, 1);
    let told = |key: &str| attribute(&echo.attributes, key);
    assert_eq!(told("rialto.task.id"), done["result"]["_meta"]["rialto/taskId"].as_str().unwrap());
    assert_eq!((told("rialto.skill.id"), told("rialto.caller.id")), ("echo".to_owned(), "local".to_owned()));
    assert_eq!(
        (told("rialto.door"), told("rialto.outcome")),
        ("mcp-http".to_owned(), "completed".to_owned())
    );

    let fail = &spans[1].1;
    assert_eq!((fail.name.as_str(), fail.status.as_ref().unwrap().code), ("desk.fail", 2));
    assert_eq!(attribute(&fail.attributes, "rialto.error.code"), "-32204");
    assert_eq!((fail.trace_id.len(), fail.parent_span_id.len()), (16, 0), "it began a trace of its own");

    let kept = receiver.kept.lock().unwrap();
    for (headers, body) in kept.iter() {
        assert_eq!(
            (&headers["content-type"], &headers["authorization"]),
            (&"application/x-protobuf".parse().unwrap(), &"Bearer collect".parse().unwrap())
        );
        assert!(!String::from_utf8_lossy(body).contains("hunter2"));
    }
}

#[test]
fn what_is_left_is_sent_at_the_end_and_a_share_of_none_is_none() {
    let (receiver, agent) = (Receiver::start(), SampleAgent::named("Desk"));
    let rialto = Rialto::fresh().with("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.url);
    rialto.trust(&agent.url);
    rialto.cli(&["call", "desk.echo"]).ok();
    assert_eq!(receiver.spans().len(), 1);
    let none = rialto.with("RIALTO_TELEMETRY__SAMPLE_RATIO", "0.0");
    none.cli(&["call", "desk.echo"]).ok();
    assert_eq!(receiver.spans().len(), 1);
    assert!(agent.traces()[1][0].as_ref().unwrap().ends_with("-00"), "{:?}", agent.traces());
}

#[test]
fn a_collector_that_is_not_there_does_no_harm() {
    let agent = SampleAgent::named("Desk");
    let rialto = Rialto::fresh().with("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1");
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    server.call("desk.echo", &json!({})).result();
    until("it is said", || server.log().contains("the collector does not accept traces").then_some(()));
    let numbers = http::get(&format!("{}/metrics", server.url)).unwrap().body;
    assert!(numbers.contains("rialto_spans_total{outcome=\"lost\"} 1\n"), "{numbers}");
}
