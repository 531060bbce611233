//! Messages of conversations: callers name a conversation, may send a message twice, and come back to a task later.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use rialto_model::{
    agent::Agent,
    audit_event::AuditEvent,
    call::{Caller, OriginalMessage},
    event::Event,
    failure::Failure,
    ids::{ContextId, TaskId},
    message::ContentHash,
    store::TaskFilter,
    task::{Task, TaskHead},
};
use tokio::{runtime::Handle, time::Instant};

use crate::{
    call_service::{CallService, CallStart},
    message_dedup::{MessageClaimOutcome, hash_parts},
    redact::redact_message,
    request::CallRequest,
    store_failure::{before, store_deadline, store_failure},
};

/// Message of a caller that keeps a conversation.
#[derive(Clone, Debug)]
pub struct ConversationMessage {
    /// The conversation.
    pub context: ContextId,
    /// True if the caller has named the conversation: then it may exist already.
    pub is_named: bool,
    /// True if a message of the same id and content is a duplicate.
    pub is_once: bool,
    /// True if the caller needs the task as it was stored at the start ([`CallHandle::initial_task`](crate::CallHandle::initial_task)).
    pub wants_initial_task: bool,
    /// The message as it was sent.
    pub spoken: Arc<OriginalMessage>,
    /// Hash of the message as it was sent; the engine takes it before anything is redacted.
    pub content_hash: Option<ContentHash>,
}

/// Future that finishes in the background when it is dropped: a client that hangs up while its task is being stored must not leave a task
/// without a run.
struct FinishOnDrop<F: Future<Output: Send> + Send + 'static> {
    work: Option<Pin<Box<F>>>,
    runtime: Handle,
}

// === impl ConversationMessage ===

impl ConversationMessage {
    /// Hash of the message as it was sent.
    pub(crate) fn hash(&self) -> ContentHash {
        self.content_hash.clone().unwrap_or_else(|| hash_parts(&self.spoken.message.parts))
    }
}

// === impl CallService ===

impl CallService {
    /// Starts a call with a message of a conversation. A duplicate starts nothing, unless its caller uses message ids more than once: the
    /// result is the task that it started or continued before.
    pub(crate) async fn start_in_conversation(
        self: &Arc<Self>,
        mut request: CallRequest,
    ) -> Result<CallStart, Failure> {
        if let Some(conversation) = &mut request.conversation {
            conversation.content_hash = Some(hash_parts(&conversation.spoken.message.parts));
        }
        let Some(conversation) = &request.conversation else {
            return Box::pin(self.begin(request)).await.map(CallStart::Started);
        };
        let deadline = store_deadline(Instant::now(), self.timeout(&request));
        if request.synced.is_none() {
            // What other processes have received must be known before a duplicate can be.
            request.synced = Some(before(deadline, self.runner.policies.sync()).await?);
        }
        let (caller, id) = (request.caller.clone(), conversation.spoken.message.id.clone());
        let (mut tasks, mut claim) = (None, None);
        let task = request.id.clone().unwrap_or_else(TaskId::fresh);
        if conversation.is_once && !id.is_empty() {
            let (mut known, removed) = self.messages.recent.lock(&caller, &id).await;
            if let Some(number) = removed {
                self.messages.seen.add(number);
            }
            let duplicate = Box::pin(self.messages.find_duplicate(&request, conversation, &mut known));
            if let Some(task) = before(deadline, duplicate).await? {
                return Ok(CallStart::Duplicate(task));
            }
            match before(deadline, Box::pin(self.messages.claim(&request, conversation, &task))).await? {
                MessageClaimOutcome::Ours(ours) => claim = ours,
                MessageClaimOutcome::Duplicate(task) => {
                    return Ok(CallStart::Duplicate(request.task.map_or(task, TaskId::from)));
                }
            }
            tasks = Some(known);
        }
        if conversation.is_named && request.task.is_none() && request.context.is_none() {
            let context = self.find_remote_context(&caller, &conversation.context, &request.target.agent);
            request.context = before(deadline, Box::pin(context)).await?;
        }
        // The claim names the task, so the task must get that id.
        request.id = Some(task);
        let service = Arc::clone(self);
        let call = FinishOnDrop::new(async move {
            let call = match service.begin(request).await {
                Ok(call) => call,
                Err(failure) => {
                    if let Some(claim) = claim
                        && let Err(error) = service.runner.store.release_message(&claim).await
                    {
                        tracing::warn!("the claim of a message could not be released, it expires: {error}");
                    }
                    return Err(failure);
                }
            };
            if let Some(mut tasks) = tasks {
                // Nearly always the only one.
                tasks.reserve_exact(1);
                tasks.push(call.task().clone());
            }
            Ok::<_, Failure>(call)
        });
        call.await.map(CallStart::Started)
    }

    /// Finds the agent's name of the conversation that the caller calls `context`, if it has had a message before.
    async fn find_remote_context(
        &self,
        caller: &Caller,
        context: &ContextId,
        agent: &Agent,
    ) -> Result<Option<String>, Failure> {
        let filter = TaskFilter {
            caller: Some(caller.id.clone()),
            context: Some(context.clone()),
            agent: Some(agent.id.clone()),
            limit: 8,
            ..TaskFilter::default()
        };
        let heads = self.runner.store.tasks(&caller.scope, &filter).await.map_err(store_failure)?;
        Ok(heads.into_iter().find_map(|head| head.remote.context_id))
    }

    /// Stores a task that starts with a message of a conversation.
    pub(crate) async fn open_in_conversation(
        &self,
        head: TaskHead,
        conversation: ConversationMessage,
        pre: AuditEvent,
    ) -> Result<Task, Failure> {
        let said = &conversation.spoken.message;
        let id = Some(said.id.as_str()).filter(|id| !id.is_empty()).map(Arc::from);
        let message = redact_message(said.clone(), Some(&head.args));
        let mut task = Task::new(TaskHead { context: Some(conversation.context), message: id, ..head });
        let content_hash = conversation.content_hash;
        let begun =
            self.runner.journal.begin(&mut task, Event::Answered { message, content_hash }, pre).await;
        begun.map_err(store_failure)?;
        Ok(task)
    }
}

// === impl FinishOnDrop ===

impl<F: Future<Output: Send> + Send + 'static> FinishOnDrop<F> {
    fn new(work: F) -> Self {
        Self { work: Some(Box::pin(work)), runtime: Handle::current() }
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for FinishOnDrop<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Some(work) = &mut self.work else { return Poll::Pending };
        let done = work.as_mut().poll(context);
        if done.is_ready() {
            self.work = None;
        }
        done
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for FinishOnDrop<F> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            self.runtime.spawn(async move { drop(work.await) });
        }
    }
}
