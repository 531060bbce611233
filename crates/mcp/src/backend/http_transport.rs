//! Streamable HTTP transport of MCP, through the outbound HTTP client and its egress rules.

use std::{borrow::Cow, collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use parking_lot::Mutex;
use rialto_http_client::{
    address::Reach,
    fetch::{Fetch, FetchError, FetchRequest, FetchResponse},
};
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage},
    transport::streamable_http_client::{
        AuthRequiredError, HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError,
        StreamableHttpPostResponse,
    },
};
use sse_stream::Sse;

use super::{
    call_listeners::CallListeners,
    event_stream::{EVENT_STREAM, SseEvents, read_events},
};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Idle timeout of a server. Calls have timeouts of their own; a caller that stops waiting closes the connection.
pub(super) const PATIENCE: Duration = Duration::from_secs(3_600);

/// Maximum length of the body of an error status in a message.
const EXCERPT_LENGTH: usize = 300;

/// HTTP client in the form that rmcp requires.
#[derive(Clone)]
pub(super) struct McpHttpClient {
    fetch: Arc<dyn Fetch>,
    headers: Arc<HeaderMap>,
    reach: Reach,
    ears: CallListeners,
    /// Error of the last request, as text.
    trouble: Arc<Mutex<Option<String>>>,
    /// HTTP status of the last response; none when there was no response.
    last_status: Arc<Mutex<Option<StatusCode>>>,
}

/// One request.
struct McpHttpRequest<'a> {
    method: Method,
    uri: &'a str,
    session: Option<&'a str>,
    headers: HashMap<HeaderName, HeaderValue>,
    body: Bytes,
}

type McpHttpOutcome<T> = Result<T, StreamableHttpError<FetchError>>;

// === impl McpHttpRequest ===

impl<'a> McpHttpRequest<'a> {
    const fn bare(
        method: Method,
        uri: &'a str,
        session: Option<&'a str>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Self {
        Self { method, uri, session, headers, body: Bytes::new() }
    }
}

// === impl McpHttpClient ===

impl McpHttpClient {
    pub(super) fn new(fetch: Arc<dyn Fetch>, headers: HeaderMap, reach: Reach, ears: CallListeners) -> Self {
        Self {
            fetch,
            headers: Arc::new(headers),
            reach,
            ears,
            trouble: Arc::default(),
            last_status: Arc::default(),
        }
    }

    /// Error of the last request, if it failed.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.lock().clone()
    }

    /// HTTP status of the last response, if the last request had one.
    pub(super) fn last_status(&self) -> Option<StatusCode> {
        *self.last_status.lock()
    }

    fn note(&self, trouble: impl Into<String>) {
        *self.trouble.lock() = Some(trouble.into());
    }

    async fn ask(&self, asked: McpHttpRequest<'_>) -> McpHttpOutcome<FetchResponse> {
        let McpHttpRequest { method, uri, session, headers, body } = asked;
        let wrong = |_| StreamableHttpError::Client(FetchError::NotSent(format!("{uri} is not an address")));
        let mut request = FetchRequest::new(method, uri.parse::<Uri>().map_err(wrong)?);
        request.headers = HeaderMap::clone(&self.headers);
        request.headers.extend(headers);
        if !body.is_empty() {
            request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        request
            .headers
            .insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if let Some(session) = session.and_then(|session| HeaderValue::from_str(session).ok()) {
            request.headers.insert(SESSION, session);
        }
        (request.body, request.reach, request.patience) = (body, self.reach, PATIENCE);
        let answer = self.fetch.fetch(request).await.map_err(|error| {
            self.note(error.to_string());
            *self.last_status.lock() = None;
            StreamableHttpError::Client(error)
        })?;
        *self.last_status.lock() = Some(answer.status);
        if answer.status.is_success() {
            *self.trouble.lock() = None;
        } else {
            self.note(format!("it answered with HTTP status {}", answer.status.as_u16()));
        }
        match (answer.status, answer.headers.get(header::WWW_AUTHENTICATE)) {
            (StatusCode::UNAUTHORIZED, challenge) => {
                let challenge = challenge.and_then(|it| it.to_str().ok()).unwrap_or("Bearer").to_owned();
                Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)))
            }
            (StatusCode::NOT_FOUND, _) if session.is_some() => Err(StreamableHttpError::SessionExpired),
            _ => Ok(answer),
        }
    }
}

