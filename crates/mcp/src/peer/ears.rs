//! Who wants to hear what a server says about a call: how far it is, and what it wants to know.
//!
//! Before 2026-07-28 a question is a request of the server's own, and nothing in it says which call it belongs to. Over HTTP
//! it comes on the stream that answers the call, and that is noted. On stdin and stdout, and over HTTP+SSE, there is only one stream: there it
//! belongs to the only caller that has a call under way. With several callers nobody may be told another's question.

use std::{collections::HashMap, sync::Arc};

use rialto_model::call::Caller;
use rmcp::{
    ErrorData, RoleClient,
    model::{ClientRequest, ProgressNotificationParam, ProgressToken, RequestId},
    service::{Peer, PeerRequestOptions, RequestHandle, ServiceError},
};
use serde_json::Value;
use tokio::sync::{Mutex, mpsc, oneshot};

use super::question::Question;

/// What nobody collects is dropped beyond this.
const UNCOLLECTED: usize = 64;

/// So many questions are remembered together with the call on whose stream they came.
const NOTED: usize = 1_024;

/// Who listens to the calls of one connection.
#[derive(Clone, Default)]
pub(super) struct Ears {
    open: Arc<Mutex<HashMap<ProgressToken, Ear>>>,
    /// On the stream of which call a request of the server's came.
    streams: Arc<parking_lot::Mutex<HashMap<RequestId, RequestId>>>,
}

struct Ear {
    request: RequestId,
    caller: Caller,
    progress: mpsc::Sender<ProgressNotificationParam>,
    asked: mpsc::Sender<Asked>,
}

/// What is heard of one call.
pub(super) struct Heard {
    pub(super) progress: mpsc::Receiver<ProgressNotificationParam>,
    pub(super) asked: mpsc::Receiver<Asked>,
}

/// A question of a server that waits for its answer.
pub(super) struct Asked {
    pub(super) question: Question,
    /// What the protocol calls the result of an elicitation.
    pub(super) answer: oneshot::Sender<Value>,
}

// === impl Ears ===

impl Ears {
    /// Sends a request, and hears of it from the very first word.
    pub(super) async fn send(
        &self,
        peer: &Peer<RoleClient>,
        request: ClientRequest,
        options: PeerRequestOptions,
        caller: &Caller,
    ) -> Result<(RequestHandle<RoleClient>, Heard), ServiceError> {
        // Whoever brings something waits for this too, so nothing can come before it is known whose it is.
        let mut open = self.open.lock().await;
        let handle = peer.send_cancellable_request(request, options).await?;
        let (progress, asked) = (mpsc::channel(UNCOLLECTED), mpsc::channel(UNCOLLECTED));
        open.retain(|_, ear| !ear.asked.is_closed());
        let ear =
            Ear { request: handle.id.clone(), caller: caller.clone(), progress: progress.0, asked: asked.0 };
        open.insert(handle.progress_token.clone(), ear);
        Ok((handle, Heard { progress: progress.1, asked: asked.1 }))
    }

    /// Tells how far a call is.
    pub(super) async fn tell(&self, told: &ProgressNotificationParam) {
        let open = self.open.lock().await;
        if let Some(ear) = open.get(&told.progress_token) {
            let _ = ear.progress.try_send(told.clone());
        }
    }

    /// Notes that a request of the server's came on the stream of a call.
    pub(super) fn note(&self, asked: RequestId, on_stream_of: RequestId) {
        let mut streams = self.streams.lock();
        if streams.len() >= NOTED {
            streams.clear();
        }
        streams.insert(asked, on_stream_of);
    }

    /// Asks whoever made the call that a request of the server's belongs to, and waits for the answer.
    pub(super) async fn ask(&self, request: &RequestId, question: Question) -> Result<Value, ErrorData> {
        let stream = self.streams.lock().remove(request);
        let (sender, answer) = oneshot::channel();
        {
            let open = self.open.lock().await;
            let ear = whose(&open, stream.as_ref())?;
            let asked = Asked { question, answer: sender };
            ear.asked.try_send(asked).map_err(|_| refusal("too many questions wait for an answer"))?;
        }
        answer.await.map_err(|_| refusal("nobody is there any more to answer"))
    }

    /// Whose call a request of the server's belongs to.
    pub(super) async fn caller(&self, request: &RequestId) -> Result<Caller, ErrorData> {
        let stream = self.streams.lock().remove(request);
        let open = self.open.lock().await;
        whose(&open, stream.as_ref()).map(|ear| ear.caller.clone())
    }
}

fn whose<'a>(
    open: &'a HashMap<ProgressToken, Ear>,
    stream: Option<&RequestId>,
) -> Result<&'a Ear, ErrorData> {
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
