//! `rialto serve`: the HTTP server.

use std::{
    io::{IsTerminal, Write},
    net::SocketAddr,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::Router;
use futures::FutureExt;
use rialto_a2a_server::CARDS;
use rialto_admin::{Administration, AdministrationDeps, agents};
use rialto_engine::{AdminRecord, Instance, NodeIdentity};
use rialto_functions::call_endpoint;
use rialto_http_server::{
    admission::{AdmissionLayer, AdmissionService, RouteRule},
    auth::{Authentication, BearerAuthenticator, TokenCache, TrustedIssuers},
    host_check::HostCheck,
    listener::{HttpListener, ServerTls, raise_descriptor_limit},
    session::{API, BrowserSessions, PAGES},
    worker_threads::WorkerThreads,
};
use rialto_mcp_server::{AgentRegistrar, AgentToLoad, LoadAgents, McpEndpointOptions};
use rialto_model::{
    call::Caller,
    clock::{Clock, SystemClock},
    ids::Scope,
    store::Token,
    token_scopes::{TokenScope, TokenScopes},
};
use rialto_telemetry::{
    CallCounts, ConnectionCounts, FindingCounts, HEALTH_PATH, METRICS_PATH, MetricsRegistry, READY_PATH,
    Readiness, monitoring_router,
};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::{
    app::App,
    certificates,
    cli::ServeOptions,
    commands::tokens::{self, TokenGrant},
    configured_workflows::{self, http_triggers::HOOKS_PATH},
    console_host,
    environment::Environment,
    file_poll::ReloadSignal,
    output::{self, CommandError},
};

/// The shortest token that the environment may give the owner, in characters.
const MIN_OWNER_TOKEN_CHARS: usize = 32;

/// File in the data folder for the first owner's token if stderr is not a terminal.
const OWNER_TOKEN_FILE: &str = "owner-token";

/// Maximum time for open streams at shutdown.
const STREAM_CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) async fn run(
    program: App,
    serve: ServeOptions,
    environment: &Environment,
) -> Result<(), CommandError> {
    let address = serve.addr.clone().unwrap_or_else(|| program.config.server.addr.clone());
    if let Some(why) = program.config.server.public_setting().filter(|_| serve.allow_no_auth) {
        return Err(CommandError::usage(why));
    }
    let (door, tls) = open(&program, &address).await?;
    let door = door.with_closing_flag(Arc::clone(&program.shutdown.leaving));
    let grace = program.config.server.grace(door.address(), program.config.store.url.is_some());
    if serve.allow_no_auth && !door.address().ip().is_loopback() {
        return Err(CommandError::usage(format!(
            "--allow-no-auth accepts all requests, so it works on loopback addresses only, not on {address}; omit it, and create tokens for callers with `rialto tokens create NAME`"
        )));
    }
    let authentication = if serve.allow_no_auth {
        Authentication::Open(program.local_caller())
    } else {
        let bearers = Arc::new(load_tokens(&program, environment).await?);
        program.watch_revocations(&bearers);
        Authentication::Bearer(bearers)
    };
    program.tools.configure(&program.config, &program.engine, true).await?;
    configured_workflows::configure(&program.config, &program.engine, &program.flows, true).await?;
    let sessions = console_host::open_sessions(&program.engine).await?;
    let app = build_app(&program, authentication, sessions, &door)?;
    let signals = StopSignals::listen();
    reload_on_hangup(program.reload().clone(), program.stop().clone());
    program.log_calls();
    program.engine.lease().register().await.map_err(|failure| CommandError::failed(failure.message))?;
    join_nodes(&program, door.address()).await?;
    program.start();
    program.watch_config(true);
    program.run_takeover();
    program.run_learning();
    program.run_schedules();
    program.start_webhooks();
    if let Some(tls) = tls {
        tokio::spawn(certificates::watch(tls, program.stop().clone(), program.reload().clone()));
    }
    // Detached calls run on these threads, so they stay until the very end.
    let lanes = worker_threads(&program)?;
    print_addresses(&program, door.address(), serve.allow_no_auth);
    tokio::select! {
        () = serve_until(door, app, lanes.clone(), program.stop().clone()) => {}
        hurried = shut_down(&program, signals, grace) => return Err(hurried),
    }
    program.close().await;
    Ok(())
}

