//! Everything that can be called here, as one A2A agent that speaks every dialect.
//!
//! A request is read into [`rialto_a2a_wire::request::Request`] by whichever binding it came in ([`rpc`], [`rest`], [`grpc`]),
//! answered by the one [`service`], and told in its caller's own dialect. Streams only ever tell what is in the store
//! ([`stream`]), so a client that was cut off comes back and misses nothing.
//!
//! Registered agents are among the skills of that one agent, and each can also be reached by itself below [`AGENTS`], with
//! its own card and its own skill ids: a client of one generation reaches an agent of another, past the same policies.

mod aim;
mod card;
mod config;
mod grpc;
mod incoming;
mod list;
mod modes;
mod plain;
mod push;
mod pusher;
mod render;
mod rest;
mod rpc;
mod service;
mod stream;
mod trouble;

use std::sync::Arc;

use axum::{
    Router,
    routing::{any, get, post},
};
use rialto_edge::{fetch::Fetch, site::Site};
use rialto_engine::Engine;
use rialto_model::{clock::Clock, store::Store};
use tokio_util::sync::CancellationToken;

pub use self::{
    config::{Config, PublicSkills},
    grpc::SERVICES,
    incoming::Visit,
    pusher::Pusher,
    service::{Reply, Service},
    stream::TaskStream,
    trouble::Trouble,
};

/// Where cards are, for readers of every generation. They are for everybody.
pub const CARDS: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// Where the public half of the key is that cards are signed with. It is for everybody.
pub const KEYS: &str = "/.well-known/jwks.json";

/// The paths that requests come to, with all below them.
pub const PATHS: [&str; 3] = ["/a2a", "/_a2a", "/"];

/// What HTTP+JSON has at the root, where other things are too: the operations of 1.0.
pub const AT_ROOT: [&str; 4] = ["/message:send", "/message:stream", "/tasks", "/extendedAgentCard"];

/// Where 0.2 looks for the card that is for those who log in, below whatever base.
pub const EXTENDED_CARD: &str = "/agent/authenticatedExtendedCard";

/// Below this every agent can be reached by itself, under its slug.
pub const AGENTS: &str = "/a2a/agents";

/// The A2A door.
#[derive(Clone)]
pub struct Door(Arc<Service>);

// === impl Door ===

impl Door {
    /// A door to what `engine` can call, reached from outside at `site`.
    pub fn new(engine: Engine, config: Config, site: Site) -> Self {
        Self(Arc::new(Service::new(engine, config, site)))
    }

    /// What answers requests, for bindings that are not HTTP's.
    pub fn service(&self) -> &Arc<Service> {
        &self.0
    }

    /// What brings push notifications to those who asked for them, through `fetch`.
    pub fn pusher(&self, store: Arc<dyn Store>, fetch: Arc<dyn Fetch>, clock: Arc<dyn Clock>) -> Pusher {
        Pusher::new(Arc::clone(&self.0), store, fetch, clock)
    }

    /// The routes of the door. When `stop` is cancelled, streams end that would not end by themselves.
    pub fn router(&self, stop: CancellationToken) -> Router {
        self.0.end_streams_with(stop);
        let mut router = Router::new().route("/", post(rpc::serve));
        router = router.route(KEYS, get(card::serve_keys));
        for card in CARDS {
            router = router.route(card, get(card::serve));
        }
        for path in AT_ROOT {
            router = router.route(path, any(rest::serve));
        }
        router = router.route("/tasks/{*rest}", any(rest::serve));
        for base in ["", "/a2a", "/_a2a"] {
            router = router.route(&format!("{base}{EXTENDED_CARD}"), get(card::serve_extended));
        }
        for root in ["/a2a", "/_a2a"] {
            router = router
                .route(root, post(rpc::serve))
                .route(&format!("{root}/"), post(rpc::serve))
                .route(&format!("{root}/{{*rest}}"), any(rest::serve));
        }
        for service in SERVICES {
            router = router.route(&format!("{service}/{{method}}"), post(grpc::serve));
        }
        let one = format!("{AGENTS}/{{slug}}");
        router = router
            .route(&one, post(rpc::serve_agent))
            .route(&format!("{one}/"), post(rpc::serve_agent))
            .route(&format!("{one}/{{*rest}}"), any(rest::serve_agent));
        for card in CARDS {
            router = router.route(&format!("{one}{card}"), get(card::serve_agent));
        }
        router = router.route(&format!("{one}{EXTENDED_CARD}"), get(card::serve_extended_agent));
        router.with_state(Arc::clone(&self.0))
    }
}
