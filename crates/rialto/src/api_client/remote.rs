//! A server elsewhere, asked over HTTP by the one client.

use std::{path::Path, sync::Arc, time::Duration};

use axum::body::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use rialto_http_client::{
    ClientEnv, HttpClient,
    address::Reach,
    fetch::{Fetch, FetchError, FetchRequest, FetchResponse},
    proxy::ProxyRules,
};
use rialto_model::{
    call::HOPS_HEADER,
    credential::Secret,
    failure::{Failure, FailureKind},
};
use serde::Deserialize;
use url::Url;

use super::{
    request::{ApiRequest, ApiResponse},
    response_errors,
    server_url::is_loopback_or_encrypted,
};
use crate::{
    cli::{GlobalOptions, RemoteServerOptions},
    config::Config,
    environment::Environment,
    output::CommandError,
};

/// Maximum size of a response.
const MAX_RESPONSE_BYTES: usize = 64 * 1024 * 1024;

/// Timeout of requests that identify a server.
const IDENTIFY_TIMEOUT: Duration = Duration::from_secs(10);

/// The header that counts the calls which led to a request.
const HOPS: HeaderName = HeaderName::from_static(HOPS_HEADER);

/// Title of a server's OpenAPI document.
const API_TITLE: &str = "Rialto's administration";

/// A server.
pub(crate) struct RemoteApi {
    /// Its address, without a slash at its end.
    base: String,
    /// Base URL without a path.
    origin: String,
    token: Option<Secret>,
    /// Number of calls through Rialto that led to this process.
    hops: u8,
    fetch: Arc<dyn Fetch>,
}

/// OpenAPI document of a server.
#[derive(Deserialize)]
struct OpenApiDocument {
    info: OpenApiInfo,
}

#[derive(Deserialize)]
struct OpenApiInfo {
    title: String,
    version: String,
}

// === impl RemoteApi ===

impl RemoteApi {
    pub(super) fn new(
        url: &Url,
        common: &GlobalOptions,
        environment: &Environment,
    ) -> Result<Self, CommandError> {
        let token = read_token(&common.remote)?;
        if token.is_some() && !is_loopback_or_encrypted(url) && !common.remote.allow_plain_http {
            return Err(CommandError::usage(format!(
                "{url} is not encrypted, so the token could be read in transit; use https, or a tunnel to a loopback address, or pass --allow-plain-http"
            )));
        }
        let config = Config::load(common.config.as_deref(), environment)?;
        let proxies = ProxyRules::from_env(|name: &str| environment.get(name).map(str::to_owned));
        let client = HttpClient::with_env(&config.outbound, ClientEnv { proxies, ..ClientEnv::default() });
        let base = url.as_str().trim_end_matches('/').to_owned();
        let origin = url.origin().ascii_serialization();
        Ok(Self { base, origin, token, hops: environment.hops(), fetch: Arc::new(client) })
    }

