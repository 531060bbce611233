//! Scripted receiver of webhooks, which records its requests.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use tokio::{net::TcpListener, sync::watch, task::AbortHandle};

/// Received request.
#[derive(Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Response to a request.
#[derive(Clone, Copy)]
pub(crate) enum Reply {
    /// This status.
    Status(u16),
    /// This status and header.
    Header(u16, &'static str, &'static str),
    /// No response.
    Hang,
}

pub(crate) struct Receiver {
    pub(crate) url: String,
    memory: Arc<Memory>,
    server: AbortHandle,
}

struct Memory {
    got: Mutex<Vec<ReceivedRequest>>,
    replies: Mutex<VecDeque<Reply>>,
    otherwise: Mutex<Reply>,
    count: watch::Sender<usize>,
}

// === impl Receiver ===

impl Receiver {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let memory = Arc::new(Memory {
            got: Mutex::default(),
            replies: Mutex::default(),
            otherwise: Mutex::new(Reply::Status(204)),
            count: watch::Sender::new(0),
        });
        let router = Router::new().route("/hook", post(take)).with_state(Arc::clone(&memory));
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, memory, server: server.abort_handle() }
    }

    /// Sets the responses to the next requests.
    pub(crate) fn next(&self, replies: &[Reply]) {
        self.memory.replies.lock().unwrap().extend(replies);
    }

    /// Sets the response to all other requests.
    pub(crate) fn otherwise(&self, reply: Reply) {
        *self.memory.otherwise.lock().unwrap() = reply;
    }

    /// Waits for this number of requests and returns all of them.
    pub(crate) async fn got(&self, count: usize) -> Vec<ReceivedRequest> {
        self.memory.count.subscribe().wait_for(|seen| *seen >= count).await.unwrap();
        self.received()
    }

    pub(crate) fn received(&self) -> Vec<ReceivedRequest> {
        self.memory.got.lock().unwrap().clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

// === impl ReceivedRequest ===

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Number of its audit record.
    pub(crate) fn record(&self) -> u64 {
        self.header("webhook-id").split_once('-').unwrap().0.parse().unwrap()
    }
}

async fn take(State(memory): State<Arc<Memory>>, headers: HeaderMap, body: Bytes) -> Response {
    let scripted = memory.replies.lock().unwrap().pop_front();
    let reply = scripted.unwrap_or_else(|| *memory.otherwise.lock().unwrap());
    memory.got.lock().unwrap().push(ReceivedRequest { headers, body });
    memory.count.send_modify(|count| *count += 1);
    match reply {
        Reply::Status(status) => StatusCode::from_u16(status).unwrap().into_response(),
        Reply::Header(status, name, value) => {
            (StatusCode::from_u16(status).unwrap(), [(name, value)]).into_response()
        }
        Reply::Hang => std::future::pending().await,
    }
}
