//! One connection to a server, from hello to the end.

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
use rialto_edge::{
    address::Reach,
    process::{Child, Said},
    settings,
};
use rialto_engine::peer::DiscoveryError;
use rialto_model::{
    card::Card,
    deployed::{Command, Endpoint, Via},
    failure::{Failure, Kind},
    json::Json,
};
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
    Key, Ports,
    ears::Ears,
    hello::Hello,
    in_order::InOrder,
    line::Line,
    listener::Listener,
    sse_transport::{SseClient, SseTransportError},
    told,
    wire::Wire,
};

/// The most tools a server may have.
const MOST_TOOLS: usize = 10_000;

/// The most pages its list may have.
const MOST_PAGES: usize = 1_000;

/// So many requests may be under way with one address at once; what is more waits.
const AT_ONCE: usize = 64;

/// How long a program that was told to end may take before it is ended.
const GOODBYE: Duration = Duration::from_secs(1);

/// So many lines of what a program said on stderr stand beside why it could not be reached.
const LAST_LINES: usize = 3;

/// The longest text of somebody else's that stands in a message of ours.
const LONGEST: usize = 500;

/// What speaks for us, and the program it speaks with.
type Running = (RunningService<RoleClient, Listener>, Option<Child>);

/// A connection.
pub(super) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) ears: Ears,
    name: String,
    /// Taken by whoever watches over it.
    running: Mutex<Option<Running>>,
    stop: Mutex<Option<RunningServiceCancellationToken>>,
    over: watch::Sender<bool>,
}

/// Compatibility facts learned about a server, kept from one connection to the next.
#[derive(Default)]
pub(super) struct ServerCompat {
    /// Whether its program ends when it is greeted in the newer way.
    initialize_only: AtomicBool,
    /// Whether it was last reached over HTTP+SSE.
    http_sse: AtomicBool,
}

/// Whether a program ended by itself while it was greeted.
struct Ended(bool);

/// Why a server did not do as it was asked.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It could not be reached, or went away.
    Unreachable(String),
    /// It does not speak as it should.
    Garbled(String),
    /// It says that it cannot.
    Failed { code: i64, message: String, data: Option<serde_json::Value> },
}

// === impl Connection ===

impl Connection {
    /// Starts or calls the server and says hello, in whichever version and over whichever transport it speaks.
    pub(super) async fn open(key: &Key, ports: &Ports, compat: &ServerCompat) -> Result<Self, Trouble> {
        match &key.server.via {
            Via::Command(command) => Self::start(key, ports, command, &compat.initialize_only).await,
            Via::Http(endpoint) => Self::reach(key, ports, endpoint, &compat.http_sse).await,
        }
    }

    /// A server from before 2026 may end when it is asked for something that it does not know, which the first thing that
    /// newer ones are asked is; so one that ended is started once more, and greeted as they used to be.
    async fn start(
        key: &Key,
        ports: &Ports,
        command: &Command,
        is_aged: &AtomicBool,
    ) -> Result<Self, Trouble> {
        if !is_aged.load(Ordering::Relaxed) {
            match Self::greet(key, ports, command, lifecycle()).await {
                Err((_, Ended(true))) => {}
                met => return met.map_err(|(trouble, _)| trouble),
            }
        }
        let met = Self::greet(key, ports, command, ClientLifecycleMode::Initialize).await;
        is_aged.store(met.is_ok(), Ordering::Relaxed);
        met.map_err(|(trouble, _)| trouble)
    }

