//! What happens once it is decided: the call leaves, or its task fails, or whoever asked is told.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream, stream::BoxStream};
use rialto_model::{
    approval::{Approval, ApprovalTarget, ApprovalVerdict},
    call::{Call, CallTarget, Caller},
    event::Event,
    failure::{Failure, FailureKind},
    ids::fresh,
    json::Json,
    message::{Message, Role},
    presence::CallerPresence,
    store::StoreError,
    task::Task,
};
use rialto_policy::Permitted;
use serde_json::json;

use super::{
    hold::{SealedCall, name},
    question::{self, Verdict},
};
use tokio::time::Instant;

use crate::{
    budget::TaskBudget,
    call_handle::Running,
    call_run::{CallRun, RunParams},
    engine::{Engine, EngineInner, store_failure, verb_of},
    limits::CallPermit,
    redact::redact_message,
    request::Request,
    takeover::call_of,
    tasks::{gone, target_of},
};

/// Who waits for what comes, and for how long.
pub(super) struct CallerWait {
    caller: Option<Caller>,
    wall_clock: Option<Duration>,
    seat: Option<CallPermit>,
}

// === impl Engine ===

impl Engine {
    /// Takes what a caller says in a task that waits for approval: a decision, if the caller may make it. Anything else has
    /// the question asked again.
    pub(crate) async fn said_to_approval(
        &self,
        request: Request,
        task: Task,
        approval: &Approval,
        seat: Option<CallPermit>,
    ) -> Result<Running, Failure> {
        let waiter =
            CallerWait { caller: Some(request.caller.clone()), wall_clock: request.wall_clock, seat };
        if approval.decided.is_some() {
            // Somebody else decided a moment ago: whoever is first goes on.
            return self.go_on(approval, task, waiter).await?.ok_or_else(|| busy(approval));
        }
        let answer = question::read(&request.parts)
            .filter(|answer| answer.approval.as_ref().is_none_or(|id| *id == approval.id));
        let note = match answer {
            Some(answer) if approval.is_for_caller() => {
                let (by, at) = (request.caller.id.to_string(), self.now());
                let decided = ApprovalVerdict { approved: answer.approved, by, reason: answer.reason, at };
                let approval = self.settle_on(approval, decided).await?;
                return self.go_on(&approval, task, waiter).await?.ok_or_else(|| busy(&approval));
            }
            Some(_) => format!("{} may not decide about this.", request.caller.id),
            None if approval.is_for_caller() => "That is neither \"approve\" nor \"deny\".".to_owned(),
            None => "It still waits.".to_owned(),
        };
        let said = request.talk.map_or_else(
            || Message::new(fresh(), Role::User, request.parts),
            |talk| talk.spoken.message.clone(),
        );
        self.ask_anew(approval, task, (redact_message(said, None), &note), waiter).await
    }

    /// Goes on with what was decided, if this process can and is the first. Nothing is left for it to do when it is over.
    pub(super) async fn go_on(
        &self,
        approval: &Approval,
        task: Task,
        waiter: CallerWait,
    ) -> Result<Option<Running>, Failure> {
        let Some(decided) = &approval.decided else { return Ok(None) };
        let inner = self.inner();
        let agent = self.agent_of(&task).ok_or_else(|| gone(task.head.id.as_str(), &task))?;
        let target = target_of(agent, &task);
        let (call, events) = match self.decided_call(approval, &task, &target, &waiter).await {
            Ok((call, permitted)) => (call, permitted),
            Err(failure) => {
                let caller = waiter.caller.clone().unwrap_or_else(|| self.caller_of(&task.head));
                (call_of(&task, &caller, &target), DecidedCall::Fails(failure))
            }
        };
        let mut task = task;
        let answered = Event::Answered { message: question::answered(approval, decided), content_hash: None };
        match inner.journal.record(&mut task, vec![answered], None).await {
            Ok(()) => {}
            // Somebody else goes on with it.
            Err(StoreError::Conflict) => return Ok(None),
            Err(error) => return Err(store_failure(error)),
        }
        self.claim(&mut task).await?;
        inner.settle(approval).await;
        let verb = verb_of(&call, task.head.args.clone());
        let announcement = inner.journal.take_up_again(verb, target.cost(), &approval.policies).await;
        let patience = Duration::from_secs(inner.config.patience_secs);
        let wall_clock = match (&waiter.caller, waiter.wall_clock) {
            (_, Some(wall_clock)) => wall_clock,
            (Some(caller), None) => inner.config.wall_clock(&caller.scope.org, &target.agent),
            (None, None) => patience,
        };
        let budget = TaskBudget::new(&inner.config, &task);
        let leg = RunParams {
            budget,
            caller: call.caller,
            target,
            events: events.into(inner),
            task,
            announcement,
            begun_at: Instant::now(),
            wall_clock,
            seat: waiter.seat,
        };
        Ok(Some(Running::of(CallRun::begin(inner, leg), None)))
    }

