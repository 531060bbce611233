//! MCP servers, as the engine calls them: each tool is a skill.
//!
//! There is one connection to each server. It is made when it is first needed and kept; one that breaks is made anew, at
//! once the first time and then less and less often. Whoever wants to know hears when a server's tools may have changed.

mod connection;
mod ears;
mod event_stream;
mod hello;
mod in_order;
mod line;
mod listener;
mod question;
mod rounds;
mod sse_transport;
pub(crate) mod told;
mod tracked;
mod waiting;
mod wire;
mod work;

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use futures::{
    FutureExt, StreamExt,
    future::{self, BoxFuture},
    stream::{self, BoxStream},
};
use parking_lot::Mutex;
use rialto_edge::{fetch::Fetch, process::Launcher, settings::Resolver};
use rialto_engine::{
    announce_working::announced,
    peer::{Discovery, DiscoveryError, Fetched, Peer, Place},
};
use rialto_model::{
    agent::{Agent, Signature},
    call::{Call, Caller, Cancel, Follow},
    deployed::{Backing, McpServer},
    event::{Aside, Event},
    failure::{Failure, Kind},
    ids::Scope,
    json::Json,
};
use rialto_policy::Permitted;
use serde_json::{Value, json};
use tokio::time::timeout;

use self::{line::Line, tracked::Tracked, waiting::Waiting, work::Work};

/// Says that asking again would not help: nobody knows the task.
const NO_SUCH_TASK: i64 = -32001;

/// Hears that the tools of the server with that address (`mcp:<name>`) may have changed.
pub type Changed = Arc<dyn Fn(&Scope, &str) + Send + Sync>;

/// Answers `sampling/createMessage`, given its parameters and the name of the agent or skill that was configured for it, in
/// the name of that caller. The error is for the server to read.
pub type Sampler =
    Arc<dyn Fn(Caller, String, Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;

/// What the peer needs from outside.
#[derive(Clone)]
pub struct Ports {
    /// The way out.
    pub fetch: Arc<dyn Fetch>,
    /// Starts programs.
    pub launcher: Launcher,
    /// Reads the secrets that headers are made of.
    pub secrets: Resolver,
    /// Hears of changes.
    pub changed: Changed,
    /// Says what servers would have a model say.
    pub sampler: Sampler,
}

/// Calls the tools of MCP servers.
#[derive(Clone)]
pub struct McpPeer(Arc<Servers>);

struct Servers {
    ports: Ports,
    lines: Mutex<HashMap<Key, Arc<Line>>>,
    /// What waits for answers.
    waiting: Waiting,
}

/// Which server is meant. Orgs share none, even if they say the same about it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    scope: Scope,
    server: Arc<McpServer>,
    allow_private: bool,
}

// === impl McpPeer ===

impl McpPeer {
    /// A peer that has not talked to anybody yet.
    pub fn new(ports: Ports) -> Self {
        Self(Arc::new(Servers { ports, lines: Mutex::default(), waiting: Waiting::default() }))
    }

    /// Lets go of all servers but those of these rows.
    pub fn keep_only(&self, rows: &[Arc<Agent>]) {
        let is_meant = |key: &Key| rows.iter().any(|row| Key::of(row).as_ref() == Some(key));
        let mut gone = Vec::new();
        self.0.lines.lock().retain(|key, line| {
            let stays = is_meant(key);
            if !stays {
                gone.push(Arc::clone(line));
            }
            stays
        });
        for line in gone {
            line.close();
        }
    }

    /// Lets go of all servers, and waits until the programs among them have ended.
    pub async fn close(&self) {
        self.0.waiting.clear();
        let lines: Vec<Arc<Line>> = self.0.lines.lock().drain().map(|(_, line)| line).collect();
        future::join_all(lines.iter().map(|line| line.closed())).await;
    }

    /// Waits for the attempt to start or reach this row's server that is under way; true if it succeeds, false if none is under way.
    pub async fn finish_start(&self, row: &Agent) -> bool {
        let line = Key::of(row).and_then(|key| self.0.lines.lock().get(&key).cloned());
        match line.and_then(|line| line.attempt_under_way()) {
            Some(attempt) => attempt.await.is_ok(),
            None => false,
        }
    }

