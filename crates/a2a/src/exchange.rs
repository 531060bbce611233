//! One call from first word to last: say it, listen, and when the stream breaks or there is none, keep asking.
//!
//! The stages are one enum and each step is one function, because what may follow what is the whole difficulty here.
//! An exchange ends when the task is over or waits, and never because the agent fell silent: how long to wait for it is
//! the listener's decision, who simply stops listening. A stream that the agent closes before its task has ended is something
//! else: the SDKs of 0.2 and 0.3 do that when an executor crashes. The task is then polled for a limited time
//! ([`early_end`](crate::early_end)), and the call fails unless something changes.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::{FutureExt, Stream, future::BoxFuture};
use rialto_a2a_wire::{
    error::Code,
    request::{GetTask, Request, SendRequest, TaskRef},
    task::StreamEvent,
};
use rialto_model::{
    event::{Event, Remote},
    failure::{Failure, Kind},
};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    early_end::{Backoff, EarlyEnd},
    post::{Pair, Post, Reply},
    slots::Slot,
    stream::Events,
    teller::Teller,
    trouble::Trouble,
};

/// How often in a row asking may fail before we give up: about 45 seconds, long enough for an agent to restart.
const MAX_PASSING: u32 = 12;

/// A call on its way.
pub(crate) struct Exchange {
    post: Arc<Post>,
    pair: Pair,
    teller: Teller,
    stage: Stage,
    /// What was or will be said; none when only following.
    request: Option<Box<SendRequest>>,
    /// Whether to ask for no stream, because the agent has refused one.
    is_plain: bool,
    /// Whether the stream was joined again: what it tells of artifacts may then be told twice.
    is_rejoined: bool,
    begun: Instant,
    /// Set once a stream has ended before its task.
    early_end: Option<EarlyEnd>,
}

enum Stage {
    /// Say it.
    Say,
    /// Hear what the stream tells.
    Listen(Box<Events>),
    /// Join the stream again.
    Rejoin,
    /// Ask once.
    Look,
    /// Ask until it is over.
    Poll(Backoff),
    /// Nothing more to do.
    Over,
}

/// An exchange as the stream of what it tells. What is heard at once is told at once: only what has to be waited for needs a
/// future, and that is a large one.
enum Telling {
    Ready(Box<Exchange>),
    Busy(BoxFuture<'static, (Box<Exchange>, Option<Failure>)>),
    Over,
}

// === impl Exchange ===

impl Exchange {
    /// Says something.
    pub(crate) fn saying(post: Arc<Post>, pair: Pair, request: SendRequest) -> Self {
        let is_answer = request.message.task_id.is_some();
        Self {
            post,
            pair,
            teller: if is_answer { Teller::answering() } else { Teller::default() },
            stage: Stage::Say,
            request: Some(Box::new(request)),
            is_plain: false,
            is_rejoined: false,
            begun: Instant::now(),
            early_end: None,
        }
    }

    /// Asks about a task that is already there.
    pub(crate) fn following(post: Arc<Post>, pair: Pair, remote: Remote, to_the_end: bool) -> Self {
        let stage = if to_the_end { Stage::Poll(Backoff::NONE) } else { Stage::Look };
        let teller = Teller::knowing(remote);
        Self {
            post,
            pair,
            teller,
            stage,
            request: None,
            is_plain: false,
            is_rejoined: false,
            begun: Instant::now(),
            early_end: None,
        }
    }

    /// What happens, in order.
    pub(crate) fn events(self) -> impl Stream<Item = Result<Event, Failure>> + Send {
        Telling::Ready(Box::new(self))
    }

    /// Goes on until there is something to tell. Answers the failure it ends with, if it does.
    async fn step(mut self: Box<Self>) -> (Box<Self>, Option<Failure>) {
        while !self.teller.has_news() && !self.is_over() {
            let stepped = match std::mem::replace(&mut self.stage, Stage::Over) {
                Stage::Over => return (self, None),
                Stage::Say => self.say().await,
                Stage::Listen(events) => self.listen(events).await,
                Stage::Rejoin => self.rejoin().await,
                Stage::Look => self.look().await.map(|()| Stage::Over),
                Stage::Poll(backoff) => self.poll(backoff).await,
            };
            match stepped {
                Ok(stage) => self.stage = stage,
                Err(trouble) => return (self, Some(trouble.failure)),
            }
        }
        (self, None)
    }

    /// Whether there is nothing more to do.
    const fn is_over(&self) -> bool {
        self.teller.is_over() || matches!(self.stage, Stage::Over)
    }

    async fn say(&mut self) -> Result<Stage, Trouble> {
        let slot = self.slot().await?;
        if self.pair.line.streams() && !self.is_plain {
            match self.ask(Request::Stream).await {
                Err(trouble) if cannot_stream(&trouble) => self.is_plain = true,
                outcome => return self.heard(outcome?, slot),
            }
        }
        let reply = self.ask(Request::Send).await?;
        if self.is_plain {
            // It was the stream that the agent refused, not what was said: the same code stands for both.
            self.pair.line.give_up_streams();
        }
        self.heard(reply, slot)
    }

