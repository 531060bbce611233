//! MCP servers, as the engine calls them: each tool is a skill.
//!
//! There is one connection to each server. It is made when it is first needed and kept; one that breaks is made anew, at
//! once the first time and then less and less often. Whoever wants to know hears when a server's tools may have changed.

mod connection;
mod in_order;
mod line;
mod listener;
mod told;
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
use rialto_engine::peer::{Discovery, DiscoveryError, Fetched, Peer, Place};
use rialto_model::{
    agent::{Agent, Signature},
    call::{Call, Cancel, Follow},
    deployed::{Backing, McpServer},
    event::Event,
    failure::{Failure, Kind},
    ids::Scope,
};
use rialto_policy::Permitted;
use tokio::time::timeout;

use self::{line::Line, work::Work};

/// Hears that the tools of the server with that address (`mcp:<name>`) may have changed.
pub type Changed = Arc<dyn Fn(&Scope, &str) + Send + Sync>;

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
}

/// Calls the tools of MCP servers.
#[derive(Clone)]
pub struct McpPeer(Arc<Servers>);

struct Servers {
    ports: Ports,
    lines: Mutex<HashMap<Key, Arc<Line>>>,
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
        Self(Arc::new(Servers { ports, lines: Mutex::default() }))
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
        let lines: Vec<Arc<Line>> = self.0.lines.lock().drain().map(|(_, line)| line).collect();
        future::join_all(lines.iter().map(|line| line.closed())).await;
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
            Some(line) => Work::new(line, call).events().boxed(),
            None => {
                let failure = Failure::new(Kind::Internal, "this is not an MCP server");
                stream::once(future::ready(Event::failed(failure))).boxed()
            }
        }
    }

    fn follow(&self, _: Permitted<Follow>) -> BoxStream<'static, Result<Event, Failure>> {
        stream::once(future::ready(Err(nobody_to_ask()))).boxed()
    }

    fn cancel(&self, _: Permitted<Cancel>) -> BoxFuture<'static, Result<Vec<Event>, Failure>> {
        future::ready(Err(nobody_to_ask())).boxed()
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
    Failure::new(Kind::Conflict, "an MCP server cannot be asked about what it did earlier; call it again")
}
