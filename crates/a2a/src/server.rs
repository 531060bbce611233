//! A2A server: everything that can be called here, as one A2A agent that supports every dialect.
//!
//! A request is decoded into [`rialto_a2a_codec::request::A2aRequest`] by its binding ([`rpc`], [`rest`], [`grpc`]), answered by the one
//! [`service`], and encoded in its caller's dialect. Streams send only what is in the store ([`stream`]), so a client that was
//! disconnected reconnects and misses nothing.
//!
//! Registered agents are among the skills of that agent, and each also has an endpoint of its own below [`AGENTS`], with its own card
//! and skill ids: a client of one generation reaches an agent of another, under the same policies.

mod card;
mod config;
mod error;
mod grpc;
mod list;
mod media_types;
mod push;
mod push_sender;
mod render;
mod request_context;
mod resolve_target;
mod rest;
mod rpc;
mod service;
mod stream;
mod v01_plain;

use std::sync::Arc;

use axum::{
    Router,
    routing::{any, get, post},
};
use rialto_engine::Engine;
use rialto_http_client::fetch::Fetch;
use rialto_http_server::public_url::PublicUrl;
use rialto_model::{clock::Clock, store::Store};
use tokio_util::sync::CancellationToken;

pub use self::{
    config::{Config, PublicSkills},
    error::ServiceError,
    grpc::SERVICES,
    push_sender::PushSender,
    request_context::A2aRequestContext,
    service::{Service, ServiceReply},
    stream::TaskStream,
};

/// Paths of the public card, for clients of every generation. No token required.
pub const CARDS: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// Path of the public keys for card signatures. No token required.
pub const KEYS: &str = "/.well-known/jwks.json";

/// Paths of the server, with everything below them.
pub const PATHS: [&str; 3] = ["/a2a", "/_a2a", "/"];

/// HTTP+JSON operations of 1.0 that are at the root, beside other routes.
pub const AT_ROOT: [&str; 4] = ["/message:send", "/message:stream", "/tasks", "/extendedAgentCard"];

/// Path of the extended card in 0.2, below any base.
pub const EXTENDED_CARD: &str = "/agent/authenticatedExtendedCard";

/// Prefix of the endpoints of single agents, followed by their slug.
pub const AGENTS: &str = "/a2a/agents";

/// A2A server.
#[derive(Clone)]
pub struct A2aServer(Arc<Service>);

// === impl Door ===

impl A2aServer {
    /// Creates a server for `engine` whose public URL is `site`.
    pub fn new(engine: Engine, config: Config, site: PublicUrl) -> Self {
        Self(Arc::new(Service::new(engine, config, site)))
    }

    /// Service behind the bindings, for transports other than HTTP.
    pub fn service(&self) -> &Arc<Service> {
        &self.0
    }

    /// Creates the sender of push notifications, which uses `fetch`.
    pub fn pusher(&self, store: Arc<dyn Store>, fetch: Arc<dyn Fetch>, clock: Arc<dyn Clock>) -> PushSender {
        PushSender::new(Arc::clone(&self.0), store, fetch, clock)
    }

    /// Routes of the server. When `stop` is cancelled, open-ended streams end.
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
