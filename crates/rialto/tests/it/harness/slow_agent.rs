//! An A2A 0.3 agent inside the test whose tasks take their time: it counts aloud, streams each number, and can be asked
//! about every task it ever had.

use std::{
    collections::{BTreeMap, VecDeque},
    convert::Infallible,
    fmt::Write as _,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::header,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures::stream;
use serde_json::{Value, json};
use tokio::{net::TcpListener, runtime::Runtime};

/// How far it counts, and how long each number takes.
const NUMBERS: usize = 8;
const STEP: Duration = Duration::from_millis(40);

/// An agent that works as long as this lives.
pub(crate) struct SlowAgent {
    /// Its base URL.
    pub(crate) url: String,
    memory: Arc<AgentMemory>,
    /// Dropped, it takes the server with it.
    _runtime: Runtime,
}

#[derive(Default)]
struct AgentMemory {
    /// When each task began.
    begun: Mutex<BTreeMap<String, Instant>>,
    /// The messages it was sent, by their ids.
    heard: Mutex<Vec<String>>,
    /// The data in them.
    told: Mutex<Vec<Value>>,
}

// === impl SlowAgent ===

impl SlowAgent {
    /// Starts the agent `SlowAgent` with the skill `count`.
    pub(crate) fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (memory, card) = (Arc::<AgentMemory>::default(), card(&url).to_string());
        let router = Router::new()
            .route("/.well-known/agent-card.json", get(|| async move { as_json(card) }))
            .route("/", post(answer))
            .with_state(Arc::clone(&memory));
        runtime.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, memory, _runtime: runtime }
    }

    /// The ids of the messages it was sent so far.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.memory.heard.lock().unwrap().clone()
    }

    /// The data of the messages it was sent so far.
    pub(crate) fn told(&self) -> Vec<Value> {
        self.memory.told.lock().unwrap().clone()
    }

    /// What a task has made once it is done.
    pub(crate) fn whole() -> Vec<String> {
        (1..=NUMBERS).map(|number| number.to_string()).collect()
    }
}

// === impl AgentMemory ===

impl AgentMemory {
    /// How many numbers of a task are said by now; none when there is no such task.
    fn said(&self, task: &str) -> Option<usize> {
        let begun = *self.begun.lock().unwrap().get(task)?;
        let steps = begun.elapsed().as_millis() / STEP.as_millis();
        Some(usize::try_from(steps).unwrap().min(NUMBERS))
    }
}

fn card(url: &str) -> Value {
    json!({
        "name": "Worker",
        "description": "Counts aloud.",
        "url": format!("{url}/"),
        "version": "1.0.0",
        "protocolVersion": "0.3.0",
        "preferredTransport": "JSONRPC",
        "capabilities": { "streaming": true },
        "defaultInputModes": ["application/json"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{ "id": "count", "name": "count", "description": "Counts.", "tags": ["slow"] }],
    })
}

async fn answer(State(memory): State<Arc<AgentMemory>>, body: String) -> Response {
    let request: Value = serde_json::from_str(&body).unwrap();
    let (id, params) = (request["id"].clone(), &request["params"]);
    let (task, is_stream) = match request["method"].as_str().unwrap() {
        method @ ("message/send" | "message/stream") => {
            let message = params["message"]["messageId"].as_str().unwrap().to_owned();
            let mut begun = memory.begun.lock().unwrap();
            let task = format!("job-{}", begun.len() + 1);
            begun.insert(task.clone(), Instant::now());
            memory.heard.lock().unwrap().push(message);
            memory.told.lock().unwrap().push(params["message"]["parts"][0]["data"].clone());
            (task, method == "message/stream")
        }
        method => (params["id"].as_str().unwrap().to_owned(), method == "tasks/resubscribe"),
    };
    let Some(said) = memory.said(&task) else {
        let error = json!({ "code": -32001, "message": "there is no such task" });
        return as_json(json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string());
    };
    if is_stream {
        return streamed(memory, id, task, said);
    }
    as_json(json!({ "jsonrpc": "2.0", "id": id, "result": snapshot(&task, said) }).to_string())
}

/// The task as it is, and then each number as it is said.
fn streamed(memory: Arc<AgentMemory>, id: Value, task: String, said: usize) -> Response {
    let first = VecDeque::from([snapshot(&task, said)]);
    let frames = stream::unfold(
        (memory, task, said, first),
        |(memory, task, mut told, mut queue)| async move {
            loop {
                if let Some(event) = queue.pop_front() {
                    return Some((event, (memory, task, told, queue)));
                }
                if told == NUMBERS {
                    return None;
                }
                tokio::time::sleep(STEP / 4).await;
                let said = memory.said(&task)?;
                queue.extend((told + 1..=said).map(|number| piece(&task, number)));
                if said == NUMBERS {
                    let status = json!({ "state": "completed" });
                    queue.push_back(json!({
                    "kind": "status-update", "taskId": task, "contextId": "c", "status": status, "final": true,
                }));
                }
                told = said;
            }
        },
    );
    let framed = move |event: Value| {
        let mut frame = String::new();
        let envelope = json!({ "jsonrpc": "2.0", "id": id, "result": event });
        write!(frame, "data: {envelope}\n\n").unwrap();
        Ok::<_, Infallible>(frame)
    };
    let body = Body::from_stream(futures::StreamExt::map(frames, framed));
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

fn snapshot(task: &str, said: usize) -> Value {
    let state = if said == NUMBERS { "completed" } else { "working" };
    let mut told = json!({ "kind": "task", "id": task, "contextId": "c", "status": { "state": state } });
    if said > 0 {
        let parts: Vec<Value> = (1..=said).map(part).collect();
        told["artifacts"] = json!([{ "artifactId": "numbers", "parts": parts }]);
    }
    told
}

fn piece(task: &str, number: usize) -> Value {
    json!({
        "kind": "artifact-update",
        "taskId": task,
        "contextId": "c",
        "append": number > 1,
        "lastChunk": number == NUMBERS,
        "artifact": { "artifactId": "numbers", "parts": [part(number)] },
    })
}

fn part(number: usize) -> Value {
    json!({ "kind": "text", "text": number.to_string() })
}

fn as_json(body: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
