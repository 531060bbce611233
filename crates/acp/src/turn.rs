//! One turn of an agent: a task, from its prompt to its end.

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
    link::{Heard, Link, Taken},
    updates::Output,
};

/// A turn under way. It is called off when it is dropped before its end.
pub(crate) struct Turn {
    /// What we call it, for the engine.
    pub(crate) id: String,
    pub(crate) link: Arc<Link>,
    taken: Taken,
    output: Option<Output>,
    pending: Option<Pending>,
    /// Told when it is over.
    pub(crate) over: CancellationToken,
}

/// A wish that nobody has decided about yet.
struct Pending {
    wish: Box<RequestPermissionRequest>,
    responder: Responder<RequestPermissionResponse>,
}

/// What there is to tell of a turn.
pub(crate) enum News {
    /// It goes on.
    Events(Vec<Event>),
    /// The agent wants to use this tool with these arguments.
    Wish(String, Json),
    /// It is over.
    End(Vec<Event>),
}

// === impl Turn ===

impl Turn {
    pub(crate) fn new(id: String, link: Arc<Link>, taken: Taken) -> Self {
        let (output, over) = (Some(Output::default()), CancellationToken::new());
        Self { id, link, taken, output, pending: None, over }
    }

    pub(crate) const fn session(&self) -> &SessionId {
        &self.taken.session
    }

    /// Waits for something to tell.
    pub(crate) async fn news(&mut self) -> News {
        loop {
            match self.taken.heard.recv().await {
                Some(Heard::Update(update)) => {
                    let events = self.output.as_mut().map_or_else(Vec::new, |output| output.hear(*update));
                    if !events.is_empty() {
                        return News::Events(events);
                    }
                }
                Some(Heard::Permission(wish, responder)) => {
                    let (tool, args) = wanted(&wish);
                    self.pending = Some(Pending { wish, responder });
                    return News::Wish(tool, args);
                }
                Some(Heard::Ended(ended)) => return News::End(self.end(ended)),
                None => {
                    return News::End(
                        self.end(Err(Failure::new(FailureKind::PeerFailed, "the agent's session is gone"))),
                    );
                }
            }
        }
    }

    fn end(&mut self, ended: Result<StopReason, Failure>) -> Vec<Event> {
        let Some(output) = self.output.take() else { return Vec::new() };
        if self.taken.is_full.load(Ordering::Relaxed) {
            let message =
                "the agent said more than could be kept while its task waited, so its answer is not whole";
            return vec![Event::failed(Failure::new(FailureKind::PeerGarbled, message))];
        }
        output.end(ended)
    }

    /// Answers the wish that is pending, with the option that comes closest: this once, before always.
    pub(crate) fn decide(&mut self, approved: bool) {
        let Some(Pending { wish, responder }) = self.pending.take() else { return };
        let kinds = if approved {
            [PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways]
        } else {
            [PermissionOptionKind::RejectOnce, PermissionOptionKind::RejectAlways]
        };
        let option = kinds.iter().find_map(|kind| wish.options.iter().find(|option| option.kind == *kind));
        let outcome = option.map_or(RequestPermissionOutcome::Cancelled, |option| {
            RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
        });
        if let Err(error) = responder.respond(RequestPermissionResponse::new(outcome)) {
            tracing::debug!("a decision could not be told to an agent: {error}");
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.output.is_some() {
            self.link.cancel(self.session());
        }
        if let Some(Pending { responder, .. }) = self.pending.take() {
            let _ = responder.respond(RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled));
        }
        self.link.free(self.session());
        self.over.cancel();
    }
}

/// The tool that an agent wants to use, and what it would be given.
fn wanted(wish: &RequestPermissionRequest) -> (String, Json) {
    let call = &wish.tool_call;
    let fields = &call.fields;
    let title = fields.title.clone().or_else(|| fields.name.clone());
    let title = title.unwrap_or_else(|| call.tool_call_id.to_string());
    let args = match &fields.raw_input {
        Some(input) if *input != Value::Null => input.clone(),
        // Without arguments the rest of what it says about it is what there is to judge by.
        _ => json!({ "kind": fields.kind, "content": fields.content, "locations": fields.locations }),
    };
    (title, Json::encode(&args))
}
