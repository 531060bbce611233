//! `rialto serve`: the HTTP door.

use std::{
    io::{IsTerminal, Write},
    net::SocketAddr,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::Router;
use futures::FutureExt;
use rialto_a2a::{instance::Instance, server::CARDS};
use rialto_console::{Console, admin};
use rialto_edge::{
    auth::{Authentication, Bearers, Issuers, TokenBook},
    gate::{Entrance, Gate, Gated},
    guard::Guard,
    lanes::Lanes,
    serve::{Door, ServerTls, raise_descriptor_limit},
    session::{API, PAGES, Sessions},
};
use rialto_engine::{AdminRecord, NodeIdentity};
use rialto_function::door;
use rialto_mcp::{AgentRegistrar, AgentToLoad, LoadAgents, McpEndpointOptions};
use rialto_model::{
    call::Caller,
    clock::{Clock, SystemClock},
    ids::Scope,
    store::Token,
    token_scopes::{TokenScope, TokenScopes},
};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::{
    certificates,
    cli::Serve,
    commands::tokens::{self, Wanted},
    environment::Environment,
    flows::{self, hooks::HOOKS},
    looking::ReloadSignal,
    office,
    output::{self, Trouble},
    program::Program,
    telemetry::{
        self, CallCounts, ConnectionCounts, GuardCounts, HEALTH, METRICS, Metrics, READY, Readiness,
    },
};

/// The shortest token that the environment may give the owner, in characters.
const SHORTEST_OWNER_TOKEN: usize = 32;

/// The file in the data folder that the first owner's token is written to where nobody sits at a terminal.
const OWNER_TOKEN_FILE: &str = "owner-token";

/// How long open streams may keep a stop waiting.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) async fn run(program: Program, serve: Serve, environment: &Environment) -> Result<(), Trouble> {
    let address = serve.addr.clone().unwrap_or_else(|| program.config.server.addr.clone());
    if let Some(why) = program.config.server.why_not_open().filter(|_| serve.allow_no_auth) {
        return Err(Trouble::usage(why));
    }
    let (door, tls) = open(&program, &address).await?;
    let door = door.closing_while(Arc::clone(&program.shutdown.leaving));
    let grace = program.config.server.grace(door.address(), program.config.store.url.is_some());
    if serve.allow_no_auth && !door.address().ip().is_loopback() {
        return Err(Trouble::usage(format!(
            "--allow-no-auth lets everybody in, so it works on loopback only, not on {address}; leave it out, and give callers tokens with `rialto tokens create NAME`"
        )));
    }
    let authentication = if serve.allow_no_auth {
        Authentication::Open(program.local_caller())
    } else {
        let bearers = Arc::new(bearers(&program, environment).await?);
        program.follow_revocations(&bearers);
        Authentication::Bearer(bearers)
    };
    program.tools.configure(&program.config, &program.engine, true).await?;
    flows::configure(&program.config, &program.engine, &program.flows, true).await?;
    let sessions = office::sessions(&program.engine).await?;
    let app = app(&program, authentication, sessions, &door)?;
    let signals = Signals::listen();
    reload_on_hangup(program.reload().clone(), program.stop().clone());
    program.log_calls();
    program.engine.take_post().await.map_err(|failure| Trouble::other(failure.message))?;
    join_nodes(&program, door.address()).await?;
    program.start();
    program.follow_file(true);
    program.keep_post();
    program.keep_learning();
    program.keep_time();
    program.deliver();
    if let Some(tls) = tls {
        tokio::spawn(certificates::watch(tls, program.stop().clone(), program.reload().clone()));
    }
    // What goes on when nobody waits for it any more goes on there, so they stay until the very end.
    let lanes = lanes(&program)?;
    greet(&program, door.address(), serve.allow_no_auth);
    tokio::select! {
        () = serve_until(door, app, lanes.clone(), program.stop().clone()) => {}
        hurried = wind_down(&program, signals, grace) => return Err(hurried),
    }
    program.close().await;
    Ok(())
}

/// Makes this server a node of its store.
async fn join_nodes(program: &Program, address: SocketAddr) -> Result<(), Trouble> {
    let name = program.config.server.node_name(address).map_err(Trouble::usage)?;
    tracing::info!(node.name = %name, "node {name} serves at {address}");
    let version = env!("CARGO_PKG_VERSION");
    let identity = NodeIdentity { name, address: address.to_string(), version };
    program.keep_node(identity).await.map_err(|failure| Trouble::other(failure.message))
}

