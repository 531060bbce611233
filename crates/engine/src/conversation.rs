//! Callers that keep a conversation with us: they name it, may send a message twice, and come back to a task later.

use std::{
    collections::VecDeque,
    hash::BuildHasher,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use parking_lot::Mutex;
use rialto_model::{
    agent::Agent,
    audit_event::AuditEvent,
    call::{Caller, OriginalMessage},
    event::Event,
    failure::{Failure, FailureKind},
    ids::{ContextId, TaskId},
    maps::FastMap,
    message::ContentHash,
    store::{ConversationFilter, ConversationTasks, TaskFilter, hash_message},
    task::{Task, TaskHead},
};
use tokio::{runtime::Handle, sync::OwnedMutexGuard, time::Instant};

use crate::{
    call_handle::Running,
    engine::{Engine, store_failure},
    message_dedup::{MessageClaimOutcome, hash_parts},
    redact::redact_message,
    request::Request,
    store_failure::{before, store_deadline},
    task_subscription::Following,
};

/// So many messages are remembered; older ones are looked for in the store.
const REMEMBERED: usize = 65_536;

/// What a caller that keeps a conversation says.
#[derive(Clone, Debug)]
pub struct Talk {
    /// The conversation.
    pub context: ContextId,
    /// Whether the caller has named it: then it may have begun before.
    pub is_named: bool,
    /// Whether the same message again, by its id, is the same task.
    pub is_once: bool,
    /// Whether the caller wants to see the task as it begins. Whoever waits for its end need not.
    pub wants_begun: bool,
    /// The message, as it was said.
    pub spoken: Arc<OriginalMessage>,
    /// Hash of the message as it was sent; the engine takes it before anything is redacted.
    pub content_hash: Option<ContentHash>,
}

/// What became of a message.
pub enum Said {
    /// It began a task, or went to one. The call leaves when it is waited for or let go of.
    Begun {
        /// The call.
        running: Running,
        /// The task as it was written down, if that was wanted.
        task: Option<Box<Task>>,
    },
    /// It came before, and began this task or went to it.
    Again(TaskId),
}

/// Which messages began which tasks, the last so many.
#[derive(Default)]
pub(crate) struct RecentMessages(Mutex<RecentMessageTable>);

#[derive(Default)]
struct RecentMessageTable {
    by_message: FastMap<MessageKey, Slot>,
    oldest: VecDeque<MessageKey>,
}

/// A message with whose it is. There are many, so it is not a text but two numbers: the one that stores keep, and one that nobody
/// outside of this process can foresee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct MessageKey {
    number: u64,
    other: u64,
}

/// Something that goes on by itself when whoever waits for it goes away: a client that hangs up while its task is being
/// written down must not leave a task that nobody works on.
struct FinishOnDrop<F: Future<Output: Send> + Send + 'static> {
    work: Option<Pin<Box<F>>>,
    runtime: Handle,
}

/// The tasks that messages of one name began or went to, the newest last. Held while one is taken: whoever sends the same
/// meanwhile waits for the outcome.
pub(crate) type Slot = Arc<tokio::sync::Mutex<Vec<TaskId>>>;

// === impl Talk ===

impl Talk {
    /// Hash of the message as it was sent.
    pub(crate) fn hash(&self) -> ContentHash {
        self.content_hash.clone().unwrap_or_else(|| hash_parts(&self.spoken.message.parts))
    }
}

// === impl Engine ===

impl Engine {
    /// Takes what a caller says. The same message again begins nothing, unless its caller uses ids
    /// more than once: it is answered with the task it began or went to before. It is the same if it says the same to the same.
    pub async fn say(&self, mut request: Request) -> Result<Said, Failure> {
        if let Some(talk) = &mut request.talk {
            talk.content_hash = Some(hash_parts(&talk.spoken.message.parts));
        }
        let Some(talk) = &request.talk else {
            return Err(Failure::new(
                FailureKind::Internal,
                "a message without a conversation was sent as one of a conversation",
            ));
        };
        let deadline = store_deadline(Instant::now(), self.wall_clock_of(&request));
        // What other processes do must be known before what came before can be.
        before(deadline, self.sync()).await?;
        let (caller, id) = (request.caller.clone(), talk.spoken.message.id.clone());
        let (mut slot, mut claim) = (None, None);
        let task = request.id.clone().unwrap_or_else(TaskId::fresh);
        if talk.is_once && !id.is_empty() {
            let (mut known, forgotten) = self.inner().messages.slot(&caller, &id).await;
            if let Some(number) = forgotten {
                self.inner().seen_messages.add(number);
            }
            let earlier = before(deadline, Box::pin(self.came_before(&request, talk, &mut known))).await?;
            if let Some(task) = earlier {
                return Ok(Said::Again(task));
            }
            match before(deadline, Box::pin(self.claim_message(&request, talk, &task))).await? {
                MessageClaimOutcome::Ours(ours) => claim = ours,
                MessageClaimOutcome::Duplicate(task) => {
                    return Ok(Said::Again(request.task.map_or(task, TaskId::from)));
                }
            }
            slot = Some(known);
        }
        if talk.is_named && request.task.is_none() && request.context.is_none() {
            let known = self.remote_context(&caller, &talk.context, &request.target.agent);
            request.context = before(deadline, Box::pin(known)).await?;
        }
        let engine = self.clone();
        // The claim names the task, so the task must get that id.
        request.id = Some(task);
        let mut running = FinishOnDrop::new(async move {
            let running = match engine.call(request).await {
                Ok(running) => running,
                Err(failure) => {
                    if let Some(claim) = claim
                        && let Err(error) = engine.inner().store.release_message(&claim).await
                    {
                        tracing::warn!("the claim of a message could not be released, it expires: {error}");
                    }
                    return Err(failure);
                }
            };
            if let Some(mut slot) = slot {
                // Nearly always the only one.
                slot.reserve_exact(1);
                slot.push(running.task().clone());
            }
            Ok::<_, Failure>(running)
        })
        .await?;
        let task = running.as_begun();
        Ok(Said::Begun { running, task })
    }

