//! Readiness of this server.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rialto_engine::Engine;
use rialto_model::{ids::AgentId, store::Store};

/// A store that takes longer to answer than this does not.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// The address of the store is not public; the log and the doctor have the details.
const STORE_IS_SILENT: &str = "the store does not answer: check that its disk has space, or that the database server that \
                               [store] url names is running; `rialto doctor` and the server's log have details";

/// Reads the names of configured MCP servers whose first tool list is still missing.
pub type PendingServerNames = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// Checks of everything that calls need.
#[derive(Clone)]
pub struct Readiness {
    engine: Engine,
    store: Arc<dyn Store>,
    draining: Arc<AtomicBool>,
    pending_servers: PendingServerNames,
}

/// Reason that a server is not ready. Public, so beside names of configured MCP servers it contains no details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotReadyReason {
    pub(crate) check: &'static str,
    pub(crate) message: Cow<'static, str>,
}

// === impl Readiness ===

impl Readiness {
    /// `draining` is true once shutdown has begun.
    pub fn new(
        engine: Engine,
        store: Arc<dyn Store>,
        draining: Arc<AtomicBool>,
        pending_servers: PendingServerNames,
    ) -> Self {
        Self { engine, store, draining, pending_servers }
    }

    /// All reasons; none if the server is ready.
    pub(crate) async fn missing_parts(&self) -> Vec<NotReadyReason> {
        let mut lacks = Vec::new();
        if self.draining.load(Ordering::Relaxed) {
            let message = "this server is stopping; calls under way are brought to their end";
            lacks.push(NotReadyReason { check: "draining", message: message.into() });
        }
        if self.engine.nodes().is_draining() {
            let message = "this node is drained: requests are still served, and load balancers are to send new ones elsewhere; \
                           `rialto nodes drain NAME --undo` undoes it";
            lacks.push(NotReadyReason { check: "draining", message: message.into() });
        }
        // Any question will do; this one is answered from an index, and by no agent.
        let (nobody, ask) = (AgentId::from("readyz"), &self.store);
        let answered = tokio::time::timeout(STORE_TIMEOUT, ask.probes(&nobody, 1)).await;
        if let Some(problem) = self.store.problem().await {
            lacks.push(NotReadyReason { check: "store", message: problem.message().into() });
        } else if !matches!(answered, Ok(Ok(_))) {
            lacks.push(NotReadyReason { check: "store", message: STORE_IS_SILENT.into() });
        }
        if !self.engine.policies().is_up_to_date() {
            let message = "the policies were changed and are not valid, the previous ones are active; \
                           `rialto policy check` prints the problems";
            lacks.push(NotReadyReason { check: "policies", message: message.into() });
        }
        let servers = (self.pending_servers)();
        if !servers.is_empty() {
            let message = format!("waiting for the first tool list of MCP servers: {}", servers.join(", "));
            lacks.push(NotReadyReason { check: "mcp-servers", message: message.into() });
        }
        lacks
    }
}

#[cfg(test)]
mod tests {
    use rialto_engine::{Config, EngineDeps, Registry};
    use rialto_model::clock::SystemClock;
    use rialto_policy::Policy;
    use rialto_store::SqliteStore;
    use rialto_testkit::{
        agents::parse_card,
        peer::{ScriptedDiscovery, ScriptedPeer},
    };

    use super::*;

    fn engine() -> Engine {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory(parse_card).unwrap());
        let (discovery, clock) = (Arc::new(ScriptedDiscovery::default()), Arc::new(SystemClock));
        let registry = Registry::new(store.clone(), discovery, clock.clone(), Config::default());
        Engine::new(EngineDeps {
            store,
            registry: Arc::new(registry),
            peer: ScriptedPeer::echo(),
            policy: Policy::starter().unwrap(),
            policy_loader: None,
            clock,
            config: Config::default(),
        })
    }

    #[tokio::test]
    async fn a_server_whose_store_does_not_answer_or_that_is_stopping_is_not_ready() {
        let store = Arc::new(SqliteStore::in_memory(parse_card).unwrap());
        let draining = Arc::<AtomicBool>::default();
        let readiness =
            Readiness::new(engine(), store.clone(), Arc::clone(&draining), Arc::new(Vec::<String>::new));
        assert_eq!(readiness.missing_parts().await, []);
        store.close().await;
        draining.store(true, Ordering::Relaxed);
        let lacks: Vec<_> = readiness.missing_parts().await.iter().map(|lack| lack.check).collect();
        assert_eq!(lacks, ["draining", "store"]);
    }

    #[tokio::test]
    async fn a_server_that_lacks_the_first_tool_list_of_an_mcp_server_is_not_ready() {
        let store = Arc::new(SqliteStore::in_memory(parse_card).unwrap());
        let pending = || vec!["quick".to_owned(), "slow".to_owned()];
        let readiness = Readiness::new(engine(), store, Arc::default(), Arc::new(pending));
        let lacks = readiness.missing_parts().await;
        let message = "waiting for the first tool list of MCP servers: quick, slow";
        assert_eq!(lacks, [NotReadyReason { check: "mcp-servers", message: message.into() }]);
    }
}
