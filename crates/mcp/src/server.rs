//! MCP server: stdin and stdout, or `/mcp` over HTTP.

use std::{
    io,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};

use axum::Router;
use futures::future::BoxFuture;
use rialto_engine::Engine;
use rialto_http_server::stream_limits::StreamLimits;
use rialto_model::{
    agent::Agent, call::Caller, credential::Secret, failure::Failure, token_scopes::TokenScope,
};
use rialto_policy::Action;
use rmcp::{
    service::{ServerInitializeError, serve_server_with_ct},
    transport::{async_rw::AsyncRwTransport, io::stdio_pipes},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

use crate::{
    config::Config,
    depth_limit::DepthLimit,
    handler::{CallerSource, McpHandler},
    http,
    list_changed::ListChangedNotifier,
    tool_service::ToolService,
};

/// MCP server.
#[derive(Clone)]
pub struct McpEndpoint {
    desk: Arc<ToolService>,
    /// Cancelled when all tools that are listed from the start are loaded.
    complete: Option<CancellationToken>,
    streams: StreamLimits,
}

/// Operations that clients may use besides calling tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpEndpointOptions {
    /// Behaviour of `load_agent`.
    pub load_agents: LoadAgents,
}

/// Behaviour of `load_agent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadAgents {
    /// Loads the agent as trusted until this process ends: the person at the client approves.
    Session,
    /// Registers the agent for callers with the admin permission on agents. Others do not see the tool.
    Registered(AgentRegistrar),
    /// Disabled, with this message.
    Refused(String),
}

/// Agent to register, as `load_agent` names it.
#[derive(Clone, Debug)]
pub struct AgentToLoad {
    /// Its base URL, or the URL of its card.
    pub url: String,
    /// Path of its card below the base URL.
    pub card_path: Option<String>,
    /// Bearer token to send to it.
    pub token: Option<Secret>,
}

/// Registers an agent on behalf of a caller that may administer agents.
type RegisterAgent =
    dyn Fn(Caller, AgentToLoad) -> BoxFuture<'static, Result<Arc<Agent>, Failure>> + Send + Sync;

/// Handle to the function that registers agents.
#[derive(Clone)]
pub struct AgentRegistrar(Arc<RegisterAgent>);

/// Error of a connection.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The client did not start with a valid MCP message.
    #[error("the client did not begin with an MCP request")]
    Handshake(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The connection failed internally.
    #[error("the connection ended unexpectedly")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
}

// === impl Door ===

impl McpEndpoint {
    /// Creates a server for `engine`.
    pub fn new(engine: Engine, config: Config, control: McpEndpointOptions) -> Self {
        let (desk, streams) =
            (ToolService::new(engine, config, control.load_agents), StreamLimits::default());
        Self { desk, complete: None, streams }
    }

    /// Number of requests that the fast path has answered without rmcp.
    pub fn fast_path_requests(&self) -> u64 {
        self.desk.fast_path_requests.load(Ordering::Relaxed)
    }

    /// Sets the maximum number of HTTP streams for each caller.
    #[must_use]
    pub fn limit_streams(self, streams: StreamLimits) -> Self {
        Self { streams, ..self }
    }

    /// Answers the handshake at once, but lists and calls tools only after `complete` is cancelled: a client that waits too long for its
    /// handshake continues without this server.
    #[must_use]
    pub fn complete_after(mut self, complete: CancellationToken) -> Self {
        self.complete = Some(complete);
        self
    }

    /// Serves one client on stdin and stdout, until stdin is closed or `stop` is cancelled.
    pub async fn serve_stdio(&self, caller: Caller, stop: CancellationToken) -> Result<(), ServeError> {
        let (input, output) = stdio_pipes();
        self.serve(input, output, caller, stop).await
    }

    /// Serves one client on any pair of streams, one JSON message per line.
    ///
    /// When the input ends, calls in flight get a few seconds to finish. The others are detached; the owner of the engine hands them
    /// over at shutdown.
    pub async fn serve<R, W>(
        &self,
        input: R,
        output: W,
        caller: Caller,
        stop: CancellationToken,
    ) -> Result<(), ServeError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let stop = stop.child_token();
        // Lives as long as this connection; listeners end with it.
        let _ends = stop.clone().drop_guard();
        let closing = stop.child_token();
        let listeners = ListChangedNotifier::new(self.desk.engine.clone());
        let handler = McpHandler::new(
            Arc::clone(&self.desk),
            Arc::clone(&listeners),
            CallerSource::Known(caller),
            closing.clone(),
        )
        .complete_after(self.complete.clone());
        let transport =
            AsyncRwTransport::new_server(EndSignalReader { input: DepthLimit::new(input), closing }, output);
        let serving = async {
            let running = match Box::pin(serve_server_with_ct(handler, transport, stop.clone())).await {
                Ok(running) => running,
                // A client that disconnects before its first message is not an error.
                Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
                    return Ok(());
                }
                Err(error) => return Err(ServeError::Handshake(Box::new(error))),
            };
            running.waiting().await.map(drop).map_err(|error| ServeError::Broken(Box::new(error)))
        };
        let telling = listeners.clone().tell(stop.clone());
        tokio::pin!(serving);
        tokio::select! {
            served = &mut serving => served,
            () = telling => serving.await,
        }
    }

    /// Router of the MCP endpoint `/mcp`. Each request must carry a [`Caller`] in its extensions; one without is rejected.
    ///
    /// When `stop` is cancelled, open-ended streams end; calls in flight are still answered. Must be called inside a Tokio runtime.
    pub fn router(&self, stop: CancellationToken) -> Router {
        http::router(&self.desk, stop, self.streams.clone())
    }
}

// === impl AgentRegistrar ===

impl AgentRegistrar {
    /// Wraps the function `register`, which checks the caller's permission.
    pub fn new(
        register: impl Fn(Caller, AgentToLoad) -> BoxFuture<'static, Result<Arc<Agent>, Failure>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Arc::new(register))
    }

    pub(crate) async fn register(&self, caller: Caller, agent: AgentToLoad) -> Result<Arc<Agent>, Failure> {
        (self.0)(caller, agent).await
    }
}

impl std::fmt::Debug for AgentRegistrar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AgentRegistrar")
    }
}

impl PartialEq for AgentRegistrar {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for AgentRegistrar {}

impl LoadAgents {
    /// True when `load_agent` is listed for this caller.
    pub(crate) fn is_open_to(&self, engine: &Engine, caller: &Caller) -> bool {
        match self {
            Self::Session => true,
            Self::Registered(_) => {
                caller.rights.have(TokenScope::Admin)
                    && engine.policies().require_admin(caller, Action::AdminAgents).is_ok()
            }
            Self::Refused(_) => false,
        }
    }

    /// Error for a server where only administrators register agents.
    pub fn refused() -> Self {
        let reason = "agents are registered by an administrator here; ask for `rialto agents add URL`";
        Self::Refused(reason.to_owned())
    }
}

/// Input that signals its end, so that the server does not wait for more.
struct EndSignalReader<R> {
    input: R,
    closing: CancellationToken,
}

// === impl EndSignalReader ===

impl<R: AsyncRead + Unpin> AsyncRead for EndSignalReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.input).poll_read(context, buffer);
        if matches!(polled, Poll::Ready(Ok(()))) && buffer.filled().len() == before && buffer.remaining() > 0
        {
            self.closing.cancel();
        }
        polled
    }
}
