//! Event stream of an agent's response.

use std::{collections::VecDeque, sync::Arc};

use rialto_a2a_codec::{
    answer,
    error::{ErrorCode, RpcError},
    rpc::{self, Id},
    sse::{self, SseParser},
    task::StreamEvent,
    wire::Wire,
};
use rialto_http_client::fetch::FetchBody;
use rialto_model::failure::FailureKind;

use crate::{
    client::one_line,
    credential::RequestAuth,
    endpoints::{AgentEndpoint, Carrier},
    error::{AgentError, AuthSent},
    grpc::GrpcMessages,
    slots::ExchangeSlot,
};

/// Open stream.
pub(crate) struct AgentEvents {
    source: EventSource,
    /// Authentication that was sent, to be redacted from messages.
    shown: Option<Arc<RequestAuth>>,
    _slot: Option<ExchangeSlot>,
}

/// Encoding of the events.
enum EventSource {
    /// Server-sent events.
    Sse(SseLines),
    Grpc(GrpcMessages),
}

/// Incoming server-sent events.
struct SseLines {
    body: FetchBody,
    parser: SseParser,
    ready: VecDeque<sse::SseEvent>,
    carrier: Carrier,
    wire: Wire,
    /// Id of the request that the stream answers.
    id: Id,
    is_at_end: bool,
}

// === impl AgentEvents ===

impl AgentEvents {
    pub(crate) fn new(
        body: FetchBody,
        route: &AgentEndpoint,
        id: Id,
        shown: Option<Arc<RequestAuth>>,
    ) -> Self {
        let lines = SseLines {
            parser: SseParser::new(body.limit()),
            body,
            ready: VecDeque::new(),
            carrier: route.carrier,
            wire: route.wire,
            id,
            is_at_end: false,
        };
        Self { source: EventSource::Sse(lines), shown, _slot: None }
    }

    /// Events of a gRPC response.
    pub(crate) const fn grpc(messages: GrpcMessages, shown: Option<Arc<RequestAuth>>) -> Self {
        Self { source: EventSource::Grpc(messages), shown, _slot: None }
    }

    /// Holds the exchange's slot until the stream is dropped.
    pub(crate) fn holding(mut self, slot: ExchangeSlot) -> Self {
        self._slot = Some(slot);
        self
    }

    /// Next event; none when the agent has closed the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<StreamEvent>, AgentError> {
        let shown = self.shown.as_ref();
        let heard = match &mut self.source {
            EventSource::Sse(lines) => lines.next(shown).await,
            EventSource::Grpc(messages) => messages.event(shown).await,
        };
        heard.map_err(|trouble| trouble.without(shown.map(Arc::as_ref)))
    }
}

// === impl SseLines ===

impl SseLines {
    async fn next(&mut self, shown: Option<&Arc<RequestAuth>>) -> Result<Option<StreamEvent>, AgentError> {
        loop {
            while let Some(event) = self.ready.pop_front() {
                if !event.data.trim().is_empty() {
                    return self.decode(&event, shown).map(Some);
                }
            }
            if self.is_at_end {
                return self.last(shown);
            }
            match self.body.chunk().await.map_err(|error| AgentError::fetching(&error))? {
                Some(bytes) => {
                    let events =
                        self.parser.feed(&bytes).map_err(|error| AgentError::too_large(error.limit))?;
                    self.ready.extend(events);
                }
                None => self.is_at_end = true,
            }
        }
    }

    /// Last event without the final blank line. Some agents omit it after a complete event; an incomplete event was cut off and is
    /// ignored.
    fn last(&mut self, shown: Option<&Arc<RequestAuth>>) -> Result<Option<StreamEvent>, AgentError> {
        let last = self.parser.finish().filter(|event| !event.data.trim().is_empty());
        match last.map(|event| self.decode(&event, shown)).transpose() {
            Err(trouble) if trouble.failure.kind == FailureKind::PeerGarbled => Ok(None),
            read => read,
        }
    }

    fn decode(
        &self,
        event: &sse::SseEvent,
        shown: Option<&Arc<RequestAuth>>,
    ) -> Result<StreamEvent, AgentError> {
        let login = shown.map_or(AuthSent::None, |shown| AuthSent::Shown(shown));
        let data = one_line(event.data.as_bytes());
        let data = data.as_ref();
        if event.event.as_deref() == Some("error") {
            return Err(AgentError::remote(&error_in(data)));
        }
        let read = match self.carrier {
            Carrier::Rpc => rpc::decode_response(data).and_then(|response| {
                response.check_id(&self.id)?;
                Ok(response.result)
            }),
            Carrier::Rest | Carrier::Grpc => answer::parse(data).map(Ok),
        };
        match read {
            Ok(Ok(raw)) => answer::decode_stream_event(self.wire, raw).map_err(|garbled| {
                misread(data).unwrap_or_else(|| AgentError::garbled(&garbled, data, login))
            }),
            Ok(Err(error)) => Err(AgentError::remote(&error)),
            Err(garbled) => Err(AgentError::garbled(&garbled, data, login)),
        }
    }
}

/// Error in place of an event, without a declared type.
fn misread(data: &[u8]) -> Option<AgentError> {
    let error = rpc::decode_response(data).ok()?.result.err()?;
    Some(AgentError::remote(&error))
}

/// Error in the data of an `error` event: in an envelope, bare, or as text.
fn error_in(data: &[u8]) -> RpcError {
    if let Ok(rpc::RpcResponse { result: Err(error), .. }) = rpc::decode_response(data) {
        return error;
    }
    RpcError::new(ErrorCode::Internal, String::from_utf8_lossy(data).trim().to_owned())
}
