//! Puts the program together: store, registry, policies, peer, engine.

mod background;

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
    credential::{self, SecretResolver},
    discover::Discoverer,
    instance::Instance,
};
use rialto_a2a_wire::card::signature::VerificationKeys;
use rialto_edge::{
    auth::BearerAuthenticator,
    client::{ClientEnv, HttpClient},
    fetch::Fetch,
    proxy::ProxyRules,
    rate_limits::RateLimiter,
    stream_limits::StreamLimits,
};
use rialto_engine::{
    Engine, EngineDeps, EngineLink, NodeIdentity, PlacedPeer, PolicyLoader, Prober, Registry, StoreDeadline,
    routing::Mesh,
};
use rialto_flow::run::{self as flow, WorkflowRunner};
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
use rialto_policy::{PolicyError, PolicySource};
use rialto_secrets::{Vault, private_files};
use rialto_telemetry::{CallLog, TraceDestination, TraceExporter};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    config::Config,
    config_reload::ConfigReload,
    configured_workflows,
    deployed_backends::DeployedBackends,
    environment::Environment,
    file_poll::ReloadSignal,
    guardrail_config,
    policies::{PolicyFiles, PolicyLocation, PolicyStore},
    webhooks,
};

/// Maximum time for final writes at shutdown.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The program, put together.
pub(crate) struct App {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn Store>,
    /// The one way out.
    pub(crate) fetch: Arc<dyn Fetch>,
    /// Reads the agents' secrets.
    pub(crate) secrets: SecretResolver,
    /// Secrets in the store.
    pub(crate) vault: Vault,
    /// Reaches what is deployed.
    pub(crate) tools: DeployedBackends,
    /// Executes calls here or on the node that runs their program.
    placed: PlacedPeer,
    /// Runs workflows.
    pub(crate) flows: WorkflowRunner,
    pub(crate) config: Config,
    pub(crate) policies: PolicyStore,
    /// The org and project that commands at this machine work in.
    pub(crate) scope: Scope,
    /// Number of calls through this installation that led to this process.
    hops: u8,
    pub(crate) data: Option<PathBuf>,
    /// Initial policy files, to detect changes.
    sources: Vec<PolicySource>,
    /// Reads the configuration again when its file changes.
    reloading: Box<ConfigReload>,
    /// Exporter of traces, if configured.
    pub(crate) traces: Option<Arc<TraceExporter>>,
    pub(crate) shutdown: ShutdownFlags,
    stop: CancellationToken,
    /// Has configuration, policies and certificates read again.
    reload: ReloadSignal,
    /// Tasks with final writes.
    closing: TaskTracker,
}

