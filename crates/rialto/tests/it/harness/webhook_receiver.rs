//! A receiver of webhooks and push notifications inside the test: it answers with the status it is told to, or not at all.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::Value;
use tokio::{net::TcpListener, runtime::Runtime};

use super::until;

/// One event as it came.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) id: String,
    pub(crate) timestamp: i64,
    pub(crate) signature: String,
    pub(crate) body: String,
    /// What push notifications show to say that they are meant for us.
    pub(crate) token: String,
}

/// A receiver that answers as long as this lives.
pub(crate) struct WebhookReceiver {
    pub(crate) url: String,
    memory: Arc<ReceiverMemory>,
    /// Dropped, it takes the server with it.
    _runtime: Runtime,
}

struct ReceiverMemory {
    told: Mutex<Vec<ReceivedRequest>>,
    /// None never answers.
    status: Mutex<Option<u16>>,
}

// === impl WebhookReceiver ===

impl WebhookReceiver {
    pub(crate) fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let memory = Arc::new(ReceiverMemory { told: Mutex::default(), status: Mutex::new(Some(204)) });
        let router = Router::new().route("/hook", post(take)).with_state(Arc::clone(&memory));
        runtime.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, memory, _runtime: runtime }
    }

    /// Answers with this from now on; with none, not at all.
    pub(crate) fn answer(&self, status: Option<u16>) {
        *self.memory.status.lock().unwrap() = status;
    }

    /// What it was told so far.
    pub(crate) fn told(&self) -> Vec<ReceivedRequest> {
        self.memory.told.lock().unwrap().clone()
    }

    /// Waits until it was told so many events.
    #[track_caller]
    pub(crate) fn until_told(&self, count: usize) -> Vec<ReceivedRequest> {
        until(&format!("{count} events came"), || Some(self.told()).filter(|told| told.len() >= count))
    }
}

// === impl ReceivedRequest ===

impl ReceivedRequest {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The number of the record it tells of.
    pub(crate) fn record(&self) -> u64 {
        self.id.split_once('-').unwrap().0.parse().unwrap()
    }
}

async fn take(State(memory): State<Arc<ReceiverMemory>>, headers: HeaderMap, body: String) -> Response {
    // A webhook has the first three, a push notification the last.
    let header = |name: &str| headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
    memory.told.lock().unwrap().push(ReceivedRequest {
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp").parse().unwrap_or_default(),
        signature: header("webhook-signature"),
        token: header("x-a2a-notification-token"),
        body,
    });
    let status = *memory.status.lock().unwrap();
    match status {
        Some(status) => StatusCode::from_u16(status).unwrap().into_response(),
        None => std::future::pending().await,
    }
}
