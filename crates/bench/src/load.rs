//! The load: connections that each ask, check the answer and ask again.
//!
//! A wrong answer is never fast: every answer's status, id and content are looked at, and one that is wrong spoils the run.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, Uri, header, response};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use rialto_model::ids::fresh;
use tokio::{net::TcpStream, task::JoinSet, time::timeout};

use crate::{
    agent::MARK,
    trouble::{Trouble, during},
};

/// One keep-alive connection.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
}

/// A JSON-RPC request, ready but for its id.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    uri: Uri,
    headers: HeaderMap,
    /// The body behind its id, cut where the name of its message stands.
    rest: Vec<String>,
    /// What the names of its messages begin with.
    name: String,
}

/// Stands in parameters where each request has a name of its own.
pub(crate) const NAME: &str = "{name}";

/// Someone who asks the same thing again and again over a connection of their own.
pub(crate) struct Asker {
    connection: Connection,
    template: Template,
    /// What a right answer holds.
    mark: &'static str,
    asked: u64,
}

/// Everyone who asks at the same time.
pub(crate) struct Crowd(Vec<Asker>);

/// What a crowd has seen in one go.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// How long each right answer took, in microseconds.
    pub(crate) micros: Vec<u32>,
    /// How many answers were wrong or missing.
    pub(crate) errors: u64,
    /// One of them.
    pub(crate) example: Option<String>,
    /// From the first question to the last answer.
    pub(crate) elapsed: Duration,
}

/// How long the last answer of a go may take.
const PATIENCE: Duration = Duration::from_secs(60);

// === impl Connection ===

impl Connection {
    /// Connects.
    pub(crate) async fn open(address: SocketAddr) -> Result<Self, Trouble> {
        let stream =
            TcpStream::connect(address).await.map_err(during(format!("no connection to {address}")))?;
        // A stream that does not take the option still works, only slower.
        let _ = stream.set_nodelay(true);
        let (sender, driver) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(during(format!("no HTTP with {address}")))?;
        tokio::spawn(driver);
        Ok(Self { sender })
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<(response::Parts, Bytes), Trouble> {
        self.sender.ready().await.map_err(during("the connection was closed"))?;
        let response = self.sender.send_request(request).await.map_err(during("no answer"))?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(during("the answer broke off"))?;
        Ok((head, body.to_bytes()))
    }

    /// Sends a request and answers the body of what comes, to be read as it comes.
    pub(crate) async fn open_stream(&mut self, request: Request<Full<Bytes>>) -> Result<Incoming, Trouble> {
        self.sender.ready().await.map_err(during("the connection was closed"))?;
        let response = self.sender.send_request(request).await.map_err(during("no answer"))?;
        Ok(response.into_body())
    }
}

// === impl Template ===

impl Template {
    /// A POST of that method and those parameters, for that host.
    pub(crate) fn new(path: &str, host: SocketAddr, method: &str, params: &serde_json::Value) -> Self {
        let rest = format!(r#""method":"{method}","params":{params}}}"#);
        let mut template = Self {
            // A path that is none is answered with an error, and the run is spoilt.
            uri: path.parse().unwrap_or_default(),
            headers: HeaderMap::new(),
            rest: rest.split(NAME).map(str::to_owned).collect(),
            name: fresh(),
        };
        template.set(header::HOST.as_str(), &host.to_string());
        template.set(header::CONTENT_TYPE.as_str(), "application/json");
        template
    }

    /// Sets a header; one that cannot be written is left out, and the server will say so.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        if let (Ok(name), Ok(value)) = (header::HeaderName::try_from(name), value.parse()) {
            self.headers.insert(name, value);
        }
    }

