//! Sample A2A agents of every generation, for `rialto demo`.
//!
//! They are strangers on purpose: small servers on free loopback ports that spell their answers by hand and share no
//! code with our own codecs, so that a demo that works has crossed a real wire. They live until they are dropped.

mod persona;
mod spelling;
mod work;

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
    persona::{PERSONAS, Persona},
    spelling::{Fault, Operation, Spelling},
    work::{Shelf, Work},
};

/// A running agent; dropping it stops it.
pub(crate) struct SampleAgent {
    /// What its card calls it.
    pub(crate) name: &'static str,
    /// The base URL to register.
    pub(crate) url: String,
    /// Which A2A it speaks, for people: `1.0`, `0.3`, …
    pub(crate) generation: &'static str,
    _running: DropGuard,
}

/// Starts every sample agent on a free loopback port.
pub(crate) async fn start_all() -> io::Result<Vec<SampleAgent>> {
    let mut agents = Vec::new();
    for persona in PERSONAS {
        agents.push(start(persona).await?);
    }
    Ok(agents)
}

/// Who answers, and what it remembers.
struct Desk {
    persona: &'static Persona,
    shelf: Shelf,
}

/// A JSON-RPC request.
#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    id: Value,
    method: String,
    #[serde(default)]
    params: Value,
}

/// What a request leads to.
enum Reply {
    Result(Value),
    /// The work, and how many of its pieces need not be told any more.
    Stream(Work, usize),
}

async fn start(persona: &'static Persona) -> io::Result<SampleAgent> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let url = format!("http://{}", listener.local_addr()?);
    let listener = listener.tap_io(|stream| {
        // A stream that does not take the option still works, only slower.
        let _ = stream.set_nodelay(true);
    });
    let card = persona.card(&url);
    let desk = Arc::new(Desk { persona, shelf: Shelf::default() });
    let router = Router::new()
        .route(persona.generation.card_path(), get(move || std::future::ready(Json(card))))
        .route("/", post(answer))
        .with_state(desk);
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

async fn answer(State(desk): State<Arc<Desk>>, headers: HeaderMap, body: Bytes) -> Response {
    let spelling = desk.persona.generation.spelling();
    let Ok(asked) = serde_json::from_slice::<Asked>(&body) else {
        return refuse(spelling, &Value::Null, &Fault::new(-32700, "the body is not a JSON-RPC request"));
    };
    let version = headers.get("a2a-version").and_then(|version| version.to_str().ok());
    let reply = match spelling.check_version(version) {
        Ok(()) => desk.reply(&asked).await,
        Err(fault) => Err(fault),
    };
    match reply {
        Ok(Reply::Result(result)) => Json(envelope(&asked.id, &result)).into_response(),
        Ok(Reply::Stream(work, told)) => Sse::new(tell(desk, work, told, asked.id)).into_response(),
        Err(fault) => refuse(spelling, &asked.id, &fault),
    }
}

// === impl Desk ===

impl Desk {
    async fn reply(&self, asked: &Asked) -> Result<Reply, Fault> {
        let spelling = self.persona.generation.spelling();
        let Some(operation) = spelling.operation(&asked.method) else {
            return Err(Fault::new(-32601, format!("there is no method {}", asked.method)));
        };
        match operation {
            Operation::Send => {
                let work = self.begin(&asked.params)?;
                let work =
                    if spelling.wants_to_wait(&asked.params) { self.finish(work).await? } else { work };
                Ok(Reply::Result(spelling.sent(&work)))
            }
            Operation::Stream => self.begin(&asked.params).map(|work| Reply::Stream(work, 0)),
            Operation::Get => self.find(&asked.params).map(|work| Reply::Result(spelling.task(&work))),
            Operation::Subscribe => {
                let work = self.find(&asked.params)?;
                let told = work.pieces_done();
                Ok(Reply::Stream(work, told))
            }
            Operation::Cancel => {
                let work = self.find(&asked.params)?;
                let canceled = self.shelf.cancel(&work.id);
                let canceled = canceled.ok_or_else(|| Fault::new(-32002, "the task is over already"))?;
                Ok(Reply::Result(spelling.task(&canceled)))
            }
        }
    }

    /// Begins what the message asks for and remembers it.
    fn begin(&self, params: &Value) -> Result<Work, Fault> {
        let spelling = self.persona.generation.spelling();
        let skill = self.persona.skill(spelling.skill(params)).ok_or_else(|| {
            Fault::new(-32602, format!("choose one of these skills: {}", self.persona.skill_ids()))
        })?;
        let id = spelling.task_id(params).unwrap_or_else(|| self.shelf.new_id(self.persona.name));
        let context = spelling.context_id(params).unwrap_or_else(|| format!("{id}-context"));
        let work = Work::begin(id, context, (skill.work)(&spelling.arguments(params)));
        self.shelf.put(work.clone());
        Ok(work)
    }

    /// Waits until it is over, one way or the other.
    async fn finish(&self, mut work: Work) -> Result<Work, Fault> {
        while !work.is_over() {
            sleep(Duration::from_millis(20)).await;
            work = self.again(&work.id)?;
        }
        Ok(work)
    }

    fn find(&self, params: &Value) -> Result<Work, Fault> {
        self.again(params.get("id").and_then(Value::as_str).unwrap_or_default())
    }

    fn again(&self, id: &str) -> Result<Work, Fault> {
        self.shelf.find(id).ok_or_else(|| Fault::new(-32001, format!("there is no task {id}")))
    }
}

/// The work as a stream: how it stands, then each piece when its time comes, then how it ended.
fn tell(
    desk: Arc<Desk>,
    work: Work,
    told: usize,
    id: Value,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let spelling = desk.persona.generation.spelling();
    let opening = spelling.opening(&work, told);
    let next = move |told: Option<usize>| {
        let (desk, work) = (Arc::clone(&desk), work.clone());
        async move {
            let told = told?;
            let Some(due) = work.due(told) else { return Some((vec![spelling.ending(&work)], None)) };
            sleep_until(Instant::from_std(due)).await;
            match desk.shelf.find(&work.id) {
                Some(now) if now.is_canceled() => Some((vec![spelling.ending(&now)], None)),
                _ => Some((spelling.piece(&work, told), Some(told + 1))),
            }
        }
    };
    let events = stream::iter(opening).chain(stream::unfold(Some(told), next).flat_map(stream::iter));
    events.map(move |event| Ok(Event::default().data(envelope(&id, &event).to_string())))
}

fn envelope(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn refuse(spelling: Spelling, id: &Value, fault: &Fault) -> Response {
    let body = json!({"jsonrpc": "2.0", "id": id, "error": {"code": fault.code, "message": fault.message}});
    let status = if spelling.refuses_with_400(fault) { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    (status, Json(body)).into_response()
}

#[cfg(test)]
mod tests;
