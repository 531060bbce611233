//! Listeners of one call: receive its progress and the server's questions.
//!
//! Before 2026-07-28 a question is a server request that does not name its call. Over HTTP it arrives on the stream of the call's
//! response, and that is recorded. On stdio and over HTTP+SSE there is only one stream: there it belongs to the only caller with a call
//! in flight. With several callers the question is rejected, so that no one gets another caller's question.

use std::{collections::HashMap, sync::Arc};

use rialto_model::call::Caller;
use rmcp::{
    ErrorData, RoleClient,
    model::{ClientRequest, ProgressNotificationParam, ProgressToken, RequestId},
    service::{Peer, PeerRequestOptions, RequestHandle, ServiceError},
};
use serde_json::Value;
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::question::ServerQuestion;

/// Maximum number of uncollected messages; more are dropped.
const MAX_UNCOLLECTED: usize = 64;

/// Maximum number of recorded pairs of a question and the call on whose stream it arrived.
const MAX_RECORDED_QUESTIONS: usize = 1_024;

/// Listeners of the calls on one connection.
#[derive(Clone, Default)]
pub(crate) struct CallListeners {
    open: Arc<Mutex<HashMap<ProgressToken, CallListener>>>,
    /// Call on whose stream a server request arrived.
    streams: Arc<parking_lot::Mutex<HashMap<RequestId, RequestId>>>,
}

struct CallListener {
    request: RequestId,
    caller: Caller,
    progress: mpsc::Sender<ProgressNotificationParam>,
    asked: mpsc::Sender<PendingQuestion>,
}

/// Messages about one call.
pub(crate) struct CallMessages {
    pub(crate) progress: mpsc::Receiver<ProgressNotificationParam>,
    pub(crate) asked: mpsc::Receiver<PendingQuestion>,
}

/// Server question that waits for its answer.
pub(crate) struct PendingQuestion {
    pub(crate) question: ServerQuestion,
    /// Sends the elicitation result.
    pub(crate) answer: oneshot::Sender<Value>,
}

// === impl CallListeners ===

impl CallListeners {
    /// Sends a request and registers its listener first, so that no message is missed.
    pub(crate) async fn send(
        &self,
        peer: &Peer<RoleClient>,
        request: ClientRequest,
        options: PeerRequestOptions,
        caller: &Caller,
    ) -> Result<(RequestHandle<RoleClient>, CallMessages), ServiceError> {
        // Deliveries wait for this lock too, so no message can arrive before the listener is registered.
        let mut open = self.open.lock().await;
        let handle = peer.send_cancellable_request(request, options).await?;
        let (progress, asked) = (mpsc::channel(MAX_UNCOLLECTED), mpsc::channel(MAX_UNCOLLECTED));
        open.retain(|_, ear| !ear.asked.is_closed());
        let ear = CallListener {
            request: handle.id.clone(),
            caller: caller.clone(),
            progress: progress.0,
            asked: asked.0,
        };
        open.insert(handle.progress_token.clone(), ear);
        Ok((handle, CallMessages { progress: progress.1, asked: asked.1 }))
    }

    /// Delivers progress of a call.
    pub(crate) async fn tell(&self, told: &ProgressNotificationParam) {
        let open = self.open.lock().await;
        if let Some(ear) = open.get(&told.progress_token) {
            let _ = ear.progress.try_send(told.clone());
        }
    }

    /// Records that a server request arrived on the stream of a call.
    pub(crate) fn note(&self, asked: RequestId, on_stream_of: RequestId) {
        let mut streams = self.streams.lock();
        if streams.len() >= MAX_RECORDED_QUESTIONS {
            streams.clear();
        }
        streams.insert(asked, on_stream_of);
    }

    /// Sends a question to the caller that a server request belongs to, and waits for the answer.
    pub(crate) async fn ask(
        &self,
        request: &RequestId,
        question: ServerQuestion,
    ) -> Result<Value, ErrorData> {
        let stream = self.streams.lock().remove(request);
        let (sender, answer) = oneshot::channel();
        {
            let open = self.open.lock().await;
            let ear = whose(&open, stream.as_ref())?;
            let asked = PendingQuestion { question, answer: sender };
            ear.asked.try_send(asked).map_err(|_| refusal("too many questions wait for an answer"))?;
        }
        answer.await.map_err(|_| refusal("nobody is there any more to answer"))
    }

    /// Caller that a server request belongs to.
    pub(crate) async fn caller(&self, request: &RequestId) -> Result<Caller, ErrorData> {
        let stream = self.streams.lock().remove(request);
        let open = self.open.lock().await;
        whose(&open, stream.as_ref()).map(|ear| ear.caller.clone())
    }
}

fn whose<'a>(
    open: &'a HashMap<ProgressToken, CallListener>,
    stream: Option<&RequestId>,
) -> Result<&'a CallListener, ErrorData> {
    let mut live = open.values().filter(|ear| !ear.asked.is_closed());
    if let Some(stream) = stream {
        return live
            .find(|ear| ear.request == *stream)
            .ok_or_else(|| refusal("the call this belongs to is over"));
    }
    let ear = live.next().ok_or_else(|| refusal("no call is under way that this could belong to"))?;
    if live.any(|other| other.caller != ear.caller) {
        let why = "several callers have calls under way, and nothing says to which of them this belongs";
        return Err(refusal(why));
    }
    Ok(ear)
}

fn refusal(why: &'static str) -> ErrorData {
    ErrorData::internal_error(why, None)
}
