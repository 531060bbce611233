//! Tool calls through rmcp, from the request to the response.

use std::time::Duration;

use rmcp::{ErrorData, RoleServer, model::CreateTaskResult, service::RequestContext};

use super::{
    McpHandler,
    cancellation::{CancelReason, DetachOnClose},
};
use crate::{
    call_stream::{ToolCallStream, ToolCallUpdate},
    client_profile::ClientProfile,
    elicitation::QuestionSet,
    errors,
    legacy_elicitation::{ElicitationOutcome, ProgressHeartbeat},
    tool_result::ToolResult,
    tool_service::ToolCallStart,
};

/// Outcome of a call.
pub(super) enum ToolCallOutcome {
    Done(ToolResult),
    Asked(Box<QuestionSet>),
    Task(CreateTaskResult),
}

// === impl Handler ===

impl McpHandler {
    /// Runs a call until there is a result or, since 2026-07-28, a question.
    pub(super) async fn see_through(
        &self,
        client: &ClientProfile,
        mut begun: ToolCallStart,
        context: &RequestContext<RoleServer>,
    ) -> Result<ToolCallOutcome, ErrorData> {
        let beat = Duration::from_secs(self.desk.engine.config().heartbeat_secs.max(1));
        let mut pulse =
            ProgressHeartbeat::new(context, beat, Duration::from_secs(self.desk.config.question_ttl_secs));
        loop {
            begun = match begun {
                ToolCallStart::Underway(call) => match call.patience() {
                    Some(patience) => return Box::pin(self.or_task(client, call, patience, context)).await,
                    None => self.follow(call, &mut pulse, context).await?,
                },
                ToolCallStart::Asked(inquiry) if !client.fluency.modern => {
                    Box::pin(self.elicit(client, *inquiry, &mut pulse)).await?
                }
                ToolCallStart::Asked(inquiry) => return Ok(ToolCallOutcome::Asked(inquiry)),
                ToolCallStart::Done(answer) => return Ok(ToolCallOutcome::Done(answer)),
            };
        }
    }

    /// Waits for the call; after the timeout it becomes a task, which reports the progress then.
    async fn or_task(
        &self,
        client: &ClientProfile,
        call: Box<ToolCallStream>,
        patience: Duration,
        context: &RequestContext<RoleServer>,
    ) -> Result<ToolCallOutcome, ErrorData> {
        let settled = tokio::select! {
            settled = self.desk.or_task(client, call, patience) => settled?,
            // Dropping the call cancels it.
            () = context.ct.cancelled() => return Err(given_up()),
        };
        match settled {
            Ok(ToolCallUpdate::Asked(inquiry)) => Ok(ToolCallOutcome::Asked(inquiry)),
            Ok(ToolCallUpdate::End(Ok(answer))) => Ok(ToolCallOutcome::Done(answer)),
            Ok(ToolCallUpdate::End(Err(failure))) => {
                errors::told(&failure, client.errors).map(ToolCallOutcome::Done)
            }
            Ok(ToolCallUpdate::Progress { .. }) => Err(ErrorData::internal_error("it goes on", None)),
            Err(task) => Ok(ToolCallOutcome::Task(task)),
        }
    }

    /// Waits for the end of a call and sends progress notifications meanwhile.
    async fn follow(
        &self,
        call: Box<ToolCallStream>,
        pulse: &mut ProgressHeartbeat<'_>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ToolCallStart, ErrorData> {
        let mut kept = DetachOnClose::new(call, &self.closing);
        kept.call.count_on(pulse.meter);
        loop {
            let note = tokio::select! {
                note = kept.call.next() => note,
                () = context.ct.cancelled() => {
                    if !self.closing.is_cancelled() && self.reasons.of(&context.id).await == CancelReason::TooLong {
                        kept.go_on();
                    }
                    // Otherwise dropping the call cancels it.
                    return Err(given_up());
                }
            };
            pulse.meter = kept.call.meter();
            match note {
                ToolCallUpdate::End(Ok(answer)) => return Ok(ToolCallStart::Done(answer)),
                ToolCallUpdate::End(Err(failure)) => {
                    return errors::told(&failure, kept.call.errors()).map(ToolCallStart::Done);
                }
                ToolCallUpdate::Asked(inquiry) => return Ok(ToolCallStart::Asked(inquiry)),
                ToolCallUpdate::Progress { mark, text } => pulse.tell(mark, text).await,
            }
        }
    }

    /// Asks the person at the client, and continues with the answers.
    async fn elicit(
        &self,
        client: &ClientProfile,
        inquiry: QuestionSet,
        pulse: &mut ProgressHeartbeat<'_>,
    ) -> Result<ToolCallStart, ErrorData> {
        let waiting = self.desk.waiting(client, &inquiry);
        let answer_wait = self.desk.answer_waits.begin();
        let asked = pulse.ask(&inquiry).await;
        drop(answer_wait);
        let responses = match asked {
            ElicitationOutcome::Answered(responses) => responses,
            ElicitationOutcome::Unable => {
                waiting.over();
                return Ok(ToolCallStart::Done(self.desk.told(client, &inquiry.task)));
            }
            // Dropping the guard cancels the task.
            ElicitationOutcome::GivenUp => return Err(given_up()),
        };
        waiting.over();
        let begun = self.desk.answer(client, inquiry, responses).await;
        begun.or_else(|failure| errors::told(&failure, client.errors).map(ToolCallStart::Done))
    }
}

/// Placeholder response; the client has cancelled its request.
fn given_up() -> ErrorData {
    ErrorData::internal_error("the call was cancelled", None)
}
