//! The load: connections that each ask, check the answer and ask again.
//!
//! The status, id and content of every response are checked, and a wrong one invalidates the run.

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
    error::{BenchError, context},
};

/// Keep-alive connection.
pub(crate) struct LoadConnection {
    sender: SendRequest<Full<Bytes>>,
}

/// A JSON-RPC request, ready but for its id.
#[derive(Clone, Debug)]
pub(crate) struct RequestTemplate {
    uri: Uri,
    headers: HeaderMap,
    /// Body after the id, split at the message's name.
    rest: Vec<String>,
    /// Prefix of message names.
    name: String,
}

/// Placeholder for a message name that is unique per request.
pub(crate) const NAME_PLACEHOLDER: &str = "{name}";

/// Client that repeats one request over its own connection.
pub(crate) struct LoadClient {
    connection: LoadConnection,
    template: RequestTemplate,
    /// Marker of a correct response.
    mark: &'static str,
    asked: u64,
}

/// Group of concurrent clients.
pub(crate) struct LoadGroup(Vec<LoadClient>);

/// Result of one run of a group.
#[derive(Debug, Default)]
pub(crate) struct LoadResult {
    /// Latency of each correct response, in microseconds.
    pub(crate) micros: Vec<u32>,
    /// Number of wrong or missing responses.
    pub(crate) errors: u64,
    /// Example of a wrong response.
    pub(crate) example: Option<String>,
    /// From the first question to the last answer.
    pub(crate) elapsed: Duration,
}

/// Maximum time for the last responses of a run.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

// === impl LoadConnection ===

