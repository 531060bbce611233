//! One connection to an MCP server, from handshake to close.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::StatusCode;
use parking_lot::Mutex;
use rialto_engine::peer::DiscoveryError;
use rialto_http_client::address::Reach;
use rialto_model::{
    backing::{BackingEndpoint, BackingTransport, ProcessCommand},
    card::Card,
    failure::{Failure, FailureKind},
    json::Json,
    secret_templates,
};
use rialto_process::{ChildProcess, StderrTail};
use rmcp::{
    RoleClient, ServiceError,
    model::{
        ClientRequest, ListToolsRequest, PaginatedRequestParams, ProtocolVersion, ServerNotification,
        ServerResult, SubscriptionFilter, Tool,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, RunningService,
        RunningServiceCancellationToken,
    },
    transport::{
        IntoTransport,
        streamable_http_client::{StreamableHttpClientTransport, StreamableHttpClientTransportConfig},
    },
};
use serde_json::json;
use tokio::{sync::watch, time::timeout};

use super::{
    McpBackendDeps, ServerKey,
    call_listeners::CallListeners,
    client_handler::UpstreamClientHandler,
    convert,
    handshake_compat::HandshakeCompat,
    http_transport::McpHttpClient,
    ordered_transport::OrderedTransport,
    server_link::ServerLink,
    sse_transport::{SseClient, SseTransportError},
};

/// Maximum number of tools of a server.
const MAX_TOOLS: usize = 10_000;

/// Maximum number of pages of a server's list.
const MAX_PAGES: usize = 1_000;

/// Maximum number of concurrent requests to one address; further requests wait.
const MAX_CONCURRENT_REQUESTS: usize = 64;

/// Grace period for a child process to exit before it is killed.
const EXIT_GRACE_PERIOD: Duration = Duration::from_secs(1);

/// Number of stderr lines in the error of a server that could not be reached.
const MAX_STDERR_LINES: usize = 3;

/// Maximum length of upstream text in an error message.
const MAX_UPSTREAM_TEXT: usize = 500;

/// Running rmcp client, and its child process.
type RunningClient = (RunningService<RoleClient, UpstreamClientHandler>, Option<ChildProcess>);

/// Connection to an MCP server.
pub(super) struct McpConnection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) ears: CallListeners,
    name: String,
    /// Taken by the task that watches the connection.
    running: Mutex<Option<RunningClient>>,
    stop: Mutex<Option<RunningServiceCancellationToken>>,
    over: watch::Sender<bool>,
}

/// Compatibility facts learned about a server, kept from one connection to the next.
#[derive(Default)]
pub(super) struct ServerCompat {
    /// True when its child process exits on the 2026-07-28 handshake.
    initialize_only: AtomicBool,
    /// True when it was last reached over HTTP+SSE.
    http_sse: AtomicBool,
}

/// True when a child process exited by itself during the handshake.
struct ExitedEarly(bool);

/// Error of an upstream MCP server.
#[derive(Debug)]
pub(super) enum UpstreamError {
    /// Unreachable, or the connection was lost.
    Unreachable(String),
    /// Violated the protocol.
    Garbled(String),
    /// Returned an error.
    Failed { code: i64, message: String, data: Option<serde_json::Value> },
}

// === impl McpConnection ===

impl McpConnection {
    /// Starts or reaches the server and performs the handshake, in any protocol version and transport that it supports.
    pub(super) async fn open(
        key: &ServerKey,
        ports: &McpBackendDeps,
        compat: &ServerCompat,
    ) -> Result<Self, UpstreamError> {
        match &key.server.via {
            BackingTransport::Command(command) => {
                Self::start(key, ports, command, &compat.initialize_only).await
            }
            BackingTransport::Http(endpoint) => Self::reach(key, ports, endpoint, &compat.http_sse).await,
        }
    }