    /// A caller's task as it stands in the journal. Nobody is asked about it.
    pub async fn look(&self, caller: &Caller, id: &str) -> Result<Task, Failure> {
        self.own_task(caller, id).await
    }

    /// A caller's task, and whatever happens to it from there on.
    pub async fn follow(&self, caller: &Caller, id: &str) -> Result<(Task, Following), Failure> {
        let head = self.own_task(caller, id).await?.head;
        // Listened to before it is read: what is written meanwhile is in the one or heard by the other.
        let mut following = self.listen(&head);
        let task = self.own_task(caller, id).await?;
        following.skip_to(task.head.version);
        Ok((task, following))
    }

    /// Whatever happens to a task behind this version of it.
    pub fn listen(&self, head: &TaskHead) -> Following {
        self.inner().journal.listen(&head.id, head.version)
    }

    /// A caller's tasks that belong to conversations, the last changed first.
    pub async fn talks(
        &self,
        caller: &Caller,
        filter: &ConversationFilter,
    ) -> Result<ConversationTasks, Failure> {
        self.inner().store.conversation_tasks(&caller.scope, filter).await.map_err(store_failure)
    }

    /// What the agent calls the conversation that the caller calls `context`, if both have spoken in it before.
    async fn remote_context(
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
        let heads = self.inner().store.tasks(&caller.scope, &filter).await.map_err(store_failure)?;
        Ok(heads.into_iter().find_map(|head| head.remote.context_id))
    }

    /// Writes down a task that begins with a message of a conversation.
    pub(crate) async fn open_talk(
        &self,
        head: TaskHead,
        talk: Talk,
        pre: AuditEvent,
    ) -> Result<Task, Failure> {
        let said = &talk.spoken.message;
        let id = Some(said.id.as_str()).filter(|id| !id.is_empty()).map(Arc::from);
        let message = redact_message(said.clone(), Some(&head.args));
        let mut task = Task::new(TaskHead { context: Some(talk.context), message: id, ..head });
        let content_hash = talk.content_hash;
        let begun =
            self.inner().journal.begin(&mut task, Event::Answered { message, content_hash }, pre).await;
        begun.map_err(store_failure)?;
        Ok(task)
    }
}

// === impl SeenThrough ===

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

// === impl Messages ===

impl RecentMessages {
    /// What is known of a message, for as long as it is being taken; and the number of the one that is forgotten for it, if
    /// there is one.
    async fn slot(&self, caller: &Caller, message: &str) -> (OwnedMutexGuard<Vec<TaskId>>, Option<u64>) {
        let mut forgotten = None;
        let slot = {
            let mut known = self.0.lock();
            let key = known.key(caller, message);
            if let Some(slot) = known.by_message.get(&key) {
                Arc::clone(slot)
            } else {
                let slot = Slot::default();
                known.by_message.insert(key, Arc::clone(&slot));
                known.oldest.push_back(key);
                if known.oldest.len() > REMEMBERED
                    && let Some(oldest) = known.oldest.pop_front()
                {
                    known.by_message.remove(&oldest);
                    forgotten = Some(oldest.number);
                }
                slot
            }
        };
        (slot.lock_owned().await, forgotten)
    }

    /// The same for somebody who only looks.
    pub(crate) fn known(&self, caller: &Caller, message: &str) -> Option<Slot> {
        let known = self.0.lock();
        known.by_message.get(&known.key(caller, message)).cloned()
    }
}

// === impl Known ===

impl RecentMessageTable {
    fn key(&self, caller: &Caller, message: &str) -> MessageKey {
        let owner = (caller.scope.org.as_str(), caller.scope.project.as_str(), caller.id.as_str());
        let other = self.by_message.hasher().hash_one((owner, message));
        MessageKey { number: number_of(caller, message), other }
    }
}

pub(crate) fn number_of(caller: &Caller, message: &str) -> u64 {
    let owner = [caller.scope.org.as_str(), caller.scope.project.as_str(), caller.id.as_str()];
    let [org, project, id] = owner.map(str::as_bytes);
    hash_message(org, project, id, message.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_two_callers_are_never_taken_for_each_other() {
        let known = RecentMessageTable::default();
        let of = |caller: &str, message: &str| known.key(&Caller::user(caller), message);
        assert_eq!(of("ann", "m"), of("ann", "m"));
        assert_ne!(of("ann", "m"), of("an", "nm"));
        assert_ne!(of("a", "1:b"), of("a1:", "b"));
        assert_ne!(of("1:a", "b"), of("1", ":ab"));
    }
}
