//! MCP client: backend that calls the tools of MCP servers; each tool is a skill.
//!
//! There is one connection per server, opened on first use and kept. A broken connection is opened again, at once the first time and
//! then with backoff. A callback reports when a server's tools may have changed.

mod call_listeners;
mod client_handler;
mod connection;
pub(crate) mod convert;
mod event_stream;
mod handshake_compat;
mod http_transport;
mod input_required;
mod ordered_transport;
mod pending_calls;
mod question;
mod remote_task;
mod server_link;
mod sse_transport;
mod tool_call;

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use futures::{
    FutureExt, StreamExt,
    future::{self, BoxFuture},
    stream::{self, BoxStream},
};
use parking_lot::Mutex;
use rialto_engine::{
    announce_working::with_working_notice,
    peer::{Discovery, DiscoveryError, DiscoveryRequest, Fetched, Peer},
};
use rialto_http_client::fetch::Fetch;
use rialto_model::{
    agent::{Agent, SignatureStatus},
    backing::{Backing, McpServerBacking},
    call::{Call, Caller, CancelRequest, FollowRequest},
    event::{Event, EventAside},
    failure::{Failure, FailureKind},
    ids::Scope,
    json::Json,
    secret_templates::SecretResolver,
};
use rialto_policy::Permitted;
use rialto_process::Launcher;
use serde_json::{Value, json};
use tokio::time::timeout;

use self::{
    pending_calls::PendingCalls, remote_task::RemoteTask, server_link::ServerLink, tool_call::ToolCall,
};

/// Error code for an unknown task: polling again would not help.
const NO_SUCH_TASK: i64 = -32001;

/// Callback for changed tools of the server with that address (`mcp:<name>`).
pub type ToolsChanged = Arc<dyn Fn(&Scope, &str) + Send + Sync>;

/// Answers `sampling/createMessage`, given the caller, the parameters and the name of the configured agent or skill. The error is sent
/// to the server.
pub type Sampler =
    Arc<dyn Fn(Caller, String, Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;

/// Dependencies of the backend.
#[derive(Clone)]
pub struct McpBackendDeps {
    /// Outbound HTTP client.
    pub fetch: Arc<dyn Fetch>,
    /// Launcher of child processes.
    pub launcher: Launcher,
    /// Resolver of the secrets in headers.
    pub secrets: SecretResolver,
    /// Callback for changed tools.
    pub changed: ToolsChanged,
    /// Answers sampling requests of servers.
    pub sampler: Sampler,
}

/// Backend that calls the tools of MCP servers.
#[derive(Clone)]
pub struct McpBackend(Arc<ServerLinks>);

struct ServerLinks {
    ports: McpBackendDeps,
    lines: Mutex<HashMap<ServerKey, Arc<ServerLink>>>,
    /// Calls that wait for answers.
    waiting: PendingCalls,
}

/// Identity of a server. Orgs never share a connection, even with the same settings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ServerKey {
    scope: Scope,
    server: Arc<McpServerBacking>,
    allow_private: bool,
}

// === impl McpPeer ===

impl McpBackend {
    /// Creates a backend without connections.
    pub fn new(ports: McpBackendDeps) -> Self {
        Self(Arc::new(ServerLinks { ports, lines: Mutex::default(), waiting: PendingCalls::default() }))
    }

