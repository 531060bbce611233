//! Executes calls on the node that runs their program.
//!
//! The node that took a call keeps its task: its state, its deadline and its caller. If another node runs the program, the call goes there
//! through the store, and its events come back the same way.

mod receiver;
mod sender;

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use futures::{
    FutureExt, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use rialto_model::{
    call::{Call, CancelRequest, FollowRequest},
    event::{Event, EventAside, RemoteIds},
    failure::{Failure, FailureKind},
    ids::ProcessId,
    json::Json,
};
use rialto_policy::{Denied, Permitted};
use serde_json::json;

use self::sender::RelayedStream;
use crate::{
    engine::{Engine, FaintEngine},
    peer::{Discovery, DiscoveryError, Fetched, Peer, Place},
    placement::{ProgramPlace, tag_handle, untag_handle},
    relayed_call::{RelayedWork, SentCancel},
    takeover::NO_SUCH_TASK,
};

/// Executes calls here or on the node that runs their program. Cloning shares it.
#[derive(Clone)]
pub struct PlacedPeer(Arc<PlacedPeerState>);

struct PlacedPeerState {
    /// Executes calls in this process.
    local: Arc<dyn Peer>,
    engine: EngineLink,
}

/// The engine, for what is made before it. Cloning shares it.
#[derive(Clone, Default)]
pub struct EngineLink(Arc<OnceLock<FaintEngine>>);

/// Asks what programs can do that run here. The other nodes learn it from the store.
pub struct PlacedDiscovery {
    /// Asks in this process.
    pub local: Arc<dyn Discovery>,
    /// Knows the place of each program.
    pub engine: EngineLink,
}

// === impl EngineLink ===

impl EngineLink {
    /// Sets the engine, which knows the nodes.
    pub fn set(&self, engine: FaintEngine) {
        // There is one.
        let _ = self.0.set(engine);
    }

    fn get(&self) -> Result<Engine, Failure> {
        let engine = self.0.get().and_then(FaintEngine::get);
        engine.ok_or_else(|| Failure::new(FailureKind::Internal, "the engine is stopping"))
    }
}

// === impl PlacedPeer ===

impl PlacedPeer {
    /// A peer that executes calls with `local` where their program runs in this process.
    pub fn new(local: Arc<dyn Peer>, engine: EngineLink) -> Self {
        Self(Arc::new(PlacedPeerState { local, engine }))
    }

    fn engine(&self) -> Result<Engine, Failure> {
        self.0.engine.get()
    }

    /// Executes a call where its program runs.
    async fn execute(&self, call: Call) -> Result<BoxStream<'static, Event>, Failure> {
        let engine = self.engine()?;
        match place_call(&engine, &call).await? {
            ProgramPlace::Here(own) => self.execute_here(&engine, call, own),
            ProgramPlace::There(receiver) => {
                let events = RelayedStream::new_call(self.clone(), call, receiver).into_stream();
                Ok(events.map(|event| event.unwrap_or_else(Event::failed)).boxed())
            }
        }
    }

    /// Executes a call in this process. The names that its backend gives to tasks lead back here.
    fn execute_here(
        &self,
        engine: &Engine,
        mut call: Call,
        own: ProcessId,
    ) -> Result<BoxStream<'static, Event>, Failure> {
        call.continues = untagged(call.continues);
        // Policy has permitted it where it was taken, perhaps after an approval.
        let permitted = engine.inner().check_approved(call).map_err(|denied| refused(&denied))?;
        Ok(self.0.local.send(permitted).map(move |event| tagged(event, own)).boxed())
    }

    /// Cancels a task in this process.
    async fn cancel_here(&self, engine: &Engine, mut cancel: CancelRequest) -> Result<Vec<Event>, Failure> {
        cancel.remote = untagged(cancel.remote);
        let permitted = engine.inner().check_approved(cancel).map_err(|denied| refused(&denied))?;
        self.0.local.cancel(permitted).await
    }

    async fn cancel_anywhere(&self, cancel: CancelRequest) -> Result<Vec<Event>, Failure> {
        let engine = self.engine()?;
        match handle_runner(&cancel.remote) {
            Some(runner) if runner == engine.runner() => self.cancel_here(&engine, cancel).await,
            Some(runner) if engine.is_at_work(runner).await? => {
                let work = RelayedWork::Cancel(Box::new(SentCancel::new(&cancel)));
                let events = RelayedStream::new(self.clone(), work, runner).into_stream();
                events.collect::<Vec<_>>().await.into_iter().collect()
            }
            // Where nothing runs there is nothing to cancel.
            _ => Ok(vec![Event::Canceled { message: None, aside: EventAside::default() }]),
        }
    }
}

