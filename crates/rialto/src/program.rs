//! Puts the program together: store, registry, policies, peer, engine.

mod upkeep;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use rialto_a2a::{
    backend::{A2aBackend, A2aBackendDeps},
    credential::{self, Resolver},
    discover::Discoverer,
    instance::Instance,
};
use rialto_a2a_wire::card::signature::VerificationKeys;
use rialto_edge::{
    auth::Bearers,
    client::{Client, Surroundings},
    fetch::Fetch,
    limits::Limited,
    proxy::Proxies,
    streams::StreamLimits,
};
use rialto_engine::{
    Engine, EngineLink, NodeIdentity, Parts, PlacedPeer, PolicyLoader, Prober, Registry, StoreDeadline,
    routing::Mesh,
};
use rialto_flow::run::{self as flow, Runner};
use rialto_model::{
    audit_event::Hook,
    call::Caller,
    card::Card,
    clock::SystemClock,
    credential::Secret,
    failure::Failure,
    ids::Scope,
    store::{Store, StoreError},
    trace::Sampling,
};
use rialto_policy::{PolicyError, Source};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    config::Config,
    environment::Environment,
    flows, guarding,
    looking::ReloadSignal,
    policies::{Book, Policies, Shelf},
    private_files,
    reloading::Reloading,
    telemetry::{CallLog, Destination, Traces},
    tools::Tools,
    vault::Vault,
    webhooks,
};

/// How long a stop waits for what writes something down at the end.
const CLOSING: Duration = Duration::from_secs(5);

/// The program, put together.
pub(crate) struct Program {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn Store>,
    /// The one way out.
    pub(crate) fetch: Arc<dyn Fetch>,
    /// Reads the agents' secrets.
    pub(crate) secrets: Resolver,
    /// Those of them that are in the store.
    pub(crate) vault: Vault,
    /// Reaches what is deployed.
    pub(crate) tools: Tools,
    /// Executes calls here or on the node that runs their program.
    placed: PlacedPeer,
    /// Runs workflows.
    pub(crate) flows: Runner,
    pub(crate) config: Config,
    pub(crate) policies: Book,
    /// The org and project that commands at this machine work in.
    pub(crate) scope: Scope,
    /// How many calls through this installation led to this process.
    hops: u8,
    pub(crate) data: Option<PathBuf>,
    /// The files that the first policies were made of: whatever differs from them has changed since.
    sources: Vec<Source>,
    /// Reads the configuration again when its file changes.
    reloading: Box<Reloading>,
    /// Sends traces, if somebody collects them.
    pub(crate) traces: Option<Arc<Traces>>,
    pub(crate) shutdown: ShutdownFlags,
    stop: CancellationToken,
    /// Has configuration, policies and certificates read again.
    reload: ReloadSignal,
    /// What writes something down at the end.
    closing: TaskTracker,
}

/// Where things are kept.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// In a folder.
    Folder(PathBuf),
    /// In this process only.
    Memory,
}

