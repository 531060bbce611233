//! An agent that answers what it is told to, in order, and remembers what it was asked.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    response::Response,
};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{HeaderMap, StatusCode, header};
use http_body::Frame;
use http_body_util::StreamBody;
use rialto_a2a_codec::grpc::GrpcStatus;
use serde_json::Value;
use tokio::net::TcpListener;

/// What to answer next.
pub(crate) enum Answer {
    /// A whole body.
    Whole { status: u16, media_type: &'static str, body: String },
    /// Server-sent events, one chunk after the other, and then the end.
    Events(Vec<String>),
    /// Server-sent events, and then silence with the stream open.
    Open(Vec<String>),
    /// Server-sent events, and then the connection breaks.
    Broken(Vec<String>),
    /// gRPC: framed messages, and how it went unless that is never said.
    Grpc(Vec<Vec<u8>>, Option<GrpcStatus>),
    /// A redirect to this address.
    Elsewhere(String),
    /// A refusal for now, with `Retry-After`.
    NotNow(u16, &'static str),
    /// Nothing, ever.
    Silence,
    /// After a while, this.
    Later(Duration, Box<Answer>),
}

/// What was asked.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    pub(crate) bytes: Bytes,
}

/// A scripted agent.
#[derive(Clone)]
pub(crate) struct Script {
    pub(crate) address: SocketAddr,
    heard: Arc<Mutex<Vec<Heard>>>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
}

impl Script {
    /// An agent with these answers. When they are used up, it says so with a 500.
    pub(crate) async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let script = Self {
            address: listener.local_addr().unwrap(),
            heard: Arc::default(),
            answers: Arc::new(Mutex::new(answers.into_iter().collect())),
        };
        let router = Router::new().fallback(answer).with_state(script.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        script
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    /// Adds answers to those that are left.
    pub(crate) fn answer_next(&self, answers: impl IntoIterator<Item = Answer>) {
        self.answers.lock().unwrap().extend(answers);
    }

    /// Waits until something was asked.
    pub(crate) async fn is_asked(&self) {
        while self.heard.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// What was asked, by JSON-RPC method or by HTTP method and path.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.heard().iter().map(Heard::name).collect()
    }
}

impl Heard {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn name(&self) -> String {
        let body: Option<Value> = serde_json::from_str(&self.body).ok();
        let rpc = body.as_ref().and_then(|body| body.get("method")).and_then(Value::as_str);
        rpc.map_or_else(|| format!("{} {}", self.method, self.path), str::to_owned)
    }
}

/// A JSON body.
pub(crate) fn json(body: &str) -> Answer {
    http(200, body)
}

/// A JSON body with a status.
pub(crate) fn http(status: u16, body: &str) -> Answer {
    Answer::Whole { status, media_type: "application/json", body: body.to_owned() }
}

/// A JSON-RPC result.
pub(crate) fn result(result: &str) -> Answer {
    json(&envelope(result))
}

/// A JSON-RPC error.
pub(crate) fn error(code: i64, message: &str) -> Answer {
    json(&error_body(code, message))
}

pub(crate) fn error_body(code: i64, message: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"{message}"}}}}"#)
}

/// Events whose data are JSON-RPC results.
pub(crate) fn events(results: &[&str]) -> Answer {
    Answer::Events(results.iter().map(|result| data(&envelope(result))).collect())
}

/// One event with `data` on one line.
pub(crate) fn data(data: &str) -> String {
    format!("data: {}\r\n\r\n", data.replace('\n', ""))
}

pub(crate) fn envelope(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)
}

async fn answer(State(script): State<Script>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    // Whatever extensions are named are in use here.
    let named = ["a2a-extensions", "x-a2a-extensions"].into_iter().filter_map(|name| {
        let value = head.headers.get(name)?.clone();
        Some((http::HeaderName::from_static(name), value))
    });
    let named: HeaderMap = named.collect();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let id = request_id(&body);
    script.heard.lock().unwrap().push(Heard {
        method: head.method.to_string(),
        path: head.uri.path_and_query().unwrap().to_string(),
        headers: head.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
        bytes: body,
    });
    let next = script.answers.lock().unwrap().pop_front();
    let used_up =
        || Answer::Whole { status: 500, media_type: "text/plain", body: "the script is over".into() };
    let mut response = render(next.unwrap_or_else(used_up), &id).await;
    response.headers_mut().extend(named);
    response
}

/// The id of a JSON-RPC request, which scripted answers repeat in place of 1.
fn request_id(body: &[u8]) -> String {
    let body: Option<Value> = serde_json::from_slice(body).ok();
    body.and_then(|body| body.get("id").cloned()).map_or_else(|| "1".to_owned(), |id| id.to_string())
}

async fn render(mut answer: Answer, id: &str) -> Response {
    while let Answer::Later(wait, then) = answer {
        tokio::time::sleep(wait).await;
        answer = *then;
    }
    let repeated = format!(r#"{{"jsonrpc":"2.0","id":{id},"#);
    let answered = move |body: String| body.replace(r#"{"jsonrpc":"2.0","id":1,"#, &repeated);
    let chunks = |chunks: Vec<String>| {
        let answered = answered.clone();
        stream::iter(chunks).map(move |chunk| Ok::<_, std::io::Error>(answered(chunk)))
    };
    match answer {
        Answer::Whole { status, media_type, body } => respond(status, media_type, Body::from(answered(body))),
        Answer::Events(events) => respond(200, "text/event-stream", Body::from_stream(chunks(events))),
        Answer::Open(events) => {
            let body = Body::from_stream(chunks(events).chain(stream::pending()));
            respond(200, "text/event-stream; charset=utf-8", body)
        }
        Answer::Broken(events) => {
            let cut = stream::once(async { Err(std::io::Error::other("cut")) });
            // What is written in one go with the end would be lost with it.
            let events = chunks(events).then(|event| async {
                tokio::time::sleep(Duration::from_millis(5)).await;
                event
            });
            respond(200, "text/event-stream", Body::from_stream(events.chain(cut)))
        }
        Answer::Grpc(messages, status) => grpc_response(messages, status),
        Answer::Elsewhere(to) => {
            let mut response = respond(302, "text/plain", Body::empty());
            response.headers_mut().insert(header::LOCATION, to.parse().unwrap());
            response
        }
        Answer::NotNow(status, wait) => {
            let mut response = respond(status, "text/plain", Body::from("not now"));
            response.headers_mut().insert(header::RETRY_AFTER, wait.parse().unwrap());
            response
        }
        Answer::Silence | Answer::Later(..) => std::future::pending().await,
    }
}

/// What has no message says how it went in its first headers, as servers do.
fn grpc_response(messages: Vec<Vec<u8>>, status: Option<GrpcStatus>) -> Response {
    let mut trailers = HeaderMap::new();
    if let Some(status) = &status {
        status.put(&mut trailers);
    }
    if messages.is_empty() {
        let mut response = respond(200, "application/grpc", Body::empty());
        response.headers_mut().extend(trailers);
        return response;
    }
    let frames = messages.into_iter().map(|message| Frame::data(Bytes::from(message)));
    let last = status.map(|_| Frame::trailers(trailers));
    let frames = frames.chain(last).map(Ok::<_, std::io::Error>);
    respond(200, "application/grpc+proto", Body::new(StreamBody::new(stream::iter(frames))))
}

fn respond(status: u16, media_type: &str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response.headers_mut().insert(header::CONTENT_TYPE, media_type.parse().unwrap());
    response
}
