//! Turn of an agent: a task, from its prompt to its end.

use std::sync::{Arc, atomic::Ordering};

use agent_client_protocol::v1::{
    Responder,
    schema::{
        PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
        SelectedPermissionOutcome, SessionId, StopReason,
    },
};
use rialto_model::{
    event::Event,
    failure::{Failure, FailureKind},
    json::Json,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    connection::{AgentConnection, ClaimedSession, TurnMessage},
    updates::TurnOutput,
};

/// Turn in progress. It is cancelled when it is dropped before its end.
pub(crate) struct AgentTurn {
    /// Its id, for the engine.
    pub(crate) id: String,
    pub(crate) connection: Arc<AgentConnection>,
    claimed: ClaimedSession,
    output: Option<TurnOutput>,
    pending: Option<PendingPermission>,
    /// Cancelled when it is over.
    pub(crate) ended: CancellationToken,
}

/// Permission request without a decision.
struct PendingPermission {
    request: Box<RequestPermissionRequest>,
    responder: Responder<RequestPermissionResponse>,
}

/// Update of a turn.
pub(crate) enum TurnUpdate {
    /// Events of the turn.
    Events(Vec<Event>),
    /// Permission request for a tool, with its arguments.
    Permission(String, Json),
    /// Last events of the turn.
    End(Vec<Event>),
}

// === impl AgentTurn ===

impl AgentTurn {
    pub(crate) fn new(id: String, connection: Arc<AgentConnection>, claimed: ClaimedSession) -> Self {
        let (output, ended) = (Some(TurnOutput::default()), CancellationToken::new());
        Self { id, connection, claimed, output, pending: None, ended }
    }

    pub(crate) const fn session(&self) -> &SessionId {
        &self.claimed.session
    }

    /// Waits for the next update.
    pub(crate) async fn next_update(&mut self) -> TurnUpdate {
        loop {
            match self.claimed.messages.recv().await {
                Some(TurnMessage::Update(update)) => {
                    let events = self.output.as_mut().map_or_else(Vec::new, |output| output.apply(*update));
                    if !events.is_empty() {
                        return TurnUpdate::Events(events);
                    }
                }
                Some(TurnMessage::Permission(request, responder)) => {
                    let (tool, args) = requested_tool(&request);
                    self.pending = Some(PendingPermission { request, responder });
                    return TurnUpdate::Permission(tool, args);
                }
                Some(TurnMessage::Ended(result)) => return TurnUpdate::End(self.end(result)),
                None => {
                    return TurnUpdate::End(
                        self.end(Err(Failure::new(FailureKind::PeerFailed, "the agent's session is gone"))),
                    );
                }
            }
        }
    }

    fn end(&mut self, result: Result<StopReason, Failure>) -> Vec<Event> {
        let Some(output) = self.output.take() else { return Vec::new() };
        if self.claimed.is_full.load(Ordering::Relaxed) {
            let message =
                "the agent said more than could be kept while its task waited, so its answer is not whole";
            return vec![Event::failed(Failure::new(FailureKind::PeerGarbled, message))];
        }
        output.end(result)
    }

    /// Answers the pending request with the closest option: once before always.
    pub(crate) fn decide(&mut self, approved: bool) {
        let Some(PendingPermission { request, responder }) = self.pending.take() else { return };
        let kinds = if approved {
            [PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways]
        } else {
            [PermissionOptionKind::RejectOnce, PermissionOptionKind::RejectAlways]
        };
        let option = kinds.iter().find_map(|kind| request.options.iter().find(|option| option.kind == *kind));
        let outcome = option.map_or(RequestPermissionOutcome::Cancelled, |option| {
            RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
        });
        if let Err(error) = responder.respond(RequestPermissionResponse::new(outcome)) {
            tracing::debug!("a decision could not be sent to an agent: {error}");
        }
    }
}

impl Drop for AgentTurn {
    fn drop(&mut self) {
        if self.output.is_some() {
            self.connection.cancel(self.session());
        }
        if let Some(PendingPermission { responder, .. }) = self.pending.take() {
            let _ = responder.respond(RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled));
        }
        self.connection.release(self.session());
        self.ended.cancel();
    }
}

/// Tool that an agent wants to use, and its arguments.
fn requested_tool(request: &RequestPermissionRequest) -> (String, Json) {
    let call = &request.tool_call;
    let fields = &call.fields;
    let title = fields.title.clone().or_else(|| fields.name.clone());
    let title = title.unwrap_or_else(|| call.tool_call_id.to_string());
    let args = match &fields.raw_input {
        Some(input) if *input != Value::Null => input.clone(),
        // Without arguments the other fields are the basis of a decision.
        _ => json!({ "kind": fields.kind, "content": fields.content, "locations": fields.locations }),
    };
    (title, Json::encode(&args))
}