    /// Says what there is to say, and keeps it in case it must be said again in another way.
    async fn ask(&mut self, way: fn(SendRequest) -> Request) -> Result<Reply, Trouble> {
        let Some(said) = self.request.take() else {
            return Err(Failure::new(Kind::Internal, "there is nothing to say").into());
        };
        let mut request = way(*said);
        let outcome = self.post.ask(&self.pair, &mut request).await;
        if let Request::Send(said) | Request::Stream(said) = request {
            self.request = Some(Box::new(said));
        }
        outcome
    }

    /// Takes in an answer, whatever its form: some agents stream when they were not asked to, and the other way round.
    fn heard(&mut self, reply: Reply, slot: Slot) -> Result<Stage, Trouble> {
        self.teller.activate(self.pair.activated());
        match reply {
            Reply::Events(events) => Ok(Stage::Listen(Box::new(events.holding(slot)))),
            Reply::Whole(answer) => {
                self.teller.hear_answer(answer);
                self.go_on(Backoff::first(self.post.config.poll_first_ms))
            }
        }
    }

    /// What to do when the agent has stopped talking.
    fn go_on(&self, backoff: Backoff) -> Result<Stage, Trouble> {
        if self.teller.is_over() {
            return Ok(Stage::Over);
        }
        if self.teller.remote().task_id.is_none() {
            let message = "the agent answered without a result and without naming a task to ask for";
            return Err(Failure::new(Kind::PeerGarbled, message).into());
        }
        if self.pair.line.streams() && !self.is_rejoined {
            return Ok(Stage::Rejoin);
        }
        Ok(Stage::Poll(backoff))
    }

    async fn listen(&mut self, mut events: Box<Events>) -> Result<Stage, Trouble> {
        let heard = match &self.early_end {
            None => events.next().await,
            // The stream that was joined again may stay open for ever: a2a-sdk 0.3 keeps it when nothing runs any more.
            Some(end) => match timeout(end.backoff.jittered(), events.next()).await {
                Ok(heard) => heard,
                Err(_) => return self.poll_beside(events).await,
            },
        };
        match heard {
            Ok(Some(event)) if self.is_foreign(event.task_id()) => Err(self.other_task(event.task_id())),
            Ok(Some(StreamEvent::Artifact(_))) if self.is_rejoined => Ok(Stage::Listen(events)),
            Ok(Some(StreamEvent::Status(update)))
                if self.is_rejoined && update.status.state.ends_stream() =>
            {
                drop(events);
                match self.look().await {
                    Ok(()) => self.go_on(Backoff::NONE),
                    Err(trouble) => self.later(trouble),
                }
            }
            Ok(Some(event)) => {
                self.teller.hear_event(event);
                Ok(Stage::Listen(events))
            }
            Ok(None) => self.stream_ended(None),
            Err(trouble) if self.has_told_nothing() && cannot_stream(&trouble) => {
                self.is_plain = true;
                Ok(Stage::Say)
            }
            // Silence is not an end: the task is asked for, and may take as long as its caller waits.
            Err(trouble) if trouble.failure.kind == Kind::PeerTimeout && !self.has_told_nothing() => {
                self.go_on(Backoff::NONE)
            }
            Err(trouble) if trouble.is_broken => self.stream_ended(Some(trouble)),
            Err(trouble) if trouble.is_passing && !self.has_told_nothing() => self.stream_ended(None),
            Err(trouble) => Err(trouble),
        }
    }

    /// Continues after the agent has closed its stream, or the connection broke (`broken`).
    fn stream_ended(&mut self, broken: Option<Trouble>) -> Result<Stage, Trouble> {
        if self.teller.is_over() {
            return Ok(Stage::Over);
        }
        if self.teller.remote().task_id.is_none() {
            return Err(EarlyEnd::without_task(broken));
        }
        if self.early_end.is_none() {
            self.early_end = Some(EarlyEnd::new(&self.post.config, self.begun, self.teller.count()));
        }
        self.go_on(Backoff::NONE)
    }

    /// Polls the task while the stream that was joined again says nothing.
    async fn poll_beside(&mut self, events: Box<Events>) -> Result<Stage, Trouble> {
        match self.look().await {
            Ok(()) => {
                self.check_progress()?;
                Ok(Stage::Listen(events))
            }
            Err(trouble) => self.later(trouble),
        }
    }

    /// Fails the exchange when its stream has ended early and nothing has changed for long enough since.
    fn check_progress(&mut self) -> Result<(), Trouble> {
        if self.teller.is_over() {
            return Ok(());
        }
        let (count, id) = (self.teller.count(), self.teller.remote().task_id.as_deref().unwrap_or_default());
        match &mut self.early_end {
            Some(end) => end
                .check(&self.post.config, self.begun, count)
                .map_err(|waited| EarlyEnd::without_progress(id, self.teller.state(), waited)),
            None => Ok(()),
        }
    }