    /// The request with that id.
    pub(crate) fn request(&self, id: u64) -> Request<Full<Bytes>> {
        let name = format!("{}-{id}", self.name);
        self.post(format!(r#"{{"jsonrpc":"2.0","id":{id},{}"#, self.rest.join(&name)))
    }

    /// The same without an id: a notification.
    pub(crate) fn notice(&self) -> Request<Full<Bytes>> {
        self.post(format!(r#"{{"jsonrpc":"2.0",{}"#, self.rest.join(&self.name)))
    }

    fn post(&self, body: String) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }
}

// === impl Asker ===

impl Asker {
    /// Someone who will ask that over that connection.
    pub(crate) const fn new(connection: Connection, template: Template) -> Self {
        Self { connection, template, mark: MARK, asked: 0 }
    }

    /// The same, who is content with an answer that holds this.
    pub(crate) fn expecting(self, mark: &'static str) -> Self {
        Self { mark, ..self }
    }

    async fn ask(mut self, until: Instant) -> (Self, Seen) {
        let mut seen = Seen::default();
        let mut now = Instant::now();
        while now < until {
            self.asked += 1;
            let answer = self.connection.send(self.template.request(self.asked)).await;
            let then = std::mem::replace(&mut now, Instant::now());
            match answer {
                Ok((head, body)) if is_right((head.status, &body), self.mark, self.asked) => {
                    seen.micros.push(u32::try_from((now - then).as_micros()).unwrap_or(u32::MAX));
                }
                Ok((head, body)) => seen.wrong(format!("{}: {}", head.status, start_of(&body))),
                Err(trouble) => {
                    seen.wrong(trouble.to_string());
                    break;
                }
            }
        }
        (self, seen)
    }
}

// === impl Crowd ===

impl Crowd {
    /// Everyone, connected.
    pub(crate) const fn new(askers: Vec<Asker>) -> Self {
        Self(askers)
    }

    /// Lets everyone ask for that long and waits for the last answer.
    pub(crate) async fn ask(&mut self, how_long: Duration) -> Result<Seen, Trouble> {
        let begun = Instant::now();
        let mut asking: JoinSet<_> = self.0.drain(..).map(|asker| asker.ask(begun + how_long)).collect();
        let mut all = Seen::default();
        while let Some(done) =
            timeout(how_long + PATIENCE, asking.join_next()).await.map_err(during("an answer never came"))?
        {
            let (asker, seen) = done.map_err(during("an asker was lost"))?;
            self.0.push(asker);
            all.add(seen);
        }
        all.elapsed = begun.elapsed();
        Ok(all)
    }
}

// === impl Seen ===

impl Seen {
    /// Takes in what others have seen, before or after.
    pub(crate) fn add(&mut self, other: Self) {
        self.micros.extend(other.micros);
        self.errors += other.errors;
        self.example = self.example.take().or(other.example);
        self.elapsed += other.elapsed;
    }

    fn wrong(&mut self, example: String) {
        self.errors += 1;
        self.example.get_or_insert(example);
    }
}

fn is_right((status, body): (StatusCode, &[u8]), mark: &str, id: u64) -> bool {
    let Ok(text) = std::str::from_utf8(body) else { return false };
    status == StatusCode::OK && text.contains(mark) && has_id(text, id) && !text.contains(r#""isError":true"#)
}

fn has_id(text: &str, id: u64) -> bool {
    let wanted = format!(r#""id":{id}"#);
    text.match_indices(&wanted)
        .any(|(at, _)| matches!(text.as_bytes().get(at + wanted.len()), Some(b',' | b'}')))
}

fn start_of(body: &[u8]) -> String {
    String::from_utf8_lossy(body.get(..400).unwrap_or(body)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_to_another_question_is_wrong() {
        let body = format!(r#"{{"jsonrpc":"2.0","id":12,"result":"{MARK}"}}"#);
        assert!(is_right((StatusCode::OK, body.as_bytes()), MARK, 12));
        assert!(!is_right((StatusCode::OK, body.as_bytes()), MARK, 1));
    }

    #[test]
    fn an_answer_without_the_agents_words_is_wrong() {
        let body = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32202,"message":"no"}}"#;
        assert!(!is_right((StatusCode::OK, body.as_bytes()), MARK, 1));
    }

    #[tokio::test]
    async fn each_request_has_a_name_of_its_own() {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let params = serde_json::json!({ "messageId": NAME, "again": NAME });
        let template = Template::new("/", address, "SendMessage", &params);
        let said = async |id| {
            let body = template.request(id).into_body().collect().await.unwrap().to_bytes();
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["params"]["messageId"], body["params"]["again"]);
            body["params"]["messageId"].as_str().unwrap().to_owned()
        };
        let (first, second) = (said(1).await, said(2).await);
        assert!(first.ends_with("-1") && first != second, "{first} {second}");
    }
}