    /// A server from before 2026 may exit on an unknown request, and `server/discover` is the first request of newer versions; so a
    /// child process that exited is started once more with the older handshake.
    async fn start(
        key: &ServerKey,
        ports: &McpBackendDeps,
        command: &ProcessCommand,
        is_aged: &AtomicBool,
    ) -> Result<Self, UpstreamError> {
        if !is_aged.load(Ordering::Relaxed) {
            match Self::greet(key, ports, command, lifecycle()).await {
                Err((_, ExitedEarly(true))) => {}
                met => return met.map_err(|(trouble, _)| trouble),
            }
        }
        let met = Self::greet(key, ports, command, ClientLifecycleMode::Initialize).await;
        is_aged.store(met.is_ok(), Ordering::Relaxed);
        met.map_err(|(trouble, _)| trouble)
    }

    async fn greet(
        key: &ServerKey,
        ports: &McpBackendDeps,
        command: &ProcessCommand,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Self, (UpstreamError, ExitedEarly)> {
        let name = &key.server.name;
        let unreachable = |why| (UpstreamError::Unreachable(why), ExitedEarly(false));
        let mut child = ports.launcher.start(command, name).await.map_err(unreachable)?;
        let pipes = child.stdout().zip(child.stdin());
        let Some(pipes) = pipes else {
            return Err(unreachable("it has no stdin and stdout".into()));
        };
        let ears = CallListeners::default();
        let listener = UpstreamClientHandler::new(ears.clone(), key.server.sampling.is_some());
        let way = HandshakeCompat::new(IntoTransport::<RoleClient, _, _>::into_transport(pipes));
        let way = OrderedTransport::new(way, ears.clone());
        match listener.serve_with_lifecycle(way, lifecycle).await {
            Ok(running) => Ok(Self::of(name, ears, running, Some(child))),
            Err(error) => {
                let status = timeout(EXIT_GRACE_PERIOD, child.wait()).await.ok().and_then(Result::ok);
                let ended = status.map(|status| format!("it ended ({status})"));
                let has_ended = ExitedEarly(ended.is_some());
                let why = ended.unwrap_or_else(|| said_no(&error));
                Err((UpstreamError::Unreachable(with_last_words(why, &child.stderr_tail())), has_ended))
            }
        }
    }

    /// Streamable HTTP, or HTTP+SSE if the server rejects it: the order that the MCP specification gives for servers of either kind.
    async fn reach(
        key: &ServerKey,
        ports: &McpBackendDeps,
        endpoint: &BackingEndpoint,
        http_sse: &AtomicBool,
    ) -> Result<Self, UpstreamError> {
        let headers = secret_templates::resolve_headers(&endpoint.headers, &ports.secrets).await;
        let headers = headers.map_err(UpstreamError::Unreachable)?;
        let reach = if key.allow_private { Reach::Private } else { Reach::Public };
        let sse = SseClient { fetch: Arc::clone(&ports.fetch), headers: headers.clone(), reach };
        if http_sse.load(Ordering::Relaxed) {
            match Self::reach_sse(key, sse.clone(), endpoint).await {
                Ok(connection) => return Ok(connection),
                Err(_) => http_sse.store(false, Ordering::Relaxed),
            }
        }
        let ears = CallListeners::default();
        let wire = McpHttpClient::new(Arc::clone(&ports.fetch), headers, reach, ears.clone());
        let mut config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str());
        config.max_concurrent_requests = MAX_CONCURRENT_REQUESTS;
        let transport = StreamableHttpClientTransport::with_client(wire.clone(), config);
        let listener = UpstreamClientHandler::new(ears.clone(), key.server.sampling.is_some());
        let way = OrderedTransport::new(HandshakeCompat::new(transport), ears.clone());
        let error = match listener.serve_with_lifecycle(way, lifecycle()).await {
            Ok(running) => return Ok(Self::of(&key.server.name, ears, running, None)),
            Err(error) => error,
        };
        let why = wire.trouble().unwrap_or_else(|| said_no(&error));
        if !wire.last_status().is_some_and(is_unknown_transport) {
            return Err(UpstreamError::Unreachable(why));
        }
        let connection = Self::reach_sse(key, sse, endpoint).await.map_err(|other| {
            UpstreamError::Unreachable(format!(
                "{why}; it does not offer the older HTTP+SSE transport either: {other}"
            ))
        })?;
        http_sse.store(true, Ordering::Relaxed);
        Ok(connection)
    }