/// Makes this server a node of its store.
async fn join_nodes(program: &App, address: SocketAddr) -> Result<(), CommandError> {
    let name = program.config.server.node_name(address).map_err(CommandError::usage)?;
    tracing::info!(node.name = %name, "node {name} serves at {address}");
    let version = env!("CARGO_PKG_VERSION");
    let identity = NodeIdentity { name, address: address.to_string(), version };
    program.join_nodes(identity).await.map_err(|failure| CommandError::failed(failure.message))
}

/// The listener with its limits, and its certificates if it speaks TLS.
async fn open(program: &App, address: &str) -> Result<(HttpListener, Option<Arc<ServerTls>>), CommandError> {
    let server = &program.config.server;
    let tls = server.tls.clone().map(ServerTls::open).transpose().map_err(CommandError::usage)?.map(Arc::new);
    let limits = server.connections(raise_descriptor_limit());
    let door = HttpListener::open(address).await.map_err(|error| CommandError::failed(with_cause(&error)))?;
    let door = door.with_limits(server.deadlines(), limits);
    Ok(match &tls {
        Some(tls) => (door.with_tls(Arc::clone(tls)), Some(Arc::clone(tls))),
        None => (door, None),
    })
}

/// Has configuration, policies and certificates read again with each SIGHUP, which would end the process otherwise.
fn reload_on_hangup(reload: ReloadSignal, stop: CancellationToken) {
    #[cfg(unix)]
    match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()) {
        Ok(mut hangup) => drop(tokio::spawn(async move {
            loop {
                tokio::select! {
                    received = hangup.recv() => if received.is_none() { return },
                    () = stop.cancelled() => return,
                }
                tracing::info!("received SIGHUP: configuration, policies and certificates are read again");
                reload.send();
            }
        })),
        Err(error) => tracing::warn!("SIGHUP cannot be received: {error}"),
    }
    #[cfg(not(unix))]
    drop((reload, stop));
}

/// Shuts the server down after a signal. Returns only after a second signal, which stops it at once.
async fn shut_down(program: &App, mut signals: StopSignals, grace: Duration) -> CommandError {
    let signal = signals.next().await;
    // From here on `/readyz` answers 503, so load balancers send requests elsewhere; those that come are still served.
    program.shutdown.leaving.store(true, Ordering::Relaxed);
    let grace = if signal == StopSignal::Terminate { grace } else { Duration::ZERO };
    tracing::info!(
        "shutting down; requests are served for another {} s; {} calls in progress",
        grace.as_secs(),
        program.engine.running().count()
    );
    let hurried = || CommandError::failed("second signal: calls in progress are aborted".to_owned());
    let end = async {
        tokio::time::sleep(grace).await;
        program.drain().await;
    };
    tokio::select! {
        () = end => program.stop().cancel(),
        _ = signals.next() => return hurried(),
    }
    signals.next().await;
    hurried()
}

/// The whole HTTP surface at this address, behind its gate.
pub(crate) fn build_app(
    program: &App,
    authentication: Authentication,
    sessions: Arc<BrowserSessions>,
    door: &HttpListener,
) -> Result<AdmissionService<Router>, CommandError> {
    let needs_token = matches!(authentication, Authentication::Bearer(_));
    let gate = build_gate(program, authentication, door.address())?
        .with_sessions(sessions, &rialto_console::paths_before_sign_in());
    let calls = Arc::new(CallCounts::new(Arc::clone(program.engine.registry())));
    program.engine.audit().subscribe(calls.clone());
    let (engine, store) = (program.engine.clone(), Arc::clone(&program.store));
    let mut metrics =
        MetricsRegistry::new(calls, gate.request_counters(), engine.clone(), Arc::clone(&store));
    let found = Arc::new(FindingCounts::default());
    program.engine.audit().subscribe(found.clone());
    metrics.add(Box::new(found));
    metrics.add(Box::new(ConnectionCounts(door.connections())));
    if let Some(traces) = &program.traces {
        metrics.add(Box::new(traces.counts()));
    }
    let first_lists = program.tools.first_lists().clone();
    let pending_servers = Arc::new(move || first_lists.waiting_for());
    let readiness = Readiness::new(engine, store, Arc::clone(&program.shutdown.leaving), pending_servers);
    let pages = monitoring_router(metrics, readiness);
    let plain =
        call_endpoint::router(program.engine.clone(), program.config.server.max_body_bytes, needs_token);
    let admin = build_administration(program, needs_token)?;
    let mcp = mcp_server(program, admin.clone()).router(program.stop().clone());
    let mut router = pages.merge(mcp).merge(plain);
    router = router
        .merge(configured_workflows::http_triggers::router(program))
        .merge(rialto_console::router(&admin))
        .merge(rialto_api::router(&admin));
    if program.config.a2a.enabled {
        let door = a2a_server(program, needs_token)?;
        program.start_push_delivery(&door);
        router = router.merge(door.router(program.stop().clone()));
    }
    Ok(gate.wrap(router))
}

