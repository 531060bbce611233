//! Resumption of a call after the decision: the call leaves, or its task fails, or the backend that asked receives the verdict.

use std::time::Duration;

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
    ApprovalService,
    hold::{SealedCall, name},
    question::{self, Verdict},
};
use tokio::time::Instant;

use crate::{
    budget::TaskBudget,
    call_handle::CallHandle,
    call_run::RunParams,
    call_runner::CallRunner,
    journal::audit_verb,
    limits::CallPermit,
    redact::redact_message,
    request::CallRequest,
    store_failure::store_failure,
    takeover::stored_call,
    task_service::{agent_removed, target_of},
};

/// Caller that waits for the call, and for how long; none if nobody waits.
pub(super) struct CallerWait {
    caller: Option<Caller>,
    timeout: Option<Duration>,
    permit: Option<CallPermit>,
}

// === impl ApprovalService ===

impl ApprovalService {
    /// Handles a caller's message in a task that waits for approval: a decision, if the caller may make it. Any other message repeats
    /// the question.
    pub(crate) async fn answer(
        &self,
        request: CallRequest,
        task: Task,
        approval: &Approval,
        permit: Option<CallPermit>,
    ) -> Result<CallHandle, Failure> {
        let waiter = CallerWait { caller: Some(request.caller.clone()), timeout: request.timeout, permit };
        if approval.decided.is_some() {
            // It was decided a moment ago: the first process to record that resumes the task.
            return self.resume(approval, task, waiter).await?.ok_or_else(|| busy(approval));
        }
        let answer = question::parse_answer(&request.parts)
            .filter(|answer| answer.approval.as_ref().is_none_or(|id| *id == approval.id));
        let note = match answer {
            Some(answer) if approval.is_for_caller() => {
                let (by, at) = (request.caller.id.to_string(), self.runner.journal.now());
                let decided = ApprovalVerdict { approved: answer.approved, by, reason: answer.reason, at };
                let approval = self.store_decision(approval, decided).await?;
                return self.resume(&approval, task, waiter).await?.ok_or_else(|| busy(&approval));
            }
            Some(_) => format!("{} may not decide about this.", request.caller.id),
            None if approval.is_for_caller() => "That is neither \"approve\" nor \"deny\".".to_owned(),
            None => "It still waits.".to_owned(),
        };
        let said = request.conversation.map_or_else(
            || Message::new(fresh(), Role::User, request.parts),
            |conversation| conversation.spoken.message.clone(),
        );
        self.ask_again(approval, task, (redact_message(said, None), &note), waiter).await
    }

    /// Resumes a task as it was decided; none if another process was first.
    pub(super) async fn resume(
        &self,
        approval: &Approval,
        task: Task,
        waiter: CallerWait,
    ) -> Result<Option<CallHandle>, Failure> {
        let Some(decided) = &approval.decided else { return Ok(None) };
        let runner = &self.runner;
        let agent =
            self.tasks.find_agent(&task).ok_or_else(|| agent_removed(task.head.id.as_str(), &task))?;
        let target = target_of(agent, &task);
        let (call, events) = match self.decided_call(approval, &task, &target, &waiter).await {
            Ok((call, permitted)) => (call, permitted),
            Err(failure) => {
                let caller = waiter.caller.clone().unwrap_or_else(|| self.tasks.caller_of(&task.head));
                (stored_call(&task, &caller, &target), DecidedCall::Fails(failure))
            }
        };
        let mut task = task;
        let answered =
            Event::Answered { message: question::answer_message(approval, decided), content_hash: None };
        match runner.journal.record(&mut task, vec![answered], None).await {
            Ok(()) => {}
            // Another process resumes it.
            Err(StoreError::Conflict) => return Ok(None),
            Err(error) => return Err(store_failure(error)),
        }
        runner.lease.claim(&mut task).await?;
        self.settle(approval).await;
        let verb = audit_verb(&call, task.head.args.clone());
        let span = runner.journal.take_up_again(verb, target.cost(), &approval.policies).await;
        let patience = Duration::from_secs(runner.config.patience_secs);
        let timeout = match (&waiter.caller, waiter.timeout) {
            (_, Some(timeout)) => timeout,
            (Some(caller), None) => runner.config.call_timeout(&caller.scope.org, &target.agent),
            (None, None) => patience,
        };
        let budget = TaskBudget::new(&runner.config, &task);
        let params = RunParams {
            budget,
            caller: call.caller,
            target,
            events: events.into_events(runner),
            task,
            span,
            started_at: Instant::now(),
            timeout,
            permit: waiter.permit,
        };
        Ok(Some(runner.start(params)))
    }