impl LoadConnection {
    /// Connects.
    pub(crate) async fn open(address: SocketAddr) -> Result<Self, BenchError> {
        let stream =
            TcpStream::connect(address).await.map_err(context(format!("no connection to {address}")))?;
        // A stream that does not take the option still works, only slower.
        let _ = stream.set_nodelay(true);
        let (sender, driver) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(context(format!("no HTTP with {address}")))?;
        tokio::spawn(driver);
        Ok(Self { sender })
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<(response::Parts, Bytes), BenchError> {
        self.sender.ready().await.map_err(context("the connection was closed"))?;
        let response = self.sender.send_request(request).await.map_err(context("no answer"))?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(context("the answer broke off"))?;
        Ok((head, body.to_bytes()))
    }

    /// Sends a request and answers the body of what comes, to be read as it comes.
    pub(crate) async fn open_stream(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Incoming, BenchError> {
        self.sender.ready().await.map_err(context("the connection was closed"))?;
        let response = self.sender.send_request(request).await.map_err(context("no answer"))?;
        Ok(response.into_body())
    }
}

// === impl RequestTemplate ===

impl RequestTemplate {
    /// A POST of that method and those parameters, for that host.
    pub(crate) fn new(path: &str, host: SocketAddr, method: &str, params: &serde_json::Value) -> Self {
        let rest = format!(r#""method":"{method}","params":{params}}}"#);
        let mut template = Self {
            // A path that is none is answered with an error, and the run is spoilt.
            uri: path.parse().unwrap_or_default(),
            headers: HeaderMap::new(),
            rest: rest.split(NAME_PLACEHOLDER).map(str::to_owned).collect(),
            name: fresh(),
        };
        template.set_header(header::HOST.as_str(), &host.to_string());
        template.set_header(header::CONTENT_TYPE.as_str(), "application/json");
        template
    }

    /// Sets a header; an invalid one is omitted, and the server rejects the request.
    pub(crate) fn set_header(&mut self, name: &str, value: &str) {
        if let (Ok(name), Ok(value)) = (header::HeaderName::try_from(name), value.parse()) {
            self.headers.insert(name, value);
        }
    }

    /// The request with that id.
    pub(crate) fn request(&self, id: u64) -> Request<Full<Bytes>> {
        let name = format!("{}-{id}", self.name);
        self.post(format!(r#"{{"jsonrpc":"2.0","id":{id},{}"#, self.rest.join(&name)))
    }

    /// Request without an id: a notification.
    pub(crate) fn notification(&self) -> Request<Full<Bytes>> {
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

// === impl LoadClient ===

impl LoadClient {
    /// Client that repeats this request on this connection.
    pub(crate) const fn new(connection: LoadConnection, template: RequestTemplate) -> Self {
        Self { connection, template, mark: MARK, asked: 0 }
    }

    /// Sets the marker of a correct response.
    pub(crate) fn with_mark(self, mark: &'static str) -> Self {
        Self { mark, ..self }
    }

    async fn run_until(mut self, until: Instant) -> (Self, LoadResult) {
        let mut seen = LoadResult::default();
        let mut now = Instant::now();
        while now < until {
            self.asked += 1;
            let answer = self.connection.send(self.template.request(self.asked)).await;
            let then = std::mem::replace(&mut now, Instant::now());
            match answer {
                Ok((head, body)) if is_expected_response((head.status, &body), self.mark, self.asked) => {
                    seen.micros.push(u32::try_from((now - then).as_micros()).unwrap_or(u32::MAX));
                }
                Ok((head, body)) => seen.record_wrong(format!("{}: {}", head.status, body_excerpt(&body))),
                Err(trouble) => {
                    seen.record_wrong(trouble.to_string());
                    break;
                }
            }
        }
        (self, seen)
    }
}

// === impl LoadGroup ===

impl LoadGroup {
    /// Everyone, connected.
    pub(crate) const fn new(askers: Vec<LoadClient>) -> Self {
        Self(askers)
    }

    /// Lets everyone ask for that long and waits for the last answer.
    pub(crate) async fn run_until(&mut self, how_long: Duration) -> Result<LoadResult, BenchError> {
        let begun = Instant::now();
        let mut asking: JoinSet<_> =
            self.0.drain(..).map(|asker| asker.run_until(begun + how_long)).collect();
        let mut all = LoadResult::default();
        while let Some(done) = timeout(how_long + RESPONSE_TIMEOUT, asking.join_next())
            .await
            .map_err(context("an answer never came"))?
        {
            let (asker, seen) = done.map_err(context("an asker was lost"))?;
            self.0.push(asker);
            all.add(seen);
        }
        all.elapsed = begun.elapsed();
        Ok(all)
    }
}

// === impl LoadResult ===

impl LoadResult {
    /// Takes in what others have seen, before or after.
    pub(crate) fn add(&mut self, other: Self) {
        self.micros.extend(other.micros);
        self.errors += other.errors;
        self.example = self.example.take().or(other.example);
        self.elapsed += other.elapsed;
    }

    fn record_wrong(&mut self, example: String) {
        self.errors += 1;
        self.example.get_or_insert(example);
    }
}

fn is_expected_response((status, body): (StatusCode, &[u8]), mark: &str, id: u64) -> bool {
    let Ok(text) = std::str::from_utf8(body) else { return false };
    status == StatusCode::OK && text.contains(mark) && has_id(text, id) && !text.contains(r#""isError":true"#)
}

fn has_id(text: &str, id: u64) -> bool {
    let wanted = format!(r#""id":{id}"#);
    text.match_indices(&wanted)
        .any(|(at, _)| matches!(text.as_bytes().get(at + wanted.len()), Some(b',' | b'}')))
}

fn body_excerpt(body: &[u8]) -> String {
    String::from_utf8_lossy(body.get(..400).unwrap_or(body)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_to_another_question_is_wrong() {
        let body = format!(r#"{{"jsonrpc":"2.0","id":12,"result":"{MARK}"}}"#);
        assert!(is_expected_response((StatusCode::OK, body.as_bytes()), MARK, 12));
        assert!(!is_expected_response((StatusCode::OK, body.as_bytes()), MARK, 1));
    }

    #[test]
    fn an_answer_without_the_agents_words_is_wrong() {
        let body = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32202,"message":"no"}}"#;
        assert!(!is_expected_response((StatusCode::OK, body.as_bytes()), MARK, 1));
    }

    #[tokio::test]
    async fn each_request_has_a_name_of_its_own() {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let params = serde_json::json!({ "messageId": NAME_PLACEHOLDER, "again": NAME_PLACEHOLDER });
        let template = RequestTemplate::new("/", address, "SendMessage", &params);
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
