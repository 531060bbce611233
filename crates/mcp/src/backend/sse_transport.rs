//! HTTP+SSE, the HTTP transport of MCP 2024-11-05, which many servers still speak alone.
//!
//! A GET of the server's address opens one stream of events for the whole connection. Its first event, `endpoint`, names the address to
//! POST messages to; every response, request and notification of the server comes on the stream. The stream is the session: when it
//! breaks, the connection is over.

use std::{borrow::Cow, future::Future, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use rialto_http_client::{
    address::Reach,
    fetch::{Fetch, FetchError, FetchRequest, FetchResponse},
};
use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{
    event_stream::{EVENT_STREAM, SseEvents, read_events},
    http_transport::PATIENCE,
};

/// Maximum time until the `endpoint` event. A server of another transport may open a stream and send nothing on it.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(10);

/// Outbound requests to one server, each with its configured headers.
#[derive(Clone)]
pub(super) struct SseClient {
    pub(super) fetch: Arc<dyn Fetch>,
    pub(super) headers: HeaderMap,
    pub(super) reach: Reach,
}

/// An open stream, and where to POST messages.
pub(super) struct SseTransport {
    client: SseClient,
    endpoint: Uri,
    events: SseEvents,
    /// Cancelled when the server says that it does not know the session any more.
    expired: CancellationToken,
}

/// Why there is no stream, or a message could not be sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum SseTransportError {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("it answered with HTTP status {}", .0.as_u16())]
    Status(StatusCode),
    #[error("it opened no event stream")]
    NotAStream,
    #[error("it sent no endpoint event within {} s", ENDPOINT_TIMEOUT.as_secs())]
    NoEndpoint,
    #[error("its stream began with something other than an endpoint event")]
    UnexpectedEvent,
    #[error("its endpoint event names an address of another origin, which is not called")]
    ForeignEndpoint,
    #[error("the message could not be written")]
    Message(#[from] serde_json::Error),
}

// === impl SseClient ===

impl SseClient {
    /// Opens the stream of the server at this address.
    pub(super) async fn open(self, url: &str) -> Result<SseTransport, SseTransportError> {
        let opening = async {
            let address = url.parse::<Uri>().map_err(|_| SseTransportError::NotAStream)?;
            let mut request = FetchRequest::new(Method::GET, address);
            request.headers.clone_from(&self.headers);
            request.headers.insert(header::ACCEPT, HeaderValue::from_static(EVENT_STREAM));
            let response = self.send(request).await?;
            if response.media_type() != EVENT_STREAM {
                return Err(SseTransportError::NotAStream);
            }
            let mut events = read_events(response.body);
            match events.next().await {
                Some(Ok(first)) if first.event.as_deref() == Some("endpoint") => {
                    Ok((resolve_endpoint(url, &first.data.unwrap_or_default())?, events))
                }
                _ => Err(SseTransportError::UnexpectedEvent),
            }
        };
        let opened = timeout(ENDPOINT_TIMEOUT, opening).await;
        let (endpoint, events) = opened.unwrap_or(Err(SseTransportError::NoEndpoint))?;
        Ok(SseTransport { client: self, endpoint, events, expired: CancellationToken::new() })
    }

    async fn post(&self, endpoint: Uri, body: Vec<u8>) -> Result<(), SseTransportError> {
        let mut request = FetchRequest::new(Method::POST, endpoint);
        request.headers.clone_from(&self.headers);
        request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request.body = Bytes::from(body);
        let response = self.send(request).await?;
        // The body says nothing; a connection whose response was read can be used again.
        let _ = response.body.read().await;
        Ok(())
    }

    async fn send(&self, mut request: FetchRequest) -> Result<FetchResponse, SseTransportError> {
        (request.reach, request.patience) = (self.reach, PATIENCE);
        let response = self.fetch.fetch(request).await?;
        if response.status.is_success() {
            Ok(response)
        } else {
            Err(SseTransportError::Status(response.status))
        }
    }
}

// === impl SseTransport ===

impl Transport<RoleClient> for SseTransport {
    type Error = SseTransportError;

    fn name() -> Cow<'static, str> {
        Cow::Borrowed("HTTP+SSE")
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (client, endpoint, expired) = (self.client.clone(), self.endpoint.clone(), self.expired.clone());
        async move {
            let sent = client.post(endpoint, serde_json::to_vec(&item)?).await;
            if let Err(SseTransportError::Status(StatusCode::NOT_FOUND | StatusCode::GONE)) = sent {
                expired.cancel();
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let event = tokio::select! {
                event = self.events.next() => event?.ok()?,
                () = self.expired.cancelled() => return None,
            };
            if !matches!(event.event.as_deref(), None | Some("message")) {
                continue;
            }
            let Some(data) = event.data else { continue };
            match serde_json::from_str(&data) {
                Ok(message) => return Some(message),
                // The text may hold secrets, so it is not logged.
                Err(_) => tracing::debug!("an MCP server sent an event that is not a JSON-RPC message"),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.events = stream::empty().boxed();
        Ok(())
    }
}

/// Resolves the address that an `endpoint` event names. Messages carry the configured headers, so they go to no other origin.
fn resolve_endpoint(url: &str, reference: &str) -> Result<Uri, SseTransportError> {
    let resolved = Url::parse(url).and_then(|base| Ok((base.join(reference.trim())?, base)));
    match resolved {
        Ok((endpoint, base)) if endpoint.origin() == base.origin() => {
            endpoint.as_str().parse().map_err(|_| SseTransportError::UnexpectedEvent)
        }
        Ok(_) => Err(SseTransportError::ForeignEndpoint),
        Err(_) => Err(SseTransportError::UnexpectedEvent),
    }
}

#[cfg(test)]
mod tests;
