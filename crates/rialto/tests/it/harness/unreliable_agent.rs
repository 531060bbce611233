//! An A2A 0.3 agent that can be told to be unavailable, or to leave requests unanswered.

use std::{
    future,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
};

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, runtime::Runtime};

/// How the agent behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FailureMode {
    /// Answers.
    Answers,
    /// Answers everything with 503.
    Unavailable,
    /// Answers messages with 503, and shows its card.
    Breaks,
    /// Never answers messages.
    Hangs,
}

/// An agent that serves as long as this lives. Its one skill is `work`.
pub(crate) struct UnreliableAgent {
    /// Its base URL.
    pub(crate) url: String,
    memory: Arc<UnreliableMemory>,
    /// Dropped, it ends the server.
    _runtime: Runtime,
}

struct UnreliableMemory {
    url: String,
    mood: AtomicU8,
    messages: AtomicUsize,
}

// === impl UnreliableAgent ===

impl UnreliableAgent {
    /// Starts it on a free port.
    pub(crate) fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let memory = Arc::new(UnreliableMemory {
            url: url.clone(),
            mood: AtomicU8::new(FailureMode::Answers as u8),
            messages: AtomicUsize::new(0),
        });
        let router = Router::new()
            .route("/.well-known/agent-card.json", get(show_card))
            .route("/", post(answer))
            .with_state(Arc::clone(&memory));
        runtime.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, memory, _runtime: runtime }
    }

    /// Behaves like this from now on.
    pub(crate) fn set(&self, mood: FailureMode) {
        self.memory.mood.store(mood as u8, Ordering::SeqCst);
    }

    /// How many messages it has received.
    pub(crate) fn messages(&self) -> usize {
        self.memory.messages.load(Ordering::SeqCst)
    }
}

// === impl UnreliableMemory ===

impl UnreliableMemory {
    fn is(&self, mood: FailureMode) -> bool {
        self.mood.load(Ordering::SeqCst) == mood as u8
    }
}

async fn show_card(State(memory): State<Arc<UnreliableMemory>>) -> Response {
    if memory.is(FailureMode::Unavailable) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    Json(json!({
        "name": "Stumbling",
        "description": "An agent that stumbles.",
        "url": format!("{}/", memory.url),
        "version": "1.0.0",
        "protocolVersion": "0.3.0",
        "preferredTransport": "JSONRPC",
        "capabilities": { "streaming": false },
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{ "id": "work", "name": "Work", "description": "Stumbles.", "tags": [] }],
    }))
    .into_response()
}

async fn answer(State(memory): State<Arc<UnreliableMemory>>, Json(request): Json<Value>) -> Response {
    memory.messages.fetch_add(1, Ordering::SeqCst);
    if memory.is(FailureMode::Unavailable) || memory.is(FailureMode::Breaks) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    if memory.is(FailureMode::Hangs) {
        future::pending::<()>().await;
    }
    let message = json!({
        "kind": "message", "messageId": "m-1", "role": "agent", "parts": [{ "kind": "text", "text": "done" }],
    });
    Json(json!({ "jsonrpc": "2.0", "id": request["id"], "result": message })).into_response()
}