/// Builds authentication and admission.
fn build_gate(
    program: &App,
    authentication: Authentication,
    address: SocketAddr,
) -> Result<AdmissionLayer, CommandError> {
    let server = &program.config.server;
    let gate = AdmissionLayer::new(HostCheck::new(&server.hosts(), server.max_body_bytes), authentication)
        .with_public_url(server.public_site().map_err(CommandError::usage)?)
        .with_routes(&[
            RouteRule {
                path: "/mcp",
                needs: TokenScopes::from_scopes([TokenScope::Call, TokenScope::Discover]),
            },
            RouteRule {
                path: "/a2a",
                needs: TokenScopes::from_scopes([TokenScope::Call, TokenScope::Discover]),
            },
            RouteRule {
                path: "/_a2a",
                needs: TokenScopes::from_scopes([TokenScope::Call, TokenScope::Discover]),
            },
            RouteRule {
                path: rialto_a2a_server::SERVICES[0],
                needs: TokenScopes::from_scopes([TokenScope::Call, TokenScope::Discover]),
            },
            RouteRule {
                path: rialto_a2a_server::SERVICES[1],
                needs: TokenScopes::from_scopes([TokenScope::Call, TokenScope::Discover]),
            },
            RouteRule { path: "/tasks", needs: TokenScopes::from_scopes([TokenScope::Call]) },
            RouteRule { path: "/message:send", needs: TokenScopes::from_scopes([TokenScope::Call]) },
            RouteRule { path: "/message:stream", needs: TokenScopes::from_scopes([TokenScope::Call]) },
            RouteRule { path: "/extendedAgentCard", needs: TokenScopes::from_scopes([TokenScope::Discover]) },
            RouteRule { path: "/agent", needs: TokenScopes::from_scopes([TokenScope::Discover]) },
            RouteRule {
                path: "/.well-known",
                needs: TokenScopes::from_scopes([TokenScope::Call, TokenScope::Discover]),
            },
            RouteRule {
                path: call_endpoint::CALL_PATH,
                needs: TokenScopes::from_scopes([TokenScope::Call, TokenScope::Discover]),
            },
            RouteRule { path: METRICS_PATH, needs: TokenScopes::from_scopes([TokenScope::Admin]) },
            RouteRule { path: HOOKS_PATH, needs: TokenScopes::from_scopes([TokenScope::Call]) },
            // Each operation asks for what it needs.
            RouteRule { path: API, needs: TokenScopes::ALL },
            RouteRule { path: PAGES, needs: TokenScopes::ALL },
        ])
        .with_public_get(&[CARDS[0], CARDS[1], rialto_a2a_server::KEYS], rialto_a2a_server::AGENTS)
        .with_rate_limits(program.request_limits())
        .with_draining_flag(Arc::clone(&program.shutdown.draining));
    Ok(if server.public_metrics {
        gate.without_checks(&[HEALTH_PATH, READY_PATH, METRICS_PATH])
    } else if address.ip().is_loopback() && !server.is_published() {
        gate.without_checks(&[HEALTH_PATH, READY_PATH]).without_token(&[METRICS_PATH])
    } else {
        gate.without_checks(&[HEALTH_PATH, READY_PATH])
    })
}

fn build_administration(program: &App, needs_token: bool) -> Result<Administration, CommandError> {
    let server = &program.config.server;
    Ok(Administration::new(AdministrationDeps {
        engine: program.engine.clone(),
        store: Arc::clone(&program.store),
        flows: program.flows.clone(),
        host: console_host::ProgramAdminHost::new(program),
        site: server.public_site().map_err(CommandError::usage)?,
        needs_token,
        is_local: false,
        // A caller without a token is a local user.
        allow_private: server.allow_private_over_api || !needs_token,
        allow_secrets: server.allow_commands_over_api,
        max_body_bytes: server.max_body_bytes,
        streams: program.stream_limits(),
        stop: program.stop().clone(),
    }))
}