impl Peer for PlacedPeer {
    fn send(&self, call: Permitted<Call>) -> BoxStream<'static, Event> {
        if call.get().target.agent.backing.placement().is_none() {
            return self.0.local.send(call);
        }
        let peer = self.clone();
        let executed = async move {
            let events = peer.execute(call.into_inner()).await;
            events.unwrap_or_else(|failure| stream::iter([Event::failed(failure)]).boxed())
        };
        executed.flatten_stream().boxed()
    }

    fn follow(&self, follow: Permitted<FollowRequest>) -> BoxStream<'static, Result<Event, Failure>> {
        let FollowRequest { target, remote, to_the_end, .. } = follow.get();
        if target.agent.backing.placement().is_none() {
            return self.0.local.follow(follow);
        }
        let own = self.engine().map(|engine| engine.runner());
        if own.is_ok_and(|own| handle_runner(remote) == Some(own)) {
            let (engine, mut follow) = (self.engine(), follow.into_inner());
            follow.remote = untagged(follow.remote);
            let permitted = engine
                .and_then(|engine| engine.inner().check_approved(follow).map_err(|denied| refused(&denied)));
            return match permitted {
                Ok(permitted) => self.0.local.follow(permitted),
                Err(failure) => stream::iter([Err(failure)]).boxed(),
            };
        }
        if !*to_the_end {
            // What is known is in the journal.
            return stream::empty().boxed();
        }
        stream::iter([Err(lost())]).boxed()
    }

    fn cancel(&self, cancel: Permitted<CancelRequest>) -> BoxFuture<'static, Result<Vec<Event>, Failure>> {
        if cancel.get().target.agent.backing.placement().is_none() {
            return self.0.local.cancel(cancel);
        }
        let peer = self.clone();
        async move { peer.cancel_anywhere(cancel.into_inner()).await }.boxed()
    }
}

#[async_trait]
impl Discovery for PlacedDiscovery {
    async fn fetch(&self, place: &Place) -> Result<Fetched, DiscoveryError> {
        let Some(placement) = place.backing.placement() else { return self.local.fetch(place).await };
        let not_asked = |reason: String| DiscoveryError::Local { url: place.url.clone(), reason };
        let engine = self.engine.get().map_err(|failure| not_asked(failure.message))?;
        match engine.place_program(&place.scope, &place.url, placement).await {
            Ok(ProgramPlace::Here(_)) => self.local.fetch(place).await,
            Ok(ProgramPlace::There(_)) => Err(not_asked("another node runs it".to_owned())),
            Err(failure) => Err(not_asked(failure.message)),
        }
    }
}

/// Process that executes a call. One that answers a question goes to the process that asked.
async fn place_call(engine: &Engine, call: &Call) -> Result<ProgramPlace, Failure> {
    if let Some(runner) = handle_runner(&call.continues) {
        if runner == engine.runner() {
            return Ok(ProgramPlace::Here(runner));
        }
        return if engine.is_at_work(runner).await? { Ok(ProgramPlace::There(runner)) } else { Err(lost()) };
    }
    let agent = &call.target.agent;
    match agent.backing.placement() {
        Some(placement) => {
            engine.attend().await?;
            engine.place_program(&agent.scope, &agent.url, placement).await
        }
        None => Ok(ProgramPlace::Here(engine.runner())),
    }
}

fn handle_runner(remote: &RemoteIds) -> Option<ProcessId> {
    untag_handle(remote.task_id.as_deref()?).1
}

fn untagged(remote: RemoteIds) -> RemoteIds {
    let task_id = remote.task_id.as_deref().map(|handle| untag_handle(handle).0.to_owned());
    RemoteIds { task_id, ..remote }
}

fn tagged(event: Event, own: ProcessId) -> Event {
    let Event::Accepted { remote, aside } = event else { return event };
    let task_id = remote.task_id.as_deref().map(|handle| tag_handle(handle, own));
    Event::Accepted { remote: RemoteIds { task_id, ..remote }, aside }
}

fn refused(denied: &Denied) -> Failure {
    Failure::new(FailureKind::Denied, denied.to_string())
}

/// The node that executed a call is gone, and nobody can be asked about it.
fn lost() -> Failure {
    let message = "the node that ran this has stopped; it may have been done: check before you send it again";
    Failure::new(FailureKind::PeerFailed, message)
        .with_data(Json::encode(&json!({ "remoteCode": NO_SUCH_TASK })))
}
