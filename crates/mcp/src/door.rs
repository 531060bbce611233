//! The door itself: stdin and stdout, or `/mcp` over HTTP.

use std::{
    io,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};

use axum::Router;
use futures::future::BoxFuture;
use rialto_edge::streams::StreamLimits;
use rialto_engine::Engine;
use rialto_model::{agent::Agent, call::Caller, credential::Secret, failure::Failure, rights::Right};
use rialto_policy::Action;
use rmcp::{
    service::{ServerInitializeError, serve_server_with_ct},
    transport::{async_rw::AsyncRwTransport, io::stdio_pipes},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

use crate::{
    changes::Listeners,
    config::Config,
    desk::Desk,
    handler::{Handler, Whose},
    http,
    shallow::Shallow,
};

/// Lets MCP clients in.
#[derive(Clone)]
pub struct Door {
    desk: Arc<Desk>,
    /// Cancelled when everything is there that was to be there from the start.
    complete: Option<CancellationToken>,
    streams: StreamLimits,
}

/// What a door lets its clients do beside calling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// What `load_agent` does.
    pub load_agents: LoadAgents,
}

/// What `load_agent` does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadAgents {
    /// Makes the agent known, trusted, for as long as this process lives: the person at the client approves.
    Session,
    /// Registers the agent for callers that may administer agents. Others are not shown the tool.
    Registered(AgentRegistrar),
    /// Nothing; the client is told this instead.
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

/// Handle to whatever registers agents.
#[derive(Clone)]
pub struct AgentRegistrar(Arc<RegisterAgent>);

/// Why a connection ended badly.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The client did not begin as MCP begins.
    #[error("the client did not begin with an MCP request")]
    Handshake(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The connection broke inside.
    #[error("the connection ended unexpectedly")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
}

// === impl Door ===

impl Door {
    /// A door to `engine`.
    pub fn new(engine: Engine, config: Config, control: Control) -> Self {
        let (desk, streams) = (Desk::new(engine, config, control.load_agents), StreamLimits::default());
        Self { desk, complete: None, streams }
    }

    /// Number of requests that the fast path has answered, beside rmcp.
    pub fn fast_path_requests(&self) -> u64 {
        self.desk.fast_path_requests.load(Ordering::Relaxed)
    }

    /// The same, with this number of streams for each caller over HTTP.
    #[must_use]
    pub fn limit_streams(self, streams: StreamLimits) -> Self {
        Self { streams, ..self }
    }

    /// Greets clients on stdin and stdout at once, and lists and calls tools when `complete` is cancelled: a client that has to wait for its
    /// greeting goes on without us.
    #[must_use]
    pub fn complete_after(mut self, complete: CancellationToken) -> Self {
        self.complete = Some(complete);
        self
    }

    /// Serves one client on stdin and stdout, until stdin is closed or it is told to stop.
    pub async fn serve_stdio(&self, caller: Caller, stop: CancellationToken) -> Result<(), ServeError> {
        let (input, output) = stdio_pipes();
        self.serve(input, output, caller, stop).await
    }

    /// Serves one client on any pair of streams, one JSON message a line.
    ///
    /// When the input ends, calls in flight get a few seconds to answer. Those that do not go on without their client; whoever runs
    /// the engine hands them back.
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
        // Ends with this connection, and with it whatever only lasts as long as that.
        let _ends = stop.clone().drop_guard();
        let closing = stop.child_token();
        let listeners = Listeners::new(self.desk.engine.clone());
        let handler = Handler::new(
            Arc::clone(&self.desk),
            Arc::clone(&listeners),
            Whose::Known(caller),
            closing.clone(),
        )
        .complete_after(self.complete.clone());
        let transport = AsyncRwTransport::new_server(Ending { input: Shallow::new(input), closing }, output);
        let serving = async {
            let running = match Box::pin(serve_server_with_ct(handler, transport, stop.clone())).await {
                Ok(running) => running,
                // A client that leaves before it says anything has done nothing wrong.
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

    /// The HTTP door: `/mcp`. Each request must carry a [`Caller`] in its extensions; one without is refused.
    ///
    /// When `stop` is cancelled, streams end that would not end by themselves; calls in flight are still answered. To
    /// be called inside a Tokio runtime.
    pub fn router(&self, stop: CancellationToken) -> Router {
        http::router(&self.desk, stop, self.streams.clone())
    }
}

// === impl AgentRegistrar ===

impl AgentRegistrar {
    /// A registrar that registers agents with `register`, which checks that the caller may.
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
    /// Whether a caller is shown `load_agent`.
    pub(crate) fn is_open_to(&self, engine: &Engine, caller: &Caller) -> bool {
        match self {
            Self::Session => true,
            Self::Registered(_) => {
                caller.rights.have(Right::Admin) && engine.may_administer(caller, Action::AdminAgents).is_ok()
            }
            Self::Refused(_) => false,
        }
    }

    /// The refusal for a door where registering is an administrator's business.
    pub fn refused() -> Self {
        let reason = "agents are registered by an administrator here; ask for `rialto agents add URL`";
        Self::Refused(reason.to_owned())
    }
}

/// An input that tells when it has ended, so that nobody waits for more.
struct Ending<R> {
    input: R,
    closing: CancellationToken,
}

// === impl Ending ===

impl<R: AsyncRead + Unpin> AsyncRead for Ending<R> {
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
