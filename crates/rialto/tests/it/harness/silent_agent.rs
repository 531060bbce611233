//! An A2A 0.3 agent that fails as those on a2a-sdk 0.2 and 0.3 do when their executor raises an exception: its stream ends after the first
//! event, without an error, and its task stays `submitted`.

use axum::{
    Json, Router,
    extract::State,
    http::header,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, runtime::Runtime};

/// An agent that serves as long as this lives. Its one skill is `work`.
pub(crate) struct SilentAgent {
    /// Its base URL.
    pub(crate) url: String,
    /// Dropped, it ends the server.
    _runtime: Runtime,
}

// === impl SilentAgent ===

impl SilentAgent {
    /// Starts it on a free port.
    pub(crate) fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new()
            .route("/.well-known/agent-card.json", get(show_card))
            .route("/", post(answer))
            .with_state(url.clone());
        runtime.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, _runtime: runtime }
    }
}

async fn show_card(State(url): State<String>) -> Json<Value> {
    Json(json!({
        "name": "Silent",
        "description": "An agent that crashes.",
        "url": format!("{url}/"),
        "version": "1.0.0",
        "protocolVersion": "0.3.0",
        "preferredTransport": "JSONRPC",
        "capabilities": { "streaming": true },
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{ "id": "work", "name": "Work", "description": "Crashes.", "tags": [] }],
    }))
}

async fn answer(Json(request): Json<Value>) -> Response {
    let reply = |member: &str, value: Value| json!({ "jsonrpc": "2.0", "id": request["id"], member: value });
    let task =
        json!({ "kind": "task", "id": "task-1", "contextId": "c-1", "status": { "state": "submitted" } });
    match request["method"].as_str().unwrap_or_default() {
        "message/stream" => {
            let event = format!("data: {}\n\n", reply("result", task));
            ([(header::CONTENT_TYPE, "text/event-stream")], event).into_response()
        }
        "tasks/get" => Json(reply("result", task)).into_response(),
        "tasks/resubscribe" => ([(header::CONTENT_TYPE, "text/event-stream")], "").into_response(),
        method => {
            let error = json!({ "code": -32601, "message": format!("no method {method}") });
            Json(reply("error", error)).into_response()
        }
    }
}
