//! Sample A2A agents of every generation, for `rialto demo`.
//!
//! They share no code with Rialto's codecs: small servers on free loopback ports that build their responses by hand, so that the demo
//! tests the wire format. They run until they are dropped.

mod dialects;
mod profiles;
mod tasks;

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{
        IntoResponse, Response,
        sse::{Event, Sse},
    },
    routing::{get, post},
    serve::ListenerExt,
};
use futures::stream::{self, Stream, StreamExt};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::{
    dialects::{AgentOperation, SampleDialect, SampleRpcError},
    profiles::{SAMPLE_PROFILES, SampleProfile},
    tasks::{RecentTasks, SampleTask},
};

/// A running agent; dropping it stops it.
pub struct SampleAgent {
    /// Name on its card.
    pub name: &'static str,
    /// The base URL to register.
    pub url: String,
    /// A2A version, for people: `1.0`, `0.3`, …
    pub generation: &'static str,
    _running: DropGuard,
}

/// Starts every sample agent on a free loopback port.
pub async fn start_all() -> io::Result<Vec<SampleAgent>> {
    let mut agents = Vec::new();
    for persona in SAMPLE_PROFILES {
        agents.push(start(persona).await?);
    }
    Ok(agents)
}

/// State of a sample agent.
struct AgentState {
    persona: &'static SampleProfile,
    shelf: RecentTasks,
}

/// A JSON-RPC request.
#[derive(Deserialize)]
struct RpcRequest {
    #[serde(default)]
    id: Value,
    method: String,
    #[serde(default)]
    params: Value,
}

/// Reply to a request.
enum SampleReply {
    Result(Value),
    /// Task, and the number of pieces that are not sent again.
    Stream(SampleTask, usize),
}

async fn start(persona: &'static SampleProfile) -> io::Result<SampleAgent> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let url = format!("http://{}", listener.local_addr()?);
    let listener = listener.tap_io(|stream| {
        // A stream that does not take the option still works, only slower.
        let _ = stream.set_nodelay(true);
    });
    let card = persona.card(&url);
    let api = Arc::new(AgentState { persona, shelf: RecentTasks::default() });
    let router = Router::new()
        .route(persona.generation.card_path(), get(move || std::future::ready(Json(card))))
        .route("/", post(handle_request))
        .with_state(api);
    let stop = CancellationToken::new();
    let stopped = stop.clone().cancelled_owned();
    tokio::spawn(async move { axum::serve(listener, router).with_graceful_shutdown(stopped).await });
    Ok(SampleAgent {
        name: persona.name,
        url,
        generation: persona.generation.label(),
        _running: stop.drop_guard(),
    })
}

async fn handle_request(State(api): State<Arc<AgentState>>, headers: HeaderMap, body: Bytes) -> Response {
    let spelling = api.persona.generation.spelling();
    let Ok(asked) = serde_json::from_slice::<RpcRequest>(&body) else {
        return error_response(
            spelling,
            &Value::Null,
            &SampleRpcError::new(-32700, "the body is not a JSON-RPC request"),
        );
    };
    let version = headers.get("a2a-version").and_then(|version| version.to_str().ok());
    let reply = match spelling.check_version(version) {
        Ok(()) => api.reply(&asked).await,
        Err(fault) => Err(fault),
    };
    match reply {
        Ok(SampleReply::Result(result)) => Json(envelope(&asked.id, &result)).into_response(),
        Ok(SampleReply::Stream(work, told)) => {
            Sse::new(stream_task(api, work, told, asked.id)).into_response()
        }
        Err(fault) => error_response(spelling, &asked.id, &fault),
    }
}

// === impl AgentState ===

