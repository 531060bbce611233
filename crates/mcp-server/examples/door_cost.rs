//! What a call costs on its way through this door, in CPU time: `cargo run --release -p rialto-mcp-server --example door_cost`.
//!
//! The agent answers at once and the store keeps nothing, so that what is left is the door and the engine. The first
//! line is the engine alone.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a tool for the bench, not part of the product"
)]

use std::{sync::Arc, time::Instant};

use axum::{Extension, Router, body::Body};
use futures::{
    FutureExt, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use http::{Method, Request};
use http_body_util::BodyExt;
use rialto_engine::{CallRequest as Ask, Engine, EngineDeps, Registry, peer::Peer};
use rialto_mcp_server::{Config, LoadAgents, McpEndpoint, McpEndpointOptions};
use rialto_model::{
    agent::Agent,
    call::{Call, Caller, CancelRequest, EntryProtocol as By, FollowRequest},
    clock::SystemClock,
    event::Event,
    failure::Failure,
    json::Json,
    store::Store,
};
use rialto_policy::{Permitted, Policy};
use rialto_testkit::{
    agents::{agent, skill},
    null_store::NullStore,
    peer::{ScriptedDiscovery, finished_with_data},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

const CALLS: u32 = 20_000;

/// An agent that answers at once, and remembers nothing.
struct AtOnce;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let engine = engine(vec![agent("Weather", vec![skill("forecast")])]).await;
    let router = router(&engine);
    measure("engine alone", CALLS, || engine_call(&engine)).await;
    measure("POST /mcp, 2026-07-28, tools/call", CALLS, || send(&router, modern("tools/call"))).await;
    // A request of a web page goes the long way, through rmcp.
    measure("the same through rmcp", CALLS, || send(&router, of_a_page(modern("tools/call")))).await;
    let session = open_session(&router).await;
    measure("POST /mcp, session, tools/call", CALLS, || send(&router, legacy(&session))).await;
    for agents in [0, 100, 10_000] {
        list(agents).await;
    }
}

/// The first page of a list, when nobody has read it before, and again.
async fn list(agents: usize) {
    let skills = || (0..10).map(|n| skill(&format!("skill-{n}"))).collect();
    let engine = engine((0..agents).map(|n| agent(&format!("Agent {n:05}"), skills())).collect()).await;
    let router = router(&engine);
    let begun = Instant::now();
    send(&router, modern("tools/list")).await;
    println!(
        "tools/list of {:6} skills, first time {:9.1} µs",
        agents * 10,
        begun.elapsed().as_secs_f64() * 1e6
    );
    measure(&format!("tools/list of {} skills", agents * 10), 200, || send(&router, modern("tools/list")))
        .await;
    let through_rmcp = format!("tools/list of {} skills, through rmcp", agents * 10);
    measure(&through_rmcp, 200, || send(&router, of_a_page(modern("tools/list")))).await;
}

async fn measure<F: Future<Output = ()>>(what: &str, calls: u32, mut call: impl FnMut() -> F) {
    for _ in 0..calls / 10 {
        call().await;
    }
    let (begun, cpu) = (Instant::now(), cpu_micros());
    for _ in 0..calls {
        call().await;
    }
    let per_call = (cpu_micros() - cpu) / f64::from(calls);
    let wall = begun.elapsed().as_secs_f64() * 1e6 / f64::from(calls);
    println!("{what:40} {per_call:7.1} µs CPU {wall:7.1} µs wall");
}

/// CPU time of this process so far. The kernel counts nanoseconds for each thread.
fn cpu_micros() -> f64 {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let nanos = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    nanos.sum::<f64>() / 1e3
}

async fn engine_call(engine: &Engine) {
    let caller = Caller::user("ann");
    let target = engine.calls().resolve(&caller, "weather.forecast").unwrap();
    let args = Json::parse(r#"{"city":"Venice"}"#).unwrap();
    engine
        .calls()
        .start(Ask::skill(caller, By::McpHttp, target, args))
        .await
        .unwrap()
        .into_handle()
        .unwrap()
        .finish()
        .await
        .unwrap();
}

async fn send(router: &Router, request: Request<Body>) {
    let response = router.clone().oneshot(request).await.unwrap();
    assert!(response.status().is_success());
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(!body.is_empty());
}

fn of_a_page(mut request: Request<Body>) -> Request<Body> {
    request.headers_mut().insert("origin", "http://localhost:3000".parse().unwrap());
    request
}

fn post() -> http::request::Builder {
    Request::builder()
        .method(Method::POST)
        .uri("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
}

fn modern(method: &str) -> Request<Body> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"name":"weather.forecast","arguments":{{"city":"Venice"}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"bench","version":"1"}}}}}}}}"#
    );
    post()
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method)
        .header("mcp-name", "weather.forecast")
        .body(Body::from(body))
        .unwrap()
}

fn legacy(session: &str) -> Request<Body> {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"weather.forecast","arguments":{"city":"Venice"}}}"#;
    post().header("mcp-session-id", session).body(Body::from(body)).unwrap()
}

async fn open_session(router: &Router) -> String {
    let client = json!({ "name": "bench", "version": "1" });
    let params: Value = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let response = router.clone().oneshot(post().body(Body::from(hello.to_string())).unwrap()).await.unwrap();
    response.headers()["mcp-session-id"].to_str().unwrap().to_owned()
}

fn router(engine: &Engine) -> Router {
    let config = Config { allowed_origins: vec!["http://localhost:*".into()], ..Config::default() };
    let door =
        McpEndpoint::new(engine.clone(), config, McpEndpointOptions { load_agents: LoadAgents::Session });
    door.router(CancellationToken::new()).layer(Extension(Caller::user("ann")))
}

async fn engine(agents: Vec<Agent>) -> Engine {
    let store: Arc<dyn Store> = Arc::new(NullStore(agents));
    let discovery = Arc::new(ScriptedDiscovery::default());
    let (clock, config) = (Arc::new(SystemClock), rialto_engine::Config::default());
    let engine = Engine::new(EngineDeps {
        registry: Arc::new(Registry::new(store.clone(), discovery, clock.clone(), config.clone())),
        store,
        peer: Arc::new(AtOnce),
        policy: Policy::starter().unwrap(),
        policy_loader: None,
        clock,
        config,
    });
    engine.policies().sync().await.unwrap();
    engine
}

impl Peer for AtOnce {
    fn send(&self, _: Permitted<Call>) -> BoxStream<'static, Event> {
        stream::iter(finished_with_data(json!({ "forecast": "sun", "degrees": 21 }))).boxed()
    }
    fn follow(&self, _: Permitted<FollowRequest>) -> BoxStream<'static, Result<Event, Failure>> {
        stream::empty().boxed()
    }
    fn cancel(&self, _: Permitted<CancelRequest>) -> BoxFuture<'static, Result<Vec<Event>, Failure>> {
        async { Ok(Vec::new()) }.boxed()
    }
}
