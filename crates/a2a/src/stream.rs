//! Reads the events of an agent's stream.

use std::{collections::VecDeque, sync::Arc};

use rialto_a2a_wire::{
    answer,
    error::{Code, RpcError},
    rpc::{self, Id},
    sse::{self, Parser},
    task::StreamEvent,
    wire::Wire,
};
use rialto_edge::fetch::Body;
use rialto_model::failure::Kind;

use crate::{
    credential::Shown,
    grpc::Messages,
    post::one_line,
    route::{Carrier, Route},
    slots::Slot,
    trouble::{Login, Trouble},
};

/// A stream that is open.
pub(crate) struct Events {
    source: Source,
    /// What was shown at the door, and must not come out in words.
    shown: Option<Arc<Shown>>,
    _slot: Option<Slot>,
}

/// Where events come from.
enum Source {
    /// Server-sent events.
    Sse(Lines),
    Grpc(Messages),
}

/// Server-sent events on their way in.
struct Lines {
    body: Body,
    parser: Parser,
    ready: VecDeque<sse::Event>,
    carrier: Carrier,
    wire: Wire,
    /// The id of the request that the stream answers.
    id: Id,
    is_at_end: bool,
}

// === impl Events ===

impl Events {
    pub(crate) fn new(body: Body, route: &Route, id: Id, shown: Option<Arc<Shown>>) -> Self {
        let lines = Lines {
            parser: Parser::new(body.limit()),
            body,
            ready: VecDeque::new(),
            carrier: route.carrier,
            wire: route.wire,
            id,
            is_at_end: false,
        };
        Self { source: Source::Sse(lines), shown, _slot: None }
    }

    /// The events that these messages are.
    pub(crate) const fn grpc(messages: Messages, shown: Option<Arc<Shown>>) -> Self {
        Self { source: Source::Grpc(messages), shown, _slot: None }
    }

    /// The same stream, counted among the agent's exchanges until it is dropped.
    pub(crate) fn holding(mut self, slot: Slot) -> Self {
        self._slot = Some(slot);
        self
    }

    /// The next event; none when the agent has closed the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<StreamEvent>, Trouble> {
        let shown = self.shown.as_ref();
        let heard = match &mut self.source {
            Source::Sse(lines) => lines.next(shown).await,
            Source::Grpc(messages) => messages.event(shown).await,
        };
        heard.map_err(|trouble| trouble.without(shown.map(Arc::as_ref)))
    }
}

// === impl Lines ===

impl Lines {
    async fn next(&mut self, shown: Option<&Arc<Shown>>) -> Result<Option<StreamEvent>, Trouble> {
        loop {
            while let Some(event) = self.ready.pop_front() {
                if !event.data.trim().is_empty() {
                    return self.decode(&event, shown).map(Some);
                }
            }
            if self.is_at_end {
                return self.last(shown);
            }
            match self.body.chunk().await.map_err(|error| Trouble::fetching(&error))? {
                Some(bytes) => {
                    let events = self.parser.feed(&bytes).map_err(|error| Trouble::too_large(error.limit))?;
                    self.ready.extend(events);
                }
                None => self.is_at_end = true,
            }
        }
    }

    /// The event before the end of the stream that no empty line closed. Some agents leave that line out after a whole event;
    /// half an event was cut off, and counts as little as one that never came.
    fn last(&mut self, shown: Option<&Arc<Shown>>) -> Result<Option<StreamEvent>, Trouble> {
        let last = self.parser.finish().filter(|event| !event.data.trim().is_empty());
        match last.map(|event| self.decode(&event, shown)).transpose() {
            Err(trouble) if trouble.failure.kind == Kind::PeerGarbled => Ok(None),
            read => read,
        }
    }

    fn decode(&self, event: &sse::Event, shown: Option<&Arc<Shown>>) -> Result<StreamEvent, Trouble> {
        let login = shown.map_or(Login::None, |shown| Login::Shown(shown));
        let data = one_line(event.data.as_bytes());
        let data = data.as_ref();
        if event.event.as_deref() == Some("error") {
            return Err(Trouble::remote(&error_in(data)));
        }
        let read = match self.carrier {
            Carrier::Rpc => rpc::decode_response(data).and_then(|response| {
                response.check_id(&self.id)?;
                Ok(response.result)
            }),
            Carrier::Rest | Carrier::Grpc => answer::parse(data).map(Ok),
        };
        match read {
            Ok(Ok(raw)) => answer::decode_stream_event(self.wire, raw)
                .map_err(|garbled| misread(data).unwrap_or_else(|| Trouble::garbled(&garbled, data, login))),
            Ok(Err(error)) => Err(Trouble::remote(&error)),
            Err(garbled) => Err(Trouble::garbled(&garbled, data, login)),
        }
    }
}

/// What stands where an event should may be an error that nobody announced.
fn misread(data: &[u8]) -> Option<Trouble> {
    let error = rpc::decode_response(data).ok()?.result.err()?;
    Some(Trouble::remote(&error))
}

/// The error in the data of an `error` event: in an envelope, or bare, or only words.
fn error_in(data: &[u8]) -> RpcError {
    if let Ok(rpc::Response { result: Err(error), .. }) = rpc::decode_response(data) {
        return error;
    }
    RpcError::new(Code::Internal, String::from_utf8_lossy(data).trim().to_owned())
}
