//! Peers that do as they are told.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use futures::{
    FutureExt, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use parking_lot::Mutex;
use rialto_engine::peer::{Discovery, DiscoveryError, Fetched, Peer, Place};
use rialto_model::{
    agent::SignatureStatus,
    call::{Call, CancelRequest, FollowRequest},
    card::Card,
    event::{Event, EventAside, RemoteIds},
    failure::Failure,
    json::Json,
    message::{Artifact, Part},
};
use rialto_policy::Permitted;

type Script = Box<dyn Fn(&Call) -> BoxStream<'static, Event> + Send + Sync>;

/// A peer that answers each call from a script and remembers what it was asked.
pub struct ScriptedPeer {
    script: Script,
    followed: Mutex<Vec<Result<Event, Failure>>>,
    /// The calls that arrived.
    pub calls: Mutex<Vec<Call>>,
    /// The questions about tasks that arrived.
    pub follows: Mutex<Vec<FollowRequest>>,
    /// The cancellations that arrived.
    pub cancels: Mutex<Vec<CancelRequest>>,
}

/// Cards by base URL; an address that is not among them does not answer.
#[derive(Default)]
pub struct ScriptedDiscovery(Mutex<HashMap<String, Result<Card, DiscoveryError>>>);

// === impl ScriptedPeer ===

impl ScriptedPeer {
    /// A peer that answers each call with the same events.
    pub fn telling(events: Vec<Event>) -> Arc<Self> {
        Self::with(move |_| stream::iter(events.clone()).boxed())
    }

    /// A peer that answers each call with its own arguments as one data artifact.
    pub fn echo() -> Arc<Self> {
        Self::with(|call| stream::iter(finished_with(vec![Part::data(call.args())])).boxed())
    }

    /// A peer that answers as `script` says.
    pub fn with(script: impl Fn(&Call) -> BoxStream<'static, Event> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            script: Box::new(script),
            followed: Mutex::default(),
            calls: Mutex::default(),
            follows: Mutex::default(),
            cancels: Mutex::default(),
        })
    }

    /// From now on, whoever asks how a task goes on hears these events.
    pub fn will_tell(&self, events: Vec<Event>) {
        *self.followed.lock() = events.into_iter().map(Ok).collect();
    }

    /// From now on, whoever asks how a task goes on learns that this stands in the way.
    pub fn will_fail(&self, failure: Failure) {
        *self.followed.lock() = vec![Err(failure)];
    }
}

impl Peer for ScriptedPeer {
    fn send(&self, call: Permitted<Call>) -> BoxStream<'static, Event> {
        let call = call.into_inner();
        let events = (self.script)(&call);
        self.calls.lock().push(call);
        events
    }

    fn follow(&self, follow: Permitted<FollowRequest>) -> BoxStream<'static, Result<Event, Failure>> {
        self.follows.lock().push(follow.into_inner());
        stream::iter(self.followed.lock().clone()).boxed()
    }

    fn cancel(&self, cancel: Permitted<CancelRequest>) -> BoxFuture<'static, Result<Vec<Event>, Failure>> {
        self.cancels.lock().push(cancel.into_inner());
        async { Ok(vec![Event::Canceled { message: None, aside: EventAside::default() }]) }.boxed()
    }
}

// === impl ScriptedDiscovery ===

impl ScriptedDiscovery {
    /// From now on `url` answers with `card`.
    pub fn serve(&self, url: &str, card: Card) {
        self.0.lock().insert(url.to_owned(), Ok(card));
    }

    /// From now on `url` answers with this trouble.
    pub fn fail(&self, url: &str, error: DiscoveryError) {
        self.0.lock().insert(url.to_owned(), Err(error));
    }

    /// From now on nobody answers at `url`.
    pub fn stop(&self, url: &str) {
        self.0.lock().remove(url);
    }
}

#[async_trait]
impl Discovery for ScriptedDiscovery {
    async fn fetch(&self, place: &Place) -> Result<Fetched, DiscoveryError> {
        let unreachable = || DiscoveryError::Unreachable {
            url: place.url.clone(),
            reason: "connection refused".to_owned(),
        };
        let card = self.0.lock().get(&place.url).cloned().unwrap_or_else(|| Err(unreachable()))?;
        let path = "/.well-known/agent-card.json".to_owned();
        Ok(Fetched::Card { card: Box::new(card), path, etag: None, signature: SignatureStatus::None })
    }
}

/// The remote side took the task.
pub fn accepted(task: &str, context: &str) -> Event {
    let remote = RemoteIds { task_id: Some(task.to_owned()), context_id: Some(context.to_owned()) };
    Event::Accepted { remote, aside: EventAside::default() }
}

/// The remote side is at work.
pub fn working() -> Event {
    Event::Progress { working: true, message: None, aside: EventAside::default() }
}

/// Everything that is told when a task ends at once with one artifact.
pub fn finished_with(parts: Vec<Part>) -> Vec<Event> {
    let artifact = Artifact::new("result", parts);
    vec![
        accepted("remote-1", "context-1"),
        Event::Artifact { artifact, append: false, last: true, aside: EventAside::default() },
        Event::Finished { message: None, aside: EventAside::default() },
    ]
}

/// Everything that is told when a task ends at once with one data artifact.
pub fn finished_with_data(data: serde_json::Value) -> Vec<Event> {
    finished_with(vec![Part::data(Json::from(data))])
}