impl StreamableHttpClient for McpHttpClient {
    type Error = FetchError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> McpHttpOutcome<StreamableHttpPostResponse> {
        let asked = McpHttpRequest {
            method: Method::POST,
            uri: &uri,
            session: session_id.as_deref(),
            headers: custom_headers,
            body: Bytes::from(serde_json::to_vec(&message)?),
        };
        let answer = self.ask(asked).await?;
        if matches!(answer.status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !answer.status.is_success() {
            return refused(answer, &message, session_id.is_some()).await;
        }
        let session = answer.headers.get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        match answer.media_type() {
            EVENT_STREAM => {
                let events = noting(read_events(answer.body), &message, self.ears.clone());
                Ok(StreamableHttpPostResponse::Sse(events, session))
            }
            kind if kind.starts_with("application/json") => {
                let body = answer.body.read().await.map_err(StreamableHttpError::Client)?;
                match serde_json::from_slice(&body) {
                    Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
                    Err(_) if !matches!(message, ClientJsonRpcMessage::Request(_)) => {
                        Ok(StreamableHttpPostResponse::Accepted)
                    }
                    Err(error) => Err(error.into()),
                }
            }
            _ if !matches!(message, ClientJsonRpcMessage::Request(_)) => {
                Ok(StreamableHttpPostResponse::Accepted)
            }
            kind => Err(StreamableHttpError::UnexpectedContentType(Some(kind.to_owned()))),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> McpHttpOutcome<()> {
        let answer =
            self.ask(McpHttpRequest::bare(Method::DELETE, &uri, Some(&session_id), custom_headers)).await?;
        if answer.status.is_success() || answer.status == StatusCode::METHOD_NOT_ALLOWED {
            return Ok(());
        }
        Err(HttpStatusError::new(answer.status.as_u16(), None).into())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        mut custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> McpHttpOutcome<SseEvents> {
        if let Some(last) = last_event_id.and_then(|id| HeaderValue::from_str(&id).ok()) {
            custom_headers.insert(LAST_EVENT, last);
        }
        let asked = McpHttpRequest::bare(Method::GET, &uri, session_id.as_deref(), custom_headers);
        let answer = self.ask(asked).await?;
        match (answer.status, answer.media_type()) {
            (StatusCode::METHOD_NOT_ALLOWED, _) => Err(StreamableHttpError::ServerDoesNotSupportSse),
            (status, EVENT_STREAM) if status.is_success() => Ok(read_events(answer.body)),
            (status, kind) if status.is_success() => {
                Err(StreamableHttpError::UnexpectedContentType(Some(kind.to_owned())))
            }
            (status, _) => Err(HttpStatusError::new(status.as_u16(), None).into()),
        }
    }
}

/// Converts an error status. The first request to a server of another version gets one; its body then explains it.
async fn refused(
    answer: FetchResponse,
    message: &ClientJsonRpcMessage,
    has_session: bool,
) -> McpHttpOutcome<StreamableHttpPostResponse> {
    let status = answer.status;
    let body = answer.body.read().await.unwrap_or_default();
    let said = serde_json::from_slice::<ServerJsonRpcMessage>(&body).ok();
    if let ClientJsonRpcMessage::Request(request) = message {
        let is_hello = matches!(request.request, ClientRequest::DiscoverRequest(_));
        let error = match said {
            Some(ServerJsonRpcMessage::Error(error)) => Some(error.error),
            _ if is_hello && status.is_client_error() => Some(ErrorData::invalid_request(
                format!("server/discover was answered with HTTP {status}"),
                None,
            )),
            _ => None,
        };
        if let Some(error) = error.filter(|_| !has_session || !is_hello) {
            let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(answer, None));
        }
    }
    let text = String::from_utf8_lossy(body.get(..EXCERPT_LENGTH.min(body.len())).unwrap_or_default());
    Err(StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!("HTTP {status}: {}", text.trim()))))
}

/// Records that requests in this stream arrived for this message.
fn noting(events: SseEvents, message: &ClientJsonRpcMessage, ears: CallListeners) -> SseEvents {
    #[derive(serde::Deserialize)]
    struct Envelope {
        id: Option<RequestId>,
        method: Option<serde::de::IgnoredAny>,
    }
    let ClientJsonRpcMessage::Request(request) = message else { return events };
    if !matches!(request.request, ClientRequest::CallToolRequest(_)) {
        return events;
    }
    let stream_of = request.id.clone();
    let noted = move |event: &Result<Sse, SseError>| {
        let Some(data) = event.as_ref().ok().and_then(|event| event.data.as_deref()) else { return };
        if let Ok(Envelope { id: Some(id), method: Some(_) }) = serde_json::from_str(data) {
            ears.note(id, stream_of.clone());
        }
    };
    events.inspect(noted).boxed()
}
