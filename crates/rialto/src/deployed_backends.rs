//! Reaches what is deployed, and sees to it that the registry knows what it can do.

pub(crate) mod deployment_spec;
mod initial_lists;
mod sampling;

use std::{mem, sync::Arc, time::Duration};

use futures::{StreamExt, future};
use parking_lot::Mutex;
use rialto_a2a::{backend::A2aBackend, credential::SecretResolver, discover::Discoverer};
use rialto_acp_client::AcpBackend;
use rialto_engine::{
    Engine, EngineLink, PlacedDiscovery, PlacedPeer, Registry,
    peer::DiscoveryError,
    peer_by_backing::{Discoveries, Peers},
    registry::RegistryError,
};
use rialto_functions::backend::FunctionBackend;
use rialto_http_client::fetch::Fetch;
use rialto_mcp::backend::{self, McpBackend};
use rialto_model::{agent::Agent, ids::Scope};
use rialto_process::Launcher;
use rialto_workflow::run::WorkflowRunner;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub(crate) use self::initial_lists::InitialToolLists;
use crate::{app::BuildError, config::Config, environment::Environment};

/// Maximum number of servers refreshed at once.
const MAX_CONCURRENT: usize = 8;

/// Interval at which placement of programs is checked.
const PLACEMENT_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Server whose tools may have changed.
type ChangedServerKey = (Scope, String);

/// Backends of deployed MCP servers, functions and coding agents.
pub(crate) struct DeployedBackends {
    mcp: McpBackend,
    functions: FunctionBackend,
    acp: AcpBackend,
    changes: Arc<ChangedServers>,
    engine: sampling::LateEngine,
    /// Rows without a tool list.
    unasked: Mutex<Vec<Arc<Agent>>>,
    first_lists: InitialToolLists,
}

/// Servers to refresh, each once.
#[derive(Default)]
struct ChangedServers {
    waiting: Mutex<Vec<ChangedServerKey>>,
    bell: Notify,
}

// === impl DeployedBackends ===

impl DeployedBackends {
    pub(crate) fn new(fetch: &Arc<dyn Fetch>, secrets: &SecretResolver, environment: &Environment) -> Self {
        let env = |name: &str| environment.get(name).map(str::to_owned);
        let launcher = Launcher::new(env, Arc::clone(secrets));
        let changes = Arc::new(ChangedServers::default());
        let told = Arc::clone(&changes);
        let changed: backend::ToolsChanged = Arc::new(move |scope, url| told.add(scope, url));
        let engine = sampling::LateEngine::default();
        let mcp = McpBackend::new(backend::McpBackendDeps {
            fetch: Arc::clone(fetch),
            launcher: launcher.clone(),
            secrets: Arc::clone(secrets),
            changed,
            sampler: sampling::sampler(&engine),
        });
        let functions = FunctionBackend::new(rialto_functions::backend::FunctionDeps {
            fetch: Arc::clone(fetch),
            launcher: launcher.clone(),
            secrets: Arc::clone(secrets),
        });
        let acp = AcpBackend::new(launcher);
        let (unasked, first_lists) = (Mutex::default(), InitialToolLists::default());
        Self { mcp, functions, acp, changes, engine, unasked, first_lists }
    }

    /// Finds out what agents and all that is deployed can do.
    pub(crate) fn discovery(&self, a2a: Discoverer, engine: &EngineLink) -> Arc<PlacedDiscovery> {
        let local = Arc::new(Discoveries { a2a: Arc::new(a2a), mcp: Arc::new(self.mcp.clone()) });
        Arc::new(PlacedDiscovery { local, engine: engine.clone() })
    }

    /// Executes the calls of agents and of all that is deployed.
    pub(crate) fn backends(
        &self,
        a2a: A2aBackend,
        flows: &WorkflowRunner,
        engine: &EngineLink,
    ) -> PlacedPeer {
        let (mcp, function) = (Arc::new(self.mcp.clone()), Arc::new(self.functions.clone()));
        let (flow, acp) = (Arc::new(flows.clone()), Arc::new(self.acp.clone()));
        let local = Peers { a2a: Arc::new(a2a), mcp, function, flow, acp };
        PlacedPeer::new(Arc::new(local), engine.clone())
    }

    /// Updates the registry from the configuration, and connects the engine. With `is_whole`, rows that it no longer names are removed.
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