fn a2a_server(program: &App, needs_token: bool) -> Result<rialto_a2a_server::A2aServer, CommandError> {
    let site = program.config.server.public_site().map_err(CommandError::usage)?;
    let mut config = program.config.a2a.server_config(needs_token).map_err(CommandError::usage)?;
    config.instance = Some(Instance::new(Arc::clone(&program.store)));
    config.streams = program.stream_limits();
    Ok(rialto_a2a_server::A2aServer::new(program.engine.clone(), config, site))
}

fn mcp_server(program: &App, admin: Administration) -> rialto_mcp_server::McpEndpoint {
    let server = &program.config.server;
    let mut mcp = program.config.mcp_config();
    mcp.allowed_hosts.extend(server.hosts());
    if server.domain.is_some() {
        // It matches whole names only, and admission has checked them already.
        mcp.allowed_hosts = vec!["*".to_owned()];
    }
    let register = move |caller: Caller, agent: AgentToLoad| {
        let admin = admin.clone();
        async move {
            let AgentToLoad { url, card_path, token } = agent;
            agents::load(&admin, &caller, &url, card_path, token.as_ref()).await
        }
        .boxed()
    };
    let control = McpEndpointOptions { load_agents: LoadAgents::Registered(AgentRegistrar::new(register)) };
    rialto_mcp_server::McpEndpoint::new(program.engine.clone(), mcp, control)
        .limit_streams(program.stream_limits())
}

/// The threads that connections are served on.
pub(crate) fn worker_threads(program: &App) -> Result<WorkerThreads, CommandError> {
    let none = |error| CommandError::failed(format!("no thread could be started to serve on: {error}"));
    if !program.config.server.worker_threads {
        return Ok(WorkerThreads::shared(Handle::current()));
    }
    WorkerThreads::start(program.config.server.threads()).map_err(none)
}

pub(crate) async fn serve_until(
    door: HttpListener,
    app: AdmissionService<Router>,
    lanes: WorkerThreads,
    stop: CancellationToken,
) {
    let patience = stop.clone();
    let out_of_patience = async move {
        patience.cancelled().await;
        tokio::time::sleep(STREAM_CLOSE_TIMEOUT).await;
    };
    tokio::select! {
        () = door.serve(move |peer| app.with_peer(peer), lanes, stop.cancelled_owned()) => {}
        () = out_of_patience => {}
    }
}

/// Loads tokens. The first start creates one and shows it once, unless another mechanism authenticates callers.
async fn load_tokens(program: &App, environment: &Environment) -> Result<BearerAuthenticator, CommandError> {
    let (store, clock) = (Arc::clone(&program.store), Arc::new(SystemClock) as Arc<dyn Clock>);
    let issuers = TrustedIssuers::new(program.config.auth.clone(), &program.fetch, &clock)
        .map_err(|error| CommandError::usage(format!("[auth] issuers: {error}")))?;
    let given = environment.get("RIALTO_TOKEN").map(parse_owner_token).transpose()?;
    if given.is_none() && issuers.is_empty() && store.tokens().await?.is_empty() {
        let (row, token) = tokens::create(&*store, TokenGrant::owner()).await?;
        record_first_token(program, &row).await;
        show_first_token(&row.id, &token, program.data.as_deref())?;
    }
    let book = TokenCache::open(store, given.into_iter().collect()).await?;
    Ok(BearerAuthenticator::new(book, issuers, clock))
}

/// Records that the first token was made, by the server itself.
async fn record_first_token(program: &App, token: &Token) {
    let record = AdminRecord {
        by: Arc::from(program.policies.scope().by.as_str()),
        after: serde_json::json!(rialto_admin::tokens::token_row(token, SystemClock.now())),
        ..AdminRecord::new("token.create", &program.local_caller(), token.caller.as_str())
    };
    if let Err(failure) = program.engine.audit().record(record).await {
        tracing::error!("the first token is not in the audit trail: {failure}");
    }
}

