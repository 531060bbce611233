//! A task's life as a stream of events, from where a caller comes in to where there is nothing more to tell.

use std::{collections::VecDeque, pin::Pin};

use futures::{Stream, StreamExt, stream};
use rialto_a2a_wire::task::StreamEvent;
use rialto_engine::Following;
use rialto_model::task::{Task, TaskHead};
use tokio_util::sync::CancellationToken;

use super::{
    render::{self, Length},
    trouble::Trouble,
};

/// The events of one task. It ends with the task, or when the task waits for its caller.
pub struct TaskStream {
    /// How the task's caller tells it: some dialects tell tasks by status alone.
    pub door: rialto_model::call::Door,
    events: Pin<Box<dyn Stream<Item = Result<StreamEvent, Trouble>> + Send>>,
}

struct Telling {
    head: TaskHead,
    following: Following,
    waiting: VecDeque<StreamEvent>,
    is_over: bool,
}

// === impl TaskStream ===

impl TaskStream {
    /// The task as it stands, and then whatever happens.
    pub(crate) fn of(task: &Task, following: Following, history: Length, stop: CancellationToken) -> Self {
        let state = task.head.state;
        let telling = Telling {
            head: task.head.clone(),
            following,
            waiting: VecDeque::from([StreamEvent::Task(render::task(task, history))]),
            is_over: state.is_terminal() || state.is_waiting(),
        };
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
            match self.following.next().await {
                Err(failure) => {
                    self.is_over = true;
                    return Some(Err(failure.into()));
                }
                Ok(events) => {
                    for recorded in events {
                        self.head.state = render::state_after(self.head.state, &recorded.event);
                        let state = self.head.state;
                        self.waiting.extend(render::event(&self.head, &recorded, state));
                        // What comes behind it belongs to the next stream: it begins with the caller's answer.
                        self.is_over |= state.is_terminal() || state.is_waiting();
                    }
                }
            }
        }
    }
}
