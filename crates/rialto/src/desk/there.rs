//! A server elsewhere, asked over HTTP by the one client.

use std::{path::Path, sync::Arc, time::Duration};

use axum::body::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use rialto_edge::{
    address::Reach,
    client::{Client, Surroundings},
    fetch::{Fetch, FetchError, Request, Response},
    proxy::Proxies,
};
use rialto_model::{
    call::HOPS_HEADER,
    credential::Secret,
    failure::{Failure, FailureKind},
};
use serde::Deserialize;
use url::Url;

use super::{
    address::is_private,
    question::{Answer, Question},
    trouble,
};
use crate::{
    cli::{Common, Remote},
    config::Config,
    environment::Environment,
    output::Trouble,
};

/// So much may be answered at once.
const LIMIT: usize = 64 * 1024 * 1024;

/// How long is waited for what a server says of itself.
const SHORT: Duration = Duration::from_secs(10);

/// The header that counts the calls which led to a request.
const HOPS: HeaderName = HeaderName::from_static(HOPS_HEADER);

/// What a server calls its document.
const TITLE: &str = "Rialto's administration";

/// A server.
pub(crate) struct There {
    /// Its address, without a slash at its end.
    base: String,
    /// The same without a path.
    origin: String,
    token: Option<Secret>,
    /// How many calls through Rialto led to this process.
    hops: u8,
    fetch: Arc<dyn Fetch>,
}

/// What a server's document says of itself.
#[derive(Deserialize)]
struct Document {
    info: Info,
}

#[derive(Deserialize)]
struct Info {
    title: String,
    version: String,
}

// === impl There ===

impl There {
    pub(super) fn new(url: &Url, common: &Common, environment: &Environment) -> Result<Self, Trouble> {
        let token = token(&common.remote)?;
        if token.is_some() && !is_private(url) && !common.remote.allow_plain_http {
            return Err(Trouble::usage(format!(
                "{url} is not encrypted: everybody on the way could read the token; use https, or a tunnel to a loopback address, or say --allow-plain-http"
            )));
        }
        let config = Config::load(common.config.as_deref(), environment)?;
        let proxies = Proxies::of(|name: &str| environment.get(name).map(str::to_owned));
        let client = Client::within(&config.outbound, Surroundings { proxies, ..Surroundings::default() });
        let base = url.as_str().trim_end_matches('/').to_owned();
        let origin = url.origin().ascii_serialization();
        Ok(Self { base, origin, token, hops: environment.hops(), fetch: Arc::new(client) })
    }