    async fn greet(
        key: &Key,
        ports: &Ports,
        command: &Command,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Self, (Trouble, Ended)> {
        let name = &key.server.name;
        let unreachable = |why| (Trouble::Unreachable(why), Ended(false));
        let mut child = ports.launcher.start(command, name).await.map_err(unreachable)?;
        let pipes = child.stdout().zip(child.stdin());
        let Some(pipes) = pipes else {
            return Err(unreachable("it has no stdin and stdout".into()));
        };
        let ears = Ears::default();
        let listener = Listener::new(ears.clone(), key.server.sampling.is_some());
        let way = Hello::new(IntoTransport::<RoleClient, _, _>::into_transport(pipes));
        let way = InOrder::new(way, ears.clone());
        match listener.serve_with_lifecycle(way, lifecycle).await {
            Ok(running) => Ok(Self::of(name, ears, running, Some(child))),
            Err(error) => {
                let status = timeout(GOODBYE, child.wait()).await.ok().and_then(Result::ok);
                let ended = status.map(|status| format!("it ended ({status})"));
                let has_ended = Ended(ended.is_some());
                let why = ended.unwrap_or_else(|| said_no(&error));
                Err((Trouble::Unreachable(with_last_words(why, &child.said())), has_ended))
            }
        }
    }

    /// Streamable HTTP, or HTTP+SSE with a server that refuses it: the order that the specification of MCP gives for servers of either kind.
    async fn reach(
        key: &Key,
        ports: &Ports,
        endpoint: &Endpoint,
        http_sse: &AtomicBool,
    ) -> Result<Self, Trouble> {
        let headers = settings::headers(&endpoint.headers, &ports.secrets).await;
        let headers = headers.map_err(Trouble::Unreachable)?;
        let reach = if key.allow_private { Reach::Private } else { Reach::Public };
        let sse = SseClient { fetch: Arc::clone(&ports.fetch), headers: headers.clone(), reach };
        if http_sse.load(Ordering::Relaxed) {
            match Self::reach_sse(key, sse.clone(), endpoint).await {
                Ok(connection) => return Ok(connection),
                Err(_) => http_sse.store(false, Ordering::Relaxed),
            }
        }
        let ears = Ears::default();
        let wire = Wire::new(Arc::clone(&ports.fetch), headers, reach, ears.clone());
        let mut config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str());
        config.max_concurrent_requests = AT_ONCE;
        let transport = StreamableHttpClientTransport::with_client(wire.clone(), config);
        let listener = Listener::new(ears.clone(), key.server.sampling.is_some());
        let way = InOrder::new(Hello::new(transport), ears.clone());
        let error = match listener.serve_with_lifecycle(way, lifecycle()).await {
            Ok(running) => return Ok(Self::of(&key.server.name, ears, running, None)),
            Err(error) => error,
        };
        let why = wire.trouble().unwrap_or_else(|| said_no(&error));
        if !wire.last_status().is_some_and(is_unknown_transport) {
            return Err(Trouble::Unreachable(why));
        }
        let connection = Self::reach_sse(key, sse, endpoint).await.map_err(|other| {
            Trouble::Unreachable(format!(
                "{why}; it does not offer the older HTTP+SSE transport either: {other}"
            ))
        })?;
        http_sse.store(true, Ordering::Relaxed);
        Ok(connection)
    }

    async fn reach_sse(key: &Key, sse: SseClient, endpoint: &Endpoint) -> Result<Self, Trouble> {
        let unreachable = |error: SseTransportError| Trouble::Unreachable(cut(&error.to_string()));
        let transport = sse.open(&endpoint.url).await.map_err(unreachable)?;
        let ears = Ears::default();
        let listener = Listener::new(ears.clone(), key.server.sampling.is_some());
        let way = InOrder::new(transport, ears.clone());
        // Servers of this transport are from before 2026, and `server/discover` has no meaning for them.
        let running = listener.serve_with_lifecycle(way, ClientLifecycleMode::Initialize).await;
        let running = running.map_err(|error| Trouble::Unreachable(said_no(&error)))?;
        Ok(Self::of(&key.server.name, ears, running, None))
    }