    fn line(&self, key: Key) -> Arc<Line> {
        let mut lines = self.0.lines.lock();
        Arc::clone(
            lines.entry(key).or_insert_with_key(|key| Arc::new(Line::new(key.clone(), self.0.ports.clone()))),
        )
    }
}

impl Peer for McpPeer {
    fn send(&self, call: Permitted<Call>) -> BoxStream<'static, Event> {
        let line = Key::of(&call.get().target.agent).map(|key| self.line(key));
        match line {
            Some(line) => {
                // Who was answered has been seen to go on.
                let is_new = call.get().continues.task_id.is_none();
                let events = Work::new(line, self.0.waiting.clone(), call).events().boxed();
                if is_new { announced(events) } else { events }
            }
            None => {
                let failure = Failure::new(Kind::Internal, "this is not an MCP server");
                stream::once(future::ready(Event::failed(failure))).boxed()
            }
        }
    }

    fn follow(&self, follow: Permitted<Follow>) -> BoxStream<'static, Result<Event, Failure>> {
        let Follow { caller, target, remote, to_the_end } = follow.get();
        let handle = remote.task_id.as_deref().unwrap_or_default();
        if self.0.waiting.holds(handle) {
            // It waits, as is known.
            return stream::empty().boxed();
        }
        match (handle.strip_prefix(tracked::PREFIX), Key::of(&target.agent)) {
            (Some(id), Some(key)) => {
                let (tracked, tool) = (Tracked::known(id.to_owned()), target.skill_id().to_owned());
                tracked.follow(self.line(key), caller.clone(), tool, *to_the_end)
            }
            _ => stream::once(future::ready(Err(nobody_to_ask()))).boxed(),
        }
    }

    fn cancel(&self, cancel: Permitted<Cancel>) -> BoxFuture<'static, Result<Vec<Event>, Failure>> {
        let Cancel { caller, target, remote } = cancel.get();
        let handle = remote.task_id.as_deref().unwrap_or_default();
        match (handle.strip_prefix(tracked::PREFIX), Key::of(&target.agent)) {
            (Some(id), Some(key)) => {
                let (tracked, line, caller) = (Tracked::known(id.to_owned()), self.line(key), caller.clone());
                async move { tracked.cancel(&line, &caller).await }.boxed()
            }
            _ => {
                // Letting go of it tells the server. What nobody holds, nobody works on.
                drop(self.0.waiting.take(handle));
                let canceled = Event::Canceled { message: None, aside: Aside::default() };
                future::ready(Ok(vec![canceled])).boxed()
            }
        }
    }
}

#[async_trait]
impl Discovery for McpPeer {
    async fn fetch(&self, place: &Place) -> Result<Fetched, DiscoveryError> {
        let Backing::Mcp(server) = &place.backing else {
            return Err(DiscoveryError::Refused(format!("{} is not an MCP server", place.url)));
        };
        let key = Key {
            scope: place.scope.clone(),
            server: Arc::clone(server),
            allow_private: place.allow_private,
        };
        let line = self.line(key);
        let url = place.url.clone();
        let unreachable = |reason| DiscoveryError::Unreachable { url: url.clone(), reason };
        let asked = async {
            let connection = line.connection().await.map_err(unreachable)?;
            connection.card().await.map_err(|trouble| trouble.discovery(&url))
        };
        let Ok(card) = timeout(place.timeout, asked).await else {
            let reason = format!("it has not answered within {} ms", place.timeout.as_millis());
            return Err(DiscoveryError::Unreachable { url, reason });
        };
        let (card, path, etag, signature) = (Box::new(card?), String::new(), None, Signature::None);
        Ok(Fetched::Card { card, path, etag, signature })
    }
}

// === impl Key ===

impl Key {
    fn of(row: &Agent) -> Option<Self> {
        let Backing::Mcp(server) = &row.backing else { return None };
        Some(Self { scope: row.scope.clone(), server: Arc::clone(server), allow_private: row.allow_private })
    }

    /// Its address in the registry.
    fn url(&self) -> String {
        format!("mcp:{}", self.server.name)
    }
}

fn nobody_to_ask() -> Failure {
    let forgotten = Json::of(&json!({ "remoteCode": NO_SUCH_TASK }));
    Failure::new(Kind::Conflict, "an MCP server cannot be asked about what it did earlier; call it again")
        .with_data(forgotten)
}