/// Why the program could not be put together.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BuildError {
    /// The store did not open.
    #[error("{0}")]
    Store(String),
    /// The policies do not hold up.
    #[error("the policies are not valid; fix them and check with `rialto policy check`:\n{0}")]
    Policy(#[from] PolicyError),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A key for card signatures cannot be used.
    #[error("{0}")]
    Key(String),
    /// What is configured could not be deployed.
    #[error("{0}")]
    Deployed(String),
    /// Guardrails do not hold up.
    #[error("{0}")]
    Guardrails(#[from] rialto_guard::setting::SettingError),
    /// Traces cannot be sent to where they shall be.
    #[error("{0}")]
    Traces(String),
}

// === impl Place ===

impl Place {
    fn folder(self) -> Option<PathBuf> {
        match self {
            Self::Folder(folder) => Some(folder),
            Self::Memory => None,
        }
    }
}

/// How far a server is on its way to its end.
#[derive(Clone, Default)]
pub(crate) struct ShutdownFlags {
    /// Whether it is about to stop, so that nobody should send it anything new.
    pub(crate) leaving: Arc<AtomicBool>,
    /// Whether no more calls are taken.
    pub(crate) draining: Arc<AtomicBool>,
}

// === impl Program ===

impl Program {
    /// Opens the store and builds everything on it. Nothing is fetched yet.
    pub(crate) async fn open(
        config: Config,
        place: Place,
        policies: Option<Policies>,
        environment: &Environment,
    ) -> Result<Self, BuildError> {
        let (opened, store) = open_with_deadline(&config, &place).await?;
        let data = place.folder();
        let files = policies_in(data.as_deref(), policies)?;
        let (sources, policies) = (files.sources()?, book(files, &store, &config, environment));
        let policy = policies.load().await.map_err(|error| store_error(&error))??;

        let env = variables_of(environment);
        let around = Surroundings { proxies: Proxies::of(&env), ..Surroundings::default() };
        let fetch: Arc<dyn Fetch> = Arc::new(Client::within(&config.outbound, around));
        let vault = Vault::new(Arc::clone(&store), environment);
        let secrets = credential::resolver(env, stored(vault.clone()));
        let (clock, tools) = (Arc::new(SystemClock), Tools::new(&fetch, &secrets, environment));
        let link = EngineLink::default();
        let discovery = tools.discovery(discoverer(&config, &store, &fetch, &secrets)?, &link);
        let registry =
            Arc::new(Registry::new(Arc::clone(&opened), discovery, clock.clone(), config.calls.clone()));
        let a2a = a2a_peer(&config, &fetch, &secrets, &registry);
        let flows = Runner::new(flow::Ports { store: Arc::clone(&store) }, config.flows.clone());
        let placed = tools.peers(a2a, &flows, &link);
        let traces = start_traces(&config, &fetch, environment)?;
        let engine = Engine::new(Parts {
            store: opened,
            registry,
            peer: Arc::new(placed.clone()),
            policy,
            policy_loader: Some(loader(policies.clone())),
            clock,
            config: calls(&config, traces.is_some()),
        });
        link.set(engine.faint());
        connect(&engine, traces.as_ref(), config.mesh.open(&fetch, &secrets), &flows);
        keep_held(&engine, data.as_deref()).await;
        let asker = guarding::asker(Arc::clone(&fetch), Arc::clone(&secrets));
        let reloading = Box::new(Reloading::of(&engine, &flows, asker, &config, environment)?);
        settle(&config, &engine, &tools, &flows, &vault).await?;
        Ok(Self {
            flows,
            engine,
            store,
            fetch,
            secrets,
            vault,
            tools,
            placed,
            config,
            policies,
            scope: Scope::default(),
            hops: environment.hops(),
            sources,
            reloading,
            data,
            traces,
            shutdown: ShutdownFlags::default(),
            stop: CancellationToken::new(),
            reload: ReloadSignal::default(),
            closing: TaskTracker::new(),
        })
    }

    /// The same program, for commands that work in this org and project.
    pub(crate) fn within(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    /// The person at this machine.
    pub(crate) fn local_caller(&self) -> Caller {
        Caller { scope: self.scope.clone(), hops: self.hops, ..Caller::user("local") }
    }

    /// Stops everything in the background when it is cancelled.
    pub(crate) const fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Logs how calls end. Not for commands, which say so themselves.
    pub(crate) fn log_calls(&self) {
        self.engine.bus().subscribe(Arc::new(CallLog::new(self.config.telemetry.log_calls)));
    }

    /// Tells what is still to be told of calls.
    pub(crate) async fn finish_traces(&self) {
        if let Some(traces) = &self.traces {
            traces.finish().await;
        }
    }

    /// Starts what runs in the background: health probes, the watch over rows and policies that others change, and over what
    /// waits for approval.
    pub(crate) fn start(&self) {
        let calls = &self.config.calls;
        if calls.probe_interval_secs > 0 {
            let interval = Duration::from_secs(calls.probe_interval_secs);
            let prober = Prober::new(Arc::clone(self.engine.registry()), interval, calls.probe_concurrency);
            tokio::spawn(prober.run(self.stop.clone()));
        }
        let known = Some(self.sources.clone());
        tokio::spawn(upkeep::watch(
            self.engine.clone(),
            self.policies.files().clone(),
            known,
            (self.stop.clone(), self.reload.clone()),
        ));
        self.tools.start(self.engine.registry(), &self.stop);
        let (engine, stop) = (self.engine.clone(), self.stop.clone());
        self.closing.spawn(async move { engine.keep_approvals(stop).await });
        tokio::spawn(upkeep::keep_tidy(
            Arc::clone(&self.store),
            self.config.store.clone(),
            self.stop.clone(),
        ));
    }

    /// Follows the configuration's file. With `is_whole`, what it does not name any more is removed.
    pub(crate) fn follow_file(&self, is_whole: bool) {
        tokio::spawn(self.reloading.clone().watch(is_whole, self.stop.clone(), self.reload.clone()));
    }

    /// Has configuration, policies and certificates read again when it is sent.
    pub(crate) const fn reload(&self) -> &ReloadSignal {
        &self.reload
    }

    /// Counts the streams of callers.
    pub(crate) fn streams(&self) -> StreamLimits {
        self.reloading.streams()
    }

    /// Counts the requests of callers.
    pub(crate) fn requests(&self) -> Arc<Limited> {
        self.reloading.requests()
    }

    /// Learns from tasks that end while nobody waits for them.
    pub(crate) fn keep_learning(&self) {
        let (engine, stop) = (self.engine.clone(), self.stop.clone());
        self.closing.spawn(async move { engine.keep_learning(stop).await });
    }

    /// Ends what is open for tokens that were revoked or have expired.
    pub(crate) fn follow_revocations(&self, bearers: &Arc<Bearers>) {
        let (bearers, stop) = (Arc::clone(bearers), self.stop.clone());
        self.closing.spawn(async move { bearers.follow_revocations(stop).await });
    }

    /// Runs workflows at their moments.
    pub(crate) fn keep_time(&self) {
        self.closing.spawn(self.flows.clone().keep_time(self.stop.clone()));
    }

    /// Answers for the tasks of this process, and takes over those of processes that are gone.
    pub(crate) fn keep_post(&self) {
        let (engine, stop) = (self.engine.clone(), self.stop.clone());
        self.closing.spawn(async move {
            engine.keep_post(stop).await;
            engine.leave_nodes().await;
            engine.leave_post().await;
        });
        let (engine, stop) = (self.engine.clone(), self.stop.clone());
        self.closing.spawn(async move { engine.keep_sharing_usage(stop).await });
    }

    /// Serves as a node under this name. Comes back once it is known whether the node is drained.
    pub(crate) async fn keep_node(&self, identity: NodeIdentity) -> Result<(), Failure> {
        self.engine.join_nodes(identity).await?;
        let (engine, stop) = (self.engine.clone(), self.stop.clone());
        self.closing.spawn(async move { engine.keep_node(stop).await });
        self.closing.spawn(self.placed.clone().serve(self.stop.clone()));
        self.tools.follow_placement(&self.engine, &self.stop);
        Ok(())
    }

    /// Has those told of tasks who asked for it at the A2A door.
    pub(crate) fn push(&self, door: &rialto_a2a::server::A2aServer) {
        let pusher = door.pusher(Arc::clone(&self.store), Arc::clone(&self.fetch), Arc::new(SystemClock));
        self.closing.spawn(pusher.run(self.stop.clone()));
    }

    /// Has webhooks told of what is on record.
    pub(crate) fn deliver(&self) {
        self.closing.spawn(webhooks::couriers(self).run(self.stop.clone()));
    }

    /// Takes no more calls, lets those under way come to their end, and hands those back that take too long. Once is
    /// enough.
    pub(crate) async fn drain(&self) {
        self.shutdown.leaving.store(true, Ordering::Relaxed);
        if self.shutdown.draining.swap(true, Ordering::Relaxed) {
            return;
        }
        self.engine.drain(Duration::from_secs(self.config.server.drain_secs)).await;
        self.engine.hand_back().await;
    }

    /// The same, and stops the background.
    pub(crate) async fn close(self) {
        self.drain().await;
        self.finish_traces().await;
        self.stop.cancel();
        self.tools.close().await;
        self.closing.close();
        let _ = tokio::time::timeout(CLOSING, self.closing.wait()).await;
        // A store that is away must not keep the process: its tasks are taken over when its lease is over.
        let _ = tokio::time::timeout(CLOSING, self.engine.leave_post()).await;
    }
}

/// The policies that were given, or those of the data folder; as files that are there.
fn policies_in(data: Option<&Path>, given: Option<Policies>) -> Result<Policies, BuildError> {
    let policies = given.unwrap_or_else(|| match data {
        Some(folder) => Policies::Folder(folder.join("policies")),
        None => Policies::Starter,
    });
    let place = data.unwrap_or(Path::new("policies")).display().to_string();
    policies.prepare().map_err(|source| BuildError::File { path: place, source })?;
    Ok(policies)
}

/// These files, and what is in the store beside them. Machines that share a database share no folder, so a new policy goes
/// there unless somebody says otherwise.
pub(crate) fn book(
    files: Policies,
    store: &Arc<dyn Store>,
    config: &Config,
    environment: &Environment,
) -> Book {
    let home = if config.store.url.is_some() { Shelf::Store } else { Shelf::Files };
    let by = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| environment.get(name));
    Book::new(files, Arc::clone(store), home, by.unwrap_or("local").to_owned())
}

/// Reads the policies again.
fn loader(book: Book) -> PolicyLoader {
    Box::new(move || {
        let book = book.clone();
        async move { book.load().await }.boxed()
    })
}

/// Reads the environment's variables by their names.
fn variables_of(environment: &Environment) -> impl Fn(&str) -> Option<String> + Send + Sync + use<> {
    let variables = environment.clone();
    move |name| variables.get(name).map(str::to_owned)
}

/// What an engine is to know, also from sections that are not its own.
fn calls(config: &Config, is_traced: bool) -> rialto_engine::Config {
    rialto_engine::Config {
        limits: config.limits.calls(),
        routing: config.routing.clone(),
        approvals: config.approvals.clone(),
        traces: is_traced.then(|| Sampling::share(config.telemetry.sample_ratio)),
        ..config.calls.clone()
    }
}

/// Keeps what waits in the vault, and makes the registry what the configuration says, as far as that needs nobody to be asked.
async fn settle(
    config: &Config,
    engine: &Engine,
    tools: &Tools,
    flows: &Runner,
    vault: &Vault,
) -> Result<(), BuildError> {
    engine.keep_held_in(Arc::new(vault.clone()));
    engine.sync().await.map_err(|failure| BuildError::Store(failure.message))?;
    tools.configure(config, engine, false).await?;
    flows::configure(config, engine, flows, false).await
}

/// Has an engine answer for its tasks, tell of its calls, run workflows, and ask elsewhere, where that is wanted.
fn connect(engine: &Engine, traces: Option<&Arc<Traces>>, mesh: Option<Mesh>, flows: &Runner) {
    engine.attend_when_needed();
    flows.connect(engine.faint());
    if let Some(traces) = traces {
        engine.bus().subscribe(Arc::clone(traces) as Arc<dyn Hook>);
    }
    if let Some(mesh) = mesh {
        engine.join(mesh);
    }
}

/// Has results that the store cannot take kept in the data folder, and records those that a process has left there. Should the
/// store not take them now, whoever takes over tasks tries again.
async fn keep_held(engine: &Engine, data: Option<&Path>) {
    let Some(folder) = data else { return };
    if let Err(failure) = engine.spill_held_in(folder.to_owned()).await {
        tracing::error!("results that a stopped process held are not recorded yet: {failure}");
    }
}

/// Sends traces from now on, if they are to be sent.
fn start_traces(
    config: &Config,
    fetch: &Arc<dyn Fetch>,
    environment: &Environment,
) -> Result<Option<Arc<Traces>>, BuildError> {
    let to = Destination::find(config.telemetry.otlp_endpoint.as_deref(), environment);
    Ok(to.map_err(BuildError::Traces)?.map(|to| Traces::start(Arc::clone(fetch), to)))
}

/// Opens what everything is kept in. Whoever needs a store has it from here.
pub(crate) async fn open_store(config: &Config, place: &Place) -> Result<Arc<dyn Store>, BuildError> {
    let folder = match place {
        Place::Folder(folder) => Some(folder.as_path()),
        Place::Memory => None,
    };
    if let Some(folder) = folder {
        private_files::close_to_others(folder);
    }
    rialto_store::open(&config.store, folder, parse_card).await.map_err(|error| store_error(&error))
}

/// Reads a card as the store keeps it.
pub(crate) fn parse_card(text: &str) -> Result<Card, String> {
    rialto_a2a_wire::card::decode(text).map_err(|error| error.to_string())
}

/// The same, and again with a deadline for each operation: for whatever has none of its own.
async fn open_with_deadline(
    config: &Config,
    place: &Place,
) -> Result<(Arc<dyn Store>, Arc<dyn Store>), BuildError> {
    let store = open_store(config, place).await?;
    let with_deadline = StoreDeadline::wrap(Arc::clone(&store), config.calls.store_timeout());
    Ok((store, with_deadline))
}

/// Reads secrets from the store by their names.
fn stored(vault: Vault) -> impl Fn(&str) -> BoxFuture<'static, Result<Secret, String>> + Send + Sync {
    move |name| {
        let (vault, name) = (vault.clone(), name.to_owned());
        async move { vault.read(&name).await.map_err(|trouble| trouble.to_string()) }.boxed()
    }
}

