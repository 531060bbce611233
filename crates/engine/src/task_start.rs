//! Beginning of a call's task: it is in the store before the call leaves.
//!
//! When the store does not say whether it has the task, the call is not made, and the task is ended should it turn up.

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
    conversation::Talk,
    engine::Engine,
    held_writes::UnsentStart,
    journal::AuditSpan,
    redact::redact_message,
    store_failure::{before, store_failure},
};

/// How often something is said again to a task that goes on while it is said.
const TRIES: usize = 8;

/// Facts that a task begins or goes on with.
pub(crate) struct TaskStart {
    /// The task that the call goes on with, if it does.
    pub(crate) goes_on: Option<Task>,
    pub(crate) talk: Option<Box<Talk>>,
    /// Version of the task that the call is meant for.
    pub(crate) answers: Option<u64>,
    pub(crate) pre: AuditEvent,
}

// === impl Engine ===

impl Engine {
    /// Records the task of a call that is about to leave, before the deadline of its caller.
    pub(crate) async fn start_task(
        &self,
        call: &Call,
        TaskStart { goes_on, talk, answers, pre }: TaskStart,
        announcement: &mut AuditSpan,
        deadline: Instant,
    ) -> Result<Task, Failure> {
        if let Some(task) = goes_on {
            let said = talk.map_or_else(
                || (Message::new(fresh(), Role::User, call.parts.clone()), None),
                |talk| (talk.spoken.message.clone(), talk.content_hash),
            );
            let (head, was_waiting) = (task.head.clone(), task.head.state.is_waiting());
            let answered = before(deadline, Box::pin(self.answer(task, said, pre, answers))).await;
            let unsent = was_waiting.then_some((head.version + 1, UnsentStart::Answered));
            return self.or_end_unsent(answered, &head, unsent, announcement);
        }
        let head = before(deadline, self.head_of(call, announcement.args())).await?;
        let version = u64::from(talk.is_some());
        let opened = before(deadline, self.open(head.clone(), talk, pre)).await;
        self.or_end_unsent(opened, &head, Some((version, UnsentStart::Opened)), announcement)
    }

    async fn head_of(&self, call: &Call, args: &Json) -> Result<TaskHead, Failure> {
        let now = self.inner().journal.now();
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
            runner: self.attend().await?,
            state: TaskState::Submitted,
            version: 0,
            remote: RemoteIds { task_id: None, context_id: call.continues.context_id.clone() },
            created_at: now,
            updated_at: now,
        })
    }

    /// Writes a new task down, with the message that begins it if it belongs to a conversation.
    async fn open(&self, head: TaskHead, talk: Option<Box<Talk>>, pre: AuditEvent) -> Result<Task, Failure> {
        if let Some(talk) = talk {
            return self.open_talk(head, *talk, pre).await;
        }
        self.inner().journal.open(&head, pre).await.map_err(store_failure)?;
        Ok(Task::new(head))
    }

    /// The task that was begun. One of which that is not known does not stay open: it is ended should it turn up at this version.
    fn or_end_unsent(
        &self,
        begun: Result<Task, Failure>,
        head: &TaskHead,
        unsent: Option<(u64, UnsentStart)>,
        announcement: &mut AuditSpan,
    ) -> Result<Task, Failure> {
        begun.inspect_err(|failure| {
            if let Some(unsent) = unsent.filter(|_| failure.kind == FailureKind::StoreUnavailable) {
                self.inner().journal.end_unsent(head, unsent, announcement, failure);
            }
        })
    }

    /// Writes down that the caller goes on with a task.
    async fn answer(
        &self,
        mut task: Task,
        (said, content_hash): (Message, Option<ContentHash>),
        pre: AuditEvent,
        answers: Option<u64>,
    ) -> Result<Task, Failure> {
        let message = redact_message(said, None);
        self.inner().store.audit(vec![pre]).await.map_err(store_failure)?;
        let adopted = self.adopt_orphan(&mut task).await?;
        let journal = &self.inner().journal;
        let mut tries = 0;
        loop {
            let event = Event::Answered { message: message.clone(), content_hash: content_hash.clone() };
            match journal.record(&mut task, vec![event], None).await {
                Ok(()) => break,
                // It went on meanwhile. What was not meant for one version of it is said to it as it stands now.
                Err(StoreError::Conflict) if answers.is_none() && tries < TRIES => {
                    task = journal.reread(&task).await.map_err(store_failure)?;
                    if task.head.state.is_terminal() {
                        return Err(store_failure(StoreError::Conflict));
                    }
                    tries += 1;
                }
                Err(error) => return Err(store_failure(error)),
            }
        }
        if adopted {
            // Another process may have adopted it as well; the one whose answer was recorded keeps it.
            self.assign_runner(&mut task).await?;
        } else {
            self.claim(&mut task).await?;
        }
        Ok(task)
    }
}
