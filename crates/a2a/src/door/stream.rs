//! A task's life as a stream of events, from where a caller comes in to where there is nothing more to tell.

use std::{collections::VecDeque, pin::Pin, time::Duration};

use futures::{Stream, StreamExt, stream};
use rialto_a2a_wire::task::StreamEvent;
use rialto_edge::streams::StreamSlot;
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
    /// The extensions that are in use, as far as that is known before anything is told.
    pub activated: Vec<String>,
    events: Pin<Box<dyn Stream<Item = Told> + Send>>,
    _slot: StreamSlot,
}

/// What is to be told of a task.
pub(crate) struct Telling {
    task: Task,
    following: Following,
    waiting: VecDeque<Told>,
    /// How the task began, held back for a moment: an agent that answers with a message has made none.
    held: Option<StreamEvent>,
    is_over: bool,
}

type Told = Result<StreamEvent, Trouble>;

// === impl TaskStream ===

impl TaskStream {
    /// What is told, until `stop`: a stream that would wait ends when the server does, and whoever listens comes again.
    pub(crate) fn new(
        activated: Vec<String>,
        telling: Telling,
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
    type Item = Told;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.events.poll_next_unpin(context)
    }
}

// === impl Telling ===

impl Telling {
    /// The task as it stands, and then whatever happens.
    pub(crate) fn of(task: &Task, following: Following, history: Length) -> Self {
        let state = task.head.state;
        let is_over = state.is_terminal() || state.is_waiting();
        Self::until(is_over, task, following, history)
    }

    /// The same for somebody who comes to listen: a task that waits may still go on.
    pub(crate) fn on(task: &Task, following: Following) -> Self {
        Self::until(task.head.state.is_terminal(), task, following, None)
    }

    fn until(is_over: bool, task: &Task, following: Following, history: Length) -> Self {
        let first = match render::reply(task) {
            Some(message) => StreamEvent::Message(message),
            None => StreamEvent::Task(render::task(task.clone(), history)),
        };
        let may_be_none = task.head.state == TaskState::Submitted && task.head.agent_url.starts_with("http");
        let (waiting, held) = if may_be_none { (None, Some(first)) } else { (Some(Ok(first)), None) };
        Self { task: task.clone(), following, waiting: waiting.into_iter().collect(), held, is_over }
    }

    /// Those of the extensions that a caller wants which are in use. An agent says so with its first word, and that is waited for
    /// as long as the beginning is held back for it: afterwards there is no place left to tell it.
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

    async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some(told) = self.waiting.pop_front() {
                return Some(told);
            }
            if self.is_over {
                return None;
            }
            let heard = if self.held.is_some() {
                match tokio::time::timeout(HOLD, self.following.next()).await {
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

    fn hear(&mut self, recorded: &Recorded) {
        self.task.apply(&recorded.event, recorded.at);
        let state = self.task.head.state;
        // What comes behind it belongs to the next stream: it begins with the caller's answer.
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