fn card_keys(files: &[PathBuf]) -> Result<VerificationKeys, BuildError> {
    let mut keys = VerificationKeys::new();
    for file in files {
        let path = file.display().to_string();
        let text = std::fs::read_to_string(file)
            .map_err(|source| BuildError::File { path: path.clone(), source })?;
        let kid = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let added = if text.trim_start().starts_with('{') {
            keys.add_jwk(&text)
        } else {
            keys.add_pem(kid, text.as_bytes())
        };
        added.map_err(|error| BuildError::Key(format!("{path}: {error}")))?;
    }
    Ok(keys)
}

/// Calls remote agents.
fn a2a_peer(
    config: &Config,
    fetch: &Arc<dyn Fetch>,
    secrets: &Resolver,
    registry: &Arc<Registry>,
) -> A2aBackend {
    let ports = A2aBackendDeps {
        fetch: Arc::clone(fetch),
        tokens: Arc::clone(secrets),
        learned: Arc::clone(registry) as _,
        clock: Arc::new(SystemClock),
    };
    A2aBackend::new(config.agents.calls.clone(), ports)
}

/// Fetches cards, but for those of this installation.
fn discoverer(
    config: &Config,
    store: &Arc<dyn Store>,
    fetch: &Arc<dyn Fetch>,
    secrets: &Resolver,
) -> Result<Discoverer, BuildError> {
    let keys = card_keys(&config.a2a.card_keys)?;
    let discoverer = Discoverer::new(Arc::clone(fetch), Arc::clone(secrets), keys);
    Ok(discoverer.refusing_own(Instance::new(Arc::clone(store))))
}

pub(crate) fn store_error(error: &StoreError) -> BuildError {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    BuildError::Store(text)
}
