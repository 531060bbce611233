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

use crate::deployed_backends::InitialToolLists;

/// A store that takes longer to answer than this does not.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// The address of the store is not public; the log and the doctor have the details.
const STORE_IS_SILENT: &str = "the store does not answer: check that its disk has space, or that the database server that \
                               [store] url names is running; `rialto doctor` and the server's log have details";

/// Checks of everything that calls need.
#[derive(Clone)]
pub(crate) struct Readiness {
    engine: Engine,
    store: Arc<dyn Store>,
    draining: Arc<AtomicBool>,
    first_lists: InitialToolLists,
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
    pub(crate) fn new(
        engine: Engine,
        store: Arc<dyn Store>,
        draining: Arc<AtomicBool>,
        first_lists: InitialToolLists,
    ) -> Self {
        Self { engine, store, draining, first_lists }
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
        let servers = self.first_lists.waiting_for();
        if !servers.is_empty() {
            let message = format!("waiting for the first tool list of MCP servers: {}", servers.join(", "));
            lacks.push(NotReadyReason { check: "mcp-servers", message: message.into() });
        }
        lacks
    }
}

#[cfg(test)]
mod tests {
    use rialto_store::SqliteStore;

    use super::*;
    use crate::{
        app::{App, DataLocation},
        config::Config,
        environment::Environment,
    };

    #[tokio::test]
    async fn a_server_whose_store_does_not_answer_or_that_is_stopping_is_not_ready() {
        let program =
            App::open(Config::default(), DataLocation::Memory, None, &Environment::default()).await.unwrap();
        let store = Arc::new(SqliteStore::in_memory(|_| Err("no cards here".into())).unwrap());
        let draining = Arc::<AtomicBool>::default();
        let readiness = Readiness::new(
            program.engine.clone(),
            store.clone(),
            Arc::clone(&draining),
            InitialToolLists::default(),
        );
        assert_eq!(readiness.missing_parts().await, []);
        store.close().await;
        draining.store(true, Ordering::Relaxed);
        let lacks: Vec<_> = readiness.missing_parts().await.iter().map(|lack| lack.check).collect();
        assert_eq!(lacks, ["draining", "store"]);
    }
}