impl AgentState {
    async fn reply(&self, asked: &RpcRequest) -> Result<SampleReply, SampleRpcError> {
        let spelling = self.persona.generation.spelling();
        let Some(operation) = spelling.operation(&asked.method) else {
            return Err(SampleRpcError::new(-32601, format!("there is no method {}", asked.method)));
        };
        match operation {
            AgentOperation::Send => {
                let work = self.start_task(&asked.params)?;
                let work =
                    if spelling.wants_to_wait(&asked.params) { self.finish(work).await? } else { work };
                Ok(SampleReply::Result(spelling.message_result(&work)))
            }
            AgentOperation::Stream => self.start_task(&asked.params).map(|work| SampleReply::Stream(work, 0)),
            AgentOperation::Get => {
                self.find(&asked.params).map(|work| SampleReply::Result(spelling.task(&work)))
            }
            AgentOperation::Subscribe => {
                let work = self.find(&asked.params)?;
                let told = work.pieces_done();
                Ok(SampleReply::Stream(work, told))
            }
            AgentOperation::Cancel => {
                let work = self.find(&asked.params)?;
                let canceled = self.shelf.cancel(&work.id);
                let canceled =
                    canceled.ok_or_else(|| SampleRpcError::new(-32002, "the task is over already"))?;
                Ok(SampleReply::Result(spelling.task(&canceled)))
            }
        }
    }

    /// Begins what the message asks for and remembers it.
    fn start_task(&self, params: &Value) -> Result<SampleTask, SampleRpcError> {
        let spelling = self.persona.generation.spelling();
        let skill = self.persona.skill(spelling.skill(params)).ok_or_else(|| {
            SampleRpcError::new(-32602, format!("choose one of these skills: {}", self.persona.skill_ids()))
        })?;
        let id = spelling.task_id(params).unwrap_or_else(|| self.shelf.new_id(self.persona.name));
        let context = spelling.context_id(params).unwrap_or_else(|| format!("{id}-context"));
        let work = SampleTask::begin(id, context, (skill.work)(&spelling.arguments(params)));
        self.shelf.put(work.clone());
        Ok(work)
    }

    /// Waits until it is over, one way or the other.
    async fn finish(&self, mut work: SampleTask) -> Result<SampleTask, SampleRpcError> {
        while !work.is_over() {
            sleep(Duration::from_millis(20)).await;
            work = self.task_after_wait(&work.id)?;
        }
        Ok(work)
    }

    fn find(&self, params: &Value) -> Result<SampleTask, SampleRpcError> {
        self.task_after_wait(params.get("id").and_then(Value::as_str).unwrap_or_default())
    }

    fn task_after_wait(&self, id: &str) -> Result<SampleTask, SampleRpcError> {
        self.shelf.find(id).ok_or_else(|| SampleRpcError::new(-32001, format!("there is no task {id}")))
    }
}

/// Stream of a task: its state, each piece when it is due, then its end.
fn stream_task(
    api: Arc<AgentState>,
    work: SampleTask,
    told: usize,
    id: Value,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let spelling = api.persona.generation.spelling();
    let opening = spelling.first_event(&work, told);
    let next = move |told: Option<usize>| {
        let (api, work) = (Arc::clone(&api), work.clone());
        async move {
            let told = told?;
            let Some(due) = work.due_at(told) else { return Some((vec![spelling.last_event(&work)], None)) };
            sleep_until(Instant::from_std(due)).await;
            match api.shelf.find(&work.id) {
                Some(now) if now.is_canceled() => Some((vec![spelling.last_event(&now)], None)),
                _ => Some((spelling.piece_events(&work, told), Some(told + 1))),
            }
        }
    };
    let events = stream::iter(opening).chain(stream::unfold(Some(told), next).flat_map(stream::iter));
    events.map(move |event| Ok(Event::default().data(envelope(&id, &event).to_string())))
}

fn envelope(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn error_response(spelling: SampleDialect, id: &Value, fault: &SampleRpcError) -> Response {
    let body = json!({"jsonrpc": "2.0", "id": id, "error": {"code": fault.code, "message": fault.message}});
    let status = if spelling.refuses_with_400(fault) { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    (status, Json(body)).into_response()
}

#[cfg(test)]
mod tests;
