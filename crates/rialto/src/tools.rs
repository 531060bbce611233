//! Reaches what is deployed, and sees to it that the registry knows what it can do.

pub(crate) mod described;
mod first_lists;
mod sampling;

use std::{mem, sync::Arc, time::Duration};

use futures::{StreamExt, future};
use parking_lot::Mutex;
use rialto_a2a::{backend::A2aBackend, credential::SecretResolver, discover::Discoverer};
use rialto_acp::AcpBackend;
use rialto_edge::{fetch::Fetch, process::Launcher};
use rialto_engine::{
    Engine, EngineLink, PlacedDiscovery, PlacedPeer, Registry,
    peer::DiscoveryError,
    peer_by_backing::{Discoveries, Peers},
    registry::RegistryError,
};
use rialto_flow::run::Runner;
use rialto_function::backend::FunctionBackend;
use rialto_mcp::backend::{self, McpBackend};
use rialto_model::{agent::Agent, ids::Scope};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub(crate) use self::first_lists::FirstLists;
use crate::{config::Config, environment::Environment, program::BuildError};

/// So many servers are asked at once.
const AT_ONCE: usize = 8;

/// Time between two looks at which node runs a program.
const PLACEMENT_CHECK: Duration = Duration::from_secs(1);

/// A server whose tools may have changed.
type Change = (Scope, String);

/// What reaches MCP servers and functions.
pub(crate) struct Tools {
    mcp: McpBackend,
    functions: FunctionBackend,
    acp: AcpBackend,
    changes: Arc<Changes>,
    engine: sampling::Later,
    /// Rows that somebody has yet to be asked about.
    unasked: Mutex<Vec<Arc<Agent>>>,
    first_lists: FirstLists,
}

/// Servers that have said something and are to be asked. One that repeats itself is there once.
#[derive(Default)]
struct Changes {
    waiting: Mutex<Vec<Change>>,
    bell: Notify,
}

// === impl Tools ===

impl Tools {
    pub(crate) fn new(fetch: &Arc<dyn Fetch>, secrets: &SecretResolver, environment: &Environment) -> Self {
        let env = |name: &str| environment.get(name).map(str::to_owned);
        let launcher = Launcher::new(env, Arc::clone(secrets));
        let changes = Arc::new(Changes::default());
        let told = Arc::clone(&changes);
        let changed: backend::ToolsChanged = Arc::new(move |scope, url| told.add(scope, url));
        let engine = sampling::Later::default();
        let mcp = McpBackend::new(backend::McpBackendDeps {
            fetch: Arc::clone(fetch),
            launcher: launcher.clone(),
            secrets: Arc::clone(secrets),
            changed,
            sampler: sampling::sampler(&engine),
        });
        let functions = FunctionBackend::new(rialto_function::backend::FunctionDeps {
            fetch: Arc::clone(fetch),
            launcher: launcher.clone(),
            secrets: Arc::clone(secrets),
        });
        let acp = AcpBackend::new(launcher);
        let (unasked, first_lists) = (Mutex::default(), FirstLists::default());
        Self { mcp, functions, acp, changes, engine, unasked, first_lists }
    }

    /// Finds out what agents and all that is deployed can do.
    pub(crate) fn discovery(&self, a2a: Discoverer, engine: &EngineLink) -> Arc<PlacedDiscovery> {
        let local = Arc::new(Discoveries { a2a: Arc::new(a2a), mcp: Arc::new(self.mcp.clone()) });
        Arc::new(PlacedDiscovery { local, engine: engine.clone() })
    }

    /// Executes the calls of agents and of all that is deployed.
    pub(crate) fn peers(&self, a2a: A2aBackend, flows: &Runner, engine: &EngineLink) -> PlacedPeer {
        let (mcp, function) = (Arc::new(self.mcp.clone()), Arc::new(self.functions.clone()));
        let (flow, acp) = (Arc::new(flows.clone()), Arc::new(self.acp.clone()));
        let local = Peers { a2a: Arc::new(a2a), mcp, function, flow, acp };
        PlacedPeer::new(Arc::new(local), engine.clone())
    }

    /// Makes the engine's registry what the configuration says; the engine is who is asked from then on. With `is_whole`, what it does not name any more is removed.
    pub(crate) async fn configure(
        &self,
        config: &Config,
        engine: &Engine,
        is_whole: bool,
    ) -> Result<(), BuildError> {
        let _ = self.engine.set(engine.downgrade());
        self.acp.join(engine.downgrade());
        let wrong = |(key, reason): (String, String)| BuildError::Deployed(format!("{key}: {reason}"));
        let wanted = config.deployments().map_err(wrong)?;
        if wanted.is_empty() && !is_whole {
            return Ok(());
        }
        let unasked = engine.registry().deployments().configure(&wanted, is_whole).await;
        let more = unasked.map_err(|error| BuildError::Deployed(error.to_string()))?;
        let mut unasked = self.unasked.lock();
        unasked.retain(|row| more.iter().all(|other| other.id != row.id));
        unasked.extend(more);
        Ok(())
    }