/// Location of data.
#[derive(Clone, Debug)]
pub(crate) enum DataLocation {
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
    /// Policies are invalid.
    #[error("the policies are not valid; fix them and check with `rialto policy check`:\n{0}")]
    Policy(#[from] PolicyError),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Path.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A key for card signatures cannot be used.
    #[error("{0}")]
    Key(String),
    /// A configured deployment failed.
    #[error("{0}")]
    Deployed(String),
    /// Guardrails are invalid.
    #[error("{0}")]
    Guardrails(#[from] rialto_guard::scoped_rules::ScopedRuleError),
    /// Traces cannot be sent to where they shall be.
    #[error("{0}")]
    Traces(String),
}

// === impl DataLocation ===

impl DataLocation {
    fn folder(self) -> Option<PathBuf> {
        match self {
            Self::Folder(folder) => Some(folder),
            Self::Memory => None,
        }
    }
}

/// Progress of a shutdown.
#[derive(Clone, Default)]
pub(crate) struct ShutdownFlags {
    /// True if shutdown is imminent: the server reports not ready.
    pub(crate) leaving: Arc<AtomicBool>,
    /// True if new calls are rejected.
    pub(crate) draining: Arc<AtomicBool>,
}

// === impl App ===

impl App {
    /// Opens the store and builds everything on it. Nothing is fetched yet.
    pub(crate) async fn open(
        config: Config,
        place: DataLocation,
        policies: Option<PolicyFiles>,
        environment: &Environment,
    ) -> Result<Self, BuildError> {
        let (opened, store) = open_with_deadline(&config, &place).await?;
        let data = place.folder();
        let files = policies_from(data.as_deref(), policies)?;
        let (sources, policies) = (files.sources()?, policy_store(files, &store, &config, environment));
        let policy = policies.load().await.map_err(|error| store_error(&error))??;

        let env = environment_reader(environment);
        let around = ClientEnv { proxies: ProxyRules::from_env(&env), ..ClientEnv::default() };
        let fetch: Arc<dyn Fetch> = Arc::new(HttpClient::with_env(&config.outbound, around));
        let vault = Vault::new(Arc::clone(&store), environment.secret_key_location());
        let secrets = credential::resolver(env, secret_reader(vault.clone()));
        let (clock, tools) = (Arc::new(SystemClock), DeployedBackends::new(&fetch, &secrets, environment));
        let link = EngineLink::default();
        let discovery = tools.discovery(discoverer(&config, &store, &fetch, &secrets)?, &link);
        let registry =
            Arc::new(Registry::new(Arc::clone(&opened), discovery, clock.clone(), config.calls.clone()));
        let a2a = a2a_backend(&config, &fetch, &secrets, &registry);
        let flows = WorkflowRunner::new(flow::RunnerDeps { store: Arc::clone(&store) }, config.flows.clone());
        let placed = tools.backends(a2a, &flows, &link);
        let traces = start_traces(&config, &fetch, environment)?;
        let engine = Engine::new(EngineDeps {
            store: opened,
            registry,
            peer: Arc::new(placed.clone()),
            policy,
            policy_loader: Some(policy_loader(policies.clone())),
            clock,
            config: engine_config(&config, traces.is_some()),
        });
        link.set(engine.downgrade());
        connect_engine(&engine, traces.as_ref(), config.mesh.open(&fetch, &secrets), &flows);
        start_held_writes(&engine, data.as_deref()).await;
        let asker = guardrail_config::classifier_client(Arc::clone(&fetch), Arc::clone(&secrets));
        let reloading = Box::new(ConfigReload::from_config(&engine, &flows, asker, &config, environment)?);
        apply_config(&config, &engine, &tools, &flows, &vault).await?;
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

    /// Sets the org and project of commands.
    pub(crate) fn with_tenant(self, scope: Scope) -> Self {
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

    /// Logs the end of calls. Commands print it themselves.
    pub(crate) fn log_calls(&self) {
        self.engine.audit().subscribe(Arc::new(CallLog::new(self.config.telemetry.log_calls)));
    }

    /// Exports pending traces.
    pub(crate) async fn finish_traces(&self) {
        if let Some(traces) = &self.traces {
            traces.flush().await;
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
        tokio::spawn(background::watch_changes(
            self.engine.clone(),
            self.policies.files().clone(),
            known,
            (self.stop.clone(), self.reload.clone()),
        ));
        self.tools.start(self.engine.registry(), &self.stop);
        let (engine, stop) = (self.engine.clone(), self.stop.clone());
        self.closing.spawn(async move { engine.approvals().run_expiry_loop(stop).await });
        tokio::spawn(background::run_retention(
            Arc::clone(&self.store),
            self.config.store.clone(),
            self.stop.clone(),
        ));
    }

    /// Follows the configuration's file. With `is_whole`, what it does not name any more is removed.
    pub(crate) fn watch_config(&self, is_whole: bool) {
        tokio::spawn(self.reloading.clone().watch(is_whole, self.stop.clone(), self.reload.clone()));
    }

    /// Has configuration, policies and certificates read again when it is sent.
    pub(crate) const fn reload(&self) -> &ReloadSignal {
        &self.reload
    }

    /// Counts the streams of callers.
    pub(crate) fn stream_limits(&self) -> StreamLimits {
        self.reloading.stream_limits()
    }

    /// Counts the requests of callers.
    pub(crate) fn request_limits(&self) -> Arc<RateLimiter> {
        self.reloading.request_limits()
    }

    /// Learns success rates from tasks that end detached.
    pub(crate) fn run_learning(&self) {
        let (engine, stop) = (self.engine.clone(), self.stop.clone());
        self.closing.spawn(async move { engine.dispatches().run_learning(stop).await });
    }

    /// Ends what is open for tokens that were revoked or have expired.
    pub(crate) fn watch_revocations(&self, bearers: &Arc<BearerAuthenticator>) {
        let (bearers, stop) = (Arc::clone(bearers), self.stop.clone());
        self.closing.spawn(async move { bearers.follow_revocations(stop).await });
    }

    /// Runs workflows at their moments.
    pub(crate) fn run_schedules(&self) {
        self.closing.spawn(self.flows.clone().run_schedules(self.stop.clone()));
    }

    /// Answers for the tasks of this process, and takes over those of processes that are gone.
    pub(crate) fn run_takeover(&self) {
        let (engine, stop) = (self.engine.clone(), self.stop.clone());
        self.closing.spawn(async move {
            engine.takeover().run(stop).await;
            engine.nodes().leave().await;
            engine.lease().release_lease().await;
        });
        let (engine, stop) = (self.engine.clone(), self.stop.clone());
        self.closing.spawn(async move { engine.usage().run(stop).await });
    }

    /// Joins the nodes with this identity. Returns once it is known whether the node is drained.
    pub(crate) async fn join_nodes(&self, identity: NodeIdentity) -> Result<(), Failure> {
        self.engine.nodes().join(identity).await?;
        let (engine, stop) = (self.engine.clone(), self.stop.clone());
        self.closing.spawn(async move { engine.nodes().run_heartbeat(stop).await });
        self.closing.spawn(self.placed.clone().serve(self.stop.clone()));
        self.tools.follow_placement(&self.engine, &self.stop);
        Ok(())
    }

    /// Starts delivery of push notifications that were requested at the A2A server.
    pub(crate) fn start_push_delivery(&self, door: &rialto_a2a::server::A2aServer) {
        let pusher = door.pusher(Arc::clone(&self.store), Arc::clone(&self.fetch), Arc::new(SystemClock));
        self.closing.spawn(pusher.run(self.stop.clone()));
    }

    /// Starts delivery of webhooks.
    pub(crate) fn start_webhooks(&self) {
        self.closing.spawn(webhooks::dispatcher(self).run(self.stop.clone()));
    }

    /// Takes no more calls, lets those under way come to their end, and hands those back that take too long. Once is
    /// enough.
    pub(crate) async fn drain(&self) {
        self.shutdown.leaving.store(true, Ordering::Relaxed);
        if self.shutdown.draining.swap(true, Ordering::Relaxed) {
            return;
        }
        self.engine.running().drain(Duration::from_secs(self.config.server.drain_secs)).await;
        self.engine.running().detach_all().await;
    }

    /// Drains calls and stops background tasks.
    pub(crate) async fn close(self) {
        self.drain().await;
        self.finish_traces().await;
        self.stop.cancel();
        self.tools.close().await;
        self.closing.close();
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.closing.wait()).await;
        // An unavailable store must not block the shutdown: open tasks are taken over once the lease expires.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.engine.lease().release_lease()).await;
    }
}

/// The policies that were given, or those of the data folder; as files that are there.
fn policies_from(data: Option<&Path>, given: Option<PolicyFiles>) -> Result<PolicyFiles, BuildError> {
    let policies = given.unwrap_or_else(|| match data {
        Some(folder) => PolicyFiles::Folder(folder.join("policies")),
        None => PolicyFiles::Starter,
    });
    let place = data.unwrap_or(Path::new("policies")).display().to_string();
    policies.prepare().map_err(|source| BuildError::File { path: place, source })?;
    Ok(policies)
}

/// Opens the policies in these files and in the store. Machines that share a database share no folder, so new policies are stored
/// there by default.
pub(crate) fn policy_store(
    files: PolicyFiles,
    store: &Arc<dyn Store>,
    config: &Config,
    environment: &Environment,
) -> PolicyStore {
    let home = if config.store.url.is_some() { PolicyLocation::Store } else { PolicyLocation::Files };
    let by = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| environment.get(name));
    PolicyStore::new(files, Arc::clone(store), home, by.unwrap_or("local").to_owned())
}

/// Reads the policies again.
fn policy_loader(book: PolicyStore) -> PolicyLoader {
    Box::new(move || {
        let book = book.clone();
        async move { book.load().await }.boxed()
    })
}

/// Reads the environment's variables by their names.
fn environment_reader(environment: &Environment) -> impl Fn(&str) -> Option<String> + Send + Sync + use<> {
    let variables = environment.clone();
    move |name| variables.get(name).map(str::to_owned)
}

/// Engine configuration, with values from other sections.
fn engine_config(config: &Config, is_traced: bool) -> rialto_engine::Config {
    rialto_engine::Config {
        limits: config.limits.call_limits(),
        routing: config.routing.clone(),
        approvals: config.approvals.clone(),
        traces: is_traced.then(|| Sampling::share(config.telemetry.sample_ratio)),
        ..config.calls.clone()
    }
}

/// Stores pending secrets, and updates the registry from the configuration as far as no agent must be called.
async fn apply_config(
    config: &Config,
    engine: &Engine,
    tools: &DeployedBackends,
    flows: &WorkflowRunner,
    vault: &Vault,
) -> Result<(), BuildError> {
    engine.approvals().set_sealed_calls(Arc::new(vault.clone()));
    engine.policies().sync().await.map_err(|failure| BuildError::Store(failure.message))?;
    tools.configure(config, engine, false).await?;
    configured_workflows::configure(config, engine, flows, false).await
}

/// Connects the engine to traces, workflows and federation, as configured.
fn connect_engine(
    engine: &Engine,
    traces: Option<&Arc<TraceExporter>>,
    mesh: Option<Mesh>,
    flows: &WorkflowRunner,
) {
    engine.lease().register_when_needed();
    flows.connect(engine.downgrade());
    if let Some(traces) = traces {
        engine.audit().subscribe(Arc::clone(traces) as Arc<dyn Hook>);
    }
    if let Some(mesh) = mesh {
        engine.dispatches().set_federation(mesh);
    }
}

/// Stores results that the store does not accept in the data folder, and records those that another process left there. If the
/// store does not accept them now, takeover retries.
async fn start_held_writes(engine: &Engine, data: Option<&Path>) {
    let Some(folder) = data else { return };
    if let Err(failure) = engine.takeover().spill_held_results(folder.to_owned()).await {
        tracing::error!("results that a stopped process held are not recorded yet: {failure}");
    }
}

/// Sends traces from now on, if they are to be sent.
fn start_traces(
    config: &Config,
    fetch: &Arc<dyn Fetch>,
    environment: &Environment,
) -> Result<Option<Arc<TraceExporter>>, BuildError> {
    let to = TraceDestination::find(config.telemetry.otlp_endpoint.as_deref(), |name| environment.get(name));
    Ok(to.map_err(BuildError::Traces)?.map(|to| TraceExporter::start(Arc::clone(fetch), to)))
}

/// Opens the store of the configuration.
pub(crate) async fn open_store(config: &Config, place: &DataLocation) -> Result<Arc<dyn Store>, BuildError> {
    let folder = match place {
        DataLocation::Folder(folder) => Some(folder.as_path()),
        DataLocation::Memory => None,
    };
    if let Some(folder) = folder {
        private_files::close_to_others(folder);
    }
    rialto_store::open(&config.store, folder, parse_card).await.map_err(|error| store_error(&error))
}

/// Parses a stored card.
pub(crate) fn parse_card(text: &str) -> Result<Card, String> {
    rialto_a2a_wire::card::decode(text).map_err(|error| error.to_string())
}

/// Opens the store with a deadline for each operation.
async fn open_with_deadline(
    config: &Config,
    place: &DataLocation,
) -> Result<(Arc<dyn Store>, Arc<dyn Store>), BuildError> {
    let store = open_store(config, place).await?;
    let with_deadline = StoreDeadline::wrap(Arc::clone(&store), config.calls.store_timeout());
    Ok((store, with_deadline))
}

/// Reads secrets from the store by their names.
fn secret_reader(vault: Vault) -> impl Fn(&str) -> BoxFuture<'static, Result<Secret, String>> + Send + Sync {
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
fn a2a_backend(
    config: &Config,
    fetch: &Arc<dyn Fetch>,
    secrets: &SecretResolver,
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
    secrets: &SecretResolver,
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
