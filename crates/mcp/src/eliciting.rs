//! Asks the person at a client of a protocol version before 2026-07-28: by a request of ours while its own still waits.
//!
//! Nobody hurries a person: the call's wall clock has stopped, and the client hears now and then that we still wait. A client that
//! gives up its request meanwhile calls the task off.

use std::{pin::pin, time::Duration};

use rmcp::{
    RoleServer, ServiceError,
    model::{
        CancelledNotificationParam, ClientResult, ElicitRequest, ElicitResult, ElicitationAction,
        ProgressNotificationParam, ServerRequest,
    },
    service::{PeerRequestOptions, RequestContext},
};
use tokio::time::sleep;

use crate::{
    asking::{Inquiry, Question, Responses},
    progress::{Mark, Meter},
};

/// Tells a client how far its request is, if it wants to hear that.
pub(crate) struct Pulse<'a> {
    context: &'a RequestContext<RoleServer>,
    beat: Duration,
    /// How long a person may take.
    patience: Duration,
    pub(crate) meter: Meter,
}

/// What came of asking.
pub(crate) enum Asked {
    /// These answers.
    Answered(Responses),
    /// The client did not do it, or nobody answered for very long.
    Unable,
    /// The client gave up its own request.
    GivenUp,
}

// === impl Pulse ===

impl<'a> Pulse<'a> {
    pub(crate) fn new(context: &'a RequestContext<RoleServer>, beat: Duration, patience: Duration) -> Self {
        Self { context, beat, patience, meter: Meter::default() }
    }

    /// Tells how far it is.
    pub(crate) async fn tell(&self, mark: Mark, text: String) {
        let Some(token) = self.context.meta.get_progress_token() else { return };
        let mut progress = ProgressNotificationParam::new(token, mark.progress).with_message(text);
        progress.total = mark.total;
        // A client that does not take progress still gets its result.
        let _ = self.context.peer.notify_progress(progress).await;
    }

    /// Asks one question after the other.
    pub(crate) async fn ask(&mut self, inquiry: &Inquiry) -> Asked {
        let mut responses = Responses::new();
        for question in inquiry.open() {
            let result = match self.ask_one(question).await {
                Ok(result) => result,
                Err(why) => return why,
            };
            let goes_on = result.action != ElicitationAction::Cancel;
            let Ok(response) = serde_json::to_value(result) else { return Asked::Unable };
            responses.insert(question.key.clone(), response);
            if !goes_on {
                break;
            }
        }
        Asked::Answered(responses)
    }

    async fn ask_one(&mut self, question: &Question) -> Result<ElicitResult, Asked> {
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(question.params.clone()));
        let peer = &self.context.peer;
        let sent = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let handle = sent.map_err(|_| Asked::Unable)?;
        let id = handle.id.clone();
        let (mut answered, mut late) = (pin!(handle.await_response()), pin!(sleep(self.patience)));
        loop {
            tokio::select! {
                answer = &mut answered => {
                    return match answer {
                        Ok(ClientResult::ElicitResult(result)) => Ok(result),
                        Ok(_) | Err(ServiceError::McpError(_) | ServiceError::UnexpectedResponse) => {
                            Err(Asked::Unable)
                        }
                        // There is nobody left to be asked or told.
                        Err(_) => Err(Asked::GivenUp),
                    };
                }
                () = self.context.ct.cancelled() => {
                    let reason = Some("the call was cancelled".to_owned());
                    let _ = peer.notify_cancelled(CancelledNotificationParam::new(Some(id), reason)).await;
                    return Err(Asked::GivenUp);
                }
                () = &mut late => {
                    let reason = Some("nobody has answered".to_owned());
                    let _ = peer.notify_cancelled(CancelledNotificationParam::new(Some(id), reason)).await;
                    return Err(Asked::Unable);
                }
                () = sleep(self.beat) => {
                    let mark = self.meter.next();
                    self.tell(mark, "waiting for an answer".to_owned()).await;
                }
            }
        }
    }
}