    /// Where it is.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    pub(super) async fn send(&self, question: &Question<'_>) -> Result<Answer, Failure> {
        let body = question
            .body
            .as_ref()
            .map_or_else(Bytes::new, |body| Bytes::copy_from_slice(body.get().as_bytes()));
        let mut request = self.request(question.method.clone(), &question.address())?;
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let request = Request { body, patience: question.patience, ..request };
        self.read(self.fetch(request).await?).await
    }

    /// What the server says of itself at a path that is the same for all projects.
    pub(crate) async fn look(&self, path: &str) -> Result<(StatusCode, Bytes), Failure> {
        self.look_at(&format!("{}{path}", self.origin)).await
    }

    /// The version of Rialto that answers there; none if it is something else.
    async fn version(&self) -> Option<String> {
        let (_, body) = self.look_at(&format!("{}/api/v1/openapi.json", self.base)).await.ok()?;
        let document: Document = serde_json::from_slice(&body).ok()?;
        (document.info.title == TITLE).then_some(document.info.version)
    }

    async fn look_at(&self, address: &str) -> Result<(StatusCode, Bytes), Failure> {
        let request = self.request_to(Method::GET, address)?;
        let request = Request { patience: SHORT, total: Some(SHORT), ..request };
        let answer = self.read(self.fetch(request).await?).await?;
        Ok((answer.status, answer.body))
    }

    /// What an answer that is no success says.
    pub(super) async fn told(&self, method: &Method, path: &str, answer: &Answer) -> Failure {
        let base = &self.base;
        if trouble::is_problem(answer) && !trouble::is_unknown_route(answer) {
            return trouble::told(answer);
        }
        match answer.status {
            StatusCode::UNAUTHORIZED => self.unknown(answer),
            status if status.is_redirection() => Failure::new(
                FailureKind::PeerGarbled,
                format!(
                    "{base} sends us to another address (HTTP {}); give --server that one",
                    status.as_u16()
                ),
            ),
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
                self.missing(method, path, answer).await
            }
            _ if trouble::is_refusal(answer) => trouble::told(answer),
            status => Failure::new(
                trouble::kind_of(status),
                format!(
                    "{base} answered with HTTP {} and nothing that Rialto says; see that --server names a Rialto server",
                    status.as_u16()
                ),
            ),
        }
    }

    /// An answer that should be JSON of ours, and is not.
    pub(super) fn garbled(&self, answer: &Answer, error: &serde_json::Error) -> Failure {
        let base = &self.base;
        let message = if answer.media.contains("json") {
            format!(
                "{base} answers in a way that this version of Rialto does not understand ({error}); update the older of both"
            )
        } else {
            let media = if answer.media.is_empty() { "no kind of content" } else { &answer.media };
            format!(
                "{base} is no Rialto server: it answers with {media}; see that --server names the address that `rialto serve` printed"
            )
        };
        Failure::new(FailureKind::PeerGarbled, message)
    }

    /// Nobody, or something that is not there.
    async fn missing(&self, method: &Method, path: &str, answer: &Answer) -> Failure {
        let base = &self.base;
        if trouble::is_refusal(answer) {
            let message = format!(
                "there is nothing at {base} for this token: see that the org and project in --server are those the token was made for"
            );
            return Failure::new(FailureKind::NotFound, message);
        }
        match self.version().await {
            Some(version) => Failure::new(
                FailureKind::Unsupported,
                format!(
                    "the server at {base} runs Rialto {version}, which does not know {method} /api/v1{path}; update it to {} or later",
                    env!("CARGO_PKG_VERSION")
                ),
            ),
            None => Failure::new(
                FailureKind::PeerGarbled,
                format!(
                    "{base} is no Rialto server: it answers with HTTP {}; see that --server names the address that `rialto serve` printed",
                    answer.status.as_u16()
                ),
            ),
        }
    }

    /// Somebody who is not let in.
    fn unknown(&self, answer: &Answer) -> Failure {
        let base = &self.base;
        let how = "set RIALTO_TOKEN, or name a file with --token-from; whoever runs the server makes one with `rialto tokens create NAME --scope admin --scope call --scope discover`";
        let message = match trouble::refusal(answer) {
            _ if self.token.is_none() => format!("{base} wants to know who asks: {how}"),
            Some(why) => format!(
                "{base} does not let this token in: {why} there, and set RIALTO_TOKEN or use --token-from"
            ),
            None => format!("{base} does not let this token in; {how}"),
        };
        Failure::new(FailureKind::Unauthenticated, message)
    }

    /// Makes an exchange, up to the headers of the answer.
    pub(super) async fn fetch(&self, request: Request) -> Result<Response, Failure> {
        self.fetch.fetch(request).await.map_err(|error| self.lost(&error))
    }

    /// An exchange that did not come about.
    pub(super) fn lost(&self, error: &FetchError) -> Failure {
        let base = &self.base;
        match error {
            FetchError::Forbidden(why) => Failure::new(
                FailureKind::Denied,
                format!(
                    "{base} may not be called: {why}; see [outbound] in the configuration of this machine"
                ),
            ),
            FetchError::NotSent(why) => {
                let message = format!("{base} could not be reached: {why}; {}", advice(why));
                Failure::new(FailureKind::PeerUnreachable, message).not_sent()
            }
            FetchError::Local(why) => {
                Failure::new(FailureKind::Internal, format!("{base} was not called: {why}")).not_sent()
            }
            FetchError::Broken(why) => Failure::new(
                FailureKind::PeerUnreachable,
                format!(
                    "the connection to {base} broke: {why}; look whether it was done before you try again"
                ),
            ),
            FetchError::Timeout(_) => Failure::new(
                FailureKind::PeerTimeout,
                format!("{base} {error}; look whether it was done before you try again"),
            ),
            FetchError::TooLarge(_) => {
                Failure::new(FailureKind::PeerGarbled, format!("{base}: {error}; ask for less at once"))
            }
        }
    }

    /// A request for something below the server's address.
    pub(super) fn request(&self, method: Method, path: &str) -> Result<Request, Failure> {
        self.request_to(method, &format!("{}{path}", self.base))
    }

    fn request_to(&self, method: Method, address: &str) -> Result<Request, Failure> {
        let wrong = |what: &str| Failure::new(FailureKind::Invalid, format!("{what} cannot be sent"));
        let uri: Uri = address.parse().map_err(|_| wrong("this address"))?;
        // Whoever names a server may name one of this network.
        let mut request = Request { reach: Reach::Private, limit: Some(LIMIT), ..Request::new(method, uri) };
        request = request.header(header::ACCEPT, HeaderValue::from_static("application/json"));
        if self.hops > 0 {
            request = request.header(HOPS, HeaderValue::from(u16::from(self.hops)));
        }
        if let Some(token) = &self.token {
            let value = HeaderValue::try_from(format!("Bearer {}", token.expose()));
            let mut value = value.map_err(|_| wrong("a token with line ends or control characters in it"))?;
            value.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, value);
        }
        Ok(request)
    }

    pub(super) async fn read(&self, answer: Response) -> Result<Answer, Failure> {
        let (status, media) = (answer.status, answer.media_type().to_owned());
        let body = answer.body.read().await.map_err(|error| self.lost(&error))?;
        Ok(Answer { status, media, body })
    }
}

/// What to do about a server that could not be reached.
fn advice(why: &str) -> &'static str {
    if why.contains("encrypted") || why.contains("certificate") {
        "a certificate of your own authority is trusted with [outbound] ca_file in the configuration of this machine; a server without encryption has an address with http://"
    } else {
        "see that `rialto serve` runs there, and that --server is right"
    }
}

/// The token, from where it was said to be.
fn token(remote: &Remote) -> Result<Option<Secret>, Trouble> {
    let text = match (&remote.token_from, &remote.token) {
        (Some(file), _) if file == Path::new("-") => std::io::read_to_string(std::io::stdin()),
        (Some(file), _) => std::fs::read_to_string(file),
        (None, Some(token)) => Ok(token.expose().to_owned()),
        (None, None) => return Ok(None),
    };
    let file = remote.token_from.as_deref().unwrap_or(Path::new("-")).display();
    let text = text.map_err(|error| Trouble::usage(format!("--token-from {file}: {error}")))?;
    match text.trim() {
        "" if remote.token_from.is_some() => {
            Err(Trouble::usage(format!("--token-from {file}: nothing is in it")))
        }
        "" => Ok(None),
        token => Ok(Some(Secret::from(token.to_owned()))),
    }
}
