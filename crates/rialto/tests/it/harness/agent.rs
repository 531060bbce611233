//! An A2A 0.3 agent inside the test: its card can be changed while it runs, and it remembers what it was sent.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
    serve::ListenerExt,
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::{net::TcpListener, runtime::Runtime, sync::watch};

/// What the skill `digits` answers: more than 64 bits, more than a double, and spellings of its own.
pub(crate) const DIGITS: &str =
    r#"{"int":123456789012345678901234567890,"float":0.1234567890123456789,"exp":1e2,"zero":1.0}"#;

/// An agent that answers as long as this lives.
pub(crate) struct SampleAgent {
    /// Its base URL.
    pub(crate) url: String,
    memory: Arc<RequestLog>,
    /// Dropped, it takes the server with it.
    _runtime: Runtime,
}

struct RequestLog {
    /// What it answers to whoever asks for its card.
    card: Mutex<(u16, String)>,
    /// How long it takes to answer whoever asks for its card.
    card_delay: Mutex<Duration>,
    /// The bodies it was sent.
    heard: Mutex<Vec<String>>,
    /// The token without which a message is answered with 401.
    demanded: Mutex<Option<String>>,
    /// What came in their `Authorization` headers.
    tokens: Mutex<Vec<String>>,
    /// What came in their `traceparent`, `tracestate` and `baggage` headers.
    traces: Mutex<Vec<[Option<String>; 3]>>,
    /// When the task of the skill `later` is done.
    done_at: Mutex<Option<Instant>>,
    /// Whether the skill `look` has looked enough.
    enough: watch::Sender<bool>,
    /// How many have connected, whatever they wanted.
    connections: AtomicUsize,
}

/// What it reads of a request; data stays the text it came as.
#[derive(Deserialize)]
struct Request {
    id: Value,
    params: Params,
}

#[derive(Deserialize)]
struct Params {
    /// None when a task is asked for.
    message: Option<Message>,
}

#[derive(Deserialize)]
struct Message {
    parts: Vec<Part>,
    #[serde(default)]
    metadata: Value,
    #[serde(rename = "taskId")]
    task: Option<String>,
}

#[derive(Deserialize)]
struct Part {
    data: Option<Box<RawValue>>,
    #[serde(default)]
    text: String,
}

// === impl SampleAgent ===

impl SampleAgent {
    /// Starts an agent with this name and the skills `echo`, `greet`, `fail`, `slow`, `nonsense` and `ask`.
    pub(crate) fn named(name: &str) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let card = (200, card(name, &url).to_string());
        let memory = Arc::new(RequestLog {
            card: Mutex::new(card),
            card_delay: Mutex::default(),
            heard: Mutex::default(),
            demanded: Mutex::default(),
            tokens: Mutex::default(),
            traces: Mutex::default(),
            done_at: Mutex::default(),
            enough: watch::Sender::new(false),
            connections: AtomicUsize::default(),
        });
        let count = Arc::clone(&memory);
        let listener = listener.tap_io(move |_| {
            count.connections.fetch_add(1, Ordering::SeqCst);
        });
        let router = Router::new()
            .route("/.well-known/agent-card.json", get(show_card))
            .route("/", post(answer))
            .route("/enough", post(enough))
            .with_state(Arc::clone(&memory));
        runtime.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, memory, _runtime: runtime }
    }

    /// Changes its card.
    pub(crate) fn change_card(&self, change: impl FnOnce(&mut Value)) {
        let mut shown = self.memory.card.lock().unwrap();
        let mut card = serde_json::from_str(&shown.1).unwrap();
        change(&mut card);
        shown.1 = card.to_string();
    }

    /// Adds a skill to its card: `digits`; `later`, which names its task at once and does it in the background; or `look`, which takes
    /// until somebody posts to `/enough`.
    pub(crate) fn learn(&self, skill: &str) {
        self.change_card(|card| {
            let skill = json!({ "id": skill, "name": skill, "description": "", "tags": [] });
            card["skills"].as_array_mut().unwrap().push(skill);
        });
    }

    /// Whoever looks stops, and so does whoever begins to.
    pub(crate) fn enough(&self) {
        self.memory.enough.send_replace(true);
    }

    /// From now on, whoever asks for its card gets this instead.
    pub(crate) fn show_instead(&self, status: u16, body: &str) {
        *self.memory.card.lock().unwrap() = (status, body.to_owned());
    }

    /// From now on a message without this token is answered with 401. The card stays public.
    pub(crate) fn demand_token(&self, token: &str) {
        *self.memory.demanded.lock().unwrap() = Some(format!("Bearer {token}"));
    }

    /// From now on it takes so long to show its card.
    pub(crate) fn delay_card(&self, delay: Duration) {
        *self.memory.card_delay.lock().unwrap() = delay;
    }

    /// What it was sent so far.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.memory.heard.lock().unwrap().clone()
    }

    /// How many connections were made to it so far.
    pub(crate) fn connections(&self) -> usize {
        self.memory.connections.load(Ordering::SeqCst)
    }

    /// The `traceparent`, `tracestate` and `baggage` of each message.
    pub(crate) fn traces(&self) -> Vec<[Option<String>; 3]> {
        self.memory.traces.lock().unwrap().clone()
    }

    /// Who its callers said they are.
    pub(crate) fn tokens(&self) -> Vec<String> {
        self.memory.tokens.lock().unwrap().clone()
    }
}

