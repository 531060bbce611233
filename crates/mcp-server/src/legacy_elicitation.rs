//! Elicitation before protocol version 2026-07-28: a server request while the client's own request is still pending.
//!
//! The call's timeout is paused while a person is asked, and the client gets heartbeats as progress notifications. A client that cancels
//! its request meanwhile cancels the task.

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
    elicitation::{ElicitationQuestion, ElicitationResponses, QuestionSet},
    progress::{ProgressMark, ProgressMeter},
};

/// Sends progress notifications to a client that asked for them.
pub(crate) struct ProgressHeartbeat<'a> {
    context: &'a RequestContext<RoleServer>,
    beat: Duration,
    /// Timeout of one question.
    patience: Duration,
    pub(crate) meter: ProgressMeter,
}

/// Outcome of asking the person.
pub(crate) enum ElicitationOutcome {
    /// Answers.
    Answered(ElicitationResponses),
    /// The client failed, or the timeout passed.
    Unable,
    /// The client cancelled its own request.
    GivenUp,
}

// === impl ProgressHeartbeat ===

impl<'a> ProgressHeartbeat<'a> {
    pub(crate) fn new(context: &'a RequestContext<RoleServer>, beat: Duration, patience: Duration) -> Self {
        Self { context, beat, patience, meter: ProgressMeter::default() }
    }

    /// Sends one progress notification.
    pub(crate) async fn tell(&self, mark: ProgressMark, text: String) {
        let Some(token) = self.context.meta.get_progress_token() else { return };
        let mut progress = ProgressNotificationParam::new(token, mark.progress).with_message(text);
        progress.total = mark.total;
        // Failing to send progress does not fail the call.
        let _ = self.context.peer.notify_progress(progress).await;
    }

    /// Asks the questions one after the other.
    pub(crate) async fn ask(&mut self, inquiry: &QuestionSet) -> ElicitationOutcome {
        let mut responses = ElicitationResponses::new();
        for question in inquiry.open() {
            let result = match self.ask_one(question).await {
                Ok(result) => result,
                Err(why) => return why,
            };
            let goes_on = result.action != ElicitationAction::Cancel;
            let Ok(response) = serde_json::to_value(result) else { return ElicitationOutcome::Unable };
            responses.insert(question.key.clone(), response);
            if !goes_on {
                break;
            }
        }
        ElicitationOutcome::Answered(responses)
    }

    async fn ask_one(&mut self, question: &ElicitationQuestion) -> Result<ElicitResult, ElicitationOutcome> {
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(question.params.clone()));
        let peer = &self.context.peer;
        let sent = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let handle = sent.map_err(|_| ElicitationOutcome::Unable)?;
        let id = handle.id.clone();
        let (mut answered, mut late) = (pin!(handle.await_response()), pin!(sleep(self.patience)));
        loop {
            tokio::select! {
                answer = &mut answered => {
                    return match answer {
                        Ok(ClientResult::ElicitResult(result)) => Ok(result),
                        Ok(_) | Err(ServiceError::McpError(_) | ServiceError::UnexpectedResponse) => {
                            Err(ElicitationOutcome::Unable)
                        }
                        // The client has disconnected.
                        Err(_) => Err(ElicitationOutcome::GivenUp),
                    };
                }
                () = self.context.ct.cancelled() => {
                    let reason = Some("the call was cancelled".to_owned());
                    let _ = peer.notify_cancelled(CancelledNotificationParam::new(Some(id), reason)).await;
                    return Err(ElicitationOutcome::GivenUp);
                }
                () = &mut late => {
                    let reason = Some("nobody has answered".to_owned());
                    let _ = peer.notify_cancelled(CancelledNotificationParam::new(Some(id), reason)).await;
                    return Err(ElicitationOutcome::Unable);
                }
                () = sleep(self.beat) => {
                    let mark = self.meter.next();
                    self.tell(mark, "waiting for an answer".to_owned()).await;
                }
            }
        }
    }
}
