//! A task's life as a stream of events, from where a caller comes in to where there is nothing more to tell.

use std::{collections::VecDeque, pin::Pin, time::Duration};

use futures::{Stream, StreamExt, stream};
use rialto_a2a_wire::task::StreamEvent;
use rialto_engine::Following;
use rialto_model::{
    event::Recorded,
    task::{Task, TaskState},
};
use tokio_util::sync::CancellationToken;

use super::{
    render::{self, Length},
    trouble::Trouble,
};

/// How long an agent is given to say whether it makes a task of a message at all.
const HOLD: Duration = Duration::from_millis(250);

/// The events of one task. It ends with the task, or when the task waits for its caller.
pub struct TaskStream {
    /// How the task's caller tells it: some dialects tell tasks by status alone.
    pub door: rialto_model::call::Door,
    events: Pin<Box<dyn Stream<Item = Result<StreamEvent, Trouble>> + Send>>,
}

struct Telling {
    task: Task,
    following: Following,
    waiting: VecDeque<StreamEvent>,
    /// How the task began, held back for a moment: an agent that answers with a message has made none.
    held: Option<StreamEvent>,
    is_over: bool,
}

// === impl TaskStream ===

impl TaskStream {
    /// The task as it stands, and then whatever happens.
    pub(crate) fn of(task: &Task, following: Following, history: Length, stop: CancellationToken) -> Self {
        let state = task.head.state;
        let is_over = state.is_terminal() || state.is_waiting();
        Self::until(is_over, task, following, history, stop)
    }

    /// The same for somebody who comes to listen: a task that waits may still go on.
    pub(crate) fn on(task: &Task, following: Following, stop: CancellationToken) -> Self {
        Self::until(task.head.state.is_terminal(), task, following, None, stop)
    }

    fn until(
        is_over: bool,
        task: &Task,
        following: Following,
        history: Length,
        stop: CancellationToken,
    ) -> Self {
        let state = task.head.state;
        let first = match render::reply(task) {
            Some(message) => StreamEvent::Message(message),
            None => StreamEvent::Task(render::task(task.clone(), history)),
        };
        let may_be_none = state == TaskState::Submitted && task.head.agent_url.starts_with("http");
        let (waiting, held) = if may_be_none { (None, Some(first)) } else { (Some(first), None) };
        let telling =
            Telling { task: task.clone(), following, waiting: waiting.into_iter().collect(), held, is_over };
        let events = stream::unfold(telling, |mut telling| async move {
            let next = telling.next().await?;
            Some((next, telling))
        });
        // A stream that would wait ends when the server does; whoever listens comes again.
        let events = events.take_until(stop.cancelled_owned());
        Self { door: task.head.door, events: Box::pin(events) }
    }
}

impl Stream for TaskStream {
    type Item = Result<StreamEvent, Trouble>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.events.poll_next_unpin(context)
    }
}

// === impl Telling ===

impl Telling {
    async fn next(&mut self) -> Option<Result<StreamEvent, Trouble>> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(Ok(event));
            }
            if self.is_over {
                return None;
            }
            let heard = if self.held.is_some() {
                match tokio::time::timeout(HOLD, self.following.next()).await {
                    Ok(heard) => heard,
                    Err(_) => {
                        self.waiting.extend(self.held.take());
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

    fn hear(&mut self, recorded: &Recorded) {
        self.task.apply(&recorded.event, recorded.at);
        let state = self.task.head.state;
        // What comes behind it belongs to the next stream: it begins with the caller's answer.
        self.is_over |= state.is_terminal() || state.is_waiting();
        if let (Some(_), Some(message)) = (&self.held, render::reply(&self.task)) {
            self.held = None;
            self.waiting.push_back(StreamEvent::Message(message));
            return;
        }
        let told = render::event(&self.task.head, recorded, state);
        if told.is_some() || self.task.head.remote.task_id.is_some() {
            self.waiting.extend(self.held.take());
        }
        self.waiting.extend(told);
    }
}