    /// The call that follows from a decision, and what comes of it. Policy is asked again: it may have changed.
    async fn decided_call(
        &self,
        approval: &Approval,
        task: &Task,
        target: &CallTarget,
        waiter: &CallerWait,
    ) -> Result<(Call, DecidedCall), Failure> {
        let inner = self.inner();
        let decided = approval.decided.as_ref().ok_or_else(|| busy(approval))?;
        let call = match approval.waits {
            ApprovalTarget::Call if !decided.approved => return Err(denied(approval, decided)),
            ApprovalTarget::Call => {
                let held = self.inner().open_held(approval).await?;
                let mut caller = waiter.caller.clone().unwrap_or_else(|| held.caller.clone());
                caller.hops = caller.hops.max(held.hops);
                let hops = caller.hops;
                Call {
                    task: task.head.id.clone(),
                    caller,
                    door: task.head.door,
                    target: target.clone(),
                    spoken: held.spoken(),
                    parts: held.parts,
                    continues: held.continues,
                    session: held.session,
                    trace: inner.config.trace(None, hops),
                    presence: CallerPresence::default(),
                }
            }
            ApprovalTarget::Work => {
                // Whoever decides, the work goes on with the token of the call that it waits in.
                let token = approval.token.clone();
                let caller =
                    waiter.caller.clone().unwrap_or_else(|| Caller { token, ..self.caller_of(&task.head) });
                let parts = vec![Verdict::part(approval, decided)];
                Call { parts, spoken: None, ..call_of(task, &caller, target) }
            }
        };
        if decided.approved && !self.may_go_on(approval.token.as_ref()).await? {
            let message = format!(
                "{} was approved, but the token that {} made this call with was revoked or has expired, so it was not made",
                approval.tool, approval.caller
            );
            return Err(Failure::new(FailureKind::Denied, message));
        }
        let permitted = inner.check_approved(call.clone());
        let permitted = permitted.map_err(|denied| Failure::new(FailureKind::Denied, denied.to_string()))?;
        Ok((call, DecidedCall::Sent(Box::new(permitted))))
    }

    /// Asks again, because what was said is no answer.
    async fn ask_anew(
        &self,
        approval: &Approval,
        mut task: Task,
        (said, note): (Message, &str),
        waiter: CallerWait,
    ) -> Result<Running, Failure> {
        let inner = self.inner();
        let agent = self.agent_of(&task).ok_or_else(|| gone(task.head.id.as_str(), &task))?;
        let target = target_of(agent, &task);
        let caller = waiter.caller.unwrap_or_else(|| self.caller_of(&task.head));
        let recorded = inner
            .journal
            .record(&mut task, vec![Event::Answered { message: said, content_hash: None }], None)
            .await;
        recorded.map_err(store_failure)?;
        let verb = verb_of(&call_of(&task, &caller, &target), task.head.args.clone());
        let announcement = inner.journal.take_up_again(verb, None, &approval.policies).await;
        let wall_clock = inner.config.wall_clock(&caller.scope.org, &target.agent);
        let events = stream::iter([question::asked(approval, Some(note))]).boxed();
        let budget = TaskBudget::new(&inner.config, &task);
        let seat = waiter.seat;
        let leg = RunParams {
            caller,
            target,
            events,
            task,
            announcement,
            begun_at: Instant::now(),
            wall_clock,
            seat,
            budget,
        };
        Ok(Running::of(CallRun::begin(inner, leg), None))
    }
}

/// What comes of a decision.
enum DecidedCall {
    Sent(Box<Permitted<Call>>),
    Fails(Failure),
}

// === impl Then ===

impl DecidedCall {
    fn into(self, inner: &Arc<EngineInner>) -> BoxStream<'static, Event> {
        match self {
            Self::Sent(call) => inner.peer.send(*call),
            Self::Fails(failure) => stream::iter([Event::failed(failure)]).boxed(),
        }
    }
}

// === impl Waiter ===

impl CallerWait {
    /// Nobody waits.
    pub(super) const fn nobody() -> Self {
        Self { caller: None, wall_clock: None, seat: None }
    }
}

// === impl Inner ===

impl EngineInner {
    async fn open_held(&self, approval: &Approval) -> Result<SealedCall, Failure> {
        let lost = |error: &dyn std::error::Error| {
            let id = &approval.id;
            tracing::error!("the call that approval {id} is about could not be read: {error}");
            let message = "it was approved, but what was said could not be read any more, so it was not sent; call again";
            Failure::new(FailureKind::Internal, message)
        };
        let text = self.approving.safe().get(&name(&approval.id)).await.map_err(|error| lost(&error))?;
        serde_json::from_str(text.expose()).map_err(|error| lost(&error))
    }

    /// Nothing waits for it any more, and what was kept for it is forgotten.
    pub(super) async fn settle(&self, approval: &Approval) {
        if approval.waits == ApprovalTarget::Call
            && let Err(error) = self.approving.safe().forget(&name(&approval.id)).await
        {
            tracing::error!("what approval {} was about could not be forgotten: {error}", approval.id);
        }
        if let Err(error) = self.store.close_approval(&approval.id).await {
            tracing::error!("approval {} could not be settled: {error}", approval.id);
        }
    }

    /// Settles a question whose task is over, and says whether it is.
    pub(super) async fn settle_if_over(&self, approval: &Approval) -> Result<bool, Failure> {
        let head = self.store.task(&approval.scope, approval.task.as_str()).await.map_err(store_failure)?;
        // Without a task yet it is only just being asked.
        let is_over = match head {
            Some(head) => head.state.is_terminal(),
            None => approval.expires_at <= self.journal.now(),
        };
        if is_over && !approval.is_settled {
            self.settle(approval).await;
        }
        Ok(is_over)
    }
}

/// How a call ends that was denied.
fn denied(approval: &Approval, decided: &ApprovalVerdict) -> Failure {
    let reason = decided.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let message = if matches!(decided.by.as_str(), super::decide::EXPIRY | super::decide::REVOCATION) {
        format!("{} was not approved{reason}", approval.tool)
    } else {
        format!("{} was denied by {}{reason}", approval.tool, decided.by)
    };
    let facts = json!({ "approval": approval.id, "decidedBy": decided.by, "reason": decided.reason });
    Failure::new(FailureKind::Denied, message).with_data(Json::encode(&facts))
}

fn busy(approval: &Approval) -> Failure {
    let (id, task) = (&approval.id, &approval.task);
    let message = format!("approval {id} was decided before, and task {task} goes on; get_task tells how");
    Failure::new(FailureKind::Conflict, message)
}
