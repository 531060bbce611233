//! A call through rmcp, from its beginning to what its client is answered.

use std::time::Duration;

use rmcp::{ErrorData, RoleServer, model::CreateTaskResult, service::RequestContext};

use super::{
    Handler,
    leaving::{Kept, Why},
};
use crate::{
    answer::Answer,
    asking::Inquiry,
    client::Client,
    desk::Begun,
    eliciting::{Asked, Pulse},
    trouble,
    underway::{Note, Underway},
};

/// What became of a call.
pub(super) enum Settled {
    Done(Answer),
    Asked(Box<Inquiry>),
    Task(CreateTaskResult),
}

// === impl Handler ===

impl Handler {
    /// Goes on with a call until there is a result or, for those who are asked by one, a question.
    pub(super) async fn see_through(
        &self,
        client: &Client,
        mut begun: Begun,
        context: &RequestContext<RoleServer>,
    ) -> Result<Settled, ErrorData> {
        let beat = Duration::from_secs(self.desk.engine.config().heartbeat_secs.max(1));
        let mut pulse = Pulse::new(context, beat, Duration::from_secs(self.desk.config.question_ttl_secs));
        loop {
            begun = match begun {
                Begun::Underway(call) => match call.patience() {
                    Some(patience) => return Box::pin(self.or_task(client, call, patience, context)).await,
                    None => self.follow(call, &mut pulse, context).await?,
                },
                Begun::Asked(inquiry) if !client.fluency.modern => {
                    Box::pin(self.elicit(client, *inquiry, &mut pulse)).await?
                }
                Begun::Asked(inquiry) => return Ok(Settled::Asked(inquiry)),
                Begun::Done(answer) => return Ok(Settled::Done(answer)),
            };
        }
    }

    /// Waits a while for a call; then it is a task. Such a call tells nothing of its progress: its task does.
    async fn or_task(
        &self,
        client: &Client,
        call: Box<Underway>,
        patience: Duration,
        context: &RequestContext<RoleServer>,
    ) -> Result<Settled, ErrorData> {
        let settled = tokio::select! {
            settled = self.desk.or_task(client, call, patience) => settled?,
            // Letting go of the call calls it off.
            () = context.ct.cancelled() => return Err(given_up()),
        };
        match settled {
            Ok(Note::Asked(inquiry)) => Ok(Settled::Asked(inquiry)),
            Ok(Note::End(Ok(answer))) => Ok(Settled::Done(answer)),
            Ok(Note::End(Err(failure))) => trouble::told(&failure, client.errors).map(Settled::Done),
            Ok(Note::Progress { .. }) => Err(ErrorData::internal_error("it goes on", None)),
            Err(task) => Ok(Settled::Task(task)),
        }
    }

    /// Waits for a call's end, telling the client what happens meanwhile.
    async fn follow(
        &self,
        call: Box<Underway>,
        pulse: &mut Pulse<'_>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Begun, ErrorData> {
        let mut kept = Kept::new(call, &self.closing);
        kept.call.count_on(pulse.meter);
        loop {
            let note = tokio::select! {
                note = kept.call.next() => note,
                () = context.ct.cancelled() => {
                    if !self.closing.is_cancelled() && self.reasons.of(&context.id).await == Why::TooLong {
                        kept.go_on();
                    }
                    // Else letting go of the call calls it off.
                    return Err(given_up());
                }
            };
            pulse.meter = kept.call.meter();
            match note {
                Note::End(Ok(answer)) => return Ok(Begun::Done(answer)),
                Note::End(Err(failure)) => {
                    return trouble::told(&failure, kept.call.errors()).map(Begun::Done);
                }
                Note::Asked(inquiry) => return Ok(Begun::Asked(inquiry)),
                Note::Progress { mark, text } => pulse.tell(mark, text).await,
            }
        }
    }

    /// Asks the person at the client, and goes on with what it says.
    async fn elicit(
        &self,
        client: &Client,
        inquiry: Inquiry,
        pulse: &mut Pulse<'_>,
    ) -> Result<Begun, ErrorData> {
        let waiting = self.desk.waiting(client, &inquiry);
        let answer_wait = self.desk.answer_waits.begin();
        let asked = pulse.ask(&inquiry).await;
        drop(answer_wait);
        let responses = match asked {
            Asked::Answered(responses) => responses,
            Asked::Unable => {
                waiting.over();
                return Ok(Begun::Done(self.desk.told(client, &inquiry.task)));
            }
            // Letting go of what waits calls it off.
            Asked::GivenUp => return Err(given_up()),
        };
        waiting.over();
        let begun = self.desk.answer(client, inquiry, responses).await;
        begun.or_else(|failure| trouble::told(&failure, client.errors).map(Begun::Done))
    }
}

/// Nobody reads this.
fn given_up() -> ErrorData {
    ErrorData::internal_error("the call was cancelled", None)
}