    async fn reach_sse(
        key: &ServerKey,
        sse: SseClient,
        endpoint: &BackingEndpoint,
    ) -> Result<Self, UpstreamError> {
        let unreachable = |error: SseTransportError| UpstreamError::Unreachable(cut(&error.to_string()));
        let transport = sse.open(&endpoint.url).await.map_err(unreachable)?;
        let ears = CallListeners::default();
        let listener = UpstreamClientHandler::new(ears.clone(), key.server.sampling.is_some());
        let way = OrderedTransport::new(transport, ears.clone());
        // Servers of this transport are from before 2026, and do not support `server/discover`.
        let running = listener.serve_with_lifecycle(way, ClientLifecycleMode::Initialize).await;
        let running = running.map_err(|error| UpstreamError::Unreachable(said_no(&error)))?;
        Ok(Self::of(&key.server.name, ears, running, None))
    }

    fn of(
        name: &str,
        ears: CallListeners,
        running: RunningService<RoleClient, UpstreamClientHandler>,
        child: Option<ChildProcess>,
    ) -> Self {
        Self {
            peer: running.peer().clone(),
            ears,
            name: name.to_owned(),
            stop: Mutex::new(Some(running.cancellation_token())),
            running: Mutex::new(Some((running, child))),
            over: watch::Sender::new(false),
        }
    }

    /// Watches for the end of the connection and for changes of its tools.
    pub(super) fn watch(self: &Arc<Self>, line: Arc<ServerLink>) {
        let Some((running, child)) = self.running.lock().take() else { return };
        running.service().tell(&line);
        let (connection, told) = (Arc::clone(self), Arc::clone(&line));
        tokio::spawn(async move {
            let _ = running.waiting().await;
            if let Some(mut child) = child {
                // Its stdin is closed; a well-behaved process exits by itself.
                let _ = timeout(EXIT_GRACE_PERIOD, child.wait()).await;
            }
            connection.over.send_replace(true);
            told.changed();
        });
        let is_modern =
            self.peer.peer_info().is_some_and(|info| info.protocol_version >= ProtocolVersion::NO_INITIALIZE);
        if is_modern {
            tokio::spawn(listen(self.peer.clone(), line));
        }
    }

    /// True while the connection can be used.
    pub(super) fn is_open(&self) -> bool {
        !*self.over.borrow() && !self.peer.is_transport_closed()
    }

    /// Closes the connection.
    pub(super) fn close(&self) {
        if let Some(stop) = self.stop.lock().take() {
            stop.cancel();
        }
        // A connection that was never used has no watching task.
        drop(self.running.lock().take());
    }

    /// Waits until the connection has closed.
    pub(super) async fn ended(&self) {
        let mut over = self.over.subscribe();
        let _ = over.wait_for(|over| *over).await;
    }

    /// Card with the server's tools.
    pub(super) async fn card(&self) -> Result<Card, UpstreamError> {
        let info = self.peer.peer_info();
        let tools = match info.as_ref().map(|info| info.capabilities.tools.is_some()) {
            Some(false) => Vec::new(),
            _ => self.tools().await?,
        };
        Ok(convert::card(&self.name, info.as_deref(), &tools))
    }