    /// Asks those that nobody has asked yet what they can do.
    pub(crate) async fn ask(&self, registry: &Registry) {
        let unasked = mem::take(&mut *self.unasked.lock());
        future::join_all(unasked.iter().map(|row| ask(registry, row))).await;
    }

    /// Asks servers as they come and change, in the background, and lets go of those that are removed.
    pub(crate) fn start(&self, registry: &Arc<Registry>, stop: &CancellationToken) {
        let unasked = mem::take(&mut *self.unasked.lock());
        self.first_lists.begin(&unasked);
        for row in unasked {
            let (mcp, lists) = (self.mcp.clone(), self.first_lists.clone());
            let registry = Arc::clone(registry);
            tokio::spawn(async move {
                ask_first(&mcp, &registry, &row).await;
                lists.finish(&row.id);
            });
        }
        tokio::spawn(
            stop.clone().run_until_cancelled_owned(follow(Arc::clone(registry), Arc::clone(&self.changes))),
        );
        let watch = let_go(self.mcp.clone(), self.acp.clone(), Arc::clone(registry));
        tokio::spawn(stop.clone().run_until_cancelled_owned(watch));
    }

    /// Ends programs that another node runs from now on, until it is told to stop.
    pub(crate) fn follow_placement(&self, engine: &Engine, stop: &CancellationToken) {
        let watch = end_misplaced(self.mcp.clone(), self.acp.clone(), engine.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(watch));
    }

    /// The configured MCP servers whose tools are yet to be listed.
    pub(crate) const fn first_lists(&self) -> &FirstLists {
        &self.first_lists
    }

    /// Ends every program that was started.
    pub(crate) async fn close(&self) {
        self.acp.close();
        self.mcp.close().await;
    }
}

// === impl Changes ===

impl Changes {
    fn add(&self, scope: &Scope, url: &str) {
        let mut waiting = self.waiting.lock();
        if !waiting.iter().any(|(known, other)| known == scope && other == url) {
            waiting.push((scope.clone(), url.to_owned()));
        }
        self.bell.notify_one();
    }
}

/// Asks each server that says that its tools have changed, or that has gone.
async fn follow(registry: Arc<Registry>, changes: Arc<Changes>) {
    loop {
        changes.bell.notified().await;
        let changed = mem::take(&mut *changes.waiting.lock());
        let rows = changed.iter().filter_map(|(scope, url)| registry.find(scope, url).ok());
        let asking = rows.map(|row| {
            let registry = &registry;
            async move { ask(registry, &row).await }
        });
        futures::stream::iter(asking.collect::<Vec<_>>())
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<()>>()
            .await;
    }
}

/// Ends what is removed.
async fn let_go(mcp: McpBackend, acp: AcpBackend, registry: Arc<Registry>) {
    let mut versions = registry.watch();
    while versions.changed().await.is_ok() {
        let rows = registry.all();
        mcp.keep_only(&rows);
        acp.keep_only(&rows);
    }
}

/// Ends programs that another node runs: this process may have been taken for gone, and learned so when it could go on.
async fn end_misplaced(mcp: McpBackend, acp: AcpBackend, engine: Engine) {
    loop {
        tokio::time::sleep(PLACEMENT_CHECK).await;
        let elsewhere = match engine.nodes().find_programs_elsewhere().await {
            Ok(rows) if !rows.is_empty() => rows,
            // While the store is away nobody can tell.
            _ => continue,
        };
        let mut rows = engine.registry().all();
        rows.retain(|row| elsewhere.iter().all(|other| other.id != row.id));
        mcp.keep_only(&rows);
        acp.keep_only(&rows);
    }
}

/// Asks one for the first time. A program may take longer to start than a probe waits; then it is asked once it has started.
async fn ask_first(mcp: &McpBackend, registry: &Registry, row: &Arc<Agent>) {
    ask(registry, row).await;
    if mcp.finish_start(row).await {
        let current = registry.find(&row.scope, &row.url);
        ask(registry, current.as_ref().unwrap_or(row)).await;
    }
}

/// Asks one what it can do.
pub(crate) async fn ask(registry: &Registry, row: &Arc<Agent>) {
    match registry.probe(row).await {
        Ok(health) => tracing::debug!("{} is {health}", row.url),
        // Another node runs it and has asked it.
        Err(RegistryError::Discovery(error @ DiscoveryError::Local { .. }))
            if row.backing.placement().is_some() =>
        {
            tracing::debug!("{error}");
        }
        Err(error) => tracing::warn!("{} could not be asked what it can do: {error}", row.url),
    }
}