fn card(name: &str, url: &str) -> Value {
    let skill =
        |id: &str| json!({ "id": id, "name": id, "description": format!("Can {id}."), "tags": ["sample"] });
    let mut greet = skill("greet");
    greet["inputSchema"] = json!({
        "type": "object",
        "properties": { "name": { "type": "string" } },
        "required": ["name"],
    });
    json!({
        "name": name,
        "description": "An agent of the tests.",
        "url": format!("{url}/"),
        "version": "1.0.0",
        "protocolVersion": "0.3.0",
        "preferredTransport": "JSONRPC",
        "capabilities": { "streaming": false },
        "defaultInputModes": ["application/json"],
        "defaultOutputModes": ["application/json"],
        "skills": [skill("echo"), greet, skill("fail"), skill("slow"), skill("nonsense"), skill("ask")],
    })
}

async fn show_card(State(memory): State<Arc<RequestLog>>) -> Response {
    let delay = *memory.card_delay.lock().unwrap();
    tokio::time::sleep(delay).await;
    let (status, body) = memory.card.lock().unwrap().clone();
    (StatusCode::from_u16(status).unwrap(), [(header::CONTENT_TYPE, "application/json")], body)
        .into_response()
}

async fn enough(State(memory): State<Arc<RequestLog>>) {
    memory.enough.send_replace(true);
}

async fn answer(State(memory): State<Arc<RequestLog>>, headers: HeaderMap, body: String) -> Response {
    let token = headers.get(header::AUTHORIZATION).map(|token| token.to_str().unwrap().to_owned());
    let is_refused =
        memory.demanded.lock().unwrap().as_ref().is_some_and(|demanded| Some(demanded) != token.as_ref());
    memory.tokens.lock().unwrap().extend(token);
    if is_refused {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    memory.traces.lock().unwrap().push(["traceparent", "tracestate", "baggage"].map(text));
    memory.heard.lock().unwrap().push(body.clone());
    let request: Request = serde_json::from_str(&body).unwrap();
    let Some(message) = &request.params.message else { return memory.asked_for_task(&request.id) };
    let data = message.parts.iter().find_map(|part| part.data.as_deref()).map_or("{}", RawValue::get);
    let args: Value = serde_json::from_str(data).unwrap();
    let result = match message.metadata["skillId"].as_str().unwrap_or_default() {
        _ if message.task.is_some() => said(&format!("you chose {}", message.parts[0].text)),
        "echo" => completed(&format!(r#"{{"kind":"data","data":{data}}}"#)),
        "digits" => completed(&format!(r#"{{"kind":"data","data":{DIGITS}}}"#)),
        "greet" => said(&format!("hello {}", args["name"].as_str().unwrap_or("you"))),
        "fail" => ended("failed", "it broke on purpose"),
        "ask" => ended("input-required", "which colour?"),
        "slow" => {
            tokio::time::sleep(Duration::from_millis(args["ms"].as_u64().unwrap_or(3_000))).await;
            said("done at last")
        }
        "later" => {
            let length = Duration::from_millis(args["ms"].as_u64().unwrap_or(3_000));
            *memory.done_at.lock().unwrap() = Some(Instant::now() + length);
            memory.later()
        }
        "look" => {
            memory.enough.subscribe().wait_for(|is_enough| *is_enough).await.unwrap();
            said("it looks good")
        }
        "nonsense" => return "this is not json".into_response(),
        other => said(&format!("there is no skill {other:?}")),
    };
    enveloped(&request.id, &result)
}

fn enveloped(id: &Value, result: &str) -> Response {
    let envelope = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    ([(header::CONTENT_TYPE, "application/json")], envelope).into_response()
}

// === impl RequestLog ===

impl RequestLog {
    /// Only the skill `later` leaves a task that can be asked for.
    fn asked_for_task(&self, id: &Value) -> Response {
        if self.done_at.lock().unwrap().is_some() {
            return enveloped(id, &self.later());
        }
        let error = json!({ "code": -32001, "message": "there is no such task" });
        let envelope = json!({ "jsonrpc": "2.0", "id": id, "error": error });
        ([(header::CONTENT_TYPE, "application/json")], envelope.to_string()).into_response()
    }

    /// The task of the skill `later`, as it stands.
    fn later(&self) -> String {
        if self.done_at.lock().unwrap().is_some_and(|end| end <= Instant::now()) {
            return said("done at last");
        }
        json!({ "kind": "task", "id": "task-1", "contextId": "context-1", "status": { "state": "working" } })
            .to_string()
    }
}

fn said(text: &str) -> String {
    completed(&json!({ "kind": "text", "text": text }).to_string())
}

fn completed(part: &str) -> String {
    format!(
        r#"{{"kind":"task","id":"task-1","contextId":"context-1","status":{{"state":"completed"}},
            "artifacts":[{{"artifactId":"result","parts":[{part}]}}]}}"#
    )
}

fn ended(state: &str, words: &str) -> String {
    let words = json!({ "kind": "text", "text": words });
    let message = json!({ "kind": "message", "messageId": "m", "role": "agent", "parts": [words] });
    let status = json!({ "state": state, "message": message });
    json!({ "kind": "task", "id": "task-1", "contextId": "context-1", "status": status }).to_string()
}