    /// The call that is resumed after a decision. Policy is asked again: it may have changed.
    async fn decided_call(
        &self,
        approval: &Approval,
        task: &Task,
        target: &CallTarget,
        waiter: &CallerWait,
    ) -> Result<(Call, DecidedCall), Failure> {
        let decided = approval.decided.as_ref().ok_or_else(|| busy(approval))?;
        let call = match approval.waits {
            ApprovalTarget::Call if !decided.approved => return Err(denied(approval, decided)),
            ApprovalTarget::Call => {
                let held = self.open_sealed(approval).await?;
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
                    trace: self.runner.config.trace(None, hops),
                    presence: CallerPresence::default(),
                }
            }
            ApprovalTarget::Work => {
                // Whoever decides, the work continues with the token of its call.
                let token = approval.token.clone();
                let caller = waiter
                    .caller
                    .clone()
                    .unwrap_or_else(|| Caller { token, ..self.tasks.caller_of(&task.head) });
                let parts = vec![Verdict::part(approval, decided)];
                Call { parts, spoken: None, ..stored_call(task, &caller, target) }
            }
        };
        if decided.approved && !self.tokens.is_valid(approval.token.as_ref()).await? {
            let message = format!(
                "{} was approved, but the token that {} made this call with was revoked or has expired, so it was not made",
                approval.tool, approval.caller
            );
            return Err(Failure::new(FailureKind::Denied, message));
        }
        let permitted = self.runner.policies.check_approved(call.clone());
        let permitted = permitted.map_err(|denied| Failure::new(FailureKind::Denied, denied.to_string()))?;
        Ok((call, DecidedCall::Sent(Box::new(permitted))))
    }

    /// Repeats the question, because the message is no answer.
    async fn ask_again(
        &self,
        approval: &Approval,
        mut task: Task,
        (said, note): (Message, &str),
        waiter: CallerWait,
    ) -> Result<CallHandle, Failure> {
        let runner = &self.runner;
        let agent =
            self.tasks.find_agent(&task).ok_or_else(|| agent_removed(task.head.id.as_str(), &task))?;
        let target = target_of(agent, &task);
        let caller = waiter.caller.unwrap_or_else(|| self.tasks.caller_of(&task.head));
        let recorded = runner
            .journal
            .record(&mut task, vec![Event::Answered { message: said, content_hash: None }], None)
            .await;
        recorded.map_err(store_failure)?;
        let verb = audit_verb(&stored_call(&task, &caller, &target), task.head.args.clone());
        let span = runner.journal.take_up_again(verb, None, &approval.policies).await;
        let timeout = runner.config.call_timeout(&caller.scope.org, &target.agent);
        let events = stream::iter([question::question_event(approval, Some(note))]).boxed();
        let budget = TaskBudget::new(&runner.config, &task);
        let permit = waiter.permit;
        let params = RunParams {
            caller,
            target,
            events,
            task,
            span,
            started_at: Instant::now(),
            timeout,
            permit,
            budget,
        };
        Ok(runner.start(params))
    }
}

/// Result of a decision.
enum DecidedCall {
    Sent(Box<Permitted<Call>>),
    Fails(Failure),
}

// === impl DecidedCall ===

impl DecidedCall {
    fn into_events(self, runner: &CallRunner) -> BoxStream<'static, Event> {
        match self {
            Self::Sent(call) => runner.backends.send(*call),
            Self::Fails(failure) => stream::iter([Event::failed(failure)]).boxed(),
        }
    }
}

// === impl CallerWait ===

impl CallerWait {
    /// No waiting caller.
    pub(super) const fn nobody() -> Self {
        Self { caller: None, timeout: None, permit: None }
    }
}

// === impl ApprovalService ===

impl ApprovalService {
    async fn open_sealed(&self, approval: &Approval) -> Result<SealedCall, Failure> {
        let lost = |error: &dyn std::error::Error| {
            let id = &approval.id;
            tracing::error!("the call that approval {id} is about could not be read: {error}");
            let message = "it was approved, but what was said could not be read any more, so it was not sent; call again";
            Failure::new(FailureKind::Internal, message)
        };
        let text = self.sealed_calls().get(&name(&approval.id)).await.map_err(|error| lost(&error))?;
        serde_json::from_str(text.expose()).map_err(|error| lost(&error))
    }

    /// Marks an approval as settled, and removes its sealed call.
    pub(super) async fn settle(&self, approval: &Approval) {
        if approval.waits == ApprovalTarget::Call
            && let Err(error) = self.sealed_calls().forget(&name(&approval.id)).await
        {
            tracing::error!("what approval {} was about could not be forgotten: {error}", approval.id);
        }
        if let Err(error) = self.runner.store.close_approval(&approval.id).await {
            tracing::error!("approval {} could not be settled: {error}", approval.id);
        }
    }

    /// Settles an approval whose task has ended; returns true if it has.
    pub(super) async fn settle_if_over(&self, approval: &Approval) -> Result<bool, Failure> {
        let head =
            self.runner.store.task(&approval.scope, approval.task.as_str()).await.map_err(store_failure)?;
        // Without a task yet it is only just being asked.
        let is_over = match head {
            Some(head) => head.state.is_terminal(),
            None => approval.expires_at <= self.runner.journal.now(),
        };
        if is_over && !approval.is_settled {
            self.settle(approval).await;
        }
        Ok(is_over)
    }
}

/// Failure of a denied call.
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