    fn of(
        name: &str,
        ears: Ears,
        running: RunningService<RoleClient, Listener>,
        child: Option<Child>,
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

    /// Sees to it that the end of the connection, and changes of its tools, are noticed.
    pub(super) fn watch(self: &Arc<Self>, line: Arc<Line>) {
        let Some((running, child)) = self.running.lock().take() else { return };
        running.service().tell(&line);
        let (connection, told) = (Arc::clone(self), Arc::clone(&line));
        tokio::spawn(async move {
            let _ = running.waiting().await;
            if let Some(mut child) = child {
                // Its stdin is closed; a program that takes the hint ends by itself.
                let _ = timeout(GOODBYE, child.wait()).await;
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

    /// Whether it can be used.
    pub(super) fn is_open(&self) -> bool {
        !*self.over.borrow() && !self.peer.is_transport_closed()
    }

    /// Ends it.
    pub(super) fn close(&self) {
        if let Some(stop) = self.stop.lock().take() {
            stop.cancel();
        }
        // Nobody watches over one that was never used.
        drop(self.running.lock().take());
    }

    /// Waits for its end.
    pub(super) async fn ended(&self) {
        let mut over = self.over.subscribe();
        let _ = over.wait_for(|over| *over).await;
    }

    /// What the server can do.
    pub(super) async fn card(&self) -> Result<Card, Trouble> {
        let info = self.peer.peer_info();
        let tools = match info.as_ref().map(|info| info.capabilities.tools.is_some()) {
            Some(false) => Vec::new(),
            _ => self.tools().await?,
        };
        Ok(told::card(&self.name, info.as_deref(), &tools))
    }

    /// All pages of its list of tools. Never from a memory: the question is also whether anybody is there.
    async fn tools(&self) -> Result<Vec<Tool>, Trouble> {
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ListToolsRequest::with_param(params);
            let answer = self.peer.send_request(ClientRequest::ListToolsRequest(request)).await;
            let ServerResult::ListToolsResult(page) = answer.map_err(Self::trouble)? else {
                return Err(Trouble::Garbled("what it answered is not a list of tools".into()));
            };
            tools.extend(page.tools);
            if tools.len() > MOST_TOOLS {
                return Err(Trouble::Garbled(format!("it has more than {MOST_TOOLS} tools")));
            }
            match page.next_cursor {
                Some(next) if !next.is_empty() => cursor = Some(next),
                _ => return Ok(tools),
            }
        }
        Err(Trouble::Garbled(format!("its list of tools has more than {MOST_PAGES} pages")))
    }

    /// What an error of the protocol's says.
    pub(super) fn trouble(error: ServiceError) -> Trouble {
        match error {
            ServiceError::McpError(error) => {
                let (code, message) = (i64::from(error.code.0), cut(&error.message));
                Trouble::Failed { code, message, data: error.data }
            }
            ServiceError::UnexpectedResponse => {
                Trouble::Garbled("what it answered is not what was asked for".into())
            }
            // What it said last may be what somebody else told it, so it is not repeated.
            ServiceError::TransportClosed => {
                Trouble::Unreachable("the connection broke before it had answered".into())
            }
            ServiceError::TransportSend(error) => {
                let text = error.error.to_string();
                Trouble::Unreachable(cut(text.strip_prefix("Client error: ").unwrap_or(&text)))
            }
            error => Trouble::Unreachable(cut(&error.to_string())),
        }
    }
}

/// Hears of changes the way newer servers tell them.
async fn listen(peer: Peer<RoleClient>, line: Arc<Line>) {
    let wanted = SubscriptionFilter::builder().tools_list_changed().build();
    let Ok(mut subscription) = peer.listen(wanted).await else { return };
    while let Ok(Some(news)) = subscription.next().await {
        if matches!(news, ServerNotification::ToolListChangedNotification(_)) {
            line.changed();
        }
    }
}

/// Newer servers are asked what they are; older ones are greeted.
pub(super) fn lifecycle() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

/// Whether a status may mean that the address does not serve streamable HTTP, as opposed to a refused credential or a busy server.
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

/// A program that does not start says why, and nobody has told it anything yet.
fn with_last_words(why: String, said: &Said) -> String {
    let last = said.last(LAST_LINES);
    if last.is_empty() { why } else { format!("{why}: {}", cut(&last)) }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or(text)),
        None => text.to_owned(),
    }
}

// === impl Trouble ===

impl Trouble {
    /// The same for whoever asked what the server can do.
    pub(super) fn discovery(&self, url: &str) -> DiscoveryError {
        let (url, reason) = (url.to_owned(), self.to_string());
        match self {
            Self::Unreachable(_) => DiscoveryError::Unreachable { url, reason },
            Self::Garbled(_) | Self::Failed { .. } => DiscoveryError::Invalid { url, reason },
        }
    }

    /// The same for whoever called a tool of the server with this name.
    pub(super) fn failure(&self, server: &str) -> Failure {
        match self {
            Self::Unreachable(why) => Failure::new(
                Kind::PeerUnreachable,
                format!("MCP server {server} could not be reached: {why}"),
            ),
            Self::Garbled(why) => {
                Failure::new(Kind::PeerGarbled, format!("MCP server {server} cannot be understood: {why}"))
            }
            Self::Failed { code, message, data } => {
                let facts = json!({ "remoteCode": code, "remoteMessage": message, "remoteData": data });
                Failure::new(Kind::PeerFailed, format!("MCP server {server} refused the call: {message}"))
                    .with_data(Json::of(&facts))
            }
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) | Self::Garbled(why) => f.write_str(why),
            Self::Failed { code, message, .. } => write!(f, "{message} ({code})"),
        }
    }
}