    /// Refreshes rows that have no tool list yet.
    pub(crate) async fn refresh_unlisted(&self, registry: &Registry) {
        let unasked = mem::take(&mut *self.unasked.lock());
        future::join_all(unasked.iter().map(|row| refresh(registry, row))).await;
    }

    /// Refreshes servers in the background as they are added and change, and closes removed ones.
    pub(crate) fn start(&self, registry: &Arc<Registry>, stop: &CancellationToken) {
        let unasked = mem::take(&mut *self.unasked.lock());
        self.first_lists.begin(&unasked);
        for row in unasked {
            let (mcp, lists) = (self.mcp.clone(), self.first_lists.clone());
            let registry = Arc::clone(registry);
            tokio::spawn(async move {
                first_refresh(&mcp, &registry, &row).await;
                lists.finish(&row.id);
            });
        }
        tokio::spawn(
            stop.clone()
                .run_until_cancelled_owned(follow_changes(Arc::clone(registry), Arc::clone(&self.changes))),
        );
        let watch = close_removed(self.mcp.clone(), self.acp.clone(), Arc::clone(registry));
        tokio::spawn(stop.clone().run_until_cancelled_owned(watch));
    }

    /// Stops programs that moved to another node, until `stop` is cancelled.
    pub(crate) fn follow_placement(&self, engine: &Engine, stop: &CancellationToken) {
        let watch = stop_misplaced(self.mcp.clone(), self.acp.clone(), engine.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(watch));
    }

    /// Configured MCP servers whose tools are not listed yet.
    pub(crate) const fn first_lists(&self) -> &InitialToolLists {
        &self.first_lists
    }

    /// Ends every program that was started.
    pub(crate) async fn close(&self) {
        self.acp.close();
        self.mcp.close().await;
    }
}

// === impl ChangedServers ===

impl ChangedServers {
    fn add(&self, scope: &Scope, url: &str) {
        let mut waiting = self.waiting.lock();
        if !waiting.iter().any(|(known, other)| known == scope && other == url) {
            waiting.push((scope.clone(), url.to_owned()));
        }
        self.bell.notify_one();
    }
}

/// Refreshes servers that reported changed tools or that disconnected.
async fn follow_changes(registry: Arc<Registry>, changes: Arc<ChangedServers>) {
    loop {
        changes.bell.notified().await;
        let changed = mem::take(&mut *changes.waiting.lock());
        let rows = changed.iter().filter_map(|(scope, url)| registry.find(scope, url).ok());
        let asking = rows.map(|row| {
            let registry = &registry;
            async move { refresh(registry, &row).await }
        });
        futures::stream::iter(asking.collect::<Vec<_>>())
            .buffer_unordered(MAX_CONCURRENT)
            .collect::<Vec<()>>()
            .await;
    }
}

/// Ends what is removed.
async fn close_removed(mcp: McpBackend, acp: AcpBackend, registry: Arc<Registry>) {
    let mut versions = registry.watch();
    while versions.changed().await.is_ok() {
        let rows = registry.all();
        mcp.keep_only(&rows);
        acp.keep_only(&rows);
    }
}

/// Stops programs that another node runs: after a long pause this process may have been taken over.
async fn stop_misplaced(mcp: McpBackend, acp: AcpBackend, engine: Engine) {
    loop {
        tokio::time::sleep(PLACEMENT_CHECK_INTERVAL).await;
        let elsewhere = match engine.nodes().find_programs_elsewhere().await {
            Ok(rows) if !rows.is_empty() => rows,
            // Unknown while the store is unavailable.
            _ => continue,
        };
        let mut rows = engine.registry().all();
        rows.retain(|row| elsewhere.iter().all(|other| other.id != row.id));
        mcp.keep_only(&rows);
        acp.keep_only(&rows);
    }
}

/// Asks one for the first time. A program may take longer to start than a probe waits; then it is asked once it has started.
async fn first_refresh(mcp: &McpBackend, registry: &Registry, row: &Arc<Agent>) {
    refresh(registry, row).await;
    if mcp.finish_start(row).await {
        let current = registry.find(&row.scope, &row.url);
        refresh(registry, current.as_ref().unwrap_or(row)).await;
    }
}

/// Asks one what it can do.
pub(crate) async fn refresh(registry: &Registry, row: &Arc<Agent>) {
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