    /// All pages of its tool list. Never cached: the request also checks that the server is alive.
    async fn tools(&self) -> Result<Vec<Tool>, UpstreamError> {
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ListToolsRequest::with_param(params);
            let answer = self.peer.send_request(ClientRequest::ListToolsRequest(request)).await;
            let ServerResult::ListToolsResult(page) = answer.map_err(Self::trouble)? else {
                return Err(UpstreamError::Garbled("what it answered is not a list of tools".into()));
            };
            tools.extend(page.tools);
            if tools.len() > MAX_TOOLS {
                return Err(UpstreamError::Garbled(format!("it has more than {MAX_TOOLS} tools")));
            }
            match page.next_cursor {
                Some(next) if !next.is_empty() => cursor = Some(next),
                _ => return Ok(tools),
            }
        }
        Err(UpstreamError::Garbled(format!("its list of tools has more than {MAX_PAGES} pages")))
    }

    /// Converts a protocol error.
    pub(super) fn trouble(error: ServiceError) -> UpstreamError {
        match error {
            ServiceError::McpError(error) => {
                let (code, message) = (i64::from(error.code.0), cut(&error.message));
                UpstreamError::Failed { code, message, data: error.data }
            }
            ServiceError::UnexpectedResponse => {
                UpstreamError::Garbled("what it answered is not what was asked for".into())
            }
            // The message may repeat another caller's data, so it is not passed on.
            ServiceError::TransportClosed => {
                UpstreamError::Unreachable("the connection broke before it had answered".into())
            }
            ServiceError::TransportSend(error) => {
                let text = error.error.to_string();
                UpstreamError::Unreachable(cut(text.strip_prefix("Client error: ").unwrap_or(&text)))
            }
            error => UpstreamError::Unreachable(cut(&error.to_string())),
        }
    }
}

/// Subscribes to changes, as 2026-07-28 servers support it.
async fn listen(peer: Peer<RoleClient>, line: Arc<ServerLink>) {
    let wanted = SubscriptionFilter::builder().tools_list_changed().build();
    let Ok(mut subscription) = peer.listen(wanted).await else { return };
    while let Ok(Some(news)) = subscription.next().await {
        if matches!(news, ServerNotification::ToolListChangedNotification(_)) {
            line.changed();
        }
    }
}

/// Newer servers get `server/discover`; older ones the handshake.
pub(super) fn lifecycle() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

/// True for a status that may mean "no streamable HTTP here", as opposed to a refused credential or a busy server.
fn is_unknown_transport(status: StatusCode) -> bool {
    use StatusCode as S;
    let is_about_caller = [S::UNAUTHORIZED, S::FORBIDDEN, S::REQUEST_TIMEOUT, S::TOO_MANY_REQUESTS];
    status.is_client_error() && !is_about_caller.contains(&status)
}

fn said_no(error: &ClientInitializeError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    cut(&text)
}

/// A process that fails to start reports the reason on stderr, and has no caller's data yet.
fn with_last_words(why: String, said: &StderrTail) -> String {
    let last = said.last(MAX_STDERR_LINES);
    if last.is_empty() { why } else { format!("{why}: {}", cut(&last)) }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_UPSTREAM_TEXT) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or(text)),
        None => text.to_owned(),
    }
}

// === impl UpstreamError ===

impl UpstreamError {
    /// Converts the error for discovery.
    pub(super) fn discovery(&self, url: &str) -> DiscoveryError {
        let (url, reason) = (url.to_owned(), self.to_string());
        match self {
            Self::Unreachable(_) => DiscoveryError::Unreachable { url, reason },
            Self::Garbled(_) | Self::Failed { .. } => DiscoveryError::Invalid { url, reason },
        }
    }

    /// Converts the error for the caller of a tool of this server.
    pub(super) fn failure(&self, server: &str) -> Failure {
        match self {
            Self::Unreachable(why) => Failure::new(
                FailureKind::PeerUnreachable,
                format!("MCP server {server} could not be reached: {why}"),
            ),
            Self::Garbled(why) => Failure::new(
                FailureKind::PeerGarbled,
                format!("MCP server {server} cannot be understood: {why}"),
            ),
            Self::Failed { code, message, data } => {
                let facts = json!({ "remoteCode": code, "remoteMessage": message, "remoteData": data });
                Failure::new(
                    FailureKind::PeerFailed,
                    format!("MCP server {server} refused the call: {message}"),
                )
                .with_data(Json::encode(&facts))
            }
        }
    }
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) | Self::Garbled(why) => f.write_str(why),
            Self::Failed { code, message, .. } => write!(f, "{message} ({code})"),
        }
    }
}
