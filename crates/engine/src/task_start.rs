//! Start of a call's task: it is in the store before the call leaves.
//!
//! When the store does not say if it has the task, the call is not made, and the task is ended should it appear.

use rialto_model::{
    audit_event::AuditEvent,
    call::Call,
    event::{Event, RemoteIds},
    failure::{Failure, FailureKind},
    ids::fresh,
    json::Json,
    message::{ContentHash, Message, Role},
    store::StoreError,
    task::{Task, TaskHead, TaskState},
};
use tokio::time::Instant;

use crate::{
    call_service::CallService,
    conversation::ConversationMessage,
    held_writes::UnsentStart,
    journal::AuditSpan,
    redact::redact_message,
    store_failure::{before, store_failure},
};

/// Number of attempts to record a message in a task that changes meanwhile.
const MAX_ANSWER_ATTEMPTS: usize = 8;

/// Start of a task, or its continuation.
pub(crate) struct TaskStart {
    /// The task that the call continues, if it does.
    pub(crate) continued: Option<Task>,
    pub(crate) conversation: Option<Box<ConversationMessage>>,
    /// Version of the task that the call is meant for.
    pub(crate) answers: Option<u64>,
    pub(crate) pre: AuditEvent,
}

// === impl CallService ===

impl CallService {
    /// Records the task of a call that is about to leave, before the deadline of its caller.
    pub(crate) async fn start_task(
        &self,
        call: &Call,
        TaskStart { continued, conversation, answers, pre }: TaskStart,
        span: &mut AuditSpan,
        deadline: Instant,
    ) -> Result<Task, Failure> {
        if let Some(task) = continued {
            let said = conversation.map_or_else(
                || (Message::new(fresh(), Role::User, call.parts.clone()), None),
                |conversation| (conversation.spoken.message.clone(), conversation.content_hash),
            );
            let (head, was_waiting) = (task.head.clone(), task.head.state.is_waiting());
            let answered = before(deadline, Box::pin(self.answer(task, said, pre, answers))).await;
            let unsent = was_waiting.then_some((head.version + 1, UnsentStart::Answered));
            return self.or_end_unsent(answered, &head, unsent, span);
        }
        let head = before(deadline, self.head_of(call, span.args())).await?;
        let version = u64::from(conversation.is_some());
        let opened = before(deadline, self.open(head.clone(), conversation, pre)).await;
        self.or_end_unsent(opened, &head, Some((version, UnsentStart::Opened)), span)
    }

    async fn head_of(&self, call: &Call, args: &Json) -> Result<TaskHead, Failure> {
        let now = self.runner.journal.now();
        Ok(TaskHead {
            id: call.task.clone(),
            scope: call.caller.scope.clone(),
            caller: call.caller.id.clone(),
            door: call.door,
            agent: call.target.agent.id.clone(),
            agent_url: call.target.agent.url.clone(),
            skill: call.target.skill.as_ref().map(|skill| skill.id.clone()),
            session: call.session.clone(),
            args: args.clone(),
            context: None,
            message: None,
            runner: self.runner.lease.ensure_registered().await?,
            state: TaskState::Submitted,
            version: 0,
            remote: RemoteIds { task_id: None, context_id: call.continues.context_id.clone() },
            created_at: now,
            updated_at: now,
        })
    }

    /// Stores a new task, with the message that starts it if it belongs to a conversation.
    async fn open(
        &self,
        head: TaskHead,
        conversation: Option<Box<ConversationMessage>>,
        pre: AuditEvent,
    ) -> Result<Task, Failure> {
        if let Some(conversation) = conversation {
            return self.open_in_conversation(head, *conversation, pre).await;
        }
        self.runner.journal.open(&head, pre).await.map_err(store_failure)?;
        Ok(Task::new(head))
    }

    /// The task that was started. One of which that is not known does not stay open: it is ended should it appear at this version.
    fn or_end_unsent(
        &self,
        begun: Result<Task, Failure>,
        head: &TaskHead,
        unsent: Option<(u64, UnsentStart)>,
        span: &mut AuditSpan,
    ) -> Result<Task, Failure> {
        begun.inspect_err(|failure| {
            if let Some(unsent) = unsent.filter(|_| failure.kind == FailureKind::StoreUnavailable) {
                self.runner.journal.end_unsent(head, unsent, span, failure);
            }
        })
    }

    /// Records the message with which a caller continues a task.
    async fn answer(
        &self,
        mut task: Task,
        (said, content_hash): (Message, Option<ContentHash>),
        pre: AuditEvent,
        answers: Option<u64>,
    ) -> Result<Task, Failure> {
        let message = redact_message(said, None);
        self.runner.store.audit(vec![pre]).await.map_err(store_failure)?;
        let adopted = self.runner.lease.adopt_orphan(&mut task).await?;
        let journal = &self.runner.journal;
        let mut attempts = 0;
        loop {
            let event = Event::Answered { message: message.clone(), content_hash: content_hash.clone() };
            match journal.record(&mut task, vec![event], None).await {
                Ok(()) => break,
                // It changed meanwhile. A message that is not meant for one version of it counts for the current one.
                Err(StoreError::Conflict) if answers.is_none() && attempts < MAX_ANSWER_ATTEMPTS => {
                    task = journal.reread(&task).await.map_err(store_failure)?;
                    if task.head.state.is_terminal() {
                        return Err(store_failure(StoreError::Conflict));
                    }
                    attempts += 1;
                }
                Err(error) => return Err(store_failure(error)),
            }
        }
        if adopted {
            // Another process may have adopted it as well; the one whose answer was recorded keeps it.
            self.runner.lease.assign_runner(&mut task).await?;
        } else {
            self.runner.lease.claim(&mut task).await?;
        }
        Ok(task)
    }
}