/// The token that the environment gives the owner.
fn parse_owner_token(token: &str) -> Result<Token, CommandError> {
    let length = token.chars().count();
    if length < MIN_OWNER_TOKEN_CHARS {
        return Err(CommandError::usage(format!(
            "RIALTO_TOKEN has {length} characters, which is too short for the owner of a server: use at least {MIN_OWNER_TOKEN_CHARS}, such as `openssl rand -hex 32` prints, or unset it to have a token created"
        )));
    }
    tracing::info!("the token in RIALTO_TOKEN lets its bearer in as the owner of this server");
    Ok(TokenGrant::owner().token("RIALTO_TOKEN".to_owned(), token))
}

/// Shows the first token to a person at a terminal. Where stderr goes to a log, the token goes into a file of its own instead.
fn show_first_token(id: &str, token: &str, data: Option<&Path>) -> Result<(), CommandError> {
    let file = data.filter(|_| !std::io::stderr().is_terminal()).map(|data| data.join(OWNER_TOKEN_FILE));
    let Some(file) = file else {
        output::print_note(format!(
            "A token for the owner of this server was created. It is shown only once, and only its hash is stored:\n\n    \
             export RIALTO_TOKEN={token}\n\n\
             Send it as `Authorization: Bearer $RIALTO_TOKEN`. To revoke it: rialto tokens revoke {id}\n\
             For other callers: rialto tokens create NAME"
        ));
        output::print_line("A token for the owner was created; it is printed on stderr only once");
        return Ok(());
    };
    write_secret_file(&file, &format!("{token}\n")).map_err(|error| {
        CommandError::failed(format!("the owner's token could not be written to {}: {error}", file.display()))
    })?;
    output::print_line(format!("A token for the owner was created; it is in {}", file.display()));
    output::print_line(format!(
        "Read it and remove the file: only its hash is stored elsewhere. To revoke it: rialto tokens revoke {id}"
    ));
    Ok(())
}

/// Writes a file that its owner alone can read.
fn write_secret_file(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}

fn print_addresses(program: &App, address: SocketAddr, open: bool) {
    let skills = program.engine.registry().directory(&Scope::default()).len();
    let agents = program.engine.registry().agents(&Scope::default()).len();
    let scheme = if program.config.server.tls.is_some() { "https" } else { "http" };
    output::print_line(format!(
        "Rialto serves {skills} skills of {agents} agents as MCP tools at {scheme}://{address}/mcp"
    ));
    if let Some(data) = &program.data {
        output::print_line(format!("Data folder: {}", data.display()));
    }
    output::print_line(format!("Console:      {scheme}://{address}/factory"));
    let header = if open { "" } else { " --header \"Authorization: Bearer $RIALTO_TOKEN\"" };
    output::print_line(format!(
        "Claude Code:  claude mcp add --transport http rialto {scheme}://{address}/mcp{header}"
    ));
    if agents == 0 && skills == 0 {
        output::print_line("No agents yet: rialto agents add URL --allow");
    }
}

/// Future of the signal to stop. Signals are received from now on, not only while it is polled.
pub(crate) fn stop_signal() -> impl Future<Output = ()> + Send {
    let mut signals = StopSignals::listen();
    async move {
        let _ = signals.next().await;
    }
}

/// The signals to stop: Ctrl-C, and on Unix SIGTERM.
struct StopSignals {
    #[cfg(unix)]
    both: Option<(tokio::signal::unix::Signal, tokio::signal::unix::Signal)>,
}

/// Signal that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopSignal {
    /// Ctrl-C: a person waits.
    Interrupt,
    /// SIGTERM: a service manager stops or replaces this process.
    Terminate,
}

// === impl StopSignals ===

impl StopSignals {
    /// Registers for the signals.
    fn listen() -> Self {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let both = signal(SignalKind::interrupt()).ok().zip(signal(SignalKind::terminate()).ok());
            Self { both }
        }
        #[cfg(not(unix))]
        Self {}
    }

    /// Waits for the next.
    async fn next(&mut self) -> StopSignal {
        #[cfg(unix)]
        match &mut self.both {
            Some((interrupt, terminate)) => tokio::select! {
                _ = interrupt.recv() => StopSignal::Interrupt,
                _ = terminate.recv() => StopSignal::Terminate,
            },
            None => std::future::pending().await,
        }
        #[cfg(not(unix))]
        {
            let _ = tokio::signal::ctrl_c().await;
            StopSignal::Interrupt
        }
    }
}

fn with_cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error} ({cause})"))
}
