//! One call to an agent: send the message, read the stream, and poll when it breaks or there is none.
//!
//! The stages are one enum and each step is one function, because the transitions are the difficulty here. An exchange ends when the
//! task has ended or waits, and never because the agent was silent: timeouts are the decision of the caller, which drops the exchange. A
//! stream that the agent closes before its task has ended is different: the SDKs of 0.2 and 0.3 do that when an executor crashes. The
//! task is then polled for a limited time ([`early_end`](crate::early_end)), and the call fails unless something changes.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::{FutureExt, Stream, future::BoxFuture};
use rialto_a2a_codec::{
    error::ErrorCode,
    request::{A2aRequest, GetTask, SendRequest, TaskRef},
    task::StreamEvent,
};
use rialto_model::{
    event::{Event, RemoteIds},
    failure::{Failure, FailureKind},
};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    client::{AgentClient, AgentReply, ExchangeContext},
    early_end::{EarlyEnd, PollBackoff},
    error::AgentError,
    event_mapper::EventMapper,
    slots::ExchangeSlot,
    stream::AgentEvents,
};

/// Maximum number of consecutive failed polls: about 45 seconds, long enough for an agent to restart.
const MAX_FAILED_POLLS: u32 = 12;

/// Call in progress.
pub(crate) struct Exchange {
    post: Arc<AgentClient>,
    pair: ExchangeContext,
    teller: EventMapper,
    stage: ExchangeStage,
    /// Message to send; none when only following a task.
    request: Option<Box<SendRequest>>,
    /// True after the agent has rejected streaming.
    is_plain: bool,
    /// True for a resumed stream, which may repeat artifacts.
    is_rejoined: bool,
    begun: Instant,
    /// Set once a stream has ended before its task.
    early_end: Option<EarlyEnd>,
}

enum ExchangeStage {
    /// Send the message.
    Say,
    /// Read the stream.
    Listen(Box<AgentEvents>),
    /// Subscribe again.
    Rejoin,
    /// Poll once.
    Look,
    /// Poll until the end.
    Poll(PollBackoff),
    /// Finished.
    Over,
}

/// Exchange as a stream of events. Events that are ready are returned at once: only waiting needs a future, and that is a large one.
enum ExchangeStream {
    Ready(Box<Exchange>),
    Busy(BoxFuture<'static, (Box<Exchange>, Option<Failure>)>),
    Over,
}

// === impl Exchange ===

impl Exchange {
    /// Sends a message.
    pub(crate) fn saying(post: Arc<AgentClient>, pair: ExchangeContext, request: SendRequest) -> Self {
        let is_answer = request.message.task_id.is_some();
        Self {
            post,
            pair,
            teller: if is_answer { EventMapper::answering() } else { EventMapper::default() },
            stage: ExchangeStage::Say,
            request: Some(Box::new(request)),
            is_plain: false,
            is_rejoined: false,
            begun: Instant::now(),
            early_end: None,
        }
    }