    /// Base URL.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    pub(super) async fn send(&self, question: &ApiRequest<'_>) -> Result<ApiResponse, Failure> {
        let body = question
            .body
            .as_ref()
            .map_or_else(Bytes::new, |body| Bytes::copy_from_slice(body.get().as_bytes()));
        let mut request = self.request(question.method.clone(), &question.path_and_query())?;
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let request = FetchRequest { body, patience: question.patience, ..request };
        self.read_body(self.fetch(request).await?).await
    }

    /// Requests a path that is outside of projects.
    pub(crate) async fn get_public(&self, path: &str) -> Result<(StatusCode, Bytes), Failure> {
        self.get_absolute(&format!("{}{path}", self.origin)).await
    }

    /// The version of Rialto that answers there; none if it is something else.
    async fn server_version(&self) -> Option<String> {
        let (_, body) = self.get_absolute(&format!("{}/api/v1/openapi.json", self.base)).await.ok()?;
        let document: OpenApiDocument = serde_json::from_slice(&body).ok()?;
        (document.info.title == API_TITLE).then_some(document.info.version)
    }

    async fn get_absolute(&self, address: &str) -> Result<(StatusCode, Bytes), Failure> {
        let request = self.request_to(Method::GET, address)?;
        let request = FetchRequest { patience: IDENTIFY_TIMEOUT, total: Some(IDENTIFY_TIMEOUT), ..request };
        let answer = self.read_body(self.fetch(request).await?).await?;
        Ok((answer.status, answer.body))
    }

    /// Failure in an error response.
    pub(super) async fn response_failure(
        &self,
        method: &Method,
        path: &str,
        answer: &ApiResponse,
    ) -> Failure {
        let base = &self.base;
        if response_errors::is_problem(answer) && !response_errors::is_unknown_route(answer) {
            return response_errors::parse_failure(answer);
        }
        match answer.status {
            StatusCode::UNAUTHORIZED => self.unauthenticated_failure(answer),
            status if status.is_redirection() => Failure::new(
                FailureKind::PeerGarbled,
                format!(
                    "{base} redirects to another address (HTTP {}); pass that one to --server",
                    status.as_u16()
                ),
            ),
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
                self.not_found_failure(method, path, answer).await
            }
            _ if response_errors::is_gate_refusal(answer) => response_errors::parse_failure(answer),
            status => Failure::new(
                response_errors::kind_from_status(status),
                format!(
                    "{base} answered with HTTP {} and is not a Rialto server; check --server",
                    status.as_u16()
                ),
            ),
        }
    }

    /// An answer that should be JSON of ours, and is not.
    pub(super) fn unreadable_response(&self, answer: &ApiResponse, error: &serde_json::Error) -> Failure {
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

    /// Failure for a 404: another kind of server, or a missing row.
    async fn not_found_failure(&self, method: &Method, path: &str, answer: &ApiResponse) -> Failure {
        let base = &self.base;
        if response_errors::is_gate_refusal(answer) {
            let message = format!(
                "not found at {base} with this token; check that the org and project in --server are the token's"
            );
            return Failure::new(FailureKind::NotFound, message);
        }
        match self.server_version().await {
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

    /// Failure for a rejected token.
    fn unauthenticated_failure(&self, answer: &ApiResponse) -> Failure {
        let base = &self.base;
        let how = "set RIALTO_TOKEN, or pass a file with --token-from; the server's operator creates one with `rialto tokens create NAME --scope admin --scope call --scope discover`";
        let message = match response_errors::gate_refusal(answer) {
            _ if self.token.is_none() => format!("{base} wants to know who asks: {how}"),
            Some(why) => format!(
                "{base} does not let this token in: {why} there, and set RIALTO_TOKEN or use --token-from"
            ),
            None => format!("{base} does not let this token in; {how}"),
        };
        Failure::new(FailureKind::Unauthenticated, message)
    }

    /// Makes an exchange, up to the headers of the answer.
    pub(super) async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, Failure> {
        self.fetch.fetch(request).await.map_err(|error| self.connection_failure(&error))
    }

    /// An exchange that did not come about.
    pub(super) fn connection_failure(&self, error: &FetchError) -> Failure {
        let base = &self.base;
        match error {
            FetchError::Forbidden(why) => Failure::new(
                FailureKind::Denied,
                format!(
                    "requests to {base} are not allowed: {why}; see [outbound] in the configuration of this machine"
                ),
            ),
            FetchError::NotSent(why) => {
                let message = format!("{base} could not be reached: {why}; {}", connection_advice(why));
                Failure::new(FailureKind::PeerUnreachable, message).not_sent()
            }
            FetchError::Local(why) => {
                Failure::new(FailureKind::Internal, format!("{base} was not called: {why}")).not_sent()
            }
            FetchError::Broken(why) => Failure::new(
                FailureKind::PeerUnreachable,
                format!(
                    "the connection to {base} broke: {why}; check whether the operation was done before you retry"
                ),
            ),
            FetchError::Timeout(_) => Failure::new(
                FailureKind::PeerTimeout,
                format!("{base} {error}; check whether the operation was done before you retry"),
            ),
            FetchError::TooLarge(_) => {
                Failure::new(FailureKind::PeerGarbled, format!("{base}: {error}; ask for less at once"))
            }
        }
    }

    /// A request for something below the server's address.
    pub(super) fn request(&self, method: Method, path: &str) -> Result<FetchRequest, Failure> {
        self.request_to(method, &format!("{}{path}", self.base))
    }

    fn request_to(&self, method: Method, address: &str) -> Result<FetchRequest, Failure> {
        let wrong = |what: &str| Failure::new(FailureKind::Invalid, format!("{what} cannot be sent"));
        let uri: Uri = address.parse().map_err(|_| wrong("this address"))?;
        // A user may name a server in a private network.
        let mut request = FetchRequest {
            reach: Reach::Private,
            limit: Some(MAX_RESPONSE_BYTES),
            ..FetchRequest::new(method, uri)
        };
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

    pub(super) async fn read_body(&self, answer: FetchResponse) -> Result<ApiResponse, Failure> {
        let (status, media) = (answer.status, answer.media_type().to_owned());
        let body = answer.body.read().await.map_err(|error| self.connection_failure(&error))?;
        Ok(ApiResponse { status, media, body })
    }
}

/// Hint for a server that is unreachable.
fn connection_advice(why: &str) -> &'static str {
    if why.contains("encrypted") || why.contains("certificate") {
        "a certificate of your own authority is trusted with [outbound] ca_file in the configuration of this machine; a server without encryption has an address with http://"
    } else {
        "see that `rialto serve` runs there, and that --server is right"
    }
}

/// Reads the token from its source.
fn read_token(remote: &RemoteServerOptions) -> Result<Option<Secret>, CommandError> {
    let text = match (&remote.token_from, &remote.token) {
        (Some(file), _) if file == Path::new("-") => std::io::read_to_string(std::io::stdin()),
        (Some(file), _) => std::fs::read_to_string(file),
        (None, Some(token)) => Ok(token.expose().to_owned()),
        (None, None) => return Ok(None),
    };
    let file = remote.token_from.as_deref().unwrap_or(Path::new("-")).display();
    let text = text.map_err(|error| CommandError::usage(format!("--token-from {file}: {error}")))?;
    match text.trim() {
        "" if remote.token_from.is_some() => {
            Err(CommandError::usage(format!("--token-from {file}: nothing is in it")))
        }
        "" => Ok(None),
        token => Ok(Some(Secret::from(token.to_owned()))),
    }
}