    /// Closes the connections of all servers except those in these rows.
    pub fn keep_only(&self, rows: &[Arc<Agent>]) {
        let is_meant = |key: &ServerKey| rows.iter().any(|row| ServerKey::of(row).as_ref() == Some(key));
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

    /// Closes all connections, and waits until their child processes have ended.
    pub async fn close(&self) {
        self.0.waiting.clear();
        let lines: Vec<Arc<ServerLink>> = self.0.lines.lock().drain().map(|(_, line)| line).collect();
        future::join_all(lines.iter().map(|line| line.closed())).await;
    }

    /// Waits for the connection attempt of this row's server; true if it succeeds, false if no attempt is running.
    pub async fn finish_start(&self, row: &Agent) -> bool {
        let line = ServerKey::of(row).and_then(|key| self.0.lines.lock().get(&key).cloned());
        match line.and_then(|line| line.attempt_under_way()) {
            Some(attempt) => attempt.await.is_ok(),
            None => false,
        }
    }

    fn line(&self, key: ServerKey) -> Arc<ServerLink> {
        let mut lines = self.0.lines.lock();
        Arc::clone(
            lines
                .entry(key)
                .or_insert_with_key(|key| Arc::new(ServerLink::new(key.clone(), self.0.ports.clone()))),
        )
    }
}

impl Peer for McpBackend {
    fn send(&self, call: Permitted<Call>) -> BoxStream<'static, Event> {
        let line = ServerKey::of(&call.get().target.agent).map(|key| self.line(key));
        match line {
            Some(line) => {
                // An accepted answer has resumed the call already.
                let is_new = call.get().continues.task_id.is_none();
                let events = ToolCall::new(line, self.0.waiting.clone(), call).events().boxed();
                if is_new { with_working_notice(events) } else { events }
            }
            None => {
                let failure = Failure::new(FailureKind::Internal, "this is not an MCP server");
                stream::once(future::ready(Event::failed(failure))).boxed()
            }
        }
    }

    fn follow(&self, follow: Permitted<FollowRequest>) -> BoxStream<'static, Result<Event, Failure>> {
        let FollowRequest { caller, target, remote, to_the_end } = follow.get();
        let handle = remote.task_id.as_deref().unwrap_or_default();
        if self.0.waiting.holds(handle) {
            // The task is known to wait.
            return stream::empty().boxed();
        }
        match (handle.strip_prefix(remote_task::PREFIX), ServerKey::of(&target.agent)) {
            (Some(id), Some(key)) => {
                let (tracked, tool) = (RemoteTask::known(id.to_owned()), target.skill_id().to_owned());
                tracked.follow(self.line(key), caller.clone(), tool, *to_the_end)
            }
            _ => stream::once(future::ready(Err(nobody_to_ask()))).boxed(),
        }
    }

    fn cancel(&self, cancel: Permitted<CancelRequest>) -> BoxFuture<'static, Result<Vec<Event>, Failure>> {
        let CancelRequest { caller, target, remote } = cancel.get();
        let handle = remote.task_id.as_deref().unwrap_or_default();
        match (handle.strip_prefix(remote_task::PREFIX), ServerKey::of(&target.agent)) {
            (Some(id), Some(key)) => {
                let (tracked, line, caller) =
                    (RemoteTask::known(id.to_owned()), self.line(key), caller.clone());
                async move { tracked.cancel(&line, &caller).await }.boxed()
            }
            _ => {
                // Dropping the pending call cancels it at the server. A call that is not pending has no work in progress.
                drop(self.0.waiting.take(handle));
                let canceled = Event::Canceled { message: None, aside: EventAside::default() };
                future::ready(Ok(vec![canceled])).boxed()
            }
        }
    }
}

#[async_trait]
impl Discovery for McpBackend {
    async fn fetch(&self, place: &DiscoveryRequest) -> Result<Fetched, DiscoveryError> {
        let Backing::Mcp(server) = &place.backing else {
            return Err(DiscoveryError::Refused(format!("{} is not an MCP server", place.url)));
        };
        let key = ServerKey {
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
        let (card, path, etag, signature) = (Box::new(card?), String::new(), None, SignatureStatus::None);
        Ok(Fetched::Card { card, path, etag, signature })
    }
}

// === impl ServerKey ===

impl ServerKey {
    fn of(row: &Agent) -> Option<Self> {
        let Backing::Mcp(server) = &row.backing else { return None };
        Some(Self { scope: row.scope.clone(), server: Arc::clone(server), allow_private: row.allow_private })
    }

    /// Address in the registry.
    fn url(&self) -> String {
        format!("mcp:{}", self.server.name)
    }
}

fn nobody_to_ask() -> Failure {
    let forgotten = Json::encode(&json!({ "remoteCode": NO_SUCH_TASK }));
    Failure::new(
        FailureKind::Conflict,
        "an MCP server cannot be asked about what it did earlier; call it again",
    )
    .with_data(forgotten)
}
