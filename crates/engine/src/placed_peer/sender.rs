//! The sending end of a call that another node executes.

use std::{collections::VecDeque, time::Duration};

use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use rialto_model::{
    call::Call,
    event::Event,
    failure::{Failure, FailureKind},
    ids::{ProcessId, fresh},
    relay::{RelayProgress, RelayedCall},
};
use tokio::time::Instant;

use super::{PlacedPeer, lost, place_call};
use crate::{
    engine::{Engine, store_failure},
    placement::ProgramPlace,
    relayed_call::{RelayedItem, RelayedWork, SentCall},
};

/// Wait between two looks for events: short at first and after each event, then longer.
const SHORTEST_POLL: Duration = Duration::from_millis(10);
const LONGEST_POLL: Duration = Duration::from_millis(100);

/// Time between two looks at the lease of the other node.
const LEASE_CHECK: Duration = Duration::from_millis(500);

/// Events of a call that another node executes. Dropping it cancels the call there.
pub(super) struct RelayedStream {
    peer: PlacedPeer,
    work: RelayedWork,
    /// The call, which can be sent again elsewhere.
    call: Option<Box<Call>>,
    receiver: ProcessId,
    /// Its id in the store, once it is there.
    id: Option<String>,
    /// Number of events that were read.
    known: u64,
    waiting: VecDeque<RelayedItem>,
    poll: Duration,
    lease_checked_at: Instant,
    /// The rest of the events, if this process executes it after all.
    local: Option<BoxStream<'static, Event>>,
    is_over: bool,
}

// === impl RelayedStream ===

impl RelayedStream {
    pub(super) fn new(peer: PlacedPeer, work: RelayedWork, receiver: ProcessId) -> Self {
        Self {
            peer,
            work,
            call: None,
            receiver,
            id: None,
            known: 0,
            waiting: VecDeque::new(),
            poll: SHORTEST_POLL,
            lease_checked_at: Instant::now(),
            local: None,
            is_over: false,
        }
    }

    pub(super) fn new_call(peer: PlacedPeer, call: Call, receiver: ProcessId) -> Self {
        let work = RelayedWork::Send(Box::new(SentCall::new(&call)));
        let mut relayed = Self::new(peer, work, receiver);
        relayed.call = Some(Box::new(call));
        relayed
    }

    pub(super) fn into_stream(self) -> BoxStream<'static, Result<Event, Failure>> {
        stream::unfold(self, |mut relayed| async move { relayed.next().await.map(|event| (event, relayed)) })
            .boxed()
    }

    async fn next(&mut self) -> Option<Result<Event, Failure>> {
        while !self.is_over {
            if let Some(local) = &mut self.local {
                return local.next().await.map(Ok);
            }
            match self.waiting.pop_front() {
                Some(RelayedItem::Event(event)) => return Some(Ok(*event)),
                Some(RelayedItem::Failed(failure)) => {
                    self.finish().await;
                    return Some(Err(failure));
                }
                Some(RelayedItem::End) => self.finish().await,
                None => {
                    if let Err(failure) = self.read_more().await {
                        self.finish().await;
                        return Some(Err(failure));
                    }
                }
            }
        }
        None
    }

    /// Sends the call if it is not sent yet, and waits for events.
    async fn read_more(&mut self) -> Result<(), Failure> {
        let engine = self.peer.engine()?;
        let Some(id) = self.id.clone() else { return self.put(&engine).await };
        match engine.inner().store.relay_progress(&id, self.known).await {
            Ok(Some(RelayProgress { events, .. })) if !events.is_empty() => {
                self.poll = SHORTEST_POLL;
                for body in events {
                    self.known += 1;
                    self.waiting.push_back(serde_json::from_str(&body).map_err(|error| unreadable(&error))?);
                }
                return Ok(());
            }
            Ok(Some(_)) => {
                if self.lease_checked_at.elapsed() >= LEASE_CHECK {
                    self.lease_checked_at = Instant::now();
                    if !engine.is_at_work(self.receiver).await? {
                        return self.replace_receiver(&engine, &id).await;
                    }
                }
            }
            Ok(None) => return Err(lost()),
            // The store is away. The call goes on meanwhile, and its events are there once the store is back.
            Err(error) => tracing::debug!("a call at another node could not be followed: {error}"),
        }
        tokio::time::sleep(self.poll).await;
        self.poll = (self.poll * 3 / 2).min(LONGEST_POLL);
        Ok(())
    }

    async fn put(&mut self, engine: &Engine) -> Result<(), Failure> {
        let sender = engine.attend().await?;
        let body = serde_json::to_string(&self.work).map_err(|error| unreadable(&error))?;
        let (id, receiver) = (fresh(), self.receiver);
        let call = RelayedCall { id: id.clone(), sender, receiver, body, at: engine.now() };
        // It may be there although this failed: it is removed then.
        self.id = Some(id);
        engine.inner().store.put_relayed_call(&call).await.map_err(store_failure)
    }

    /// Sends the call to another node, if the one that is gone has not taken it.
    async fn replace_receiver(&mut self, engine: &Engine, id: &str) -> Result<(), Failure> {
        let was_taken = engine.inner().store.remove_relayed_call(id).await.map_err(store_failure)?;
        self.id = None;
        let Some(call) = &self.call else { return Err(lost()) };
        if was_taken != Some(false) {
            return Err(lost());
        }
        match place_call(engine, call).await? {
            ProgramPlace::Here(own) => {
                self.local = Some(self.peer.execute_here(engine, Call::clone(call), own)?);
            }
            ProgramPlace::There(receiver) => self.receiver = receiver,
        }
        Ok(())
    }

    async fn finish(&mut self) {
        self.is_over = true;
        if let (Some(id), Ok(engine)) = (self.id.take(), self.peer.engine()) {
            remove(&engine, &id).await;
        }
    }
}

impl Drop for RelayedStream {
    fn drop(&mut self) {
        let (Some(id), Ok(engine)) = (self.id.take(), self.peer.engine()) else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { remove(&engine, &id).await });
        }
    }
}

/// Removes a call. One that stays is removed when it is old, and the other node sees that its sender is gone.
async fn remove(engine: &Engine, id: &str) {
    if let Err(error) = engine.inner().store.remove_relayed_call(id).await {
        tracing::warn!("a call at another node could not be removed: {error}");
    }
}

fn unreadable(error: &serde_json::Error) -> Failure {
    Failure::new(
        FailureKind::Internal,
        format!("a call for another node could not be read or written: {error}"),
    )
}