/// The listener with its limits, and its certificates if it speaks TLS.
async fn open(program: &Program, address: &str) -> Result<(Door, Option<Arc<ServerTls>>), Trouble> {
    let server = &program.config.server;
    let tls = server.tls.clone().map(ServerTls::open).transpose().map_err(Trouble::usage)?.map(Arc::new);
    let limits = server.connections(raise_descriptor_limit());
    let door = Door::open(address).await.map_err(|error| Trouble::other(with_cause(&error)))?;
    let door = door.limited(server.deadlines(), limits);
    Ok(match &tls {
        Some(tls) => (door.encrypted(Arc::clone(tls)), Some(Arc::clone(tls))),
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

/// Brings the server to its end when it is told to stop. Comes back only if it is told so again: then at once.
async fn wind_down(program: &Program, mut signals: Signals, grace: Duration) -> Trouble {
    let signal = signals.next().await;
    // From here on `/readyz` answers 503, so load balancers send requests elsewhere; those that come are still served.
    program.shutdown.leaving.store(true, Ordering::Relaxed);
    let grace = if signal == StopSignal::Terminate { grace } else { Duration::ZERO };
    tracing::info!(
        "told to stop; requests are served for another {} s; {} calls are under way",
        grace.as_secs(),
        program.engine.in_flight()
    );
    let hurried = || Trouble::other("told to stop twice: what was under way is cut off".to_owned());
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
pub(crate) fn app(
    program: &Program,
    authentication: Authentication,
    sessions: Arc<Sessions>,
    door: &Door,
) -> Result<Gated<Router>, Trouble> {
    let needs_token = matches!(authentication, Authentication::Bearer(_));
    let gate =
        gate(program, authentication, door.address())?.with_sessions(sessions, &Console::before_sign_in());
    let calls = Arc::new(CallCounts::new(Arc::clone(program.engine.registry())));
    program.engine.bus().subscribe(calls.clone());
    let (engine, store) = (program.engine.clone(), Arc::clone(&program.store));
    let mut metrics = Metrics::new(calls, gate.tally(), engine.clone(), Arc::clone(&store));
    let found = Arc::new(GuardCounts::default());
    program.engine.bus().subscribe(found.clone());
    metrics.add(Box::new(found));
    metrics.add(Box::new(ConnectionCounts(door.connections())));
    if let Some(traces) = &program.traces {
        metrics.add(Box::new(traces.counts()));
    }
    let first_lists = program.tools.first_lists().clone();
    let readiness = Readiness::new(engine, store, Arc::clone(&program.shutdown.leaving), first_lists);
    let pages = telemetry::router(metrics, readiness);
    let plain = door::router(program.engine.clone(), program.config.server.max_body_bytes, needs_token);
    let mcp = mcp_door(program, console(program, needs_token)?).router(program.stop().clone());
    let mut router = pages.merge(mcp).merge(plain);
    router = router.merge(flows::hooks::router(program)).merge(console(program, needs_token)?.router());
    if program.config.a2a.enabled {
        let door = a2a_door(program, needs_token)?;
        program.push(&door);
        router = router.merge(door.router(program.stop().clone()));
    }
    Ok(gate.around(router))
}

/// Who comes in, and where to.
fn gate(program: &Program, authentication: Authentication, address: SocketAddr) -> Result<Gate, Trouble> {
    let server = &program.config.server;
    let gate = Gate::new(Guard::new(&server.hosts(), server.max_body_bytes), authentication)
        .at(server.site().map_err(Trouble::usage)?)
        .before(&[
            Entrance {
                path: "/mcp",
                needs: TokenScopes::from_scopes([TokenScope::Call, TokenScope::Discover]),
            },
            Entrance {
                path: "/a2a",
                needs: TokenScopes::from_scopes([TokenScope::Call, TokenScope::Discover]),
            },
            Entrance {
                path: "/_a2a",
                needs: TokenScopes::from_scopes([TokenScope::Call, TokenScope::Discover]),
            },
            Entrance {
                path: rialto_a2a::server::SERVICES[0],
                needs: TokenScopes::from_scopes([TokenScope::Call, TokenScope::Discover]),
            },
            Entrance {
                path: rialto_a2a::server::SERVICES[1],
                needs: TokenScopes::from_scopes([TokenScope::Call, TokenScope::Discover]),
            },
            Entrance { path: "/tasks", needs: TokenScopes::from_scopes([TokenScope::Call]) },
            Entrance { path: "/message:send", needs: TokenScopes::from_scopes([TokenScope::Call]) },
            Entrance { path: "/message:stream", needs: TokenScopes::from_scopes([TokenScope::Call]) },
            Entrance { path: "/extendedAgentCard", needs: TokenScopes::from_scopes([TokenScope::Discover]) },
            Entrance { path: "/agent", needs: TokenScopes::from_scopes([TokenScope::Discover]) },
            Entrance {
                path: "/.well-known",
                needs: TokenScopes::from_scopes([TokenScope::Call, TokenScope::Discover]),
            },
            Entrance {
                path: door::PATH,
                needs: TokenScopes::from_scopes([TokenScope::Call, TokenScope::Discover]),
            },
            Entrance { path: METRICS, needs: TokenScopes::from_scopes([TokenScope::Admin]) },
            Entrance { path: HOOKS, needs: TokenScopes::from_scopes([TokenScope::Call]) },
            // Each operation asks for what it needs.
            Entrance { path: API, needs: TokenScopes::ALL },
            Entrance { path: PAGES, needs: TokenScopes::ALL },
        ])
        .showing(&[CARDS[0], CARDS[1], rialto_a2a::server::KEYS], rialto_a2a::server::AGENTS)
        .limited(program.requests())
        .until(Arc::clone(&program.shutdown.draining));
    Ok(if server.public_metrics {
        gate.open_to_all(&[HEALTH, READY, METRICS])
    } else if address.ip().is_loopback() && !server.is_published() {
        gate.open_to_all(&[HEALTH, READY]).unlocked(&[METRICS])
    } else {
        gate.open_to_all(&[HEALTH, READY])
    })
}

fn console(program: &Program, needs_token: bool) -> Result<Console, Trouble> {
    let server = &program.config.server;
    Ok(Console::new(rialto_console::Parts {
        engine: program.engine.clone(),
        store: Arc::clone(&program.store),
        flows: program.flows.clone(),
        office: office::Clerk::of(program),
        site: server.site().map_err(Trouble::usage)?,
        needs_token,
        at_machine: false,
        // Whoever needs no token is at this machine.
        allow_private: server.allow_private_over_api || !needs_token,
        allow_secrets: server.allow_commands_over_api,
        max_body_bytes: server.max_body_bytes,
        streams: program.streams(),
        stop: program.stop().clone(),
    }))
}

fn a2a_door(program: &Program, needs_token: bool) -> Result<rialto_a2a::server::A2aServer, Trouble> {
    let site = program.config.server.site().map_err(Trouble::usage)?;
    let mut config = program.config.a2a.door(needs_token).map_err(Trouble::usage)?;
    config.instance = Some(Instance::new(Arc::clone(&program.store)));
    config.streams = program.streams();
    Ok(rialto_a2a::server::A2aServer::new(program.engine.clone(), config, site))
}

fn mcp_door(program: &Program, console: Console) -> rialto_mcp::McpEndpoint {
    let server = &program.config.server;
    let mut mcp = program.config.mcp_door();
    mcp.allowed_hosts.extend(server.hosts());
    if server.domain.is_some() {
        // It knows whole names only, and the gate has looked at them already.
        mcp.allowed_hosts = vec!["*".to_owned()];
    }
    let register = move |caller: Caller, agent: AgentToLoad| {
        let console = console.clone();
        async move {
            let AgentToLoad { url, card_path, token } = agent;
            admin::agents::load(&console, &caller, &url, card_path, token.as_ref()).await
        }
        .boxed()
    };
    let control = McpEndpointOptions { load_agents: LoadAgents::Registered(AgentRegistrar::new(register)) };
    rialto_mcp::McpEndpoint::new(program.engine.clone(), mcp, control).limit_streams(program.streams())
}

/// The threads that connections are served on.
pub(crate) fn lanes(program: &Program) -> Result<Lanes, Trouble> {
    let none = |error| Trouble::other(format!("no thread could be started to serve on: {error}"));
    if !program.config.server.worker_threads {
        return Ok(Lanes::shared(Handle::current()));
    }
    Lanes::open(program.config.server.threads()).map_err(none)
}

pub(crate) async fn serve_until(door: Door, app: Gated<Router>, lanes: Lanes, stop: CancellationToken) {
    let patience = stop.clone();
    let out_of_patience = async move {
        patience.cancelled().await;
        tokio::time::sleep(PATIENCE).await;
    };
    tokio::select! {
        () = door.serve(move |peer| app.facing(peer), lanes, stop.cancelled_owned()) => {}
        () = out_of_patience => {}
    }
}

/// Who may come in. The first start makes a token and shows it once, unless somebody else answers for callers.
async fn bearers(program: &Program, environment: &Environment) -> Result<Bearers, Trouble> {
    let (store, clock) = (Arc::clone(&program.store), Arc::new(SystemClock) as Arc<dyn Clock>);
    let issuers = Issuers::new(program.config.auth.clone(), &program.fetch, &clock)
        .map_err(|error| Trouble::usage(format!("[auth] issuers: {error}")))?;
    let given = environment.get("RIALTO_TOKEN").map(owner_token).transpose()?;
    if given.is_none() && issuers.is_empty() && store.tokens().await?.is_empty() {
        let (row, token) = tokens::create(&*store, Wanted::owner()).await?;
        record_first_token(program, &row).await;
        show_once(&row.id, &token, program.data.as_deref())?;
    }
    let book = TokenBook::open(store, given.into_iter().collect()).await?;
    Ok(Bearers::new(book, issuers, clock))
}

/// Records that the first token was made, by the server itself.
async fn record_first_token(program: &Program, token: &Token) {
    let record = AdminRecord {
        by: Arc::from(program.policies.scope().by.as_str()),
        after: serde_json::json!(rialto_console::admin::tokens::token_row(token, SystemClock.now())),
        ..AdminRecord::new("token.create", &program.local_caller(), token.caller.as_str())
    };
    if let Err(failure) = program.engine.record_admin(record).await {
        tracing::error!("the first token is not in the audit trail: {failure}");
    }
}

/// The token that the environment gives the owner.
fn owner_token(token: &str) -> Result<Token, Trouble> {
    let length = token.chars().count();
    if length < SHORTEST_OWNER_TOKEN {
        return Err(Trouble::usage(format!(
            "RIALTO_TOKEN has {length} characters, which is too short for the owner of a server: use at least {SHORTEST_OWNER_TOKEN}, like `openssl rand -hex 32` makes, or unset it, and a token is made"
        )));
    }
    tracing::info!("the token in RIALTO_TOKEN lets its bearer in as the owner of this server");
    Ok(Wanted::owner().token("RIALTO_TOKEN".to_owned(), token))
}

/// Shows the first token to a person at a terminal. Where stderr goes to a log, the token goes into a file of its own instead.
fn show_once(id: &str, token: &str, data: Option<&Path>) -> Result<(), Trouble> {
    let file = data.filter(|_| !std::io::stderr().is_terminal()).map(|data| data.join(OWNER_TOKEN_FILE));
    let Some(file) = file else {
        output::note(format!(
            "A token for the owner of this server was made. It is shown this once, and only its hash is kept:\n\n    \
             export RIALTO_TOKEN={token}\n\n\
             Send it as `Authorization: Bearer $RIALTO_TOKEN`. To revoke it: rialto tokens revoke {id}\n\
             For everybody else: rialto tokens create NAME"
        ));
        output::line("A token for the owner was made; it is shown on stderr, this once");
        return Ok(());
    };
    write_secret_file(&file, &format!("{token}\n")).map_err(|error| {
        Trouble::other(format!("the owner's token could not be written to {}: {error}", file.display()))
    })?;
    output::line(format!("A token for the owner was made; it is in {}", file.display()));
    output::line(format!(
        "Read it and remove the file: only its hash is kept elsewhere. To revoke it: rialto tokens revoke {id}"
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

fn greet(program: &Program, address: SocketAddr, open: bool) {
    let skills = program.engine.registry().directory(&Scope::default()).len();
    let agents = program.engine.registry().agents(&Scope::default()).len();
    let scheme = if program.config.server.tls.is_some() { "https" } else { "http" };
    output::line(format!(
        "Rialto serves {skills} skills of {agents} agents as MCP tools at {scheme}://{address}/mcp"
    ));
    if let Some(data) = &program.data {
        output::line(format!("Data is kept in {}", data.display()));
    }
    output::line(format!("Console:      {scheme}://{address}/factory"));
    let header = if open { "" } else { " --header \"Authorization: Bearer $RIALTO_TOKEN\"" };
    output::line(format!(
        "Claude Code:  claude mcp add --transport http rialto {scheme}://{address}/mcp{header}"
    ));
    if agents == 0 && skills == 0 {
        output::line("No agents yet: rialto agents add URL --allow");
    }
}

/// Waits for the signal to stop. It is heard from now on, not only once it is waited for.
pub(crate) fn terminated() -> impl Future<Output = ()> + Send {
    let mut signals = Signals::listen();
    async move {
        let _ = signals.next().await;
    }
}

/// The signals to stop: Ctrl-C, and on Unix SIGTERM.
struct Signals {
    #[cfg(unix)]
    both: Option<(tokio::signal::unix::Signal, tokio::signal::unix::Signal)>,
}

/// Which signal to stop came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopSignal {
    /// Ctrl-C: a person waits.
    Interrupt,
    /// SIGTERM: a service manager stops or replaces this process.
    Terminate,
}

// === impl Signals ===

impl Signals {
    /// Hears them from now on.
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
