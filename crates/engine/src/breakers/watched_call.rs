//! Call that a circuit breaker watches for its first event.
//!
//! The first event says whether the agent answered. A transition of the breaker that follows from it is on record before the event is
//! passed on. A call that is dropped before its first event has no outcome; if it was a probe, the next call is one.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures::{FutureExt, Stream, StreamExt, future::BoxFuture, stream::BoxStream};
use rialto_model::event::Event;
use rialto_routing::breaker::BreakerEvent;

use super::{BreakerTransition, Breakers, CallFacts, signal_of};
use crate::journal::TaskJournal;

/// Events of a call, of which the first is reported to the breaker.
pub(super) struct WatchedCall {
    events: BoxStream<'static, Event>,
    /// None once its outcome is reported.
    facts: Option<CallFacts>,
    breakers: Arc<Breakers>,
    journal: TaskJournal,
    /// Record of a transition that is being written.
    recording: Option<BoxFuture<'static, ()>>,
    /// Event that waits for that record.
    waiting: Option<Event>,
}

// === impl WatchedCall ===

impl WatchedCall {
    pub(super) fn new(
        events: BoxStream<'static, Event>,
        facts: CallFacts,
        breakers: Arc<Breakers>,
        journal: TaskJournal,
        admitted: Option<BreakerTransition>,
    ) -> Self {
        let recording = admitted.map(|transition| record(transition, &facts, &journal));
        Self { events, facts: Some(facts), breakers, journal, recording, waiting: None }
    }

    fn report(&mut self, event: &Event) {
        let Some(facts) = self.facts.take() else { return };
        let signal = signal_of(&facts.agent, event);
        let reason = if let Event::Failed { failure, .. } = event { failure.message.as_str() } else { "" };
        let transition = self.breakers.report(&facts, signal, reason, self.journal.now());
        self.recording = transition.map(|transition| record(transition, &facts, &self.journal));
    }
}

impl Stream for WatchedCall {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            if let Some(recording) = &mut self.recording {
                ready!(recording.as_mut().poll(context));
                self.recording = None;
            }
            if let Some(event) = self.waiting.take() {
                return Poll::Ready(Some(event));
            }
            let Some(event) = ready!(self.events.poll_next_unpin(context)) else { return Poll::Ready(None) };
            if self.facts.is_none() {
                return Poll::Ready(Some(event));
            }
            self.report(&event);
            self.waiting = Some(event);
        }
    }
}

impl Drop for WatchedCall {
    fn drop(&mut self) {
        if let Some(facts) = self.facts.take().filter(|facts| facts.is_probe) {
            self.breakers.report(&facts, BreakerEvent::Nothing, "", self.journal.now());
        }
    }
}

fn record(transition: BreakerTransition, facts: &CallFacts, journal: &TaskJournal) -> BoxFuture<'static, ()> {
    let (journal, agent) = (journal.clone(), Arc::clone(&facts.agent));
    async move { transition.record(&journal, &agent).await }.boxed()
}