    /// Joins the stream again. The snapshot comes second, so that nothing can happen unseen between the two; and
    /// because the stream may then repeat pieces of artifacts, these are taken from snapshots only from now on.
    async fn rejoin(&mut self) -> Result<Stage, Trouble> {
        self.is_rejoined = true;
        let slot = match self.slot().await {
            Ok(slot) => slot,
            Err(busy) => return self.later(busy),
        };
        let mut request = Request::Subscribe(TaskRef { id: self.task_id()?, ..TaskRef::default() });
        match self.post.ask(&self.pair, &mut request).await {
            Ok(Reply::Events(events)) => {
                let events = Box::new(events.holding(slot));
                match self.look().await {
                    Ok(()) => Ok(Stage::Listen(events)),
                    Err(trouble) => self.later(trouble),
                }
            }
            Ok(Reply::Whole(answer)) => {
                self.teller.hear_answer(answer);
                self.go_on(Backoff::NONE)
            }
            Err(_) => Ok(Stage::Poll(Backoff::NONE)),
        }
    }

    /// Trouble in asking about a task is not the task's: what passes is waited for.
    fn later(&self, trouble: Trouble) -> Result<Stage, Trouble> {
        if !trouble.is_passing {
            return Err(trouble);
        }
        Ok(Stage::Poll(Backoff::first(self.post.config.poll_first_ms)))
    }

    async fn look(&mut self) -> Result<(), Trouble> {
        let mut request = Request::Get(GetTask { id: self.task_id()?, ..GetTask::default() });
        match self.post.ask_task(&self.pair, &mut request).await {
            Ok(task) if self.is_foreign(Some(&task.id)) => return Err(self.other_task(Some(&task.id))),
            Ok(task) => self.teller.hear_task(task),
            Err(trouble) if trouble.code == Some(Code::TaskNotFound) && self.early_end.is_some() => {
                return Err(EarlyEnd::unknown_task(trouble));
            }
            Err(trouble) => return Err(trouble),
        }
        Ok(())
    }

    async fn poll(&mut self, backoff: Backoff) -> Result<Stage, Trouble> {
        sleep(backoff.jittered()).await;
        let longest = Duration::from_millis(self.post.config.poll_longest_ms);
        let looked = match self.slot().await {
            Ok(_slot) => self.look().await,
            Err(busy) => Err(busy),
        };
        match looked {
            Ok(()) => {
                self.check_progress()?;
                self.go_on(backoff.after_success(self.post.config.poll_first_ms, longest))
            }
            Err(trouble) if trouble.is_passing && backoff.failures < MAX_PASSING => {
                Ok(Stage::Poll(backoff.after_failure(self.post.config.poll_first_ms, longest)))
            }
            Err(trouble) => Err(trouble),
        }
    }

    async fn slot(&self) -> Result<Slot, Trouble> {
        let slots = self.pair.line.slots();
        let slot = slots.acquire(Duration::from_millis(self.post.config.max_wait_ms)).await?;
        slot.release_with(slots, self.pair.presence());
        Ok(slot)
    }

    /// Whether an agent speaks of another task than the one that it has named before.
    fn is_foreign(&self, id: Option<&str>) -> bool {
        let known = self.teller.remote().task_id.as_deref();
        id.is_some_and(|id| !id.is_empty() && known.is_some_and(|known| known != id))
    }

    fn other_task(&self, id: Option<&str>) -> Trouble {
        let known = self.teller.remote().task_id.as_deref().unwrap_or_default();
        let message =
            format!("the agent's answer is about another task: {}, not {known}", id.unwrap_or_default());
        Failure::new(Kind::PeerGarbled, message).into()
    }

    fn has_told_nothing(&self) -> bool {
        *self.teller.remote() == Remote::default()
    }

    fn task_id(&self) -> Result<String, Failure> {
        self.teller.remote().task_id.clone().ok_or_else(|| {
            Failure::new(Kind::Conflict, "the agent never gave this task a name, so it cannot be asked for")
        })
    }
}

// === impl Telling ===

impl Stream for Telling {
    type Item = Result<Event, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match &mut *self {
                Self::Over => return Poll::Ready(None),
                Self::Ready(exchange) => {
                    if let Some(event) = exchange.teller.next() {
                        return Poll::Ready(Some(Ok(event)));
                    }
                    let Self::Ready(exchange) = std::mem::replace(&mut *self, Self::Over) else { continue };
                    if !exchange.is_over() {
                        *self = Self::Busy(exchange.step().boxed());
                    }
                }
                Self::Busy(step) => {
                    let (exchange, failure) = ready!(step.as_mut().poll(context));
                    *self = Self::Ready(exchange);
                    if let Some(failure) = failure {
                        return Poll::Ready(Some(Err(failure)));
                    }
                }
            }
        }
    }
}

/// Whether the agent says that it cannot do streams, in one way or another.
fn cannot_stream(trouble: &Trouble) -> bool {
    trouble.is_foreign || trouble.code == Some(Code::UnsupportedOperation)
}