    /// Follows an existing task.
    pub(crate) fn following(
        post: Arc<AgentClient>,
        pair: ExchangeContext,
        remote: RemoteIds,
        to_the_end: bool,
    ) -> Self {
        let stage = if to_the_end { ExchangeStage::Poll(PollBackoff::NONE) } else { ExchangeStage::Look };
        let teller = EventMapper::knowing(remote);
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

    /// Events of the call, in order.
    pub(crate) fn events(self) -> impl Stream<Item = Result<Event, Failure>> + Send {
        ExchangeStream::Ready(Box::new(self))
    }

    /// Runs until there is an event. Returns the final failure, if there is one.
    async fn step(mut self: Box<Self>) -> (Box<Self>, Option<Failure>) {
        while !self.teller.has_news() && !self.is_over() {
            let stepped = match std::mem::replace(&mut self.stage, ExchangeStage::Over) {
                ExchangeStage::Over => return (self, None),
                ExchangeStage::Say => self.say().await,
                ExchangeStage::Listen(events) => self.listen(events).await,
                ExchangeStage::Rejoin => self.rejoin().await,
                ExchangeStage::Look => self.look().await.map(|()| ExchangeStage::Over),
                ExchangeStage::Poll(backoff) => self.poll(backoff).await,
            };
            match stepped {
                Ok(stage) => self.stage = stage,
                Err(trouble) => return (self, Some(trouble.failure)),
            }
        }
        (self, None)
    }

    /// True when the exchange has finished.
    const fn is_over(&self) -> bool {
        self.teller.is_over() || matches!(self.stage, ExchangeStage::Over)
    }

    async fn say(&mut self) -> Result<ExchangeStage, AgentError> {
        let slot = self.slot().await?;
        if self.pair.line.streams() && !self.is_plain {
            match self.ask(A2aRequest::Stream).await {
                Err(trouble) if cannot_stream(&trouble) => self.is_plain = true,
                outcome => return self.heard(outcome?, slot),
            }
        }
        let reply = self.ask(A2aRequest::Send).await?;
        if self.is_plain {
            // The agent rejected streaming, not the message: the same code is used for both.
            self.pair.line.give_up_streams();
        }
        self.heard(reply, slot)
    }

    /// Sends the request, and keeps it in case it must be sent in another way.
    async fn ask(&mut self, way: fn(SendRequest) -> A2aRequest) -> Result<AgentReply, AgentError> {
        let Some(said) = self.request.take() else {
            return Err(Failure::new(FailureKind::Internal, "there is nothing to say").into());
        };
        let mut request = way(*said);
        let outcome = self.post.ask(&self.pair, &mut request).await;
        if let A2aRequest::Send(said) | A2aRequest::Stream(said) = request {
            self.request = Some(Box::new(said));
        }
        outcome
    }

    /// Processes a response in any form: some agents stream when they were not asked to, and the other way round.
    fn heard(&mut self, reply: AgentReply, slot: ExchangeSlot) -> Result<ExchangeStage, AgentError> {
        self.teller.activate(self.pair.activated());
        match reply {
            AgentReply::Events(events) => Ok(ExchangeStage::Listen(Box::new(events.holding(slot)))),
            AgentReply::Whole(answer) => {
                self.teller.hear_answer(answer);
                self.go_on(PollBackoff::first(self.post.config.poll_first_ms))
            }
        }
    }

    /// Next stage after the end of a response.
    fn go_on(&self, backoff: PollBackoff) -> Result<ExchangeStage, AgentError> {
        if self.teller.is_over() {
            return Ok(ExchangeStage::Over);
        }
        if self.teller.remote().task_id.is_none() {
            let message = "the agent answered without a result and without naming a task to ask for";
            return Err(Failure::new(FailureKind::PeerGarbled, message).into());
        }
        if self.pair.line.streams() && !self.is_rejoined {
            return Ok(ExchangeStage::Rejoin);
        }
        Ok(ExchangeStage::Poll(backoff))
    }

    async fn listen(&mut self, mut events: Box<AgentEvents>) -> Result<ExchangeStage, AgentError> {
        let heard = match &self.early_end {
            None => events.next().await,
            // A resumed stream may stay open for ever: a2a-sdk 0.3 keeps it after the task has stopped.
            Some(end) => match timeout(end.backoff.jittered(), events.next()).await {
                Ok(heard) => heard,
                Err(_) => return self.poll_beside(events).await,
            },
        };
        match heard {
            Ok(Some(event)) if self.is_foreign(event.task_id()) => Err(self.other_task(event.task_id())),
            Ok(Some(StreamEvent::Artifact(_))) if self.is_rejoined => Ok(ExchangeStage::Listen(events)),
            Ok(Some(StreamEvent::Status(update)))
                if self.is_rejoined && update.status.state.ends_stream() =>
            {
                drop(events);
                match self.look().await {
                    Ok(()) => self.go_on(PollBackoff::NONE),
                    Err(trouble) => self.later(trouble),
                }
            }
            Ok(Some(event)) => {
                self.teller.hear_event(event);
                Ok(ExchangeStage::Listen(events))
            }
            Ok(None) => self.stream_ended(None),
            Err(trouble) if self.has_told_nothing() && cannot_stream(&trouble) => {
                self.is_plain = true;
                Ok(ExchangeStage::Say)
            }
            // Silence is not an end: the task is polled, and may take as long as its caller waits.
            Err(trouble) if trouble.failure.kind == FailureKind::PeerTimeout && !self.has_told_nothing() => {
                self.go_on(PollBackoff::NONE)
            }
            Err(trouble) if trouble.is_broken => self.stream_ended(Some(trouble)),
            Err(trouble) if trouble.is_passing && !self.has_told_nothing() => self.stream_ended(None),
            Err(trouble) => Err(trouble),
        }
    }

    /// Continues after the agent has closed its stream, or the connection broke (`broken`).
    fn stream_ended(&mut self, broken: Option<AgentError>) -> Result<ExchangeStage, AgentError> {
        if self.teller.is_over() {
            return Ok(ExchangeStage::Over);
        }
        if self.teller.remote().task_id.is_none() {
            return Err(EarlyEnd::without_task(broken));
        }
        if self.early_end.is_none() {
            self.early_end = Some(EarlyEnd::new(&self.post.config, self.begun, self.teller.count()));
        }
        self.go_on(PollBackoff::NONE)
    }

    /// Polls the task while the resumed stream is silent.
    async fn poll_beside(&mut self, events: Box<AgentEvents>) -> Result<ExchangeStage, AgentError> {
        match self.look().await {
            Ok(()) => {
                self.check_progress()?;
                Ok(ExchangeStage::Listen(events))
            }
            Err(trouble) => self.later(trouble),
        }
    }

    /// Fails the exchange when its stream has ended early and nothing has changed for long enough since.
    fn check_progress(&mut self) -> Result<(), AgentError> {
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

    /// Resumes the stream. The snapshot comes second, so that nothing is missed between the two; and because the stream may then repeat
    /// chunks of artifacts, these are taken only from snapshots from now on.
    async fn rejoin(&mut self) -> Result<ExchangeStage, AgentError> {
        self.is_rejoined = true;
        let slot = match self.slot().await {
            Ok(slot) => slot,
            Err(busy) => return self.later(busy),
        };
        let mut request = A2aRequest::Subscribe(TaskRef { id: self.task_id()?, ..TaskRef::default() });
        match self.post.ask(&self.pair, &mut request).await {
            Ok(AgentReply::Events(events)) => {
                let events = Box::new(events.holding(slot));
                match self.look().await {
                    Ok(()) => Ok(ExchangeStage::Listen(events)),
                    Err(trouble) => self.later(trouble),
                }
            }
            Ok(AgentReply::Whole(answer)) => {
                self.teller.hear_answer(answer);
                self.go_on(PollBackoff::NONE)
            }
            Err(_) => Ok(ExchangeStage::Poll(PollBackoff::NONE)),
        }
    }

    /// Next stage after a failed poll. It is not a failure of the task: temporary errors are retried.
    fn later(&self, trouble: AgentError) -> Result<ExchangeStage, AgentError> {
        if !trouble.is_passing {
            return Err(trouble);
        }
        Ok(ExchangeStage::Poll(PollBackoff::first(self.post.config.poll_first_ms)))
    }

    async fn look(&mut self) -> Result<(), AgentError> {
        let mut request = A2aRequest::Get(GetTask { id: self.task_id()?, ..GetTask::default() });
        match self.post.ask_task(&self.pair, &mut request).await {
            Ok(task) if self.is_foreign(Some(&task.id)) => return Err(self.other_task(Some(&task.id))),
            Ok(task) => self.teller.hear_task(task),
            Err(trouble) if trouble.code == Some(ErrorCode::TaskNotFound) && self.early_end.is_some() => {
                return Err(EarlyEnd::unknown_task(trouble));
            }
            Err(trouble) => return Err(trouble),
        }
        Ok(())
    }

    async fn poll(&mut self, backoff: PollBackoff) -> Result<ExchangeStage, AgentError> {
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
            Err(trouble) if trouble.is_passing && backoff.failures < MAX_FAILED_POLLS => {
                Ok(ExchangeStage::Poll(backoff.after_failure(self.post.config.poll_first_ms, longest)))
            }
            Err(trouble) => Err(trouble),
        }
    }

    async fn slot(&self) -> Result<ExchangeSlot, AgentError> {
        let slots = self.pair.line.slots();
        let slot = slots.acquire(Duration::from_millis(self.post.config.max_wait_ms)).await?;
        slot.release_with(slots, self.pair.presence());
        Ok(slot)
    }

    /// True when the agent names another task than before.
    fn is_foreign(&self, id: Option<&str>) -> bool {
        let known = self.teller.remote().task_id.as_deref();
        id.is_some_and(|id| !id.is_empty() && known.is_some_and(|known| known != id))
    }

    fn other_task(&self, id: Option<&str>) -> AgentError {
        let known = self.teller.remote().task_id.as_deref().unwrap_or_default();
        let message =
            format!("the agent's answer is about another task: {}, not {known}", id.unwrap_or_default());
        Failure::new(FailureKind::PeerGarbled, message).into()
    }

    fn has_told_nothing(&self) -> bool {
        *self.teller.remote() == RemoteIds::default()
    }

    fn task_id(&self) -> Result<String, Failure> {
        self.teller.remote().task_id.clone().ok_or_else(|| {
            Failure::new(
                FailureKind::Conflict,
                "the agent never gave this task a name, so it cannot be asked for",
            )
        })
    }
}

// === impl ExchangeStream ===

impl Stream for ExchangeStream {
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

/// True when the error means that the agent does not support streaming.
fn cannot_stream(trouble: &AgentError) -> bool {
    trouble.is_foreign || trouble.code == Some(ErrorCode::UnsupportedOperation)
}
