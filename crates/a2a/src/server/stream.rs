//! Stream of a task's events, from the current state to the end.

use std::{collections::VecDeque, pin::Pin, time::Duration};

use futures::{Stream, StreamExt, stream};
use rialto_a2a_codec::task::StreamEvent;
use rialto_engine::TaskSubscription;
use rialto_http_server::stream_limits::StreamSlot;
use rialto_model::{
    event::RecordedEvent,
    task::{Task, TaskState},
};
use tokio_util::sync::CancellationToken;

use super::{
    error::ServiceError,
    render::{self, HistoryLength},
};

/// Time for an agent to answer with a message instead of a task.
const FIRST_EVENT_DELAY: Duration = Duration::from_millis(250);

/// Event stream of one task. It ends with the task, or when the task waits for its caller.
pub struct TaskStream {
    /// Binding of the task's caller: some dialects have only status updates.
    pub door: rialto_model::call::EntryProtocol,
    /// Active extensions, as far as they are known before the first event.
    pub activated: Vec<String>,
    events: Pin<Box<dyn Stream<Item = TaskStreamItem> + Send>>,
    _slot: StreamSlot,
}

/// Events of a task that are to be sent.
pub(crate) struct TaskEventFeed {
    task: Task,
    following: TaskSubscription,
    waiting: VecDeque<TaskStreamItem>,
    /// First event, held back for a moment: an agent that answers with a message has created no task.
    held: Option<StreamEvent>,
    is_over: bool,
}

type TaskStreamItem = Result<StreamEvent, ServiceError>;

// === impl TaskStream ===

impl TaskStream {
    /// Creates the stream. It ends at `stop` instead of waiting, and the client subscribes again.
    pub(crate) fn new(
        activated: Vec<String>,
        telling: TaskEventFeed,
        stop: CancellationToken,
        slot: StreamSlot,
    ) -> Self {
        let door = telling.task.head.door;
        let events = stream::unfold(telling, |mut telling| async move {
            let next = telling.next().await?;
            Some((next, telling))
        });
        Self { door, activated, events: Box::pin(events.take_until(stop.cancelled_owned())), _slot: slot }
    }
}

impl Stream for TaskStream {
    type Item = TaskStreamItem;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.events.poll_next_unpin(context)
    }
}

// === impl TaskEventFeed ===

impl TaskEventFeed {
    /// Current state of the task, then every event.
    pub(crate) fn of(task: &Task, following: TaskSubscription, history: HistoryLength) -> Self {
        let state = task.head.state;
        let is_over = state.is_terminal() || state.is_waiting();
        Self::until(is_over, task, following, history)
    }

    /// Subscription to an existing task: one that waits may resume.
    pub(crate) fn on(task: &Task, following: TaskSubscription) -> Self {
        Self::until(task.head.state.is_terminal(), task, following, None)
    }

    fn until(is_over: bool, task: &Task, following: TaskSubscription, history: HistoryLength) -> Self {
        let first = match render::reply(task) {
            Some(message) => StreamEvent::Message(message),
            None => StreamEvent::Task(render::task(task.clone(), history)),
        };
        let may_be_none = task.head.state == TaskState::Submitted && task.head.agent_url.starts_with("http");
        let (waiting, held) = if may_be_none { (None, Some(first)) } else { (Some(Ok(first)), None) };
        Self { task: task.clone(), following, waiting: waiting.into_iter().collect(), held, is_over }
    }

    /// Requested extensions that are active. An agent reports them in its first response, which is awaited as long as the first event is
    /// held back: later there is no place to report them.
    pub(crate) async fn activated(&mut self, mut wanted: Vec<String>) -> Vec<String> {
        if wanted.is_empty() {
            return wanted;
        }
        if let Some(first) = self.next().await {
            self.waiting.push_front(first);
        }
        wanted.retain(|uri| self.task.activated.contains(uri));
        wanted
    }

    async fn next(&mut self) -> Option<TaskStreamItem> {
        loop {
            if let Some(told) = self.waiting.pop_front() {
                return Some(told);
            }
            if self.is_over {
                return None;
            }
            let heard = if self.held.is_some() {
                match tokio::time::timeout(FIRST_EVENT_DELAY, self.following.next()).await {
                    Ok(heard) => heard,
                    Err(_) => {
                        self.waiting.extend(self.held.take().map(Ok));
                        continue;
                    }
                }
            } else {
                self.following.next().await
            };
            match heard {
                Ok(events) => events.iter().for_each(|recorded| self.hear(recorded)),
                Err(failure) => {
                    self.is_over = true;
                    return Some(Err(failure.into()));
                }
            }
        }
    }

    fn hear(&mut self, recorded: &RecordedEvent) {
        self.task.apply(&recorded.event, recorded.at);
        let state = self.task.head.state;
        // Later events belong to the next stream, which starts with the caller's answer.
        self.is_over |= state.is_terminal() || state.is_waiting();
        if let (Some(_), Some(message)) = (&self.held, render::reply(&self.task)) {
            self.held = None;
            self.waiting.push_back(Ok(StreamEvent::Message(message)));
            return;
        }
        let told = render::event(&self.task.head, recorded, state);
        if told.is_some() || self.task.head.remote.task_id.is_some() {
            self.waiting.extend(self.held.take().map(Ok));
        }
        self.waiting.extend(told.map(Ok));
    }
}
